"""Contradictions between memories: about a topic, or in a whole scope.

Not every memory is compared with every other. Candidates are pairs with the most words in common
(`cognition.text.likeness`), and pairs that are marked as contradicting, by the gate or by a user. Each pair
is judged as in a search and in `deep_reference` (`cognition.gate.relation`).
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import field
from datetime import datetime

from vestige.cognition.evidence.trust import origin, trust
from vestige.cognition.gate.relation import Clash, clash_between, stated_at, statement_words, supports
from vestige.cognition.graph.kinds import CONTRADICTS
from vestige.cognition.text.likeness import Words, alike_pairs
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.recall.recall import RecallQuery, recall
from vestige.engine.recall.stage_inputs import marked_pairs

MOST_MEMORIES = 20_000
"""In a larger scope, only the latest memories are compared."""
TOPIC_HITS = 100
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


@dataclass(slots=True, kw_only=True)
class _ContradictionSurvey:
    """The comparison so far: the contradictions by pair, and from which other origins each memory is
    confirmed."""

    records: Sequence[Record]
    memories: Sequence[Memory]
    words: Sequence[Words]
    pairs: int = 0
    clashes: dict[frozenset[int], Clash] = field(default_factory=dict)
    confirmed: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))


def contradictions(call: Call, where: Filter, topic: str | None, moment: datetime) -> ContradictionSearch:
    """All contradictions among the memories that pass the filter; trust is judged at `moment`."""
    found = _about(call, where, topic) if topic is not None else _everything(call, where)
    marked = marked_pairs(call, found, list(_marks(call, found)), where)
    records = [*found, *marked.beyond]
    memories = [record.memory for record in records]
    survey = _ContradictionSurvey(
        records=records, memories=memories, words=[statement_words(memory) for memory in memories]
    )
    for pair in marked.places(memories):
        _compare(survey, *sorted(pair), marked=True)
    for at, some in enumerate(alike_pairs(survey.words[: len(found)])):
        if at % BATCH == 0:
            call.check()
            call.progress(at, len(found), "comparing")
        for one, other in some:
            _compare(survey, one, other, marked=False)
    accessible = len(found) if topic is not None else call.engine.store.count(where, access=call.access)
    clashes = [_contradiction(survey, clash, moment) for clash in survey.clashes.values()]
    clashes.sort(key=lambda one: (stated_at(one.newer.memory), one.newer.memory.id), reverse=True)
    compared = sum(bool(words) for words in survey.words[: len(found)])
    return ContradictionSearch(
        contradictions=tuple(clashes),
        memories=compared,
        pairs=survey.pairs,
        left_out=max(0, accessible - compared),
    )


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


def _compare(survey: _ContradictionSurvey, one: int, other: int, *, marked: bool) -> None:
    pair = frozenset((one, other))
    if pair in survey.clashes:
        return
    survey.pairs += 1
    clash = clash_between(survey.memories, survey.words, one, other, marked=marked)
    if clash is not None and clash.contradicts:
        survey.clashes[pair] = clash
    elif clash is None and supports(survey.memories[one], survey.memories[other]):
        _confirm(survey, one, other)


def _confirm(survey: _ContradictionSurvey, one: int, other: int) -> None:
    names = origin(survey.memories[one]), origin(survey.memories[other])
    if names[0] is not None and names[1] is not None and names[0] != names[1]:
        survey.confirmed[one].add(names[1])
        survey.confirmed[other].add(names[0])


def _marks(call: Call, records: Sequence[Record]) -> Iterator[Edge]:
    ids = [record.memory.id for record in records]
    for at in range(0, len(ids), BATCH):
        call.check()
        edges = call.engine.store.edges(ids[at : at + BATCH], access=call.access)
        yield from (edge for edge in edges if edge.kind == CONTRADICTS)


def _contradiction(survey: _ContradictionSurvey, clash: Clash, moment: datetime) -> Contradiction:
    newer, older = survey.records[clash.newer], survey.records[clash.older]
    return Contradiction(
        newer=newer,
        older=older,
        newer_trust=trust(newer, moment, corroborations=len(survey.confirmed[clash.newer])),
        older_trust=trust(older, moment, corroborations=len(survey.confirmed[clash.older])),
        clash=clash,
    )
