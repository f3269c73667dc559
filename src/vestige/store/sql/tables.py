"""The part of a store that is the same on every relational database. A method is a transaction around a
function of a sibling module; `MemoryStore` has the contract."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, StoreBusy
from vestige.core.models import (
    ANYTHING,
    EVERYTHING,
    Access,
    Edge,
    Filter,
    LogEvent,
    Memory,
    MemoryContext,
    Order,
    Record,
    Revision,
    StoreStats,
    Strength,
    Tombstone,
    non_negative,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Levels, LogQuery, NearestMemories, ProfileStatus
from vestige.store.contract.changes import Claim, Embedded
from vestige.store.merge.histories import EntityHistory
from vestige.store.sql.commit import PendingCommit
from vestige.store.sql.database import Database, Surfaces, Transactions
from vestige.store.sql.filters import clause
from vestige.store.sql.group import Commit, CommitQueue
from vestige.store.sql.merge import histories as history_export
from vestige.store.sql.rows import documents, history, memories, stats, store_facts
from vestige.store.sql.rows import edges as edge_rows
from vestige.store.sql.rows import strengths as strength_rows
from vestige.store.sql.rows.keys import KeyTable
from vestige.store.sql.search import index_rows
from vestige.store.sql.search import neighbours as neighbour_rows
from vestige.store.sql.search import vectors as sql_vectors

ANALYSED_AT_ONCE = 500


class Tables(KeyTable):
    """Reads and writes rows through `connections`; `surfaces` is what the database does its own way."""

    def __init__(self, connections: Transactions, surfaces: Surfaces) -> None:
        self._tables = connections
        self._surfaces = surfaces
        self._commits = CommitQueue()

    def histories(
        self, where: Filter | None = None, *, access: Access, vectors: bool = False, batch: int = 500
    ) -> Iterator[list[EntityHistory]]:
        """All batches are read in one transaction."""
        _check_batch(batch)
        with self._tables.reading() as db:
            every = history_export.export(db, where, access, vectors=vectors)
            while some := list(islice(every, batch)):
                yield some

    # -- Reading

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        asked = dict.fromkeys(memory_ids)
        with self._tables.reading(snapshot=False) as db:
            found = memories.by_id(db, asked, access)
        return [found[memory_id] for memory_id in asked if memory_id in found]

    def contexts(self, memory_ids: Sequence[str], *, access: Access) -> list[MemoryContext]:
        asked = dict.fromkeys(memory_ids)
        with self._tables.reading(snapshot=False) as db:
            found = memories.contexts(db, asked, access)
        return [found[memory_id] for memory_id in asked if memory_id in found]

    def find(
        self, where: Filter, *, access: Access, order: Order = Order.NEWEST, limit: int, offset: int = 0
    ) -> list[Record]:
        first, most = non_negative(offset), non_negative(limit)

        def page(db: Database) -> list[Record]:
            wanted = history.clause_at(db, where, access)
            return memories.page(db, wanted, order, where.now, most, first)

        return self._tables.read(page)

    def stream(self, where: Filter = ANYTHING, *, access: Access, batch: int = 500) -> Iterator[list[Record]]:
        """Each batch is a transaction of its own, so that a slow reader blocks nothing."""
        _check_batch(batch)

        def some(db: Database, after: int) -> tuple[list[Record], int | None]:
            return memories.after_key(db, history.clause_at(db, where, access), after, batch)

        last: int | None = 0
        while last is not None:
            records, last = self._tables.read(partial(some, after=last))
            if records:
                yield records

    def count(self, where: Filter, *, access: Access) -> int:
        return self._tables.read(lambda db: memories.count(db, history.clause_at(db, where, access)))

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        return self._tables.read(lambda db: stats.stats(db, access, now))

    def levels(self, *, access: Access, now: datetime) -> Levels:
        return self._tables.read(lambda db: stats.levels(db, access, now))

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        with self._tables.reading(snapshot=False) as db:
            return memories.tag_counts(db, access)

    def ids_like(self, part: str, *, access: Access, limit: int) -> list[str]:
        with self._tables.reading(snapshot=False) as db:
            return memories.ids_like(db, part, access, limit)

    def history(self, memory_id: str, *, access: Access) -> list[Revision]:
        return self._tables.read(lambda db: history.of(db, memory_id, access))

    def earlier(self, memory_ids: Sequence[str], moment: datetime, *, access: Access) -> dict[str, Memory]:
        with self._tables.reading(snapshot=False) as db:
            return history.earlier(db, memory_ids, moment, access)

    def tombstone(self, memory_id: str, *, access: Access) -> Tombstone | None:
        with self._tables.reading(snapshot=False) as db:
            return history.tombstone(db, memory_id, access)

    def log(
        self, *, access: Access, memory_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEvent]:
        most = non_negative(limit)
        with self._tables.reading(snapshot=False) as db:
            return history.read(db, access=access, memory_id=memory_id, after=after, limit=most)

    def latest(self, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
        most = non_negative(limit)
        with self._tables.reading(snapshot=False) as db:
            return history.latest(db, asked, access=access, limit=most)

    def edges(
        self, memory_ids: Sequence[str], *, access: Access, among: bool = False, heaviest: int | None = None
    ) -> list[Edge]:
        most = None if heaviest is None else non_negative(heaviest)
        with self._tables.reading(snapshot=False) as db:
            return edge_rows.touching(db, memory_ids, access, among=among, heaviest=most)

    def stream_edges(
        self, kinds: Sequence[str] | None = None, *, access: Access, batch: int = 1000
    ) -> Iterator[list[Edge]]:
        """Each batch is a transaction of its own."""
        _check_batch(batch)
        last: edge_rows.EdgeKey | None = edge_rows.FIRST
        while last is not None:
            with self._tables.reading(snapshot=False) as db:
                edges, last = edge_rows.after_key(db, kinds, access, last, batch)
            if edges:
                yield edges

    def documents(
        self,
        kind: str,
        *,
        access: Access,
        ids: Sequence[str] | None = None,
        citing: Sequence[str] | None = None,
        terms: Sequence[str] | None = None,
        scope: str | None = None,
        inherited: bool = False,
        limit: int,
        offset: int = 0,
    ) -> list[Document]:
        first, most = non_negative(offset), non_negative(limit)
        wanted = documents.DocumentQuery(
            kind=kind, ids=ids, citing=citing, terms=terms, scope=scope, inherited=inherited
        )
        with self._tables.reading(snapshot=False) as db:
            return documents.page(db, wanted, access, most, first)

    def count_documents(
        self, kind: str, *, access: Access, terms: Sequence[str] | None = None, scope: str | None = None
    ) -> int:
        with self._tables.reading(snapshot=False) as db:
            return documents.count(db, documents.DocumentQuery(kind=kind, terms=terms, scope=scope), access)

    def claimed(self, key: str) -> Claim | None:
        with self._tables.reading(snapshot=False) as db:
            return store_facts.claimed(db, key)

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        with self._tables.reading(snapshot=False) as db:
            return memories.same_text(db, fingerprints, scope, clause(Filter(valid_at=valid_at), access))

    # -- Derived data

    def signature(self) -> Signature | None:
        with self._tables.reading(snapshot=False) as db:
            profile = store_facts.profile(db)
        return None if profile is None else profile.signature

    def profiles(self) -> list[ProfileStatus]:
        return self._tables.read(sql_vectors.profiles)

    def vectors(
        self, memory_ids: Sequence[str], signature: Signature, *, access: Access
    ) -> dict[str, NDArray[np.float32]]:

        def held(db: Database) -> dict[str, NDArray[np.float32]]:
            profile = store_facts.profile(db)
            store_facts.require(profile, signature)
            return {} if profile is None else sql_vectors.by_id(db, profile, memory_ids, access)

        return self._tables.read(held)

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        most = non_negative(limit)

        def missing(db: Database) -> list[Memory]:
            profile = store_facts.of_signature(db, signature)
            return memories.unembedded(db, profile.id if profile else None, most, tokens=tokens)

        return self._tables.read(missing, snapshot=False)

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        return self._tables.written(lambda db: sql_vectors.put_by_id(db, embedded, coming))

    def adopt(self, signature: Signature) -> bool:

        def put_in_use(db: Database) -> bool:
            if not sql_vectors.adopt(db, signature):
                return False
            self._put_out_of_use(db)
            return True

        if not self._tables.written(put_in_use):
            return False
        # The signature stays in use if others write now: the rest is removed the next time.
        with suppress(StoreBusy):
            self._drop_unkept()
        return True

    def drop_vectors(self, signature: Signature) -> None:
        while self._tables.written(lambda db: sql_vectors.drop_some(db, signature)):
            pass
        self._drop_unkept()

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        return self._tables.written(lambda db: strength_rows.put_by_id(db, strengths, after))

    def neighbours(
        self, *, access: Access, most_products: int | None = None, check: Callable[[], None] = lambda: None
    ) -> NearestMemories | None:
        return neighbour_rows.read(self._tables, access=access, most_products=most_products, check=check)

    def rebuild_neighbours(self) -> int:
        self._tables.written(neighbour_rows.empty)
        found = self.neighbours(access=EVERYTHING)
        return len(found.ids) if found else 0

    def rebuild_words(self) -> int:
        """The slow part is done before the write lock is taken."""
        analysed: dict[int, index_rows.Analysis] = {}
        last: int | None = 0
        while last is not None:
            with self._tables.reading() as db:
                texts, last = memories.texts_after(db, last, ANALYSED_AT_ONCE)
            analysed.update((key, index_rows.analyse(memory)) for key, memory in texts)
        return self._tables.written(lambda db: index_rows.rebuild(db, analysed, self._surfaces))

    def _put_out_of_use(self, db: Database) -> None:
        """Release what a store made of vectors, in the transaction that puts others in use."""

    def _drop_unkept(self) -> None:
        """Remove vectors of abandoned profiles, some in each transaction."""
        while self._tables.written(sql_vectors.drop_unkept):
            pass

    def _words_are_current(self) -> bool:
        with self._tables.reading(snapshot=False) as db:
            return index_rows.are_current(db)

    def _apply(self, db: Database, commit: Commit) -> list[LogEvent]:
        claim = commit.claim
        if claim is not None:
            store_facts.claim(db, claim)
        work = PendingCommit.begin(db, commit.changes, commit.access, self._surfaces)
        for step in commit.steps:
            work.apply(step)
        events = work.write(db)
        if claim is not None:
            store_facts.attach(db, claim.key, [draft.key for draft in work.pending_memories.values()])
        return events


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise InvalidInput("`batch` must be at least 1.", details={"given": batch})
