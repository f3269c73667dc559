"""Replaces the file of a store: the old one is kept, and comes back if anything fails."""

import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from vestige.core.errors import StoreBusy
from vestige.store.contract.processes import Who
from vestige.store.sqlite.backup.backup import sync
from vestige.store.sqlite.connection import connect, primary_code, translated
from vestige.store.sqlite.file.foreign import is_database
from vestige.store.sqlite.opening import BACKUPS
from vestige.store.sqlite.processes.presence import users

BESIDE = ("-wal", "-shm", "-journal")


def replace(staged: Path, database: Path, *, prove: Callable[[], None]) -> Path | None:
    """Replace the store by a file; returns where the old store is kept (None when there was none). `prove`
    opens it in its place and raises if it cannot. Whatever fails, the store is unchanged."""
    with _taken(database) as owner:
        kept = _free_name(database) if database.exists() else None
        try:
            if kept is not None:
                _keep(database, kept, owner)
            _move(staged, database)
            prove()
        except BaseException:
            _put_back(kept, database)
            raise
    return kept


def remove(*paths: Path) -> None:
    """Remove those of these files that exist."""
    for path in paths:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def beside(database: Path) -> list[Path]:
    """The journals that SQLite keeps beside a database."""
    return [Path(f"{database}{end}") for end in BESIDE]


def busy(database: Path, ours: Sequence[Who]) -> StoreBusy:
    """The error for replacing a store in use, with the processes of Vestige or other visible programs."""
    found = ours or users(database)
    named = ", ".join(map(str, found)) or "another program has it open"
    return StoreBusy(
        f"The store is in use, so it was left as it is: {named}.",
        hint="Stop what uses it (an agent's vestige-mcp, a server, a database browser), then restore again.",
        details={"path": str(database), "pids": [who.pid for who in found]},
    )


@contextmanager
def _taken(database: Path) -> Iterator[sqlite3.Connection | None]:
    """Get exclusive use of the store, all of it in its one file; StoreBusy while another process has it open.
    SQLite leaves WAL mode only for the last connection to a file, so success proves that there is no other,
    and an exclusive transaction keeps it so. A store too damaged for that (None) has no users."""
    # SQLite would discard the log beside a file that is not a database, and with it what could be saved.
    if not database.exists() or not is_database(database):
        yield None
        return
    with ExitStack() as open_files:
        owner: sqlite3.Connection | None = None
        try:
            owner = open_files.enter_context(closing(connect(database)))
            if owner.execute("PRAGMA journal_mode = DELETE").fetchone() != ("delete",):
                raise busy(database, ())
            owner.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as exc:
            owner = None
            open_files.close()
            _refuse_busy(exc, database)
        yield owner


def _refuse_busy(exc: sqlite3.Error, database: Path) -> None:
    """Ignore an error of a damaged store; raise any other."""
    code = primary_code(exc)
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        raise busy(database, ()) from exc
    with translated(database):
        raise exc


def _free_name(database: Path) -> Path:
    """A name in backups/ with the time of the kept store."""
    changed = datetime.fromtimestamp(database.stat().st_mtime, UTC)
    stem = f"{database.stem}-replaced-{changed:%Y%m%d-%H%M%S}"
    names = (f"{stem}{f'-{number}' if number else ''}.db" for number in count())
    places = (database.parent / BACKUPS / name for name in names)
    return next(place for place in places if not place.exists())


def _keep(database: Path, kept: Path, owner: sqlite3.Connection | None) -> None:
    """Keep the store under a second name; without a copy where the file system can do that."""
    kept.parent.mkdir(mode=0o700, exist_ok=True)
    try:
        os.link(database, kept)
    except OSError:  # a file system without hard links
        _copy(database, kept, owner)
    # Only a damaged store still has any. Beside the new file, an old log would be played into it.
    for end in BESIDE:
        journal = Path(f"{database}{end}")
        if journal.exists():
            journal.replace(f"{kept}{end}")
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


def _move(staged: Path, database: Path) -> None:
    staged.chmod(0o600)
    staged.replace(database)
    sync(database.parent)


def _put_back(kept: Path | None, database: Path) -> None:
    """Undo the steps of keeping and replacing."""
    if kept is None:
        remove(database, *beside(database))
    elif kept.exists():
        remove(*beside(database))
        for end in ("", *BESIDE):
            if Path(f"{kept}{end}").exists():
                Path(f"{kept}{end}").replace(f"{database}{end}")
        remove(kept)  # still there if it was a second name of the file in place
