"""Reads a database of the reference system, of any of its schemas, without changing a byte.

A table or column that a schema lacks is just absent. Later schemas are read as far as they have the same
names.
"""

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from vestige.core.errors import InvalidInput

HEADER = b"SQLite format 3\0"
NODES = "knowledge_nodes"
OURS = "schema_migrations"
INDEX = ("knowledge_fts", "sqlite_")
"""Tables whose names begin so hold only derived data."""
ROWS_AT_ONCE = 500

Row = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceFile:
    """An open database of the reference system: its schema, and the number of rows of each table."""

    path: Path
    version: int
    counts: dict[str, int]
    db: sqlite3.Connection

    def rows(self, table: str) -> Iterator[Row]:
        """Every row of a table in the order of arrival, by column; none where there is no such table."""
        if table not in self.counts:
            return
        with _reading(self.path):
            cursor = self.db.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            while found := cursor.fetchmany(ROWS_AT_ONCE):
                yield from (dict(zip(names, row, strict=True)) for row in found)


def is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(HEADER)) == HEADER


@contextmanager
def opened(path: Path) -> Iterator[ReferenceFile]:
    """The database for reading; InvalidInput for another kind of file or a damaged one. Its write-ahead log
    belongs to it. Only a process that may write beside the file can read the log in place, so otherwise a
    copy is read."""
    log = Path(f"{path}-wal")
    if log.is_file() and log.stat().st_size:
        with tempfile.TemporaryDirectory(prefix="vestige-import-") as folder:
            copy = Path(folder) / "reference.db"
            shutil.copyfile(path, copy)
            shutil.copyfile(log, f"{copy}-wal")
            with _connected(copy, "mode=rw", path) as file:
                yield file
        return
    with _connected(path, "mode=ro&immutable=1", path) as file:
        yield file


@contextmanager
def _connected(path: Path, how: str, named: Path) -> Iterator[ReferenceFile]:
    with _reading(named):
        db = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)
    with closing(db):
        # A text that is not UTF-8 must cost one record, not the import: it is refused later, by name.
        db.text_factory = lambda found: found.decode("utf-8", "surrogateescape")
        with _reading(named):
            file = _described(db, named)
        yield file


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Translate the driver's errors. The damage is in the foreign file, not in the store."""
    try:
        yield
    except sqlite3.Error as exc:
        raise _damaged(path, str(exc)) from exc


def _damaged(path: Path, how: str) -> InvalidInput:
    return InvalidInput(
        f"{path} cannot be read through: {how}.",
        hint="Import a backup of it, or what `sqlite3 FILE .recover` makes of it.",
    )


def _described(db: sqlite3.Connection, path: Path) -> ReferenceFile:
    tables = [
        row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")
    ]
    if OURS in tables:
        raise InvalidInput(
            f"{path} is a database of this Vestige, not something to import.",
            hint="`vestige restore` replaces the store by it; to merge two stores, import an export of it.",
        )
    if NODES not in tables:
        raise InvalidInput(
            f"{path} is a database, but not one of Vestige.", hint=f"It has no table `{NODES}`."
        )
    verdict = [row[0] for row in db.execute("PRAGMA quick_check(3)")]
    if verdict != ["ok"]:
        raise _damaged(path, "; ".join(verdict))
    counts = {
        name: db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
        for name in tables
        if not name.startswith(INDEX)
    }
    return ReferenceFile(path=path, version=_version(db, tables), counts=counts, db=db)


def _version(db: sqlite3.Connection, tables: list[str]) -> int:
    """The recorded schema version; 0 without one."""
    if "schema_version" not in tables:
        return 0
    found = db.execute("SELECT max(version) FROM schema_version").fetchone()[0]
    return found if isinstance(found, int) else 0
