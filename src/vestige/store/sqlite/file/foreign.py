"""Reads an SQLite database of another program without changing a byte of it.

The readers of the formats say what its tables mean. A table or column that a version of that program lacks is
just absent.
"""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass

HEADER = b"SQLite format 3\0"
LOGS = ("-wal", "-journal")
"""What is only in these files beside a database belongs to it."""
HEAD_BYTES = 32
"""The header of a write-ahead log, whose salts are new each time that the log starts anew."""
MOST_COPIES = 3
"""How often a database that keeps changing is copied before it is refused."""
OWN = "sqlite_"
"""Tables whose names begin so are SQLite's own."""
MAX_VALUE_BYTES = 64_000_000
"""A larger text or blob ends the reading: a hostile file must not fill the memory."""
LEAST_STEPS, STEPS_PER_BYTE = 20_000_000, 10
"""The steps that SQLite may take to the next row of a file of some size; more ends the reading. To check or
sort takes less than 10 for a row."""
STEPS = 10_000
"""The steps between two looks."""
GENERATED = 2
"""What SQLite says of a column that is computed when it is read."""
PLAIN = "CREATE TABLE"
GUARDS = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    "PRAGMA ignore_check_constraints = ON",
    "PRAGMA query_only = ON",
)
"""A constraint of a hostile file may compute anything, for every row that is checked. Views and triggers are
not used: only tables are read."""
READING = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_PRAGMA}
)
"""What a statement may do here."""

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignDatabase:
    """An open database of another program: the columns and the number of rows of each table that is not an
    index."""

    path: Path
    columns: Mapping[str, tuple[str, ...]]
    counts: Mapping[str, int]
    db: sqlite3.Connection
    steps: "_Steps"

    def has(self, table: str, *columns: str) -> bool:
        return table in self.columns and set(columns) <= set(self.columns[table])

    def rows(self, table: str, *, order: Sequence[str] = (), without: Sequence[str] = ()) -> Iterator[Row]:
        """Every row of a table by column, in the order of arrival or of these columns, those `without` left
        out; none where there is no such table."""
        if table not in self.columns:
            return
        wanted = [name for name in self.columns[table] if name not in without]
        listed = ", ".join(map(_quoted, wanted)) or "NULL"
        sorting = f" ORDER BY {', '.join(map(_quoted, order))}" if order else ""
        with _reading(self.path):
            cursor = self.db.execute(f"SELECT {listed} FROM {_quoted(table)}{sorting}")
            for row in cursor:  # one by one: each may be large
                self.steps.begin()
                yield dict(zip(wanted, row, strict=False))


class _Steps:
    """Ends a statement that takes more steps than reading does."""

    def __init__(self, path: Path) -> None:
        self._most = (LEAST_STEPS + STEPS_PER_BYTE * path.stat().st_size) // STEPS
        self._left = self._most

    def begin(self) -> None:
        self._left = self._most

    def look(self) -> bool:
        """Whether to end; called by SQLite between steps."""
        self._left -= 1
        return self._left < 0


def is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(HEADER)) == HEADER


@contextmanager
def opened(path: Path) -> Iterator[ForeignDatabase]:
    """The database for reading; InvalidInput for a damaged one, and for one that another program changes
    meanwhile. Only a process that may write beside the file can read its log in place, so a database with a
    log is copied first."""
    before = _traces(path)
    if any(before[end].size for end in LOGS):
        with (
            tempfile.TemporaryDirectory(prefix="vestige-import-") as folder,
            _connected(_copied(path, Path(folder)), "mode=rw", path) as file,
        ):
            yield file
        return
    try:
        with _connected(path, "mode=ro&immutable=1", path) as file:
            yield file
    except InvalidInput as exc:  # what looks like damage may be a change
        if _traces(path) != before:
            raise _changed(path) from exc
        raise
    if _traces(path) != before:
        raise _changed(path)


class _Trace(NamedTuple):
    """What shows that a file was written. The head of a log changes when it starts anew."""

    size: int
    mtime_ns: int
    head: bytes


_ABSENT = _Trace(0, 0, b"")


def _traces(path: Path) -> dict[str, _Trace]:
    """The trace of a database and of each of its logs, by the end of the name."""
    return {end: _trace(Path(f"{path}{end}")) for end in ("", *LOGS)}


def _trace(path: Path) -> _Trace:
    try:
        with path.open("rb") as file:
            about = os.fstat(file.fileno())
            return _Trace(about.st_size, about.st_mtime_ns, file.read(HEAD_BYTES))
    except (FileNotFoundError, IsADirectoryError):
        return _ABSENT


def _copied(path: Path, folder: Path) -> Path:
    """A copy of a database and its logs as they were at one moment. A checkpoint between two copies moves
    rows from the log, not copied yet, into the file, copied before: then all are copied again."""
    for attempt in range(MOST_COPIES):
        before = _traces(path)
        copy = folder / f"foreign-{attempt}.db"
        with suppress(FileNotFoundError):  # a log that is gone differs from its trace
            for end in ("", *(end for end in LOGS if before[end].size)):
                shutil.copyfile(f"{path}{end}", f"{copy}{end}")
        if _traces(path) == before:
            return copy
        for end in ("", *LOGS):
            Path(f"{copy}{end}").unlink(missing_ok=True)
    raise _changed(path)


def _changed(path: Path) -> InvalidInput:
    return InvalidInput(
        f"{path} changed while it was read: another program is writing to it.",
        hint="Close the program that uses it first, then import it again.",
    )


@contextmanager
def _connected(path: Path, how: str, named: Path) -> Iterator[ForeignDatabase]:
    with _reading(named):
        db = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
    with closing(db):
        # A text that is not UTF-8 must cost one record, not the import: it is refused later, by name.
        db.text_factory = lambda found: found.decode("utf-8", "surrogateescape")
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_VALUE_BYTES)
        steps = _Steps(path)
        with _reading(named):
            # An index over JSON of an honest program cannot be read from the schema once it is not trusted.
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            for guard in GUARDS:
                db.execute(guard)
            db.set_authorizer(lambda what, *_: sqlite3.SQLITE_OK if what in READING else sqlite3.SQLITE_DENY)
            db.set_progress_handler(steps.look, STEPS)
            file = _described(db, named, steps)
        yield file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Translate the driver's errors. The damage is in the foreign file, not in the store."""
    try:
        yield
    except (sqlite3.Error, UnicodeError) as exc:
        raise _damaged(path, str(exc)) from exc


def _damaged(path: Path, how: str) -> InvalidInput:
    return InvalidInput(
        f"{path} cannot be read through: {how}.",
        hint="Import a backup of it, or what `sqlite3 FILE .recover` makes of it.",
    )


def _described(db: sqlite3.Connection, path: Path, steps: _Steps) -> ForeignDatabase:
    made = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table' ORDER BY name").fetchall()
    virtual = tuple(str(name) for name, sql in made if not str(sql).upper().startswith(PLAIN))
    shadows = tuple(f"{name}_" for name in virtual)
    tables = [
        str(name) for name, _ in made if name not in virtual and not str(name).startswith((OWN, *shadows))
    ]
    columns = {name: _columns(db, name) for name in tables}
    counts: dict[str, int] = {}
    for name in tables:  # one by one: a virtual table cannot be checked without the extension that made it
        steps.begin()
        verdict = _verdict(db, name)
        if verdict != ["ok"]:
            raise _damaged(path, "; ".join(verdict[:3]))
        counts[name] = db.execute(f"SELECT count(*) FROM {_quoted(name)}").fetchone()[0]
    return ForeignDatabase(path=path, columns=columns, counts=counts, db=db, steps=steps)


def _verdict(db: sqlite3.Connection, table: str) -> list[str]:
    """What is damaged in a table, or "ok". A table with computed columns is not checked: their expressions,
    which may be hostile, would be computed for each row."""
    if any(row[6] == GENERATED for row in db.execute(f"PRAGMA table_xinfo({_quoted(table)})")):
        return ["ok"]
    return [str(row[0]) for row in db.execute(f"PRAGMA quick_check({_quoted(table)})")]


def _columns(db: sqlite3.Connection, table: str) -> tuple[str, ...]:
    return tuple(str(row[1]) for row in db.execute(f"PRAGMA table_info({_quoted(table)})"))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
