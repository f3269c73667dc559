"""Connections to one SQLite file: a pool of readers, one writer, and the driver's errors translated.

A reader is lent to one thread for one read transaction and then given back, so the number of open
connections follows the number of threads reading at once and no thread leaves one behind. The writer
is one connection behind a lock. A store does not survive `fork`: open it again in the child.
"""

import errno
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from vestige.errors import (
    InvalidInput,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
)

WRITE_DEADLINE_SECONDS = 5.0
BUSY_TIMEOUT_SECONDS = 0.05
READ_TIMEOUT_SECONDS = 5.0
RETRY_SECONDS = (0.001, 0.020)
IDLE_READERS = 8

# foreign_keys: deleting a memory deletes what hangs on it. secure_delete: deleted text is overwritten.
# No mmap: it saved nothing measurable, and an I/O error on a mapped page kills the process.
PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",
    "PRAGMA journal_size_limit = 67108864",
)

HINTS = {
    StoreBusy: "Another program keeps the database locked. Close other SQLite clients, then try again.",
    StoreCorrupt: "Restore a backup (vestige-restore), or move the file away to start a new store.",
    StoreFull: "Free some disk space; nothing was half-written.",
    StoreReadOnly: "Reading works. To write, make the file and its directory writable, or use another one.",
}
CODES: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_LOCKED: StoreBusy,
    sqlite3.SQLITE_CORRUPT: StoreCorrupt,
    sqlite3.SQLITE_NOTADB: StoreCorrupt,
    sqlite3.SQLITE_READONLY: StoreReadOnly,
    sqlite3.SQLITE_FULL: StoreFull,
}
FILE_CODES: dict[int, type[StoreError]] = {
    errno.EACCES: StoreReadOnly,
    errno.EPERM: StoreReadOnly,
    errno.EROFS: StoreReadOnly,
    errno.ENOSPC: StoreFull,
}


class Randomness(Protocol):
    """The one thing needed of a random source: jitter."""

    def random(self) -> float:
        """A number in [0, 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """How to wait for another writer: all of it given, so that tests need not."""

    rng: Randomness
    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    deadline_seconds: float = WRITE_DEADLINE_SECONDS


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn the driver's errors into ours, in this one place."""
    try:
        yield
    except sqlite3.Error as exc:
        raise store_error(exc, path) from exc
    except OSError as exc:
        raise file_error(exc, path) from exc
    except (UnicodeEncodeError, OverflowError) as exc:
        raise InvalidInput(f"A value cannot be stored: {exc}.") from exc


def store_error(exc: sqlite3.Error, path: Path) -> StoreError:
    """Our error for one of the driver's, with what to do about it."""
    # The driver has no code for text that is no text any more.
    undecodable = str(exc).startswith("Could not decode to UTF-8")
    kind = StoreCorrupt if undecodable else CODES.get(primary_code(exc), StoreError)
    first = (kind.__doc__ or "").strip() if kind is not StoreError else "The database failed."
    return kind(
        f"{first} ({path.name}: {exc})",
        hint=HINTS.get(kind),
        details={"path": str(path), "cause": str(exc)},
    )


def file_error(exc: OSError, path: Path) -> StoreError:
    """Our error for a file or directory that cannot be used."""
    kind = FILE_CODES.get(exc.errno or 0, StoreError)
    return kind(
        f"{exc.filename or path} cannot be used: {exc.strerror or exc}.",
        hint="Check the data directory: its owner, its permissions and the room on its disk.",
        details={"path": str(path), "cause": str(exc)},
    )


def primary_code(exc: sqlite3.Error) -> int:
    """SQLite's result code without its extension; 0 for errors of the Python module itself."""
    return int(getattr(exc, "sqlite_errorcode", None) or 0) & 0xFF


def patiently(action: Callable[[], object], waiting: Waiting, path: Path) -> None:
    """Run `action` until it is not refused as busy; StoreBusy after the deadline.

    A short busy timeout with jittered retries is fairer among writers than SQLite's own long wait.
    """
    deadline = waiting.monotonic() + waiting.deadline_seconds
    while True:
        try:
            action()
        except sqlite3.OperationalError as exc:
            if primary_code(exc) != sqlite3.SQLITE_BUSY:
                raise
            if waiting.monotonic() >= deadline:
                raise store_error(exc, path) from exc
        else:
            return
        low, high = RETRY_SECONDS
        waiting.sleep(low + (high - low) * waiting.rng.random())


def connect(
    path: Path, *pragmas: str, uri: str | None = None, timeout: float = BUSY_TIMEOUT_SECONDS
) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are always explicit here."""
    db = sqlite3.connect(
        uri or str(path),
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,  # lent to one thread at a time, by the pool and the writer's lock
        cached_statements=256,
        uri=uri is not None,
    )
    try:
        for pragma in (*PRAGMAS, *pragmas):
            db.execute(pragma)
    except sqlite3.Error:
        db.close()
        raise
    return db


def roll_back(db: sqlite3.Connection) -> None:
    """End a failed transaction; SQLite has sometimes done so itself (disk full)."""
    if db.in_transaction:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")


@dataclass(slots=True, kw_only=True)
class Connections:
    """The open connections of one store. `uri` is set when it can only be read."""

    path: Path
    waiting: Waiting
    uri: str | None = None
    journal_owed: bool = False
    _idle: list[sqlite3.Connection] = field(default_factory=list)
    _writer: sqlite3.Connection | None = None
    _pool_lock: threading.Lock = field(default_factory=threading.Lock)
    _write_lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    @property
    def read_only(self) -> bool:
        """Whether there is no writer here."""
        return self.uri is not None

    @contextmanager
    def reading(self, *, snapshot: bool = True) -> Iterator[sqlite3.Connection]:
        """A connection inside a read transaction: all its statements see the same moment.

        A single statement sees one moment by itself and needs no `snapshot`.
        """
        with translated(self.path):
            db = self._take_reader()
            try:
                if snapshot:
                    db.execute("BEGIN")
                yield db
                if snapshot:
                    db.execute("COMMIT")
            finally:
                roll_back(db)
                self._give_back(db)

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """The writer inside one transaction: committed at the end, undone on any error."""
        if self.read_only:
            raise StoreReadOnly(hint=HINTS[StoreReadOnly], details={"path": str(self.path)})
        with translated(self.path), self._writer_lent() as db:
            patiently(lambda: db.execute("BEGIN IMMEDIATE"), self.waiting, self.path)
            try:
                yield db
                db.execute("COMMIT")
            except BaseException:
                roll_back(db)
                raise

    def empty_journal(self) -> None:
        """Copy the write-ahead log into the file and cut it: deleted text must not linger there.

        With readers at work SQLite leaves it, and it is owed until a later try. What was committed stays
        committed whatever happens here.
        """
        self.journal_owed = True
        with suppress(StoreError), translated(self.path), self._writer_lent() as db:
            busy = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            self.journal_owed = bool(busy)

    def close(self) -> None:
        """Close what is idle now, and what is lent out when it comes back."""
        with self._pool_lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for db in idle:
            db.close()
        with self._write_lock:
            if self._writer is not None:
                # Cheap upkeep SQLite asks for at the end of a connection; never worth an error.
                with suppress(sqlite3.Error):
                    self._writer.execute("PRAGMA analysis_limit = 400").fetchall()
                    self._writer.execute("PRAGMA optimize").fetchall()
                self._writer.close()
                self._writer = None

    def _take_reader(self) -> sqlite3.Connection:
        with self._pool_lock:
            self._check_open()
            if self._idle:
                return self._idle.pop()
        return connect(self.path, "PRAGMA query_only = ON", uri=self.uri, timeout=READ_TIMEOUT_SECONDS)

    def _give_back(self, db: sqlite3.Connection) -> None:
        with self._pool_lock:
            keep = not self._closed and len(self._idle) < IDLE_READERS
            if keep:
                self._idle.append(db)
        if not keep:
            db.close()

    @contextmanager
    def _writer_lent(self) -> Iterator[sqlite3.Connection]:
        if not self._write_lock.acquire(timeout=self.waiting.deadline_seconds):
            raise StoreBusy("Another thread is writing and did not finish in time.")
        try:
            self._check_open()
            if self._writer is None:
                self._writer = connect(self.path)
            yield self._writer
        finally:
            self._write_lock.release()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError("The store is closed.", hint="Open it again.")
