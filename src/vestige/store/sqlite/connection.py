"""Connections to one SQLite file: a pool of readers, one writer, and the driver's errors translated.

A reader is lent to one thread for one read transaction and then given back, so the number of open
connections follows the number of threads reading at once and no thread leaves one behind. The writer
is one connection behind a lock. A store does not survive `fork`: open it again in the child.
"""

import errno
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeVar

from vestige.core.errors import InvalidInput, StoreBusy, StoreCorrupt, StoreError, StoreFull, StoreReadOnly
from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.database import Params
from vestige.store.sql.filters import is_read_only, storable_params
from vestige.store.sqlite.file import identity
from vestige.store.sqlite.file.wal import BYTES as JOURNAL_BYTES
from vestige.store.sqlite.file.wal import Journal
from vestige.store.sqlite.processes.locks import without_locks
from vestige.store.sqlite.processes.presence import kept_busy

WRITE_DEADLINE_SECONDS = 5.0
BUSY_TIMEOUT_SECONDS = 0.01
RETRY_SECONDS = (0.001, 0.010)
IDLE_READERS = 8
"""The number of readers that are kept. A connection holds up to `cache_size` of pages: these, the writer and
the one for notices 160 MB in all for a very large store. They are given back when the store is at rest."""

T = TypeVar("T")
Synchronous = Literal["normal", "full"]

# foreign_keys: deleting a memory deletes what refers to it. secure_delete: deleted text is overwritten.
# No mmap: it saved nothing measurable, and an I/O error on a mapped page kills the process.
PRAGMAS = (
    "PRAGMA foreign_keys = ON",
    "PRAGMA secure_delete = ON",
    "PRAGMA synchronous = NORMAL",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",
    f"PRAGMA journal_size_limit = {JOURNAL_BYTES}",
)
SHRINK = "PRAGMA shrink_memory"
# Both have an effect only on macOS, where the disk buffers writes until it is forced to flush.
DURABLE = ("PRAGMA synchronous = FULL", "PRAGMA fullfsync = ON", "PRAGMA checkpoint_fullfsync = ON")

HINTS = {
    StoreError: "Check the disk and its messages. If it is sound, restore a backup (vestige-restore).",
    StoreCorrupt: "Run `vestige doctor`, restore a backup (vestige-restore), or move the file away to start "
    "a new store.",
    StoreFull: "Free some disk space; nothing was half-written.",
    StoreReadOnly: "Reading works. To write, make the file and its directory writable, or use another one.",
}
CODES: dict[int, type[StoreError]] = {
    sqlite3.SQLITE_BUSY: StoreBusy,
    sqlite3.SQLITE_LOCKED: StoreBusy,
    sqlite3.SQLITE_PROTOCOL: StoreBusy,  # the race for the write-ahead log was lost too often
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
    """A random source for jitter."""

    def random(self) -> float:
        """A number in [0, 1)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterWait:
    """How to wait for another writer; injected so that tests need not wait."""

    rng: Randomness
    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    deadline_seconds: float = WRITE_DEADLINE_SECONDS

    def turns(self, seconds: float) -> Callable[[], bool]:
        """A function to call between two attempts: it sleeps and returns True, until the seconds have passed.
        The naps vary, so that waiting processes do not retry at the same moment."""
        low, high = RETRY_SECONDS
        deadline = self.monotonic() + seconds

        def again() -> bool:
            if self.monotonic() >= deadline:
                return False
            self.sleep(low + (high - low) * self.rng.random())
            return True

        return again


@contextmanager
def translated(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as exc:
        raise store_error(exc, path) from exc
    except OSError as exc:
        raise file_error(exc, path) from exc
    except (UnicodeEncodeError, OverflowError) as exc:
        raise InvalidInput(f"A value cannot be stored: {exc}.") from exc
    except ValueError as exc:  # a damaged date, number or JSON
        raise StoreCorrupt(
            f"A stored value cannot be read: it is damaged. ({path.name}: {type(exc).__name__})",
            hint=HINTS[StoreCorrupt],
            details={"path": str(path)},
        ) from exc


def store_error(exc: sqlite3.Error, path: Path, waited_seconds: float | None = None) -> StoreError:
    """Our error for an error of the driver, with its remedy."""
    # The driver has no code for text that is not UTF-8.
    undecodable = str(exc).startswith("Could not decode to UTF-8")
    kind = StoreCorrupt if undecodable else CODES.get(primary_code(exc), StoreError)
    if kind is StoreBusy:
        return kept_busy(path, str(getattr(exc, "sqlite_errorname", "")), waited_seconds)
    if getattr(exc, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT_VTAB or "fts5" in str(exc):
        return StoreCorrupt(
            f"The index of words is damaged. ({path.name}: {exc})",
            hint="It is derived from the memories: `vestige doctor --repair` makes it again.",
            details={"path": str(path), "cause": str(exc)},
        )
    first = (kind.__doc__ or "").strip() if kind is not StoreError else "The database failed."
    return kind(
        f"{first} ({path.name}: {exc})", hint=HINTS.get(kind), details={"path": str(path), "cause": str(exc)}
    )


def file_error(exc: OSError, path: Path) -> StoreError:
    if exc.errno == errno.ENOLCK:
        return without_locks(path)
    kind = FILE_CODES.get(exc.errno or 0, StoreError)
    return kind(
        f"{exc.filename or path} cannot be used: {exc.strerror or exc}.",
        hint="Check the data directory: its owner, its permissions and the space on its disk.",
        details={"path": str(path), "cause": str(exc)},
    )


def primary_code(exc: sqlite3.Error) -> int:
    """SQLite's result code without its extension; 0 for errors of the Python module itself."""
    return int(getattr(exc, "sqlite_errorcode", None) or 0) & 0xFF


def patiently(action: Callable[[], object], waiting: WriterWait, path: Path) -> None:
    """Run `action` until it is not refused as busy; StoreBusy after the deadline. A short busy timeout with
    jittered retries is fairer among writers than SQLite's own long wait."""
    started, again = waiting.monotonic(), waiting.turns(waiting.deadline_seconds)
    while True:
        try:
            action()
        except sqlite3.OperationalError as exc:
            if CODES.get(primary_code(exc)) is not StoreBusy:
                raise
            if not again():
                raise store_error(exc, path, waiting.monotonic() - started) from exc
        else:
            return


class CheckedConnection(sqlite3.Connection):
    """A connection that accepts any text in a query: one that SQLite cannot store matches nothing."""

    def execute(self, sql: str, parameters: Params = (), /) -> sqlite3.Cursor:  # type: ignore[override]  # no mapping
        try:
            return super().execute(sql, parameters)
        except UnicodeEncodeError:
            if not is_read_only(sql):
                raise
            return super().execute(sql, storable_params(parameters))


def connect(
    path: Path,
    *pragmas: str,
    uri: str | None = None,
    timeout: float = BUSY_TIMEOUT_SECONDS,
    patience: float | None = None,
) -> sqlite3.Connection:
    """A connection in autocommit mode: transactions are always explicit here. SQLite waits for locks up to
    `timeout`, and up to `patience`, where given, for the first read of the file: that fails only while
    another process has it locked exclusively."""
    db = sqlite3.connect(
        uri or str(path),
        timeout=timeout if patience is None else patience,
        isolation_level=None,
        check_same_thread=False,  # lent to one thread at a time, by the pool and the writer's lock
        factory=CheckedConnection,
        cached_statements=256,
        uri=uri is not None,
    )
    try:
        for pragma in (*PRAGMAS, *pragmas):
            db.execute(pragma)
        db.execute(f"PRAGMA busy_timeout = {round(1000 * timeout)}")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _require_whole(path: Path, journal: Journal, *, written: bool = False) -> None:
    """StoreError while the write-ahead log is not whole."""
    if journal.is_whole(written=written):
        return
    raise StoreError(
        f"{path.name}-wal, the write-ahead log, {journal.lost} while this process had it open. This write is "
        "not acknowledged, and earlier ones that were only in the log may be lost.",
        hint="Stop all processes of this store. Then `vestige doctor` says which writes are missing: restore "
        "a backup, or sync with a machine that has them. Never touch the files beside a store in use.",
        details={"path": str(path), "log": f"{path}-wal"},
    )


def roll_back(db: sqlite3.Connection) -> None:
    """End a failed transaction; SQLite has sometimes done so itself (disk full)."""
    if db.in_transaction:
        with suppress(sqlite3.Error):
            db.execute("ROLLBACK")


@dataclass(slots=True, kw_only=True)
class SqliteConnections:
    """The open connections of one store. `uri` is set when it can only be read."""

    path: Path
    waiting: WriterWait
    uri: str | None = None
    synchronous: Synchronous = "normal"
    journal: Journal = field(init=False)
    _idle: list[sqlite3.Connection] = field(default_factory=list)
    _writer: sqlite3.Connection | None = None
    _pool_lock: threading.Lock = field(default_factory=threading.Lock)
    _write_lock: threading.Lock = field(default_factory=threading.Lock)
    _closed: bool = False

    def __post_init__(self) -> None:
        self.journal = Journal(database=self.path, monotonic=self.waiting.monotonic)

    @property
    def read_only(self) -> bool:
        return self.uri is not None

    @contextmanager
    def reading(self, *, snapshot: bool = True) -> Iterator[sqlite3.Connection]:
        """A single statement sees one moment by itself and needs no `snapshot`."""
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

    def read(self, work: Callable[[sqlite3.Connection], T], *, snapshot: bool = True) -> T:
        with self.reading(snapshot=snapshot) as db:
            return work(db)

    @contextmanager
    def writing(self, patience_seconds: float | None = None) -> Iterator[sqlite3.Connection]:
        """The writer inside one transaction: committed at the end, rolled back on any error. It waits for
        other writers for the configured time, or for `patience_seconds` where that is less."""
        if self.read_only:
            raise StoreReadOnly(hint=HINTS[StoreReadOnly], details={"path": str(self.path)})
        waiting = replace(self.waiting, deadline_seconds=self.patience(patience_seconds))
        with translated(self.path), self._writer_lent(waiting.deadline_seconds) as db:
            patiently(lambda: db.execute("BEGIN IMMEDIATE"), waiting, self.path)
            try:
                _require_whole(self.path, self.journal)
                yield db
                db.execute("COMMIT")
                _require_whole(self.path, self.journal, written=True)
            except BaseException:
                roll_back(db)
                if self.journal.lost is not None:
                    self._note_lost(db)
                    self.journal.save(db)
                raise
            self.journal.maintain(db)

    def patience(self, wanted: float | None) -> float:
        """How long to wait for other writers: the configured time, or what is wanted where that is less."""
        most = self.waiting.deadline_seconds
        return most if wanted is None else min(wanted, most)

    def written(self, work: Callable[[sqlite3.Connection], T], patience_seconds: float | None = None) -> T:
        with self.writing(patience_seconds) as db:
            return work(db)

    def _note_lost(self, db: sqlite3.Connection) -> None:
        """Note the loss when it is found: no later write of this process is acknowledged."""
        if not self.journal.noted:
            why = f"{self.path.name}-wal {self.journal.lost}"
            self.journal.noted = identity.note_lost(db, self.path, why)

    def empty_journal(self) -> None:
        """Truncate the write-ahead log if it holds deleted text, waiting a moment for its readers. Committed
        data is safe whatever happens here."""
        if self.journal.owed:
            with suppress(StoreError), translated(self.path), self._writer_lent() as db:
                if self.journal.is_whole():
                    self.journal.pay(db)

    def settle(self) -> None:
        """Copy the log into the file, if it was not written since the previous call, and give the memory of
        cached pages back: those of readers are from before the last write."""
        self.check_open()
        if not self.read_only and self.journal.at_rest():
            with suppress(StoreError), translated(self.path), self._writer_lent() as db:
                if self.journal.is_whole():
                    self.journal.copy(db)
                db.execute(SHRINK)
            with suppress(StoreError), translated(self.path):
                self._shrink_readers()

    def _shrink_readers(self) -> None:
        with self._pool_lock:
            idle, self._idle = self._idle, []
        for db in idle:
            try:
                db.execute(SHRINK)
            finally:
                self._give_back(db)

    def close(self) -> None:
        """Close idle connections now, and lent ones when they come back."""
        with self._pool_lock:
            if self._closed:
                return
            self._closed = True
            idle, self._idle = self._idle, []
        with self._write_lock:
            writer, self._writer = self._writer, None
            last = [*idle, *([] if writer is None else [writer])]
            with suppress(OSError):
                if last and not self.read_only and not self.journal.is_left():
                    self.journal.save(last[-1])
            with suppress(sqlite3.Error, OSError):  # maintenance, never worth an error
                self._finish(writer)
            for db in last:
                if db is not self.journal.kept:
                    db.close()
            self.journal.close()

    def _finish(self, writer: sqlite3.Connection | None) -> None:
        """The maintenance at the end of the last write."""
        if self.journal.lost is not None:
            return
        if writer is not None:
            # What SQLite asks for at the end of a connection; it is cheap.
            writer.execute("PRAGMA analysis_limit = 400").fetchall()
            writer.execute("PRAGMA optimize").fetchall()
        if self.journal.owed and not self.read_only:
            if writer is not None:
                self.journal.pay(writer)
            else:
                with closing(connect(self.path)) as db:
                    self.journal.pay(db)

    def _take_reader(self) -> sqlite3.Connection:
        with self._pool_lock:
            self.check_open()
            if self._idle:
                return self._idle.pop()
        return connect(
            self.path, "PRAGMA query_only = ON", uri=self.uri, timeout=self.waiting.deadline_seconds
        )

    def _give_back(self, db: sqlite3.Connection) -> None:
        with self._pool_lock:
            keep = not self._closed and len(self._idle) < IDLE_READERS
            if keep:
                self._idle.append(db)
        if not keep:
            db.close()

    @contextmanager
    def _writer_lent(self, patience_seconds: float | None = None) -> Iterator[sqlite3.Connection]:
        patience = self.waiting.deadline_seconds if patience_seconds is None else patience_seconds
        if not self._write_lock.acquire(timeout=patience):
            raise StoreBusy("Another thread is writing and did not finish in time.")
        try:
            self.check_open()
            if self._writer is None:
                durable = DURABLE if self.synchronous == "full" else ()
                self._writer = connect(self.path, *durable, patience=self.waiting.deadline_seconds)
            yield self._writer
        finally:
            self._write_lock.release()

    def check_open(self) -> None:
        """StoreError once it was closed."""
        if self._closed:
            raise StoreError("The store is closed.", hint="Open it again.")
