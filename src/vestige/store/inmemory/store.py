"""InMemoryStore: the store contract in its plainest form."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

import numpy as np

from vestige.cognition.fsrs.strength import accessibility, retention_of, retrieval_of
from vestige.core.documents import Document
from vestige.core.errors import IdempotencyConflict, InvalidInput, NotFound
from vestige.core.models import (
    ANYTHING,
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
    covers,
    non_negative,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import IndexStatus, Levels, LogQuery, NearestMemories, ProfileStatus
from vestige.store.contract.changes import Change, Claim, Embedded, check_claim
from vestige.store.contract.changes import about as ids_of
from vestige.store.contract.processes import Who
from vestige.store.contract.trouble import Trouble, about, no_repair
from vestige.store.filter_rule import in_scope
from vestige.store.inmemory import merge, profiles, search
from vestige.store.inmemory.changes import apply
from vestige.store.inmemory.gather import InMemorySearch
from vestige.store.inmemory.keys import Keys
from vestige.store.inmemory.peers import InMemoryPeers
from vestige.store.inmemory.state import apart, as_json, words_of
from vestige.store.merge.forks import no_ids
from vestige.store.merge.histories import Absorbed, EntityHistory


class InMemoryStore(InMemorySearch, InMemoryPeers, Keys):
    """A `MemoryStore` of dicts and lists, scanned whole for every query.

    It is the oracle the other stores are compared with, and a fast double for tests of programs that use
    Vestige. Nothing survives the process. `MemoryStore` has the contract.
    """

    def __init__(self, *, node: str, who: Who | None = None, new_id: Callable[[], str] = no_ids) -> None:
        self._node, self._new_id = node, new_id
        super().__init__(who)

    @property
    def node(self) -> str:
        return self._node

    @property
    def read_only(self) -> bool:
        return False

    @property
    def write_failure(self) -> str | None:
        return None

    # -- Canonical writes

    def commit(
        self,
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,  # no writer here takes long
    ) -> list[LogEvent]:
        with self._writing() as state:
            signature = state.signature
            check_claim(claim)
            if claim is not None and claim.key in state.claims:
                raise IdempotencyConflict(details={"key": claim.key})
            applied = [apply(state, change, node=self._node, access=access) for change in changes]
            if not any(held.pieces for held in state.held.values()):
                state.signature = signature  # the first vectors choose it, if they outlive their commit
            if claim is not None:
                touched = frozenset(memory_id for change in changes for memory_id in ids_of(change))
                state.claims[claim.key] = (claim, touched)
        return [_handed_out(event) for event in applied if event is not None]

    # -- Histories: export and merge

    def histories(
        self, where: Filter | None = None, *, access: Access, vectors: bool = False, batch: int = 500
    ) -> Iterator[list[EntityHistory]]:
        _check_batch(batch)
        every = merge.export(self._state(), where, access, vectors=vectors)
        while some := list(islice(every, batch)):
            yield some

    def absorb(self, histories: Sequence[EntityHistory], *, access: Access) -> Absorbed:
        with self._writing() as state:
            absorbed = merge.absorb(state, histories, self._node, access, self._new_id)
        self._node = absorbed.successor or self._node
        return absorbed

    # -- Reading

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        state = self._state()
        found = (state.accessible(memory_id, access) for memory_id in dict.fromkeys(memory_ids))
        return [held.record() for held in found if held is not None]

    def contexts(self, memory_ids: Sequence[str], *, access: Access) -> list[MemoryContext]:
        return [MemoryContext.of(one.memory) for one in self.get_many(memory_ids, access=access)]

    def find(
        self, where: Filter, *, access: Access, order: Order = Order.NEWEST, limit: int, offset: int = 0
    ) -> list[Record]:
        page = search.page(limit, offset)
        matching = search.sort(search.select(self._state(), where, access), where, order)
        return [held.record() for held in matching[page]]

    def stream(self, where: Filter = ANYTHING, *, access: Access, batch: int = 500) -> Iterator[list[Record]]:
        _check_batch(batch)
        seen = 0
        while True:
            later = [one for one in search.select(self._state(), where, access) if one.arrival > seen][:batch]
            if not later:
                return
            seen = later[-1].arrival
            yield [held.record() for held in later]

    def count(self, where: Filter, *, access: Access) -> int:
        return len(search.select(self._state(), where, access))

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        state = self._state()
        every = state.within(access)
        visible = [held for held in every if held.memory.archived_at is None]
        memories = [held.memory for held in visible]
        created = [memory.created_at for memory in memories]
        return StoreStats(
            memories=len(memories),
            embedded=sum(bool(held.pieces) for held in visible),
            pinned=sum(memory.pinned for memory in memories),
            suppressed=sum(memory.suppression_count > 0 for memory in memories),
            archived=len(every) - len(visible),
            superseded=sum(memory.superseded_by is not None for memory in memories),
            edges=len(state.edges_within(access)),
            due=sum(
                held.strength.due_at <= now
                and held.memory.valid_at(now)
                and not held.memory.suppression_count
                for held in visible
            ),
            oldest=min(created, default=None),
            newest=max(created, default=None),
            by_type=dict(sorted(Counter(memory.node_type for memory in memories).items())),
            by_scope=dict(sorted(Counter(memory.scope for memory in memories).items())),
        )

    def levels(self, *, access: Access, now: datetime) -> Levels:
        visible = [held for held in self._state().within(access) if held.memory.archived_at is None]
        retentions = np.array([retention_of(held.strength, now) for held in visible], dtype=np.float64)
        suppressions = [held.memory.suppression_count for held in visible]
        return Levels(
            retentions=retentions,
            retrievals=np.array([retrieval_of(held.strength, now) for held in visible], dtype=np.float64),
            accessibilities=accessibility(retentions, suppressions),
        )

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        held = search.select(self._state(), Filter(), access)
        return dict(Counter(tag for one in held for tag in set(one.memory.tags)))

    def ids_like(self, part: str, *, access: Access, limit: int) -> list[str]:
        ids = sorted(one.memory.id for one in search.select(self._state(), ANYTHING, access))
        return [one for one in ids if one.startswith(part) or one.endswith(part)][:limit]

    def history(self, memory_id: str, *, access: Access) -> list[Revision]:
        held = self._state().accessible(memory_id, access)
        if held is None:
            raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
        seen = (revision for revision in held.past if access.allows(revision.memory))
        return [replace(revision, memory=apart(revision.memory)) for revision in seen]

    def earlier(self, memory_ids: Sequence[str], moment: datetime, *, access: Access) -> dict[str, Memory]:
        state = self._state()
        visible = (state.accessible(memory_id, access) for memory_id in memory_ids)
        then = (
            held.version_at(moment)
            for held in visible
            if held is not None and held.past and held.memory.updated_at > moment
        )
        return {memory.id: apart(memory) for memory in then if access.allows(memory)}

    def tombstone(self, memory_id: str, *, access: Access) -> Tombstone | None:
        tombstone, scope = self._state().buried.get(memory_id, (None, ""))
        covered = access.scopes is None or any(covers(one, scope) for one in access.scopes)
        return tombstone if covered and access.domains is None else None

    def log(
        self, *, access: Access, memory_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEvent]:
        events = [
            event
            for event in self._state().log_within(access)
            if event.position > after and memory_id in (None, event.memory_id)
        ]
        return [_handed_out(event) for event in events[: non_negative(limit)]]

    def latest(self, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
        events = [event for event in reversed(self._state().log_within(access)) if asked.takes(event)]
        return [_handed_out(event) for event in events[: non_negative(limit)]]

    def edges(
        self, memory_ids: Sequence[str], *, access: Access, among: bool = False, heaviest: int | None = None
    ) -> list[Edge]:
        asked, least = set(memory_ids), 2 if among else 1
        found = [
            edge
            for edge in self._state().edges_within(access)
            if len(asked & {edge.source_id, edge.target_id}) >= least
        ]
        if heaviest is not None:
            found = sorted(found, key=lambda edge: -edge.weight)[: non_negative(heaviest)]
        return sorted(found, key=lambda edge: (edge.source_id, edge.target_id, edge.kind))

    def stream_edges(
        self, kinds: Sequence[str] | None = None, *, access: Access, batch: int = 1000
    ) -> Iterator[list[Edge]]:
        _check_batch(batch)
        found = [edge for edge in self._state().edges_within(access) if kinds is None or edge.kind in kinds]
        for start in range(0, len(found), batch):
            yield found[start : start + batch]

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
        page, state = search.page(limit, offset), self._state()
        found = [
            replace(one, body=as_json(one.body))
            for one in state.documents.values()
            if one.kind == kind
            and (ids is None or one.id in ids)
            and (citing is None or not set(citing).isdisjoint(one.cites))
            and (terms is None or not set(terms).isdisjoint(one.body.get("terms", ())))
            and (scope is None or in_scope(one.scope, scope, inherited=inherited))
            and state.may_read(one, access)
        ]
        found.sort(key=lambda one: one.id)
        return sorted(found, key=lambda one: one.updated_at, reverse=True)[page]

    def count_documents(
        self, kind: str, *, access: Access, terms: Sequence[str] | None = None, scope: str | None = None
    ) -> int:
        state = self._state()
        return sum(
            one.kind == kind
            and (terms is None or not set(terms).isdisjoint(one.body.get("terms", ())))
            and (scope is None or in_scope(one.scope, scope, inherited=False))
            and state.may_read(one, access)
            for one in state.documents.values()
        )

    def claimed(self, key: str) -> Claim | None:
        return self._state().claims.get(key, (None,))[0]

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        state = self._state()
        oldest_first = search.sort(search.select(state, Filter(), access), ANYTHING, Order.OLDEST)
        here = [one for one in oldest_first if one.memory.scope == scope and one.memory.valid_at(valid_at)]
        return {
            asked: next(one.memory.id for one in here if asked in one.fingerprints)
            for asked in fingerprints
            if any(asked in one.fingerprints for one in here)
        }

    # -- Derived data

    def signature(self) -> Signature | None:
        return self._state().signature

    def profiles(self) -> list[ProfileStatus]:
        return profiles.profiles(self._state())

    def adopt(self, signature: Signature) -> bool:
        with self._writing() as state:
            return profiles.adopt(state, signature)

    def drop_vectors(self, signature: Signature) -> None:
        with self._writing() as state:
            profiles.drop(state, signature)

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        state = self._state()
        bare = [held for held in state.held.values() if profiles.lacks(state, held, signature, tokens=tokens)]
        first = search.sort(bare, ANYTHING, Order.OLDEST)[: non_negative(limit)]
        return [apart(held.memory) for held in first]

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        with self._writing() as state:
            if coming is None or state.signature in (None, coming):
                return sum(profiles.take_vectors(state, name, one) for name, one in embedded.items())
            return sum(profiles.stage_vectors(state, name, one, coming) for name, one in embedded.items())

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        with self._writing() as state:
            taking = (strengths.keys() & state.held.keys()) - state.remarked_after(after)
            for memory_id in taking:
                strength = replace(strengths[memory_id], curve=state.curve)
                state.held[memory_id] = replace(state.held[memory_id], strength=strength)
            return len(taking)

    def rebuild_words(self) -> int:
        with self._writing() as state:
            for memory_id, held in state.held.items():
                state.held[memory_id] = replace(held, words=words_of(held.memory))
            return len(state.held)

    def neighbours(
        self, *, access: Access, most_products: int | None = None, check: Callable[[], None] = lambda: None
    ) -> NearestMemories | None:
        return profiles.nearest_memories(self._state(), access, most_products, check)

    def rebuild_neighbours(self) -> int:
        return sum(bool(held.pieces) for held in self._state().held.values())

    def index_status(self) -> IndexStatus:
        return IndexStatus(vectors=sum(len(one.pieces) for one in self._state().held.values()))

    def rebuild_index(self) -> IndexStatus:
        return self.index_status()

    # -- Care: backup, check and repair

    def backup(self, destination: Path) -> None:
        self._state()
        raise InvalidInput(
            "An in-memory store cannot be backed up.",
            hint="It has no file and ends with the process. Use a store on disk to keep memories.",
            details={"destination": str(destination)},
        )

    def settle(self) -> None:
        self._state()

    def examine(self, now: datetime, *, deep: bool = False) -> list[Trouble]:
        state = self._state()
        worded = [name for name, held in state.held.items() if held.words != words_of(held.memory)]
        loose = {end for key in state.edges for end in key[:2] if end not in state.held}
        return [
            *about("texts", "The words in the index are not those of the text.", worded, repair="words"),
            *about("references", "Edges lead to memories that do not exist.", sorted(loose)),
        ]

    def repair(self, repair: str, now: datetime) -> None:
        if repair != "words":
            raise no_repair(repair)
        self.rebuild_words()

    def close(self) -> None:
        self._ended.set()
        with self._lock:
            self._published = None


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise InvalidInput("`batch` must be at least 1.", details={"given": batch})


def _handed_out(event: LogEvent) -> LogEvent:
    return replace(event, payload=as_json(event.payload))
