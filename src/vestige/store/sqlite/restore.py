"""Putting a backup in the place of the store. Until the last step nothing of the store has changed.

inspect ─► copy beside the store, inspect the copy ─► take the store for ourselves
        ─► keep it in backups/ ─► replace the file ─► prove that it opens, or put the old one back
"""

import errno
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from vestige.errors import InvalidInput, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from vestige.store import migrate
from vestige.store.sqlite import registry
from vestige.store.sqlite.backup import sync
from vestige.store.sqlite.connection import HINTS, connect, primary_code, translated
from vestige.store.sqlite.opening import applied, schema

HEADER = b"SQLite format 3\0"
BACKUPS = "backups"
_BESIDE = ("-wal", "-shm", "-journal")
_FULL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """What is in a backup."""

    schema: int
    memories: int
    events: int
    newest: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was put in place, and where the store it replaced is kept (None when there was none)."""

    contents: Contents
    kept: Path | None


def inspect(backup: Path) -> Contents:
    """Read a backup through and say what is in it; an error says why it cannot be restored."""
    with _file_errors(backup):
        _check_header(backup)
        try:
            with translated(backup), closing(connect(backup, uri=_reading(backup))) as db:
                return _contents(db, backup)
        except StoreCorrupt as exc:
            raise _damaged(backup, [exc.message]) from exc


def restore(backup: Path, database: Path, *, prove: Callable[[], None]) -> Restored:
    """Replace the store at `database` by a backup. `prove` opens it in its place and raises if it cannot.

    Whatever fails, the store is what it was before.
    """
    if database.exists() and backup.exists() and database.samefile(backup):
        raise InvalidInput("This is the store itself, not a backup of it.")
    inspect(backup)
    with _file_errors(database):
        database.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _staged(backup, database) as staged, _taken(database) as owner:
            contents = inspect(staged)
            kept = _free_name(database) if database.exists() else None
            try:
                if kept is not None:
                    _keep(database, kept, owner)
                _replace(staged, database)
                prove()
            except BaseException:
                _put_back(kept, database)
                raise
    return Restored(contents=contents, kept=kept)


# -- the backup ----------------------------------------------------------------------------------------


def _check_header(backup: Path) -> None:
    if not _is_database(backup):
        raise InvalidInput(
            f"{backup} is not a backup: it is not an SQLite database.",
            hint="Give a file made by `vestige backup`, or a copy of vestige.db.",
            details={"path": str(backup)},
        )


def _is_database(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(HEADER)) == HEADER


def _reading(backup: Path) -> str:
    """How to open a backup without leaving anything beside it."""
    journals = [Path(f"{backup}-wal"), Path(f"{backup}-journal")]
    # A copy with a journal beside it is only whole together with it; any other just lies there.
    live = any(journal.exists() and journal.stat().st_size for journal in journals)
    return f"{backup.absolute().as_uri()}?{'mode=ro' if live else 'mode=ro&immutable=1'}"


def _contents(db: sqlite3.Connection, backup: Path) -> Contents:
    tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not {"schema_migrations", "memories", "events", "installation"} <= tables:
        raise InvalidInput(
            f"{backup} is a database of another program.",
            hint="Give a file made by `vestige backup`, or a copy of vestige.db.",
            details={"path": str(backup)},
        )
    done = applied(db)
    migrate.pending(schema(), done)  # refuses a schema from the future
    verdict = [row[0] for row in db.execute("PRAGMA integrity_check(5)")]
    if verdict != ["ok"]:
        raise _damaged(backup, verdict)
    memories, newest = db.execute("SELECT count(*), max(updated_at) FROM memories").fetchone()
    events = db.execute("SELECT count(*) FROM events").fetchone()[0]
    return Contents(schema=done[-1].version, memories=memories, events=events, newest=newest)


def _damaged(backup: Path, check: list[str]) -> StoreCorrupt:
    return StoreCorrupt(
        f"{backup} is damaged.", hint="Use an earlier backup.", details={"path": str(backup), "check": check}
    )


@contextmanager
def _staged(backup: Path, database: Path) -> Iterator[Path]:
    """A durable copy of the backup beside the store; gone at the end unless it was moved."""
    handle, name = tempfile.mkstemp(prefix=f".{database.name}.", suffix=".restoring", dir=database.parent)
    os.close(handle)
    staged = Path(name)
    try:
        with (
            translated(database),
            closing(connect(backup, uri=_reading(backup))) as source,
            closing(connect(staged)) as target,
        ):
            source.backup(target)
            target.execute("PRAGMA journal_mode = DELETE").fetchall()
            # Its past belongs to another installation, or to a time that is given up now.
            registry.unsettle(target)
        sync(staged)
        yield staged
    finally:
        _remove(staged, *(Path(f"{staged}{end}") for end in _BESIDE))


# -- the store -----------------------------------------------------------------------------------------


@contextmanager
def _taken(database: Path) -> Iterator[sqlite3.Connection | None]:
    """Have the store alone, all of it in its one file; StoreBusy while another process has it open.

    SQLite leaves WAL mode only for the last connection to a file, so that this works proves that
    there is no other, and an exclusive transaction keeps it so. A store too damaged for that (None)
    is one that nobody works with.
    """
    # SQLite would throw away the log beside a file that is no database, and with it what could be saved.
    if not database.exists() or not _is_database(database):
        yield None
        return
    with ExitStack() as open_files:
        owner: sqlite3.Connection | None = None
        try:
            owner = open_files.enter_context(closing(connect(database)))
            if owner.execute("PRAGMA journal_mode = DELETE").fetchone() != ("delete",):
                raise _busy(database)
            owner.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as exc:
            owner = None
            open_files.close()
            _refuse_busy(exc, database)
        yield owner


def _refuse_busy(exc: sqlite3.Error, database: Path) -> None:
    """Go on after an error of a damaged store; any other is one."""
    code = primary_code(exc)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise _busy(database) from exc
    with translated(database):
        raise exc


def _busy(database: Path) -> StoreBusy:
    return StoreBusy(
        "Another process uses the store, so it was left as it is.",
        hint="Stop what uses it (an agent's vestige-mcp, a server), then restore again.",
        details={"path": str(database)},
    )


def _free_name(database: Path) -> Path:
    """A name in backups/ that says of when the kept store is."""
    changed = datetime.fromtimestamp(database.stat().st_mtime, UTC)
    stem = f"{database.stem}-replaced-{changed:%Y%m%d-%H%M%S}"
    names = (f"{stem}{f'-{number}' if number else ''}.db" for number in count())
    places = (database.parent / BACKUPS / name for name in names)
    return next(place for place in places if not place.exists())


def _keep(database: Path, kept: Path, owner: sqlite3.Connection | None) -> None:
    """Keep the store under a second name; nothing is copied where the file system can do that."""
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        os.link(database, kept)
    except OSError:  # a file system without hard links
        _copy(database, kept, owner)
    # Only a damaged store still has any. Beside the new file, an old log would be played into it.
    for end in _BESIDE:
        beside = Path(f"{database}{end}")
        if beside.exists():
            beside.replace(f"{kept}{end}")
    sync(kept.parent)


def _copy(database: Path, kept: Path, owner: sqlite3.Connection | None) -> None:
    if owner is None:
        shutil.copy2(database, kept)
    else:
        # Through SQLite: closing the file after reading it by hand would give up our lock on it.
        owner.execute("COMMIT")
        with translated(database), closing(connect(kept)) as target:
            owner.backup(target)
        owner.execute("BEGIN EXCLUSIVE")
    kept.chmod(0o600)
    sync(kept)


def _replace(staged: Path, database: Path) -> None:
    staged.chmod(0o600)
    staged.replace(database)
    sync(database.parent)


def _put_back(kept: Path | None, database: Path) -> None:
    """Undo what was done of keeping and replacing."""
    if kept is None:
        _remove(database, *(Path(f"{database}{end}") for end in _BESIDE))
    elif kept.exists():
        _remove(*(Path(f"{database}{end}") for end in _BESIDE))
        for end in ("", *_BESIDE):
            if Path(f"{kept}{end}").exists():
                Path(f"{kept}{end}").replace(f"{database}{end}")
        _remove(kept)  # still there if it was a second name of the file in place


# -- files ---------------------------------------------------------------------------------------------


def _remove(*paths: Path) -> None:
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Say in our words that a file or directory cannot be used."""
    try:
        yield
    except FileNotFoundError as exc:
        raise InvalidInput(f"There is no file {exc.filename or path}.", details={"path": str(path)}) from exc
    except PermissionError as exc:
        raise StoreReadOnly(
            f"{exc.filename or path} cannot be used: permission denied.",
            hint=HINTS[StoreReadOnly],
            details={"path": str(path)},
        ) from exc
    except OSError as exc:
        kind = StoreFull if exc.errno in _FULL else StoreError
        raise kind(
            f"{exc.filename or path} cannot be used: {exc.strerror or exc}.", details={"path": str(path)}
        ) from exc
