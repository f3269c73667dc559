"""Contradictions between memories: about a topic, or in a whole scope.

Not every memory is compared with every other. Candidates are pairs with the most words in common
(`cognition.text.likeness`), and pairs that are marked as contradicting, by the gate or by a user. Each pair
is judged as in a search and in `deep_reference` (`cognition.gate.relation`).
"""

import gc
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import datetime
from hashlib import blake2b
from typing import TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from vestige.cognition.evidence.trust import origin, trust
from vestige.cognition.gate.relation import (
    Clash,
    clash_between,
    differ_in_little,
    may_contradict,
    stated_at,
    statement_words,
    supports,
)
from vestige.cognition.graph.kinds import CONTRADICTS
from vestige.cognition.text.analyser import STOP_WORDS
from vestige.cognition.text.likeness import Words, alike_pairs, grouped
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, ROOT_SCOPE, Access, Edge, Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.recall.recall import RecallQuery, recall
from vestige.engine.recall.stage_inputs import MarkedPairs, marked_pairs
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.store import MemoryStore

MOST_MEMORIES = 20_000
"""In a larger scope, only the latest memories are compared."""
TOPIC_HITS = 100
MOST_KEPT = 8
COMPARED: dict[bytes, "_Compared"] = {}
"""The last comparisons of this process, by a digest of all that was compared, for when something else has
changed: comparing 10,000 memories takes seconds."""
MOST_HARMLESS = 100_000
HARMLESS: set[frozenset[bytes]] = set()
"""Digests of pairs that this process judged and that do not contradict each other: judging one takes a
millisecond, and a whole scope has thousands."""
BATCH = 500
Key = TypeVar("Key")
Value = TypeVar("Value")


# -- What a comparison of a whole scope depends on, and reading it

LogMark = tuple[int, str, int, int] | None
"""The last event of the log that is more than the trace of an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonBasis:
    """What a comparison was made of: the log up to a mark, and the number of memories that were true at a
    moment and, the end of one aside, until another one."""

    mark: LogMark
    memories: int
    since: datetime
    until: datetime | None

    def holds(self, mark: LogMark, memories: int, moment: datetime) -> bool:
        """Whether the same memories would be compared again. Without a new event, a memory can only leave by
        its end or come by its beginning, and more would be true then."""
        in_time = self.since <= moment and (self.until is None or moment < self.until)
        return in_time and (mark, memories) == (self.mark, self.memories)


class SharedRecords(list[Record]):
    """Records of a scope in the order of arrival, whenever they are true. A list of its own kind can be
    referred to weakly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsToCompare:
    """The latest records that pass a filter and fit, in the order of arrival; how many do; the basis of their
    comparison; and what they were taken from, which others may share while it is here."""

    records: Sequence[Record]
    fitting: int
    basis: ComparisonBasis
    shared: SharedRecords | None


MOST_SHARED = 50_000
"""Of more memories than that, each comparison reads its own, a batch at a time."""
_SHARED = WeakValueDictionary[tuple[object, ...], SharedRecords]()
"""What was read for comparisons that run now: two pages that need it are often opened at once."""
_READING = threading.Lock()


def log_mark(call: Call) -> LogMark:
    found = call.engine.store.latest(LogQuery(exposures=False), access=EVERYTHING, limit=1)
    return (found[0].position, found[0].node, found[0].seq, found[0].clock) if found else None


def kept_for(call: Call, where: Filter) -> tuple[Access, Filter]:
    """By what a comparison of the memories that pass a filter is kept: the filter without its moment."""
    return call.access, replace(where, valid_at=None, now=None)


def true_records(
    call: Call, where: Filter, mark: LogMark, most: int, fits: Callable[[Memory], bool] = lambda _: True
) -> RecordsToCompare:
    """Read the latest `most` memories that pass a filter and fit."""
    moment = where.valid_at
    assert moment is not None
    shared = _shared(call, where, mark)
    streamed = (shared,) if shared is not None else call.engine.store.stream(where, access=call.access)
    latest: deque[Record] = deque(maxlen=most)
    passing, fitting, until = 0, 0, None
    for batch in streamed:
        call.check()
        for record in batch:
            memory = record.memory
            if where.pinned not in (None, memory.pinned) or not memory.valid_at(moment):
                continue
            passing += 1
            if memory.valid_until is not None:
                until = memory.valid_until if until is None else min(until, memory.valid_until)
            if fits(memory):
                fitting += 1
                latest.append(record)
    basis = ComparisonBasis(mark=mark, memories=passing, since=moment, until=until)
    return RecordsToCompare(records=tuple(latest), fitting=fitting, basis=basis, shared=shared)


@contextmanager
def _without_collections() -> Iterator[None]:
    """Read many records, which make no cycles, without the collector looking through them again and again: it
    takes as long as a quarter of the reading."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _shared(call: Call, where: Filter, mark: LogMark) -> SharedRecords | None:
    """The records that pass a filter, and others that are pinned or not true; None if they are too many."""
    store = call.engine.store
    broad = replace(where, valid_at=None, now=None, pinned=None)
    if broad.scope == ROOT_SCOPE and not broad.scope_only:
        broad = replace(broad, scope=None, inherited=False)
    if store.count(broad, access=call.access) > MOST_SHARED:
        return None
    key = (id(store), mark, call.access, broad)
    with _READING:
        found = _SHARED.get(key)
        if found is None:
            found = SharedRecords()
            with _without_collections():
                for batch in store.stream(broad, access=call.access, batch=BATCH):
                    call.check()
                    found.extend(batch)
            _SHARED[key] = found
    return found


# -- Contradictions


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two memories that cannot both be true: how they differ, and the trust in each."""

    newer: Record
    older: Record
    newer_trust: float
    older_trust: float
    clash: Clash


@dataclass(frozen=True, slots=True, kw_only=True)
class ContradictionSearch:
    """The contradictions, latest first, and how much was compared. `left_out` memories were too long for a
    statement, or beyond the latest MOST_MEMORIES."""

    contradictions: tuple[Contradiction, ...]
    memories: int
    pairs: int
    left_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Compared:
    """A finished comparison: the clashes, and from how many other origins each memory in one is confirmed."""

    memories: int
    pairs: int
    clashes: tuple[Clash, ...]
    confirmed: Mapping[int, int]


@dataclass(slots=True, kw_only=True)
class _ContradictionSurvey:
    """The comparison so far: the contradictions by pair, and from which other origins each memory is
    confirmed."""

    memories: Sequence[Memory]
    digests: Sequence[bytes]
    words: Sequence[Words]
    content: Sequence[Words]
    pairs: int = 0
    alike: list[tuple[int, int]] = field(default_factory=list)
    clashes: dict[frozenset[int], Clash] = field(default_factory=dict)
    confirmed: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownContradictions:
    """A comparison of a whole scope, its basis, and the ids of the memories in clashes by their index."""

    basis: ComparisonBasis
    compared: _Compared
    ids: Mapping[int, str]


_KNOWN: WeakKeyDictionary[MemoryStore, dict[tuple[Access, Filter], _KnownContradictions]] = (
    WeakKeyDictionary()
)
"""The last comparisons of each store."""


def contradictions(call: Call, where: Filter, topic: str | None, moment: datetime) -> ContradictionSearch:
    """All contradictions among the memories that pass the filter; trust is judged at `moment`."""
    if topic is None:
        return _of_everything(call, where, moment)
    # The hits of a search, however low its confidence.
    hits = recall(call, RecallQuery(text=topic, where=where, limit=TOPIC_HITS)).hits
    records, compared = _compare_records(call, [hit.record for hit in hits], where)
    return _answer(records, compared, len(hits), moment)


def _of_everything(call: Call, where: Filter, moment: datetime) -> ContradictionSearch:
    """The contradictions among all memories that pass the filter. While nothing has changed, only those in
    contradictions are read again, for their present strength."""
    store, mark = call.engine.store, log_mark(call)
    passing = store.count(where, access=call.access)
    kept, key = _KNOWN.setdefault(store, {}), kept_for(call, where)
    known = kept.get(key)
    if known is not None and known.basis.holds(mark, passing, moment):
        there = {one.memory.id: one for one in store.get_many(list(known.ids.values()), access=call.access)}
        if len(there) == len(known.ids):
            records = {at: there[memory_id] for at, memory_id in known.ids.items()}
            return _answer(records, known.compared, passing, moment)
    found = true_records(call, where, mark, MOST_MEMORIES)
    listed, compared = _compare_records(call, found.records, where)
    records = {at: listed[at] for clash in compared.clashes for at in (clash.newer, clash.older)}
    ids = {at: one.memory.id for at, one in records.items()}
    keep(kept, key, _KnownContradictions(basis=found.basis, compared=compared, ids=ids))
    return _answer(records, compared, passing, moment)


def keep(kept: dict[Key, Value], key: Key, value: Value) -> None:
    """Keep a value instead of the oldest, if there are many."""
    kept.pop(key, None)
    while len(kept) >= MOST_KEPT:
        kept.pop(next(iter(kept)), None)
    kept[key] = value


def _compare_records(
    call: Call, found: Sequence[Record], where: Filter
) -> tuple[Sequence[Record], _Compared]:
    """The comparison of these memories, and of others that are marked as contradicting one of them."""
    marked = marked_pairs(call, found, list(_marks(call, found)), where)
    records = [*found, *marked.beyond]
    return records, _compared(call, [record.memory for record in records], len(found), marked)


def _answer(
    records: Mapping[int, Record] | Sequence[Record], compared: _Compared, passing: int, moment: datetime
) -> ContradictionSearch:
    clashes = [_contradiction(records, compared, clash, moment) for clash in compared.clashes]
    clashes.sort(key=lambda one: (stated_at(one.newer.memory), one.newer.memory.id), reverse=True)
    return ContradictionSearch(
        contradictions=tuple(clashes),
        memories=compared.memories,
        pairs=compared.pairs,
        left_out=max(0, passing - compared.memories),
    )


def _compared(call: Call, memories: Sequence[Memory], found: int, marked: MarkedPairs) -> _Compared:
    """The comparison of these memories, of which the first `found` are compared by their words."""
    places = marked.places(memories)
    digests = [memory_digest(memory) for memory in memories]
    whole = blake2b(b"".join(digests), digest_size=32)
    whole.update(repr((found, sorted(map(sorted, places)))).encode())
    key = whole.digest()
    known = COMPARED.get(key)
    if known is None:
        known = _compare(call, memories, digests, found, places)
        keep(COMPARED, key, known)
    return known


def _compare(
    call: Call, memories: Sequence[Memory], digests: Sequence[bytes], found: int, places: Set[frozenset[int]]
) -> _Compared:
    words = [statement_words(memory) for memory in memories]
    content = [some - STOP_WORDS for some in words]
    survey = _ContradictionSurvey(memories=memories, digests=digests, words=words, content=content)
    for pair in places:
        survey.pairs += 1
        clash = clash_between(memories, words, *sorted(pair), marked=True)
        if clash is not None:
            survey.clashes[pair] = clash
    for at, some in enumerate(alike_pairs(words[:found])):
        if at % BATCH == 0:
            call.check()
            call.progress(at, 2 * found, "comparing")
        survey.alike.extend(pair for pair in some if frozenset(pair) not in survey.clashes)
    survey.pairs += len(survey.alike)
    near = grouped(pair for pair in survey.alike if _may_clash(survey, *pair))
    for at, (one, other) in enumerate(near):
        if at % BATCH == 0:
            call.check()
            call.progress(found + at * found // len(near), 2 * found, "comparing")
        _judge(survey, one, other)
    _confirm_clashing(survey)
    return _Compared(
        memories=sum(bool(some) for some in words[:found]),
        pairs=survey.pairs,
        clashes=tuple(survey.clashes.values()),
        confirmed={at: len(names) for at, names in survey.confirmed.items()},
    )


def memory_digest(memory: Memory) -> bytes:
    """All that a judgement about a memory depends on, in a few bytes."""
    said = (memory.content, memory.author, memory.thread, memory.source, memory.position, memory.scope)
    written = (memory.session_id, memory.agent_id, memory.id)
    dated = (stated_at(memory).timestamp(), memory.created_at.timestamp())
    return blake2b(repr((said, written, dated)).encode(), digest_size=12).digest()


def _may_clash(survey: _ContradictionSurvey, one: int, other: int) -> bool:
    """Whether the texts of a pair need a look: the words of most differ too much, and most of the others
    were judged before."""
    if not differ_in_little(survey.content[one], survey.content[other]):
        return False
    return frozenset((survey.digests[one], survey.digests[other])) not in HARMLESS


def _judge(survey: _ContradictionSurvey, one: int, other: int) -> None:
    """Judge a pair by its texts."""
    possible = may_contradict(survey.memories[one], survey.memories[other])
    clash = clash_between(survey.memories, survey.words, one, other, marked=False) if possible else None
    if clash is not None and clash.contradicts:
        survey.clashes[frozenset((one, other))] = clash
    else:
        if len(HARMLESS) >= MOST_HARMLESS:
            HARMLESS.clear()
        HARMLESS.add(frozenset((survey.digests[one], survey.digests[other])))


def _confirm_clashing(survey: _ContradictionSurvey) -> None:
    """Find out from which other origins the memories are confirmed that are part of a contradiction."""
    clashing = {at for pair in survey.clashes for at in pair}
    for one, other in survey.alike:
        if one not in clashing and other not in clashing:
            continue
        names = origin(survey.memories[one]), origin(survey.memories[other])
        if names[0] is None or names[1] is None or names[0] == names[1]:
            continue
        if frozenset((one, other)) in survey.clashes:
            continue
        if supports(survey.memories[one], survey.memories[other]):
            survey.confirmed[one].add(names[1])
            survey.confirmed[other].add(names[0])


def _marks(call: Call, records: Sequence[Record]) -> Iterator[Edge]:
    ids = [record.memory.id for record in records]
    for at in range(0, len(ids), BATCH):
        call.check()
        edges = call.engine.store.edges(ids[at : at + BATCH], access=call.access)
        yield from (edge for edge in edges if edge.kind == CONTRADICTS)


def _contradiction(
    records: Mapping[int, Record] | Sequence[Record], compared: _Compared, clash: Clash, moment: datetime
) -> Contradiction:
    newer, older = records[clash.newer], records[clash.older]
    return Contradiction(
        newer=newer,
        older=older,
        newer_trust=trust(newer, moment, corroborations=compared.confirmed.get(clash.newer, 0)),
        older_trust=trust(older, moment, corroborations=compared.confirmed.get(clash.older, 0)),
        clash=clash,
    )
