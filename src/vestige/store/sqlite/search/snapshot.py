"""A snapshot of the directory and the columns as a file, so that a process starts without reading every row.

    header length ─ header (JSON) ─ arrays

It is derived, like the files of vectors beside it, and has no text but the names of scopes and types. The
database lists it; the transaction that deletes a memory unlists it. Arrays are mapped
copy-on-write: pages that stay as they were are shared by all processes. What changed after the snapshot is
read by the journals, as always.
"""

import logging
import mmap
import os
import sqlite3
import tempfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from typing import Any
from zlib import crc32

import numpy as np
import orjson
from numpy.typing import NDArray

from vestige.core.errors import StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.search.threads import Directory
from vestige.store.sqlite.backup.backup import sync
from vestige.store.sqlite.connection import SqliteConnections
from vestige.store.sqlite.search.columns import MemoryColumns
from vestige.store.sqlite.search.masks import JournalSpan
from vestige.store.sqlite.search.segment_file import ALIGNMENT, DIGEST_BYTES, PARTIAL, Damaged
from vestige.store.sqlite.search.segments import COLUMNS_SUFFIX as SUFFIX
from vestige.store.sqlite.search.segments import folder_of, sweep
from vestige.store.sqlite.search.words import next_key

logger = logging.getLogger(__name__)

DIRECTORY = "directory."
"""Before the names of the directory's arrays."""
MAGIC = b"vestige columns1"
BEGINNING = Struct("<16sQ16s")
"""What it is, the length of the header, and the header's digest."""
FEWEST = 5_000
"""Memories from which a snapshot saves more time than it takes."""
OUTDATED = 8_192
"""Changes since a snapshot after which, with a fiftieth of the memories, it is written again."""

Arrays = Mapping[str, NDArray[Any]]  # of whatever kind each has


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Arrays by name, and the other facts, of the entry `seq` of the journal of changed keys."""

    seq: int
    facts: Mapping[str, Any]
    arrays: Arrays
    image: mmap.mmap | None = None

    def intact(self) -> bool:
        """Whether the mapped file still has its size, as with files of vectors."""
        return self.image is None or self.image.size() == len(self.image)


def read(db: sqlite3.Connection) -> Snapshot | None:
    """The listed snapshot, if there is one that can be used and the journal has all changes since."""
    row = db.execute("SELECT file FROM snapshots").fetchone()
    if row is None:
        return None
    try:
        found = _mapped(folder_of(db) / row[0])
    except (OSError, Damaged) as exc:
        logger.debug("%s is not used: %s", row[0], exc)
        return None
    return found if JournalSpan.read(db).follows(found.seq) else None


def publish_if_due(connections: SqliteConnections) -> None:
    """Write a snapshot if so much changed since the last one that a process would take long to start. It is
    made of the last one and the changes, beside the arrays that searches use. A file only saves time, so a
    failure is logged."""
    if connections.read_only:
        return
    try:
        with connections.reading() as db:
            if not _is_due(db):
                return
            folder, directory, columns = folder_of(db), Directory(), MemoryColumns()
            catch_up_directory(db, directory)
            catch_up_columns(db, columns)
        _publish(connections, folder, of(directory, columns))
        sweep(connections, partial=False)
    except (StoreError, OSError) as exc:
        logger.warning("the columns were not written to a file: %s", exc)


def catch_up_directory(db: sqlite3.Connection, directory: Directory) -> None:
    """Bring the directory up to date, from the snapshot where it is empty."""
    if not directory.is_readable():
        directory.clear()
    if not directory.seq and (found := read(db)) is not None:
        prefix = len(DIRECTORY)
        arrays = {name[prefix:]: one for name, one in found.arrays.items() if name.startswith(DIRECTORY)}
        directory.restore(found.facts["directory"], arrays, found.intact)
    directory.catch_up(db)


def catch_up_columns(db: sqlite3.Connection, columns: MemoryColumns) -> None:
    """Bring the columns up to date, from the snapshot where they are empty."""
    if not columns.is_readable():
        columns.clear()
    if not columns.loaded and (found := read(db)) is not None:
        columns.restore(found.seq, found.facts["columns"], found.arrays, found.intact)
    columns.catch_up(db)


def of(directory: Directory, columns: MemoryColumns) -> Snapshot:
    """A snapshot of both, which are of the same moment."""
    numbers, arrays = directory.saved()
    facts, kept = columns.saved()
    named = {f"{DIRECTORY}{name}": one for name, one in arrays.items()}
    return Snapshot(seq=columns.seq, facts={"directory": numbers, "columns": facts}, arrays=named | kept)


def _is_due(db: sqlite3.Connection) -> bool:
    memories, listed = next_key(db), db.execute("SELECT seq FROM snapshots").fetchone()
    if memories < FEWEST or listed is None:
        return memories >= FEWEST
    return bool(JournalSpan.read(db).last - listed[0] > OUTDATED + memories // 50)


def _publish(connections: SqliteConnections, folder: Path, snapshot: Snapshot) -> None:
    """Write a snapshot and list it in place of the one before, unless a memory was deleted meanwhile."""
    folder.mkdir(mode=0o700, exist_ok=True)
    handle, partial = tempfile.mkstemp(suffix=PARTIAL, dir=folder)
    try:
        header, offsets = _header(snapshot)
        with os.fdopen(handle, "wb") as file:
            file.write(BEGINNING.pack(MAGIC, len(header), _digest(header)))
            file.write(header)
            for name, array in snapshot.arrays.items():
                file.seek(_start(len(header)) + offsets[name])
                file.write(np.ascontiguousarray(array).data)
            file.truncate(file.tell())
            file.flush()
            os.fsync(file.fileno())
        name = f"{snapshot.seq}-{_digest(header).hex()}{SUFFIX}"
        with connections.writing() as db:
            if not _lost_memories(db, snapshot.seq):
                Path(partial).replace(folder / name)
                sync(folder)
                db.execute("DELETE FROM snapshots")
                db.execute("INSERT INTO snapshots (file, seq) VALUES (?, ?)", (name, snapshot.seq))
    finally:
        Path(partial).unlink(missing_ok=True)


def _lost_memories(db: sqlite3.Connection, since: int) -> bool:
    """Whether a memory may have been deleted since an entry of the journal."""
    gone = db.execute(
        "SELECT 1 FROM changed_keys c WHERE c.seq > ? AND c.part = 0"
        " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.key = c.key) LIMIT 1",
        (since,),
    ).fetchone()
    return gone is not None or not JournalSpan.read(db).follows(since)


def _header(snapshot: Snapshot) -> tuple[bytes, dict[str, int]]:
    """The header, which has the place of each array after it, and those places."""
    offsets, at = {}, 0
    for name, array in snapshot.arrays.items():
        offsets[name] = at
        at = -(-(at + array.nbytes) // ALIGNMENT) * ALIGNMENT
    kinds = {name: [array.dtype.str, array.shape] for name, array in snapshot.arrays.items()}
    sums = {name: crc32(np.ascontiguousarray(array).data) for name, array in snapshot.arrays.items()}
    facts = {"seq": snapshot.seq, "facts": snapshot.facts, "kinds": kinds, "offsets": offsets, "sums": sums}
    return orjson.dumps(facts), offsets


def _start(header: int) -> int:
    """Where the arrays begin, after a header of this length."""
    return -(-(BEGINNING.size + header) // ALIGNMENT) * ALIGNMENT


def _digest(header: bytes) -> bytes:
    return blake2b(header, digest_size=DIGEST_BYTES).digest()


def _mapped(path: Path) -> Snapshot:
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < BEGINNING.size:
            raise Damaged("it is too short")
        image = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
    magic, length, digest = BEGINNING.unpack_from(image)
    header = image[BEGINNING.size : BEGINNING.size + length]
    if magic != MAGIC or _digest(header) != digest:
        raise Damaged("its header is damaged")
    facts, start = orjson.loads(header), _start(length)
    arrays: dict[str, NDArray[Any]] = {}
    for name, (kind, shape) in facts["kinds"].items():
        count, offset = int(np.prod(shape)), start + facts["offsets"][name]
        if offset + count * np.dtype(kind).itemsize > len(image):
            raise Damaged("it is cut short")
        arrays[name] = np.frombuffer(image, kind, count, offset).reshape(shape)
        if crc32(arrays[name].data) != facts["sums"][name]:  # searches trust it, down to the compiled library
            raise Damaged(f"its array {name} is damaged")
    return Snapshot(seq=facts["seq"], facts=facts["facts"], arrays=arrays, image=image)
