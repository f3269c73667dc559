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
            counts = {name: db.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
            tables = tuple(TableStatus(name=name, rows=rows) for name, rows in counts.items())
            complete = arrivals.TABLE not in names or arrivals.is_complete(db)
            if not upgrade.steps and not upgrade.newer:
                missing = tuple(str(one.expected) for one in schema_differences(db) if one.missing)
    files = (database, Path(f"{database}-wal"))
    return DatabaseStatus(
        place=str(database),
        server=f"SQLite {sqlite3.sqlite_version}",
        upgrade=upgrade,
        read_only=database.exists() and not os.access(database, os.W_OK),
        size_bytes=sum(one.stat().st_size for one in files if one.exists()),
        tables=tables,
        complete=complete,
        missing=missing,
    )
