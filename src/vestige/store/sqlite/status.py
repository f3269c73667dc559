"""The status of a SQLite database, without opening it as a store: the file is only read."""

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from vestige.core.errors import StoreTooNew
from vestige.store.contract.trouble import DatabaseStatus, TableStatus, of_newer
from vestige.store.sql.merge import arrivals
from vestige.store.sqlite.check.schema import schema_differences
from vestige.store.sqlite.connection import connect, translated
from vestige.store.sqlite.opening import plan, readable_uri

TABLES = (
    "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    " AND name NOT LIKE 'words%' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
)
"""The tables of a store, without those of the full-text index."""


def status(database: Path) -> DatabaseStatus:
    """The status of a file. StoreError as when it is opened."""
    try:
        upgrade = plan(database)
    except StoreTooNew as exc:
        upgrade = of_newer(exc)
    tables: tuple[TableStatus, ...] = ()
    complete, missing = True, tuple[str, ...]()
    if upgrade.schema:
        with translated(database), closing(connect(database, uri=readable_uri(database))) as db:
            names = [name for (name,) in db.execute(TABLES)]
            tables = tuple(TableStatus(name=name, rows=_rows(db, name)) for name in names)
            complete = arrivals.TABLE not in names or arrivals.is_complete(db)
            missing = () if upgrade.steps or upgrade.newer else _missing(db)
    return DatabaseStatus(
        place=str(database),
        server=f"SQLite {sqlite3.sqlite_version}",
        upgrade=upgrade,
        read_only=database.exists() and not os.access(database, os.W_OK),
        size_bytes=sum(one.stat().st_size for one in _files(database) if one.exists()),
        tables=tables,
        complete=complete,
        missing=missing,
    )


def _missing(db: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(str(one.expected) for one in schema_differences(db) if one.missing)


def _rows(db: sqlite3.Connection, name: str) -> int:
    (rows,) = db.execute(f'SELECT count(*) FROM "{name}"').fetchone()
    return int(rows)


def _files(database: Path) -> tuple[Path, ...]:
    return (database, Path(f"{database}-wal"))
