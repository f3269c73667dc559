"""The write-ahead log of a database: its length, and deleted text that is still in it.

A deletion is complete when the log was copied into the file and truncated, which a reader that began earlier
prevents. So a marker file is written beside the database, before the commit that deletes: the next process
that commits or closes truncates the log.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vestige.store.sql.database import Database

BYTES = 32 << 20
"""The length above which a writer tries to truncate the log after a commit."""
STEP_BYTES = 4 << 20
"""The growth between two attempts that readers prevented."""
PATIENCE_SECONDS = (0.05, 0.5)
"""The seconds that an attempt waits for readers, and once the log is twice as long; writers wait too."""
INSIST_SECONDS = 1.0
"""The seconds between two attempts for deleted text that wait for readers; other attempts do not wait."""
OWED = ".owed"


def owe(db: Database) -> None:
    """Write the marker, in a transaction that deletes text."""
    database = db.execute("PRAGMA database_list").fetchone()[2]
    os.close(os.open(f"{database}{OWED}", os.O_WRONLY | os.O_CREAT, 0o600))


def emptied(db: sqlite3.Connection, patience_seconds: float) -> bool:
    """Copy and truncate the log; False when its readers did not end in time."""
    (before,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute(f"PRAGMA busy_timeout = {round(1000 * patience_seconds)}")
    try:
        return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        db.execute(f"PRAGMA busy_timeout = {before}")


@dataclass(slots=True, kw_only=True)
class Journal:
    """The maintenance of the log of one database."""

    database: Path
    monotonic: Callable[[], float]
    _allowed: int = 0
    _insisted: float | None = None
    _seen: tuple[int, int] | None = None
    _copied: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        self.database = self.database.resolve()  # as SQLite does: the log is beside the file itself

    @property
    def owed(self) -> bool:
        """Whether deleted text may still be in the log."""
        return os.path.exists(f"{self.database}{OWED}")  # noqa: PTH110 - at every commit: a Path costs more

    @property
    def lingers_in(self) -> str | None:
        """The name of the log while deleted text may be in it."""
        return f"{self.database.name}-wal" if self.owed and self._size() else None

    def maintain(self, db: sqlite3.Connection) -> None:
        """Truncate the log after a commit, if it holds deleted text or is too long. Errors are ignored."""
        with suppress(sqlite3.Error, OSError):
            if self.owed:
                self.pay(db, self._patience())
            self._bound(db)

    def at_rest(self) -> bool:
        """Whether the log was not written since the previous call, and is not known to be in the file."""
        before, self._seen = self._seen, self._stamp()
        return self._seen is not None and self._seen == before != self._copied

    def copy(self, db: sqlite3.Connection) -> None:
        """Copy the log into the file and leave it in place: no reader or writer waits, and a copy of the file
        alone is complete. What an earlier snapshot still needs is left for the next call."""
        stamp = self._stamp()
        busy, logged, copied = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        self._copied = stamp if not busy and logged == copied else None

    def pay(self, db: sqlite3.Connection, patience_seconds: float = PATIENCE_SECONDS[0]) -> None:
        """Truncate the log, and remove the marker. While readers prevent it, the marker stays."""
        if not emptied(db, patience_seconds):
            return
        # Markers are written under the write lock. While we hold it there are no new ones, and all present
        # ones belong to what was truncated, or to a log that is not empty any more.
        db.execute("BEGIN IMMEDIATE")
        try:
            if not self._size():
                Path(f"{self.database}{OWED}").unlink(missing_ok=True)
        finally:
            db.execute("ROLLBACK")

    def _patience(self) -> float:
        now = self.monotonic()
        if self._insisted is not None and now < self._insisted + INSIST_SECONDS:
            return 0.0
        self._insisted = now
        return PATIENCE_SECONDS[0]

    def _bound(self, db: sqlite3.Connection) -> None:
        """Truncate a log that is too long. SQLite does so only without readers, and with many readers there
        always is one: here writers wait for a moment, and new readers do not need the log. A reader that
        stays longer prevents it; then it is tried again when the log has grown further."""
        size = self._size()
        if size + STEP_BYTES < self._allowed:
            self._allowed = 0  # it has become shorter since it could not be emptied
        if size <= max(BYTES, self._allowed):
            return
        self._allowed = size + STEP_BYTES
        if emptied(db, PATIENCE_SECONDS[size > 2 * BYTES]):
            self._allowed = 0

    def _stamp(self) -> tuple[int, int] | None:
        """The time and size of the log, which every write of any process changes; None without a log."""
        try:
            log = os.stat(f"{self.database}-wal")  # noqa: PTH116 - as above
        except OSError:
            return None
        return (log.st_mtime_ns, log.st_size) if log.st_size else None

    def _size(self) -> int:
        try:
            return os.stat(f"{self.database}-wal").st_size  # noqa: PTH116 - as above
        except OSError:
            return 0
