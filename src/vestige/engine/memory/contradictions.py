"""Contradictions between memories: about a topic, or in a whole scope.

Not every memory is compared with every other. Candidates are pairs with the most words in common
(`cognition.text.likeness`), and pairs that were marked as contradicting when they were stored. Each pair is
judged by the detector of the gate.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from vestige.cognition.evidence.evidence import LONG_CHARS
from vestige.cognition.evidence.trust import origin, trust
from vestige.cognition.gate.relation import (
    comes_after,
    conflict_between,
    is_contradiction,
    stated_at,
    supports,
)
from vestige.cognition.graph.kinds import CONTRADICTS
from vestige.cognition.text.analyser import overlap, terms
from vestige.cognition.text.likeness import Words, alike_pairs
from vestige.core.models import Edge, Filter, Record
from vestige.engine.context import Call
from vestige.engine.recall.recall import RecallQuery, recall

MOST_MEMORIES = 20_000
"""In a larger scope, only the latest memories are compared."""
TOPIC_HITS = 100
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Two memories that cannot both be true: how they differ, and the trust in each. `corrects`: the newer
    one says itself that it corrects the older one."""

    newer: Record
    older: Record
    newer_trust: float
    older_trust: float
    kind: str
    detail: str
    corrects: bool
    overlap: float


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
    """The comparison so far: verdicts (kind, detail, whether the newer one corrects) by pair, the newer one
    first, and from which other origins each memory is confirmed."""

    records: Sequence[Record]
    words: Sequence[Words]
    pairs: int = 0
    verdicts: dict[tuple[int, int], tuple[str, str, bool]] = field(default_factory=dict)
    confirmed: defaultdict[int, set[str]] = field(default_factory=lambda: defaultdict(set))


def contradictions(call: Call, where: Filter, topic: str | None, moment: datetime) -> ContradictionSearch:
    """All contradictions among the memories that pass the filter; trust is judged at `moment`."""
    found = _about(call, where, topic) if topic is not None else _everything(call, where)
    records = [record for record in found if len(record.memory.content) <= LONG_CHARS]
    words = [frozenset(terms(record.memory.content)) for record in records]
    survey = _ContradictionSurvey(records=records, words=words)
    for at, some in enumerate(alike_pairs(words)):
        if at % BATCH == 0:
            call.check()
            call.progress(at, len(records), "comparing")
        for one, other in some:
            _compare(survey, one, other)
    _add_marked(call, survey)
    accessible = len(found) if topic is not None else call.engine.store.count(where, access=call.access)
    clashes = [_contradiction(survey, *pair, moment) for pair in survey.verdicts]
    clashes.sort(key=lambda one: (stated_at(one.newer.memory), one.newer.memory.id), reverse=True)
    return ContradictionSearch(
        contradictions=tuple(clashes),
        memories=len(records),
        pairs=survey.pairs,
        left_out=max(0, accessible - len(records)),
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
    return latest


def _compare(survey: _ContradictionSurvey, one: int, other: int) -> None:
    survey.pairs += 1
    newer, older = _in_time(survey, one, other)
    conflict = conflict_between(survey.records[newer].memory, survey.records[older].memory)
    if conflict is None and supports(survey.records[newer].memory, survey.records[older].memory):
        _confirm(survey, one, other)
    elif conflict is not None and is_contradiction(conflict):
        survey.verdicts[newer, older] = conflict.kind, conflict.detail, conflict.corrects


def _in_time(survey: _ContradictionSurvey, one: int, other: int) -> tuple[int, int]:
    later = comes_after(survey.records[one].memory, survey.records[other].memory)
    return (one, other) if later else (other, one)


def _confirm(survey: _ContradictionSurvey, one: int, other: int) -> None:
    names = origin(survey.records[one].memory), origin(survey.records[other].memory)
    if names[0] is not None and names[1] is not None and names[0] != names[1]:
        survey.confirmed[one].add(names[1])
        survey.confirmed[other].add(names[0])


def _add_marked(call: Call, survey: _ContradictionSurvey) -> None:
    """Add the pairs that were marked when they were stored and have not been revised since."""
    place = {record.memory.id: at for at, record in enumerate(survey.records)}
    for edge in _marks(call, place):
        pair = _in_time(survey, place[edge.source_id], place[edge.target_id])
        survey.pairs += 1
        if all(survey.records[at].memory.updated_at <= edge.created_at for at in pair):
            survey.verdicts.setdefault(pair, ("marked", "marked when it was remembered", False))


def _marks(call: Call, place: Mapping[str, int]) -> Iterator[Edge]:
    ids = list(place)
    for at in range(0, len(ids), BATCH):
        call.check()
        some = ids[at : at + BATCH]
        here = set(some)
        for edge in call.engine.store.edges(some, access=call.access):
            # An edge between two batches is read twice; it counts in the batch of its source.
            if edge.kind == CONTRADICTS and edge.source_id in here and edge.target_id in place:
                yield edge


def _contradiction(survey: _ContradictionSurvey, one: int, other: int, moment: datetime) -> Contradiction:
    newer, older = survey.records[one], survey.records[other]
    kind, detail, corrects = survey.verdicts[one, other]
    return Contradiction(
        newer=newer,
        older=older,
        newer_trust=trust(newer, moment, corroborations=len(survey.confirmed[one])),
        older_trust=trust(older, moment, corroborations=len(survey.confirmed[other])),
        kind=kind,
        detail=detail,
        corrects=corrects,
        overlap=overlap(survey.words[one], survey.words[other]),
    )
