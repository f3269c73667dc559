"""Contradictions between memories: about a topic, or in a whole scope.

Not every memory is compared with every other. Candidates are pairs with the most words in common
(`cognition.text.likeness`), and pairs that are marked as contradicting, by the gate or by a user. Each pair
is judged as in a search and in `deep_reference` (`cognition.gate.relation`).
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import field
from datetime import datetime
from hashlib import blake2b

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
from vestige.core.models import Edge, Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.recall.recall import RecallQuery, recall
from vestige.engine.recall.stage_inputs import MarkedPairs, marked_pairs

MOST_MEMORIES = 20_000
"""In a larger scope, only the latest memories are compared."""
TOPIC_HITS = 100
MOST_KEPT = 8
COMPARED: dict[bytes, "_Compared"] = {}
"""The last comparisons of this process, by a digest of all that was compared. Pages of the dashboard and
agents ask again while nothing has changed, and comparing 10,000 memories takes seconds."""
MOST_HARMLESS = 100_000
HARMLESS: set[frozenset[bytes]] = set()
"""Digests of pairs that this process judged and that do not contradict each other: judging one takes a
millisecond, and a whole scope has thousands."""
BATCH = 500


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


def contradictions(call: Call, where: Filter, topic: str | None, moment: datetime) -> ContradictionSearch:
    """All contradictions among the memories that pass the filter; trust is judged at `moment`."""
    found = _about(call, where, topic) if topic is not None else _everything(call, where)
    marked = marked_pairs(call, found, list(_marks(call, found)), where)
    records = [*found, *marked.beyond]
    compared = _compared(call, [record.memory for record in records], len(found), marked)
    accessible = len(found) if topic is not None else call.engine.store.count(where, access=call.access)
    clashes = [_contradiction(records, compared, clash, moment) for clash in compared.clashes]
    clashes.sort(key=lambda one: (stated_at(one.newer.memory), one.newer.memory.id), reverse=True)
    return ContradictionSearch(
        contradictions=tuple(clashes),
        memories=compared.memories,
        pairs=compared.pairs,
        left_out=max(0, accessible - compared.memories),
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
        if len(COMPARED) >= MOST_KEPT:
            COMPARED.pop(next(iter(COMPARED)), None)
        COMPARED[key] = known
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
    for at, (one, other) in enumerate(grouped(survey.alike)):
        if at % BATCH == 0:
            call.check()
            call.progress(found + at * found // len(survey.alike), 2 * found, "comparing")
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


def _about(call: Call, where: Filter, topic: str) -> Sequence[Record]:
    """The hits of a search, however low its confidence."""
    return [hit.record for hit in recall(call, RecallQuery(text=topic, where=where, limit=TOPIC_HITS)).hits]


def _everything(call: Call, where: Filter) -> Sequence[Record]:
    """The latest accessible memories, in the order of arrival."""
    latest: deque[Record] = deque(maxlen=MOST_MEMORIES)
    for batch in call.engine.store.stream(where, access=call.access, batch=BATCH):
        call.check()
        latest.extend(batch)
    return tuple(latest)


def _judge(survey: _ContradictionSurvey, one: int, other: int) -> None:
    """Judge a pair by its texts. Most pairs need no look at them, and most of the others were judged
    before."""
    if not differ_in_little(survey.content[one], survey.content[other]):
        return
    key = frozenset((survey.digests[one], survey.digests[other]))
    if key in HARMLESS:
        return
    possible = may_contradict(survey.memories[one], survey.memories[other])
    clash = clash_between(survey.memories, survey.words, one, other, marked=False) if possible else None
    if clash is not None and clash.contradicts:
        survey.clashes[frozenset((one, other))] = clash
    else:
        if len(HARMLESS) >= MOST_HARMLESS:
            HARMLESS.clear()
        HARMLESS.add(key)


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
    records: Sequence[Record], compared: _Compared, clash: Clash, moment: datetime
) -> Contradiction:
    newer, older = records[clash.newer], records[clash.older]
    return Contradiction(
        newer=newer,
        older=older,
        newer_trust=trust(newer, moment, corroborations=compared.confirmed.get(clash.newer, 0)),
        older_trust=trust(older, moment, corroborations=compared.confirmed.get(clash.older, 0)),
        clash=clash,
    )
