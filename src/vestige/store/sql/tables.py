"""The part of a store that is the same on every relational database. A method is a transaction around a
sibling module; what it promises is said in `MemoryStore`."""

from collections.abc import Iterator, Mapping, Sequence
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
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import LogQuery, ProfileStatus
from vestige.store.contract.changes import Change, Claim, Embedded
from vestige.store.merge.histories import EntityHistory
from vestige.store.sql.columns import natural
from vestige.store.sql.commit import commit as committing
from vestige.store.sql.database import Database, Surfaces, Transactions
from vestige.store.sql.filters import clause
from vestige.store.sql.merge import histories as telling
from vestige.store.sql.rows import (
    documents,
    history,
    log,
    memories,
    store_facts,
)
from vestige.store.sql.rows import (
    edges as graph,
)
from vestige.store.sql.rows import stats as counting
from vestige.store.sql.rows import (
    strengths as reviews,
)
from vestige.store.sql.rows.keys import KeyTable
from vestige.store.sql.search import vectors as dense
from vestige.store.sql.search import word_rows

ANALYSED_AT_ONCE = 500


class Tables(KeyTable):
    """Reading and writing rows through `connections`; `surfaces` is what the database does its own way."""

    def __init__(self, connections: Transactions, surfaces: Surfaces) -> None:
        self._tables = connections
        self._surfaces = surfaces

    def lives(
        self, where: Filter | None = None, *, access: Access, vectors: bool = False, batch: int = 500
    ) -> Iterator[list[EntityHistory]]:
        """Everything canonical, `batch` at a time, all in one read transaction."""
        _check_batch(batch)
        with self._tables.reading() as db:
            told = telling.export(db, where, access, vectors=vectors)
            while some := list(islice(told, batch)):
                yield some

    # -- reading ---------------------------------------------------------------------------------

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        """The records in the order asked for, each once, without the unknown ones."""
        asked = dict.fromkeys(memory_ids)
        with self._tables.reading(snapshot=False) as db:
            found = memories.by_id(db, asked, access)
        return [found[memory_id] for memory_id in asked if memory_id in found]

    def find(
        self, where: Filter, *, access: Access, order: Order = Order.NEWEST, limit: int, offset: int = 0
    ) -> list[Record]:
        """A page of the records that match."""
        first, most = natural(offset), natural(limit)

        def page(db: Database) -> list[Record]:
            wanted = history.clause_at(db, where, access)
            return memories.page(db, wanted, order, where.now, most, first)

        return self._tables.read(page)

    def stream(self, where: Filter = ANYTHING, *, access: Access, batch: int = 500) -> Iterator[list[Record]]:
        """Every matching record in the order of arrival, `batch` at a time, each batch in a transaction
        of its own: a slow reader holds nothing up."""
        _check_batch(batch)

        def some(db: Database, after: int) -> tuple[list[Record], int | None]:
            return memories.after_key(db, history.clause_at(db, where, access), after, batch)

        reached: int | None = 0
        while reached is not None:
            records, reached = self._tables.read(partial(some, after=reached))
            if records:
                yield records

    def count(self, where: Filter, *, access: Access) -> int:
        """How many records match."""
        return self._tables.read(lambda db: memories.count(db, history.clause_at(db, where, access)))

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        """Counts over what the access reaches."""
        return self._tables.read(lambda db: counting.stats(db, access, now))

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        """Every tag with the number of memories that carry it."""
        with self._tables.reading(snapshot=False) as db:
            return memories.tag_counts(db, access)

    def history(self, memory_id: str, *, access: Access) -> list[Revision]:
        """A memory's earlier revisions, oldest first."""
        return self._tables.read(lambda db: history.of(db, memory_id, access))

    def earlier(self, memory_ids: Sequence[str], moment: datetime, *, access: Access) -> dict[str, Memory]:
        """Those of these memories that were revised after a moment, as they were then."""
        with self._tables.reading(snapshot=False) as db:
            return history.earlier(db, memory_ids, moment, access)

    def tombstone(self, memory_id: str, *, access: Access) -> Tombstone | None:
        """What is left of a deleted memory, or None."""
        with self._tables.reading(snapshot=False) as db:
            return history.tombstone(db, memory_id, access)

    def log(
        self, *, access: Access, memory_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEvent]:
        """Logged events with position > `after`, in commit order."""
        most = natural(limit)
        with self._tables.reading(snapshot=False) as db:
            return log.read(db, access=access, memory_id=memory_id, after=after, limit=most)

    def latest(self, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
        """The events asked for, the last one first."""
        most = natural(limit)
        with self._tables.reading(snapshot=False) as db:
            return log.latest(db, asked, access=access, limit=most)

    def edges(
        self, memory_ids: Sequence[str], *, access: Access, among: bool = False, heaviest: int | None = None
    ) -> list[Edge]:
        """Edges that touch any of the ids, with both ends in reach."""
        most = None if heaviest is None else natural(heaviest)
        with self._tables.reading(snapshot=False) as db:
            return graph.touching(db, memory_ids, access, among=among, heaviest=most)

    def stream_edges(
        self, kinds: Sequence[str] | None = None, *, access: Access, batch: int = 1000
    ) -> Iterator[list[Edge]]:
        """Every edge of these kinds, `batch` at a time, each batch in a transaction of its own."""
        _check_batch(batch)
        reached: graph.EdgeKey | None = graph.FIRST
        while reached is not None:
            with self._tables.reading(snapshot=False) as db:
                edges, reached = graph.after_key(db, kinds, access, reached, batch)
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
        """The documents of a kind, the one changed last first."""
        first, most = natural(offset), natural(limit)
        wanted = documents.DocumentQuery(
            kind=kind, ids=ids, citing=citing, terms=terms, scope=scope, inherited=inherited
        )
        with self._tables.reading(snapshot=False) as db:
            return documents.page(db, wanted, access, most, first)

    def claimed(self, key: str) -> Claim | None:
        """The claim made under this key, or None."""
        with self._tables.reading(snapshot=False) as db:
            return store_facts.claimed(db, key)

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        """For each fingerprint known in exactly this scope, the oldest memory true then that carries it."""
        with self._tables.reading(snapshot=False) as db:
            return memories.same_text(db, fingerprints, scope, clause(Filter(valid_at=valid_at), access))

    # -- derived data ----------------------------------------------------------------------------

    def signature(self) -> Signature | None:
        """The signature of the vectors held here; None before the first one."""
        with self._tables.reading(snapshot=False) as db:
            profile = store_facts.profile(db)
        return None if profile is None else profile.signature

    def profiles(self) -> list[ProfileStatus]:
        """The signatures there are vectors of, the one in use first."""
        return self._tables.read(dense.profiles)

    def vectors(
        self, memory_ids: Sequence[str], signature: Signature, *, access: Access
    ) -> dict[str, NDArray[np.float32]]:
        """The vectors of these memories, a row for each piece."""

        def held(db: Database) -> dict[str, NDArray[np.float32]]:
            profile = store_facts.profile(db)
            store_facts.require(profile, signature)
            return {} if profile is None else dense.by_id(db, profile, memory_ids, access)

        return self._tables.read(held)

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        """Memories without vectors of their present text, or without their tokens; oldest first."""
        most = natural(limit)

        def lacking(db: Database) -> list[Memory]:
            profile = store_facts.of_signature(db, signature)
            return memories.unembedded(db, profile.id if profile else None, most, tokens=tokens)

        return self._tables.read(lacking, snapshot=False)

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        """Add vectors made after the fact; how many memories took them."""
        return self._tables.written(lambda db: dense.put_by_id(db, embedded, coming))

    def adopt(self, signature: Signature) -> bool:
        """Put a signature in use if every memory has vectors of it; whether it is."""

        def put_in_use(db: Database) -> bool:
            if not dense.adopt(db, signature):
                return False
            self._put_out_of_use(db)
            return True

        if not self._tables.written(put_in_use):
            return False
        # What is in use now is not undone because others write: the rest is left for the next time.
        with suppress(StoreBusy):
            self._drop_unkept()
        return True

    def drop_vectors(self, signature: Signature) -> None:
        """Remove the vectors of a signature that is not in use."""
        while self._tables.written(lambda db: dense.drop_some(db, signature)):
            pass
        self._drop_unkept()

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with replayed ones, except where there is later evidence; how many."""
        return self._tables.written(lambda db: reviews.put_by_id(db, strengths, after))

    def rebuild_words(self) -> int:
        """Derive all lexical rows, places and fingerprints again from the text; how many memories. The slow
        part is done before the write lock is taken."""
        analysed: dict[int, word_rows.Analysis] = {}
        reached: int | None = 0
        while reached is not None:
            with self._tables.reading() as db:
                texts, reached = memories.texts_after(db, reached, ANALYSED_AT_ONCE)
            analysed.update((key, word_rows.analyse(memory)) for key, memory in texts)
        return self._tables.written(lambda db: word_rows.rebuild(db, analysed, self._surfaces))

    def _put_out_of_use(self, db: Database) -> None:
        """Let go of what a store made of vectors that are not in use any more, in the transaction that put
        others in use."""

    def _drop_unkept(self) -> None:
        """Remove vectors that nobody waits for, some in each transaction."""
        while self._tables.written(dense.drop_unkept):
            pass

    def _words_are_current(self) -> bool:
        with self._tables.reading(snapshot=False) as db:
            return word_rows.are_current(db)

    def _commit(
        self,
        db: Database,
        node: str,
        steps: Sequence[committing.Step],
        changes: Sequence[Change],
        access: Access,
        claim: Claim | None,
    ) -> list[LogEvent]:
        """Apply changes that were analysed before, in the transaction that is under way."""
        if claim is not None:
            store_facts.claim(db, claim)
        work = committing.PendingCommit.begin(db, node, changes, access, self._surfaces)
        for step in steps:
            work.apply(step)
        events = work.write(db)
        if claim is not None:
            store_facts.attach(db, claim.key, [draft.key for draft in work.drafts.values()])
        return events


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise InvalidInput("A batch holds at least one record.", details={"given": batch})
