"""An empty SQLite store that is migrated once per process and copied for each test.

Applying all migrations is most of the work of opening a new store. The copy has no installation row: it is
the file of a process that ended between the last migration and its first node id, so that the first opening
gives it a node id as it does for a new file. Tests about opening and migrating do not use it.
"""

import random
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from vestige.store.sqlite.processes import locks
from vestige.store.sqlite.store import SqliteStore

_MIGRATED_AT = datetime(2026, 1, 1, tzinfo=UTC)


def put_template(path: Path) -> None:
    """Write a migrated store without a node to `path`, unless there is a file or something beside it."""
    folder = path.parent
    if folder.exists() and any(folder.iterdir()):
        return
    if not folder.exists():
        folder.mkdir(parents=True)
        folder.chmod(0o700)
    path.touch(mode=0o600, exist_ok=False)
    path.write_bytes(_template())
    locks.lock_file(path).touch(mode=0o600)  # migrating left it


@cache
def _template() -> bytes:
    with tempfile.TemporaryDirectory(prefix="vestige-template-") as folder:
        path = Path(folder) / "vestige.db"
        SqliteStore.open(
            path,
            rng=random.Random(1),
            sleep=lambda seconds: None,
            monotonic=lambda: 0.0,
            new_id=lambda: "template",
            now=lambda: _MIGRATED_AT,
            machine="template",
        ).close()
        with closing(sqlite3.connect(path, isolation_level=None)) as db:
            db.execute("DELETE FROM installation")
            db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return path.read_bytes()
