"""The write-ahead log of a database: how long it may grow, and deleted text that still lies in it.

A deletion is done when the log was copied into the file and cut, and a reader that began earlier keeps it
from that. So a debt is noted in a file beside the database, before the commit that makes it: whoever commits
or closes next pays it, in whatever process.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from vestige.store.sql.database import Database

BYTES = 32 << 20
"""How long the log may grow before a writer that has committed tries to empty it."""
STEP_BYTES = 4 << 20
"""How much it grows between two tries that readers prevented."""
PATIENCE_SECONDS = (0.05, 0.5)
"""How long a try waits for readers, and once the log is twice as long as it may be; writers wait too."""
INSIST_SECONDS = 1.0
"""So much time is between two tries for a debt that wait for readers; those between do not wait."""
OWED = ".owed"


def owe(db: Database) -> None:
    """Note, in a transaction that deletes text, that the log will hold it."""
    database = db.execute("PRAGMA database_list").fetchone()[2]
    os.close(os.open(f"{database}{OWED}", os.O_WRONLY | os.O_CREAT, 0o600))


def emptied(db: sqlite3.Connection, patience_seconds: float) -> bool:
    """Have the log copied and cut; False when readers who need it did not end in time."""
    (before,) = db.execute("PRAGMA busy_timeout").fetchone()
    db.execute(f"PRAGMA busy_timeout = {round(1000 * patience_seconds)}")
    try:
        return not db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
    finally:
        db.execute(f"PRAGMA busy_timeout = {before}")


@dataclass(slots=True, kw_only=True)
class Journal:
    """The log of one database, as one store sees to it."""

    database: Path
    monotonic: Callable[[], float]
    _allowed: int = 0
    _insisted: float | None = None

    def __post_init__(self) -> None:
        self.database = self.database.resolve()  # as SQLite does: the log is beside the file itself

    @property
    def owed(self) -> bool:
        """Whether deleted text may still lie in it."""
        return os.path.exists(f"{self.database}{OWED}")  # noqa: PTH110 - at every commit: a Path costs more

    @property
    def lingers_in(self) -> str | None:
        """The name of the log while deleted text may lie in it."""
        return f"{self.database.name}-wal" if self.owed and self._size() else None

    def tend(self, db: sqlite3.Connection) -> None:
        """After a commit: pay what anybody owes, and do not let it grow long. The write is done, whatever
        happens here."""
        with suppress(sqlite3.Error, OSError):
            if self.owed:
                self.pay(db, self._patience())
            self._bound(db)

    def pay(self, db: sqlite3.Connection, patience_seconds: float = PATIENCE_SECONDS[0]) -> None:
        """Empty it, and take the note away. With readers at work SQLite leaves it, and it stays owed."""
        if not emptied(db, patience_seconds):
            return
        # Debts are noted by those who have the right to write. While we have it, nobody does, and all that
        # are noted were in what was cut, or are in a log that is not empty any more.
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
        """Empty a log that has grown long. SQLite does so only while nobody reads, and with many readers
        somebody always does: here writers wait for a moment, and those who come now do not need it.

        A reader that stays longer keeps it; then it is tried again when the log has grown further.
        """
        size = self._size()
        if size + STEP_BYTES < self._allowed:
            self._allowed = 0  # it has become shorter since it could not be emptied
        if size <= max(BYTES, self._allowed):
            return
        self._allowed = size + STEP_BYTES
        if emptied(db, PATIENCE_SECONDS[size > 2 * BYTES]):
            self._allowed = 0

    def _size(self) -> int:
        try:
            return os.stat(f"{self.database}-wal").st_size  # noqa: PTH116 - as above
        except OSError:
            return 0
