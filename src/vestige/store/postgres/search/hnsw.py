"""The HNSW index of the vectors in use: built when they are many, removed when their profile is gone.

It is built in the background by the first process whose search sees that it is missing. Nothing waits for it:
until it exists, searches read all vectors. It has half precision, which decides only the candidates.
"""

import logging
import threading
from contextlib import closing, suppress
from dataclasses import field, replace

import psycopg

from vestige.core.errors import VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.answers import IndexStatus
from vestige.store.postgres.connection import PostgresConnections, PostgresSession
from vestige.store.postgres.processes.locks import Lock, signed
from vestige.store.postgres.search import vectors as pg_vectors
from vestige.store.postgres.search.changes_since import Space
from vestige.store.postgres.server.pool import ConnectionPool
from vestige.store.sql.database import Database
from vestige.store.sql.rows import store_facts
from vestige.store.sql.rows.store_facts import Profile

GROWN = 1.1
"""The growth after which to check again whether an index is needed."""
PAUSE_SECONDS = 0.05
"""The pause between two attempts to cancel a build."""
ROOM = "256MB"
"""The memory that a build may use on the server; a graph that does not fit takes longer."""

INDEXES = (
    "SELECT c.relname, i.indisvalid, pg_relation_size(c.oid) FROM pg_index i JOIN pg_class c"
    " ON c.oid = i.indexrelid WHERE i.indrelid = 'vectors'::regclass"
    " AND left(c.relname, 13) = 'vectors_near_'"
)
MANY = "SELECT EXISTS (SELECT 1 FROM vectors WHERE profile = ? OFFSET ?)"
CREATE = (
    "CREATE INDEX CONCURRENTLY {name} ON vectors USING hnsw ((vector::halfvec({dimension})) halfvec_ip_ops)"
    " WHERE profile = {profile}"
)

logger = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True)
class HnswUpkeep:
    """Keeps an index for the vectors in use when they need one, in one thread at a time."""

    connections: PostgresConnections
    _seen: tuple[int, float] = (0, 0.0)
    _thread: threading.Thread | None = None
    _session: PostgresSession | None = None
    _closed: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def look_after(self, space: Space | None, memories: int) -> None:
        """Start to build an index if one seems to be missing; the number of vectors is an estimate."""
        if space is None or space.indexed or self.connections.read_only:
            return
        profile, about = space.profile.id, max(space.rows, memories)
        if about <= pg_vectors.EXACT_ROWS or (self._seen[0] == profile and about <= self._seen[1]):
            return
        with self._lock:
            if not self._closed and (self._thread is None or not self._thread.is_alive()):
                self._seen = (profile, GROWN * about)
                self._thread = threading.Thread(target=self._try, name="vestige-index", daemon=True)
                self._thread.start()

    def update(self) -> None:
        """Build the index if it is missing and needed, and remove unneeded ones; unless another process is
        doing it. It uses a separate connection: those of the pool are for calls, which are short."""
        self.connections.check_open()
        pool = self.connections.pool
        own = replace(
            self.connections, pool=ConnectionPool(connect=pool.connect, most=1, waiting=pool.waiting)
        )
        with closing(own), own.unhurried() as db:
            lock = (Lock.TENDERS, signed(self.connections.schema_oid))
            if not db.execute("SELECT pg_try_advisory_lock(?::int, ?::int)", lock).fetchone()[0]:
                return
            with self._lock:
                if self._closed:
                    return
                self._session = db
            try:
                _update_index(db)
            finally:
                with self._lock:
                    self._session = None
                db.execute("SELECT pg_advisory_unlock(?::int, ?::int)", lock)

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def close(self) -> None:
        """Cancel a running build; the next one removes what it leaves."""
        with self._lock:
            self._closed = True
        self._cancel()
        thread = self._thread
        while thread is not None and thread.is_alive():
            thread.join(PAUSE_SECONDS)
            self._cancel()  # it may have been between two statements

    def _cancel(self) -> None:
        with self._lock, suppress(psycopg.Error):  # of a session that has ended
            if self._session is not None:
                self._session.connection.cancel_safe()

    def _try(self) -> None:
        try:
            self.update()
        except VestigeError as exc:  # searches go on without it
            if not self._closed:
                logger.warning("The index of vectors could not be built: %s", exc)


def status(db: Database) -> IndexStatus:
    """The share of the vectors in use that an index holds: all or none."""
    profile = store_facts.profile(db)
    if profile is None:
        return IndexStatus(vectors=0)
    vectors = db.execute("SELECT count(*) FROM vectors WHERE profile = ?", (profile.id,)).fetchone()[0]
    found = {name: (whole, size) for name, whole, size in db.execute(INDEXES)}
    whole, size = found.get(_name(profile), (False, 0))
    return IndexStatus(
        vectors=vectors,
        segments=int(whole),
        indexed=vectors * whole,
        size_bytes=size * whole,
        problems={name: "It was not finished." for name, (done, _) in sorted(found.items()) if not done},
    )


def _update_index(db: PostgresSession) -> None:
    kept = {_name(one): one for one in store_facts.kept(db).values()}
    found = {name: whole for name, whole, _ in db.execute(INDEXES)}
    useless = [name for name, whole in found.items() if name not in kept or not whole]
    for name in useless:
        db.command(f"DROP INDEX CONCURRENTLY {name}")
    profile = store_facts.profile(db)
    if profile is None or (_name(profile) in found and _name(profile) not in useless):
        return
    dimension = profile.signature.dimension
    if dimension > pg_vectors.INDEXED_DIMENSIONS:
        return
    if db.execute(MANY, (profile.id, pg_vectors.EXACT_ROWS)).fetchone()[0]:
        db.command(f"SET maintenance_work_mem TO '{ROOM}'")
        db.command(CREATE.format(name=_name(profile), dimension=dimension, profile=profile.id))
        # Else the server keeps samples of them for planning, which a deletion does not remove.
        db.command(f"ALTER INDEX {_name(profile)} ALTER COLUMN 1 SET STATISTICS 0")


def _name(profile: Profile) -> str:
    return f"vectors_near_{profile.id}"
