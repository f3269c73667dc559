"""The published files of vectors and token bits: listing, writing and removing them.

The files are derived. The database lists them; vectors in no usable file are read from the database. A file
gets its own name only inside the write transaction that lists it, and `sweep` removes files inside a write
transaction too, so no process removes what another is listing.
"""

import logging
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import LONGEST_TOKENS
from vestige.core.errors import StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.answers import IndexStatus
from vestige.store.sql.database import Database
from vestige.store.sql.filters import listed as json_list
from vestige.store.sql.rows import store_facts
from vestige.store.sql.search.vectors import TokenColumns, token_rows, width
from vestige.store.sqlite.backup.backup import sync
from vestige.store.sqlite.connection import SqliteConnections
from vestige.store.sqlite.search import int8, segment_file
from vestige.store.sqlite.search.segment_file import (
    PARTIAL,
    SUFFIX,
    Content,
    Damaged,
    FiledTokens,
    ListedSegment,
)

logger = logging.getLogger(__name__)

SEGMENT_ROWS = 16_384
"""The most vectors in a file, more only to keep a memory's pieces together. Purging a memory costs reading
its file's share from the database once; many small files cost a file handle each."""
PUBLISH_NEW = 8_192
"""The number of new vectors that are published: at most as many are read at start-up."""
PUBLISH_ALL = 32_768
"""The number of vectors outside files, holes left by purges included, that are published."""
FEWEST_ROWS = 1_024
COLUMNS_SUFFIX = ".columns"
"""The ending of snapshots (`snapshot.py`), which are in the same folder."""
SPARSE = 0.25
"""A rebuild rewrites a file when a larger share of its vectors is dead."""

COLUMNS = ("id", "profile", "first_id", "last_id", "rows", "file", "checksum")
LOAD = (
    'SELECT id, key, start, "end", vector FROM vectors WHERE profile = ? AND id BETWEEN ? AND ?'
    " ORDER BY id LIMIT ?"
)

TOKENS = (
    "SELECT key, substr(bits, 1, ?), substr(asked, 1, ?) FROM token_bits"
    " WHERE profile = ? AND length(asked) > 0 AND key IN (SELECT value FROM json_each(?))"
)

Range = tuple[int, int]
Row = tuple[int, int, int, int, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SegmentPlan:
    """A range of ids to publish, and the approximate number of vectors per file."""

    profile: store_facts.Profile
    range: Range
    rows: int
    lost: frozenset[str]


# -- Reading of index files


def folder_of(db: Database) -> Path:
    return Path(f"{db.execute('PRAGMA database_list').fetchone()[2]}.index")


def listed(db: Database, profile: int) -> list[ListedSegment]:
    """The files listed for a profile, in the order of ids."""
    rows = db.execute(
        f"SELECT {', '.join(COLUMNS)} FROM segments WHERE profile = ? ORDER BY first_id", (profile,)
    )
    return [ListedSegment(**dict(zip(COLUMNS, row, strict=True))) for row in rows]


def listing(db: sqlite3.Connection) -> tuple[int, int]:
    """A stamp that changes whenever a file is listed or unlisted."""
    row = db.execute("SELECT coalesce(max(id), 0), count(*) FROM segments").fetchone()
    return row[0], row[1]


def open_all(db: sqlite3.Connection, profile: store_facts.Profile) -> list[Content]:
    """Map every listed file that can be used; the others are logged."""
    folder, contents = folder_of(db), []
    for one in listed(db, profile.id):
        try:
            contents.append(segment_file.read(folder / one.file, one, profile.signature.dimension))
        except (OSError, Damaged) as exc:
            # A copy of the database, such as a backup, comes without its folder.
            level = logging.WARNING if folder.exists() else logging.DEBUG
            message = "%s is not used, its vectors are read from the database: %s"
            logger.log(level, message, one.file, _problem(exc))
    return contents


def gaps(covered: Sequence[Range], end: int) -> Iterator[Range]:
    """The ranges of ids up to `end` that no file covers; `covered` is in order."""
    start = 1
    for first, last in covered:
        if start < first:
            yield start, first - 1
        start = last + 1
    if start <= end:
        yield start, end


def _problem(exc: Exception) -> str:
    return "it is missing" if isinstance(exc, FileNotFoundError) else str(exc)


# -- Publishing of index files


@dataclass(slots=True)
class Publisher:
    """Publishes files for one store when enough vectors are outside them. A worker that leads does so beside
    its other work. In a process without one the thread that writes does, after its transaction: at most what
    it wrote itself, and never a search."""

    by_worker: bool = False
    _seen: tuple[int, int, int] | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def after_write(self, connections: SqliteConnections) -> None:
        """Publish after a transaction that is committed: it must not fail any more."""
        if not self.by_worker:
            try:
                self.publish(connections)
            except (StoreError, OSError) as exc:
                logger.warning("the files of vectors were not brought up to date: %s", exc)

    def publish(self, connections: SqliteConnections) -> None:
        """Look for vectors to publish, the first time and whenever there may be enough."""
        if not connections.read_only and self._lock.acquire(blocking=False):  # one thread is enough
            try:
                with connections.reading() as db:
                    now = (_last_id(db), *listing(db))
                seen = self._seen
                # Ids only grow, so no more vectors than this are new.
                if seen is None or now[0] >= seen[0] + PUBLISH_NEW or now[1:] != seen[1:]:
                    publish(connections)
                    with connections.reading() as db:
                        self._seen = (now[0], *listing(db))
            finally:
                self._lock.release()


def _last_id(db: sqlite3.Connection) -> int:
    row = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'vectors'").fetchone()
    return int(row[0]) if row else 0


def publish(connections: SqliteConnections, *, everything: bool = False) -> None:
    """Write files for vectors that are in none, if there are enough of them or `everything` is wanted. Files
    only save time, so a failure is logged and searches go on without them."""
    if connections.read_only:
        return
    try:
        with connections.reading() as db:
            plans = list(_plans(db, everything))
            folder = folder_of(db)
        for plan in plans:
            folder.mkdir(mode=0o700, exist_ok=True)
            _publish_range(connections, folder, plan)
        sweep(connections, partial=False)
    except (StoreError, OSError) as exc:
        logger.warning("the vectors were not written to files: %s", exc)


def _plans(db: sqlite3.Connection, everything: bool) -> Iterator[SegmentPlan]:
    profile = store_facts.profile(db)
    if profile is None:
        return
    files = listed(db, profile.id)
    lost = frozenset(_lost(folder_of(db), files, profile.signature.dimension))
    kept = [one for one in files if one.file not in lost]
    end = db.execute("SELECT coalesce(max(id), 0) FROM vectors").fetchone()[0]
    covered = [(one.first_id, one.last_id) for one in kept]
    outside = {gap: _count(db, profile.id, gap) for gap in gaps(covered, end)}
    new = next((rows for gap, rows in reversed(outside.items()) if gap[1] == end), 0)
    if everything or new >= PUBLISH_NEW or sum(outside.values()) >= PUBLISH_ALL:
        for gap, rows in outside.items():
            if rows >= FEWEST_ROWS:
                # Even parts: no small rest is left over.
                yield SegmentPlan(
                    profile=profile, range=gap, rows=-(-rows // -(-rows // SEGMENT_ROWS)), lost=lost
                )


def _lost(folder: Path, files: Sequence[ListedSegment], dimension: int) -> Iterator[str]:
    """Files that are to be written again: gone, cut short, or of an earlier version."""
    for one in files:
        if not segment_file.is_current(folder / one.file, one, dimension):
            yield one.file


def _publish_range(connections: SqliteConnections, folder: Path, plan: SegmentPlan) -> None:
    first = plan.range[0]
    while True:
        with connections.reading() as db:
            content = _collect(db, plan, first)
        if content is None or not _publish(connections, folder, content, plan.lost):
            return
        first = int(content.ids[-1]) + 1


def _collect(db: sqlite3.Connection, plan: SegmentPlan, first: int) -> Content | None:
    """The content of the next file, whole memories only; None when there is too little left for one."""
    last = plan.range[1]
    rows: list[Row] = db.execute(LOAD, (plan.profile.id, first, last, plan.rows)).fetchall()
    while rows and (more := db.execute(LOAD, (plan.profile.id, rows[-1][0] + 1, last, 1)).fetchall()):
        if more[0][1] != rows[-1][1]:
            break
        rows += more
    if len(rows) < FEWEST_ROWS:
        return None
    deaths = db.execute("SELECT coalesce(max(position), 0) FROM dead_vectors").fetchone()[0]
    vectors = unpacked(rows)
    meta = np.array([row[:4] for row in rows], dtype=np.int64)
    return Content(
        profile=plan.profile.id,
        deaths=deaths,
        ids=meta[:, 0],
        keys=meta[:, 1],
        spans=meta[:, 2:],
        coded=int8.encode(vectors),
        vectors=vectors,
        tokens=_tokens_of(db, plan.profile, meta[:, 1]),
    )


def _tokens_of(
    db: sqlite3.Connection, profile: store_facts.Profile, keys: NDArray[np.int64]
) -> FiledTokens | None:
    """The token bits of the memories of some rows; None without any."""
    size = width(profile.signature.dimension)
    firsts = np.flatnonzero(np.diff(keys, prepend=-1))
    wanted = json_list(keys[firsts])
    rows = db.execute(TOKENS, (size * LONGEST_TOKENS, LONGEST_TOKENS, profile.id, wanted))
    held = TokenColumns.of(((key, len(asked), bits, asked) for key, bits, asked in rows), size)
    if not len(held.asked):
        return None
    at = np.searchsorted(held.keys, keys[firsts])
    there = held.keys[np.minimum(at, len(held) - 1)] == keys[firsts]
    counts = np.zeros(len(keys), dtype=np.int32)
    counts[firsts[there]] = held.counts[at[there]]
    order = token_rows(held.starts[at[there]], held.counts[at[there]])
    return FiledTokens(counts=counts, bits=held.bits[order], asked=held.asked[order])


def unpacked(rows: Sequence[Row]) -> NDArray[np.float32]:
    """The vectors of some rows of the database, of which there is at least one."""
    joined = np.frombuffer(b"".join(row[4] for row in rows), dtype="<f4")
    return joined.reshape(len(rows), -1).astype(np.float32, copy=False)


def _publish(connections: SqliteConnections, folder: Path, content: Content, lost: frozenset[str]) -> bool:
    """Write a file and list it; False when the database has changed in the meantime."""
    partial, checksum = segment_file.write(folder, content)
    name = segment_file.name_of(content, checksum)
    try:
        with connections.writing() as db:
            if not _still_true(db, content, lost):
                return False
            partial.replace(folder / name)
            sync(folder)
            db.execute(
                "INSERT INTO segments (profile, first_id, last_id, rows, file, checksum)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (content.profile, int(content.ids[0]), int(content.ids[-1]), len(content), name, checksum),
            )
        return True
    finally:
        partial.unlink(missing_ok=True)


def _still_true(db: sqlite3.Connection, content: Content, lost: frozenset[str]) -> bool:
    """Whether a file may be listed: none of its vectors was deleted since it was read, so that nothing purged
    comes back, and no other file covers its range. Lost files free their range."""
    held = store_facts.profile(db)
    died = db.execute("SELECT vector_id FROM dead_vectors WHERE position > ?", (content.deaths,)).fetchall()
    if held is None or held.id != content.profile or np.isin([row[0] for row in died], content.ids).any():
        return False
    first, last = int(content.ids[0]), int(content.ids[-1])
    there = [one for one in listed(db, held.id) if one.first_id <= last and first <= one.last_id]
    if any(one.file not in lost for one in there):
        return False
    _unlist(db, there)
    return True


# -- Removal of index files


def unlist(db: Database, keys: Sequence[int]) -> None:
    """Stop using every file that holds a vector of these memories, of whatever revision. To be called in the
    transaction that purges them; `sweep` removes the files after it."""
    profile = store_facts.profile(db)
    if profile is not None:
        folder, dimension = folder_of(db), profile.signature.dimension
        gone = np.array(keys, dtype=np.int64)
        files = listed(db, profile.id)
        _unlist(db, [one for one in files if segment_file.holds(folder / one.file, one, dimension, gone)])


def unlist_others(db: Database) -> None:
    """Stop using the files of every profile but the one in use."""
    db.execute("DELETE FROM segments WHERE profile NOT IN (SELECT id FROM profiles WHERE active = 1)")


def _unlist(db: Database, files: Sequence[ListedSegment]) -> None:
    db.executemany("DELETE FROM segments WHERE id = ?", [(one.id,) for one in files])


def sweep(connections: SqliteConnections, *, partial: bool = True) -> None:
    """Remove the files that are not listed: those just unlisted, and leftovers of a crash. With `partial`
    that includes files other processes are writing now: they may hold what was just purged, and a process
    that finds its file gone continues without it. Best effort; a file that cannot be removed is left for the
    next time."""
    suffixes = (SUFFIX, COLUMNS_SUFFIX, *([PARTIAL] if partial else []))
    with suppress(StoreError):
        with connections.reading() as db:
            stray = list(_stray(db, suffixes))
        if stray:
            with connections.writing() as db:
                for path in _stray(db, suffixes):
                    with suppress(OSError):
                        path.unlink()


def _stray(db: sqlite3.Connection, suffixes: Sequence[str]) -> Iterator[Path]:
    folder = folder_of(db)
    names = {row[0] for row in db.execute("SELECT file FROM segments UNION ALL SELECT file FROM snapshots")}
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.suffix in suffixes and path.name not in names:
            yield path


# -- Status and rebuild of index files


def status(db: sqlite3.Connection) -> IndexStatus:
    """The vectors inside and outside files; every file is read through."""
    profile = store_facts.profile(db)
    asked = (0 if profile is None else profile.id,)
    vectors = db.execute("SELECT count(*) FROM vectors WHERE profile = ?", asked).fetchone()[0]
    files = [] if profile is None else listed(db, profile.id)
    folder = folder_of(db)
    alive = {one.file: _alive(db, one) for one in files}
    problems = dict(_problems(folder, files))
    usable = [one for one in files if one.file not in problems]
    return IndexStatus(
        path=str(folder),
        vectors=vectors,
        segments=len(files),
        indexed=sum(alive[one.file] for one in usable),
        dead=sum(one.rows - alive[one.file] for one in usable),
        size_bytes=sum((folder / one.file).stat().st_size for one in usable),
        problems=problems,
    )


def rebuild(connections: SqliteConnections) -> None:
    """Write the files again that are damaged, missing or mostly dead, and those not written yet."""
    with connections.reading() as db:
        profile = store_facts.profile(db)
        files = [] if profile is None else listed(db, profile.id)
        bad = dict(_problems(folder_of(db), files))
        worn = [one for one in files if one.file in bad or _alive(db, one) < (1 - SPARSE) * one.rows]
    with connections.writing() as db:
        _unlist(db, worn)
    publish(connections, everything=True)
    sweep(connections)


def _alive(db: sqlite3.Connection, one: ListedSegment) -> int:
    return _count(db, one.profile, (one.first_id, one.last_id))


def _count(db: sqlite3.Connection, profile: int, ids: Range) -> int:
    sql = "SELECT count(*) FROM vectors WHERE profile = ? AND id BETWEEN ? AND ?"
    return int(db.execute(sql, (profile, *ids)).fetchone()[0])


def _problems(folder: Path, files: Sequence[ListedSegment]) -> Iterator[tuple[str, str]]:
    for one in files:
        try:
            segment_file.verify(folder / one.file, one)
        except (OSError, Damaged) as exc:
            yield one.file, _problem(exc)
