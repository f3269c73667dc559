"""SqliteStore: the store contract on one SQLite file. A method is a transaction around a sibling module."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput
from vestige.models import (
    ANYTHING,
    Access,
    Edge,
    Filter,
    LogEvent,
    Memory,
    Order,
    Record,
    Revision,
    StoreStats,
    Strength,
    Tombstone,
)
from vestige.store.protocol import Change, Claim, Embedded, Forget, Scored
from vestige.store.sqlite import backup, graph, history, log, memories, registry, reviews, search
from vestige.store.sqlite import commit as committing
from vestige.store.sqlite import stats as counting
from vestige.store.sqlite import vectors as dense
from vestige.store.sqlite.columns import MAX_INTEGER
from vestige.store.sqlite.connection import WRITE_DEADLINE_SECONDS, Connections, Randomness, Waiting
from vestige.store.sqlite.filters import clause
from vestige.store.sqlite.matrix import Matrix
from vestige.store.sqlite.opening import Surroundings, open_file

REBUILD_BATCH = 500


class SqliteStore:
    """A `MemoryStore` in one file, which any number of processes may share.

    What each method promises is said in `MemoryStore`. Made by `open`.
    """

    def __init__(self, connections: Connections, *, node: str) -> None:
        self._connections = connections
        self._node = node
        self._matrix = Matrix()

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        rng: Randomness,
        sleep: Callable[[float], None],
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
        now: Callable[[], datetime],
        machine: str,
        busy_seconds: float = WRITE_DEADLINE_SECONDS,
        read_only: bool = False,
    ) -> "SqliteStore":
        """Open the store at `path`, making or upgrading it where needed.

        `machine` names this computer: a file that was copied from elsewhere gets a new node id. A write
        waits up to `busy_seconds` for other writers. Where the file or its directory cannot be written
        the store is opened for reading.
        """
        waiting = Waiting(rng=rng, sleep=sleep, monotonic=monotonic, deadline_seconds=busy_seconds)
        around = Surroundings(waiting=waiting, new_id=new_id, now=now, machine=machine)
        connections, node = open_file(path, around, read_only=read_only)
        with connections.reading(snapshot=False) as db:
            # A connection that has read holds a lock: whoever wants the file alone can see us.
            db.execute("SELECT 1 FROM memories LIMIT 1").fetchone()
        return cls(connections, node=node)

    @property
    def node(self) -> str:
        """This installation's id."""
        return self._node

    @property
    def read_only(self) -> bool:
        """Whether writes are impossible here."""
        return self._connections.read_only

    # -- canonical writes ------------------------------------------------------------------------

    def commit(
        self, changes: Sequence[Change], *, access: Access, claim: Claim | None = None
    ) -> list[LogEvent]:
        """Apply all changes in order, or none; the events logged for them."""
        analysed = [committing.analyse(change) for change in changes]
        with self._connections.writing() as db:
            if claim is not None:
                registry.claim(db, claim)
            work = committing.Work.begin(db, changes, access)
            for one in analysed:
                work.apply(one)
            events = work.write(db, self._node)
            if claim is not None:
                registry.attach(db, claim.key, [draft.key for draft in work.drafts.values()])
        if any(isinstance(change, Forget) for change in changes):
            self._connections.empty_journal()
        return events

    # -- reading ---------------------------------------------------------------------------------

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        """The records in the order asked for, each once, without the unknown ones."""
        asked = dict.fromkeys(memory_ids)
        with self._connections.reading(snapshot=False) as db:
            found = memories.by_id(db, asked, access)
        return [found[memory_id] for memory_id in asked if memory_id in found]

    def find(
        self,
        where: Filter,
        *,
        access: Access,
        order: Order = Order.NEWEST,
        limit: int,
        offset: int = 0,
    ) -> list[Record]:
        """A page of the records that match."""
        first, most = _natural(offset), _natural(limit)
        wanted = clause(where, access)
        with self._connections.reading() as db:
            return memories.page(db, wanted, order, where.now, most, first)

    def stream(self, where: Filter = ANYTHING, *, access: Access, batch: int = 500) -> Iterator[list[Record]]:
        """Every matching record in the order of arrival, `batch` at a time, each batch in a transaction
        of its own: a slow reader holds nothing up."""
        if batch < 1:
            raise InvalidInput("A batch holds at least one record.", details={"given": batch})
        wanted = clause(where, access)
        reached: int | None = 0
        while reached is not None:
            with self._connections.reading() as db:
                records, reached = memories.after_key(db, wanted, reached, batch)
            if records:
                yield records

    def count(self, where: Filter, *, access: Access) -> int:
        """How many records match."""
        with self._connections.reading() as db:
            return memories.count(db, clause(where, access))

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        """Counts over what the access reaches."""
        with self._connections.reading() as db:
            return counting.stats(db, access, now)

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        """Every tag with the number of memories that carry it."""
        with self._connections.reading() as db:
            return memories.tag_counts(db, access)

    def history(self, memory_id: str, *, access: Access) -> list[Revision]:
        """A memory's earlier revisions, oldest first."""
        with self._connections.reading() as db:
            return history.of(db, memory_id, access)

    def tombstone(self, memory_id: str, *, access: Access) -> Tombstone | None:
        """What is left of a deleted memory, or None."""
        with self._connections.reading() as db:
            return history.tombstone(db, memory_id, access)

    def log(
        self, *, access: Access, memory_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEvent]:
        """Logged events with position > `after`, in commit order."""
        most = _natural(limit)
        with self._connections.reading() as db:
            return log.read(db, access=access, memory_id=memory_id, after=after, limit=most)

    def edges(self, memory_ids: Sequence[str], *, access: Access) -> list[Edge]:
        """Edges that touch any of the ids, with both ends in reach."""
        with self._connections.reading() as db:
            return graph.touching(db, memory_ids, access)

    def claimed(self, key: str) -> Claim | None:
        """The claim made under this key, or None."""
        with self._connections.reading(snapshot=False) as db:
            return registry.claimed(db, key)

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        """For each fingerprint known in exactly this scope, the oldest memory true then that carries it."""
        with self._connections.reading(snapshot=False) as db:
            return memories.same_text(db, fingerprints, scope, clause(Filter(valid_at=valid_at), access))

    # -- search arms -----------------------------------------------------------------------------

    def lexical(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> list[Scored]:
        """The best memories by BM25 over the analyser's terms."""
        most = _natural(limit)
        with self._connections.reading() as db:
            return search.lexical(db, terms, clause(where, access), most)

    def nearest(
        self,
        vectors: NDArray[np.float32],
        signature: Signature,
        where: Filter,
        *,
        access: Access,
        limit: int,
    ) -> list[list[Scored]]:
        """For each row of `vectors`, the memories whose best piece has the highest cosine, exactly."""
        most = _natural(limit)
        with self._connections.reading() as db:
            with self._matrix.locked():
                profile = registry.profile(db)
                registry.require(profile, signature)
                queries = dense.check_queries(vectors, signature)
                if profile is None:
                    return [[] for _ in queries]
                view = self._matrix.catch_up(db, profile)
            return dense.nearest(db, view, queries, clause(where, access), most)

    # -- derived data ----------------------------------------------------------------------------

    def signature(self) -> Signature | None:
        """The signature of the vectors held here; None before the first one."""
        with self._connections.reading(snapshot=False) as db:
            profile = registry.profile(db)
        return None if profile is None else profile.signature

    def adopt(self, signature: Signature) -> None:
        """Make this the store's signature and drop the vectors of any other."""
        with self._connections.writing() as db:
            dense.adopt(db, signature)

    def unembedded(self, signature: Signature, *, limit: int) -> list[Memory]:
        """Memories without vectors of their present text, oldest first."""
        most = _natural(limit)
        with self._connections.reading(snapshot=False) as db:
            profile = registry.profile(db)
            known = profile.id if profile is not None and profile.signature == signature else None
            return memories.unembedded(db, known, most)

    def put_vectors(self, embedded: Mapping[str, Embedded]) -> int:
        """Add vectors made after the fact; how many memories took them."""
        with self._connections.writing() as db:
            return dense.put_by_id(db, embedded)

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with replayed ones, except where there is later evidence; how many."""
        with self._connections.writing() as db:
            return reviews.put_by_id(db, strengths, after)

    def rebuild_words(self) -> int:
        """Derive all lexical rows and fingerprints again from the text; how many memories."""
        analysed: dict[int, search.Analysis] = {}
        reached: int | None = 0
        while reached is not None:
            with self._connections.reading() as db:
                texts, reached = memories.texts_after(db, reached, REBUILD_BATCH)
            analysed.update((key, search.analyse(memory)) for key, memory in texts)
        with self._connections.writing() as db:
            return search.rebuild(db, analysed)

    # -- care ------------------------------------------------------------------------------------

    def backup(self, destination: Path) -> None:
        """Write a complete, verified copy to a path that does not exist yet, while others write."""
        with self._connections.reading() as db:
            backup.copy(db, destination)

    def close(self) -> None:
        """Let go of every connection. Safe to call twice."""
        self._connections.close()


def _natural(count: int) -> int:
    """A limit or offset that SQLite can take; InvalidInput when it is negative."""
    if count < 0:
        raise InvalidInput("A limit or offset cannot be negative.", details={"given": count})
    return min(count, MAX_INTEGER)
