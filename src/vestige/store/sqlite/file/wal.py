"""The write-ahead log of a database: whether it is whole, its length, and deleted text that is still in it.

Committed writes are only in the log until it is copied into the file. A log that is removed, replaced or cut
under a process takes them along, and SQLite notices nothing. So each write checks the log twice: before it
begins, with the write lock, when no process may shorten the log, and after its commit, before it is
acknowledged.

A deletion is complete when the log was copied into the file and truncated, which a reader that began earlier
prevents. So a marker file is written beside the database, before the commit that deletes: the next process
that commits or closes truncates the log.
"""

import os
import sqlite3
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
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

REMOVED, REPLACED, CUT = "was removed", "was replaced", "was cut"
HEADER_BYTES, FRAME_BYTES = 32, 24
MAGIC = b"\x37\x7f\x06"
"""The first bytes of a log; zeros if it was cut and then written on at its old length."""
INDEX_HEAD = struct.Struct("=14xHI28x")
"""The header of the index of the log, the file -shm: the page size, the number of frames, and what differs
after every transaction and every new beginning of the log (a count, checksums, salts)."""
_indexes: dict[tuple[int, int], int] = {}
"""Open index files. They are never closed: closing one ends all locks that this process has on it, which are
SQLite's. One is opened only if a log has become shorter, which is rare."""


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
    _path: str = ""
    _handle: int | None = None
    _file: tuple[int, int] | None = None
    _length: int = 0
    noted: bool = False
    """Whether the loss was noted beside the file."""
    lost: str | None = None
    """What happened to the log, once it was found not to be whole."""
    kept: sqlite3.Connection | None = None
    """The connection that is never closed, because the log was cut."""

    def __post_init__(self) -> None:
        self.database = self.database.resolve()  # as SQLite does: the log is beside the file itself
        self._path = f"{self.database}-wal"

    def watch(self) -> None:
        """Remember which file the log is. Called when a connection has it open."""
        if self._handle is None:
            self._handle = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600)
            log = os.fstat(self._handle)
            self._file, self._length = (log.st_dev, log.st_ino), log.st_size

    def close(self) -> None:
        """Stop watching the log."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None

    def is_whole(self, *, written: bool = False) -> bool:
        """Whether the log is the file that this process has open, in its full length; if it was `written`,
        also its beginning. Else `lost` says what happened, and no later call returns True."""
        if self._handle is None:
            self.watch()
        if self.lost is None:
            self.lost = self._damage(written=written)
        return self.lost is None

    def is_left(self) -> bool:
        """Whether the log, if it is watched, is whole or was not cut, so that SQLite may copy it into the
        file. Of a log that was cut it would copy pages of transactions that are not whole."""
        return self._handle is None or self.is_whole() or self.lost != CUT

    def save(self, db: sqlite3.Connection) -> None:
        """Save what a lost log held, by a connection that has it open: copy one that was removed into the
        file. One that was cut must not be copied, which SQLite does when the last connection is closed. So
        this one stays open until the process ends; the next process then reads what is left of the log."""
        if self.lost == REMOVED:
            with suppress(sqlite3.Error):
                db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        elif self.lost == CUT and self.kept is None:
            import ctypes  # only here: it takes long

            self.kept = db
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(db))

    def _damage(self, *, written: bool) -> str | None:
        try:
            log = os.stat(self._path)  # noqa: PTH116 - asked with every write
        except FileNotFoundError:
            return REMOVED
        if (log.st_dev, log.st_ino) != self._file:
            return REPLACED
        shorter = log.st_size < self._length
        if written and log.st_size >= HEADER_BYTES and self._handle is not None and os.name != "nt":
            # Without its beginning it was cut, and written on since. Without anything, others emptied it in
            # this moment, or it was cut.
            begin = os.pread(self._handle, len(MAGIC), 0)
            if begin and begin != MAGIC:
                return CUT
            shorter = shorter or not begin
        if shorter and self._is_cut():
            return CUT
        self._length = log.st_size
        return None

    def _is_cut(self) -> bool:
        """Whether a log that became shorter lacks frames. Emptied by a checkpoint it lacks none, and then its
        index has none either. Others may empty it and write it again meanwhile: then the index has changed,
        and what is seen is not of one moment."""
        index = self._index()
        return self._size() < _needed(index) and self._index() == index

    def _index(self) -> bytes:
        """The header of the index; empty where it cannot be read."""
        if os.name == "nt":  # there an open file cannot be cut
            return b""
        try:
            name = f"{self.database}-shm"
            about = os.stat(name)  # noqa: PTH116 - as above
            handle = _indexes.get((about.st_dev, about.st_ino))
            if handle is None:
                handle = _indexes[about.st_dev, about.st_ino] = os.open(name, os.O_RDONLY)
            return os.pread(handle, INDEX_HEAD.size, 0)
        except OSError:
            return b""

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
            log = os.stat(self._path)  # noqa: PTH116 - as above
        except OSError:
            return None
        return (log.st_mtime_ns, log.st_size) if log.st_size else None

    def _size(self) -> int:
        try:
            return os.stat(self._path).st_size  # noqa: PTH116 - as above
        except OSError:
            return 0


def _needed(index: bytes) -> int:
    """The bytes of the frames in an index."""
    if len(index) < INDEX_HEAD.size:
        return 0
    page, frames = INDEX_HEAD.unpack(index)
    size = (page & 0xFE00) + ((page & 1) << 16)
    return HEADER_BYTES + int(frames) * (FRAME_BYTES + int(size)) if frames else 0
