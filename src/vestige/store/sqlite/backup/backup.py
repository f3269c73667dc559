"""Makes a complete, verified copy of a store while others write."""

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from vestige.core.errors import InvalidInput, StoreCorrupt, StoreFull
from vestige.core.models import ANYTHING, EVERYTHING, Order
from vestige.store.contract.store import MemoryStore
from vestige.store.sqlite.connection import SqliteConnections, WriterWait
from vestige.store.sqlite.file import identity

PAGES_PER_STEP = 1024
COUNTED = ("memories", "revisions", "events", "edges", "tombstones", "vectors")
SPARE_BYTES = 1 << 20
"""The disk space that a copy leaves free: a full disk stops every other program."""

Prove = Callable[[Path], None]
"""Opens a copy as a store and reads from it; raises if that fails."""


def copy(source: sqlite3.Connection, destination: Path, *, prove: Prove | None = None) -> None:
    """Copy the snapshot of `source` into a new file, verify it, and only then give it its name. `source` is
    inside a read transaction, so the copy is of one moment and writers neither wait nor make it start over.
    The copy has no write-ahead log and gets a new node id when it is opened. Without `prove` only the file is
    checked: a store of an older schema cannot be opened unchanged."""
    if destination.exists():
        raise _exists(destination)
    if not destination.parent.is_dir():
        raise InvalidInput(f"The directory {destination.parent} does not exist.")
    counts = _counts(source)  # also begins the read transaction's snapshot
    check_room(destination.parent, size_of(source))
    handle, name = tempfile.mkstemp(prefix=f".{destination.name}.", suffix=".partial", dir=destination.parent)
    os.close(handle)
    partial = Path(name)
    try:
        with closing(sqlite3.connect(partial, isolation_level=None)) as target:
            source.backup(target, pages=PAGES_PER_STEP)
            target.execute("PRAGMA journal_mode = DELETE").fetchall()
            identity.unsettle(target)
            _verify(target, counts)
        if prove is not None:
            prove(partial)
        partial.chmod(0o600)
        _publish(partial, destination)
    finally:
        for left in (partial, Path(f"{partial}-journal"), Path(f"{partial}-wal"), Path(f"{partial}-shm")):
            left.unlink(missing_ok=True)


def size_of(db: sqlite3.Connection) -> int:
    """The bytes that a copy of this connection's snapshot takes."""
    pages, page = (db.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
    return int(pages) * int(page)


def check_room(folder: Path, size: int) -> None:
    """StoreFull, before anything is written, for a copy that does not fit on the disk."""
    total, _, free = shutil.disk_usage(folder)
    if total and free < size + SPARE_BYTES:  # some file systems do not say
        raise StoreFull(
            f"{folder} has {free:,} bytes free, and {size + SPARE_BYTES:,} are needed.",
            hint="Free some disk space, or give a path on another disk. Nothing was written.",
            details={"path": str(folder), "free": free, "needed": size + SPARE_BYTES},
        )


def _verify(copied: sqlite3.Connection, counts: dict[str, int]) -> None:
    verdict = [row[0] for row in copied.execute("PRAGMA integrity_check(5)")]
    if verdict != ["ok"] or _counts(copied) != counts:
        raise StoreCorrupt(
            "The copy did not pass its check, so it was discarded.",
            hint="The store itself may be damaged: restore an earlier backup.",
            details={"check": verdict},
        )


def _counts(db: sqlite3.Connection) -> dict[str, int]:
    return {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in COUNTED}


def _publish(partial: Path, destination: Path) -> None:
    """Give a finished file its name, durably, and never over another file."""
    sync(partial)
    try:
        os.link(partial, destination)
    except FileExistsError as exc:
        raise _exists(destination) from exc
    except OSError:  # a file system without hard links
        if destination.exists():
            raise _exists(destination) from None
        partial.rename(destination)
    sync(destination.parent)


def sync(path: Path) -> None:
    if path.is_dir() and os.name == "nt":  # Windows cannot open directories
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _exists(destination: Path) -> InvalidInput:
    return InvalidInput(
        f"{destination} exists already.", hint="Give the backup a new name; nothing is overwritten."
    )


# -- The proof that a copy is a store


def immutable_connections(path: Path, waiting: WriterWait) -> SqliteConnections:
    """Connections to a file that does not change; they create no file beside it."""
    return SqliteConnections(
        path=path, waiting=waiting, uri=f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    )


def read_one_of_each(store: MemoryStore, connections: SqliteConnections) -> None:
    """Read the newest and the oldest memory with its history, an event, an edge, a document of each kind."""
    for order in (Order.NEWEST, Order.OLDEST):
        for record in store.find(ANYTHING, access=EVERYTHING, order=order, limit=1):
            store.history(record.memory.id, access=EVERYTHING)
            store.log(access=EVERYTHING, memory_id=record.memory.id, limit=1)
    store.signature()
    next(store.stream_edges(access=EVERYTHING, batch=1), None)
    with connections.reading(snapshot=False) as db:
        kinds = [row[0] for row in db.execute("SELECT DISTINCT kind FROM documents")]
    for kind in kinds:
        store.documents(kind, access=EVERYTHING, limit=1)
