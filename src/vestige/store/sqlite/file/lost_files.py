"""Detects a store whose file was emptied, lost or overwritten, so that it is not taken for a new store.

SQLite makes a new database of an empty file, and discards the log beside a file that is not a database, with
every write that is only there. So this check comes before SQLite opens the file for writing.
"""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from vestige.core.errors import StoreCorrupt
from vestige.store.sqlite.connection import connect, primary_code
from vestige.store.sqlite.file import identity

HEADER_BYTES = 100
PAGE_BYTES = 65_536
"""The size of the largest page: a larger file has tables."""
CREATION_SECONDS = 0.5
"""How long another process may take between the header of a new store and its log."""


def check(path: Path, *, again: Callable[[], bool]) -> None:
    """StoreCorrupt for a file that held a store and no longer does. Nothing is changed. `again` waits for a
    moment, and returns False when another process that creates the store had time enough."""
    journal = Path(f"{path}-wal")
    logged = bool(_size(journal))
    size = _size(path)
    if size is None:
        if logged:
            raise _lost(path, f"{path.name} is gone, but its log {journal.name} is there")
    elif size == 0:
        if logged or identity.is_marked(path):
            raise _lost(path, f"{path.name} is empty, but it held a store")
    elif size < HEADER_BYTES or (logged and not _is_database(path)):
        raise _lost(path, f"{path.name} is not a database")
    elif size <= PAGE_BYTES:
        while _is_without_log(path, journal):
            if not again():
                raise _without_log(path, journal)


def _size(path: Path) -> int | None:
    """The size of a file; None without one. Another process may remove the log at any moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return None


def _is_database(path: Path) -> bool:
    """Checked by SQLite: closing the file here would end the locks of other connections of this process."""
    uri = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(connect(path, uri=uri)) as db:
            db.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as exc:
        return primary_code(exc) != sqlite3.SQLITE_NOTADB
    return True


def _is_without_log(path: Path, journal: Path) -> bool:
    """Whether a database has no table, and no log in which one could be. A killed process leaves its log."""
    try:
        with closing(connect(path, uri=f"{path.absolute().as_uri()}?mode=ro&immutable=1")) as db:
            (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.Error:
        return False  # it says why when it is opened
    return not tables and not journal.exists() and _size(path) != 0


def _without_log(path: Path, journal: Path) -> StoreCorrupt:
    return StoreCorrupt(
        f"{path.name} has no tables, and its log {journal.name} is missing: it is a copy of a store in use "
        "without its log. It was left as it is.",
        hint=f"Copy {journal.name} of the original too, or make the copy with `vestige backup`. To start a "
        f"new store, move {path.name} elsewhere.",
        details={"path": str(path)},
    )


def _lost(path: Path, what: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{what}. It was left as it is.",
        hint=f"Restore a backup (vestige-restore). To start a new store, move {path.name} and the files "
        f"whose names begin with it elsewhere.",
        details={"path": str(path)},
    )
