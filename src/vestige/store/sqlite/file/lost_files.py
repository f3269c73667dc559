"""Detects a store whose file was emptied, lost or overwritten, so that it is not taken for a new store.

SQLite makes a new database of an empty file, and discards the log beside a file that is not a database, with
every write that is only there. So this check comes before SQLite opens the file for writing.
"""

import sqlite3
from contextlib import closing
from pathlib import Path

from vestige.core.errors import StoreCorrupt
from vestige.store.sqlite.connection import connect, primary_code
from vestige.store.sqlite.file import identity

HEADER_BYTES = 100


def check(path: Path) -> None:
    """StoreCorrupt for a file that held a store and no longer does. Nothing is changed."""
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


def _lost(path: Path, what: str) -> StoreCorrupt:
    return StoreCorrupt(
        f"{what}. It was left as it is.",
        hint=f"Restore a backup (vestige-restore). To start a new store, move {path.name} and the files "
        f"whose names begin with it elsewhere.",
        details={"path": str(path)},
    )
