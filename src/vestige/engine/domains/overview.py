"""Reading domains: their members and scores, within the access of the caller."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vestige.cognition.graph.domains.assignment import Vectors, own_part
from vestige.cognition.graph.domains.names import exemplars
from vestige.core.documents import Document
from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Filter, Memory, Record
from vestige.engine.context import Call
from vestige.engine.domains.catalogue import (
    DOMAIN,
    HAND,
    DomainCentre,
    DomainRecord,
    centres,
    documents_of,
    find_domain,
    memory_vectors,
    score_line,
)
from vestige.engine.domains.classify import scores_of
from vestige.engine.domains.proposals import all_proposals, is_shown
from vestige.engine.revise import find_document, load
from vestige.store.contract.memberships import is_found

BUCKETS = 10
MOST_READ = 2_000
"""Members that are read for the scores and exemplars of a domain."""
LEAST_IN_COMMON = 3
"""The least memories that show what a session is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainSummary:
    """A domain as a caller sees it. The label and terms of a domain come from texts of the whole store, so
    that a caller with limited access gets only the id."""

    id: str
    label: str
    found: bool
    terms: tuple[str, ...]
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainOverview:
    domains: tuple[DomainSummary, ...]
    memories: int
    unclassified: int
    proposals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainDetail:
    """A domain with its members' scores in ten ranges from 0 to 1, and memories that are typical of it."""

    summary: DomainSummary
    document: Document | None
    centre: DomainCentre | None
    histogram: tuple[int, ...]
    exemplars: tuple[Record, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainScore:
    """The score of a memory for a domain, beside those of the members."""

    domain: str
    label: str
    score: float
    centre: DomainCentre
    member: bool
    by_hand: bool
    own: float | None = None
    """For a domain that the memory is not in though it passes the cut: the own part of the score, without
    what the domains that it is in explain."""


def overview(call: Call) -> DomainOverview:
    """The domains with accessible members, the largest first, and all domains for unlimited access."""
    store = call.engine.store
    records = _visible(call)
    everything = call.access == EVERYTHING
    domains = [_summary(call, name, record) for name, record in records.items()]
    domains = [one for one in domains if one.memories or everything]
    total = store.count(Filter(), access=call.access)
    inside = store.count(Filter(domains=tuple(records)), access=call.access) if records else 0
    shown = sum(map(is_shown, all_proposals(call))) if everything else 0
    return DomainOverview(
        domains=tuple(sorted(domains, key=lambda one: (-one.memories, one.id))),
        memories=total,
        unclassified=total - inside,
        proposals=shown,
    )


def common_domain(call: Call, memories: Sequence[Memory]) -> str | None:
    """The domain that more than half of these memories are in, as the caller may name it; None for few."""
    homes = Counter(name for memory in memories for name in memory.domains)
    name, held = max(homes.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    if held < LEAST_IN_COMMON or 2 * held <= len(memories):
        return None
    record = _visible(call).get(name)
    return record.label if record else name


def _visible(call: Call) -> dict[str, DomainRecord | None]:
    documents = documents_of(call.engine.store, DOMAIN, access=call.access)
    found: dict[str, DomainRecord | None] = {
        one.id: DomainRecord(id=one.id, document=one) for one in documents if not one.body.get("into")
    }
    return found | {name: None for name in call.access.domains or () if name not in found}


def _visible_centres(call: Call) -> dict[str, DomainCentre]:
    """The centroids that a caller may know. One is made of all members of a domain, so that a caller that is
    limited to scopes gets none; one that is limited to domains gets those of its own, without labels."""
    found = centres(call.engine.store)
    if call.access == EVERYTHING:
        return found
    own = (call.access.domains or ()) if call.access.scopes is None else ()
    return {name: replace(found[name], label=name, terms=()) for name in own if name in found}


def _summary(call: Call, name: str, record: DomainRecord | None) -> DomainSummary:
    return DomainSummary(
        id=name,
        label=record.label if record else name,
        found=record.found if record else is_found(name),
        terms=record.terms if record else (),
        memories=call.engine.store.count(Filter(domains=(name,)), access=call.access),
    )


def detail(call: Call, which: str) -> DomainDetail:
    """One domain; NotFound for one without accessible documents and members."""
    visible = _visible(call)
    whole = call.access == EVERYTHING  # a label, or one like it, must not be shown to others
    name = find_domain(call, which).id if whole and which not in visible else which
    if name not in visible:
        raise NotFound(f"There is no domain {which!r}.", details={"domain": which})
    record = visible[name]
    centre = centres(call.engine.store).get(name) if record else None
    records = call.engine.store.find(
        Filter(domains=(name,), include_suppressed=False), access=call.access, limit=MOST_READ
    )
    members = [one.memory for one in records]
    vectors = memory_vectors(call, members)
    return DomainDetail(
        summary=_summary(call, name, record),
        document=record.document if record else None,
        centre=centre,
        histogram=_histogram(_scores(call, name, centre, members, vectors)),
        exemplars=_exemplars(records, [one for one in members if one.id in vectors], vectors),
    )


def _scores(
    call: Call,
    name: str,
    centre: DomainCentre | None,
    members: Sequence[Memory],
    vectors: Mapping[str, Vectors],
) -> list[float]:
    """The scores of members; those that are kept with them for a caller that may not know the centroid."""
    if centre is None:
        return [one.domain_scores[name] for one in members if name in one.domain_scores]
    own = [scores_of(call, one, vectors[one.id], {name: centre}) for one in members if one.id in vectors]
    return [scores[name] for scores in own if name in scores]


def score_lines(call: Call, memories: Sequence[Memory]) -> dict[str, list[str]]:
    """For each of these memories, a line for every domain that it is in: the score of its present text for
    the present centroid. Labels are of the whole store, so that a caller with limited access gets none."""
    if call.access != EVERYTHING or not any(one.domains for one in memories):
        return {}
    middles, vectors = centres(call.engine.store), memory_vectors(call, memories)
    lines = {}
    for memory in (one for one in memories if one.id in vectors):
        scores = scores_of(call, memory, vectors[memory.id], middles)
        lines[memory.id] = [
            score_line(middles[name].label, scores[name], middles[name])
            for name in memory.domains
            if name in scores
        ]
    return lines


def _histogram(scores: Sequence[float]) -> tuple[int, ...]:
    counts, _ = np.histogram(np.array(scores, dtype=float), bins=BUCKETS, range=(0.0, 1.0))
    return tuple(int(one) for one in counts)


def _exemplars(
    records: Sequence[Record], members: Sequence[Memory], vectors: dict[str, np.ndarray]
) -> tuple[Record, ...]:
    if not members:
        return ()
    by_id = {one.memory.id: one for one in records}
    chosen = exemplars(np.stack([vectors[one.id] for one in members]))
    return tuple(by_id[members[row].id] for row in chosen)


def explain(call: Call, memory_id: str) -> tuple[Memory, list[DomainScore]]:
    """A memory with its score for every domain, the highest first; nothing without vectors."""
    memory = load(call, memory_id).memory
    middles = _visible_centres(call)
    vector = memory_vectors(call, [memory]).get(memory.id)
    hand = find_document(call, HAND, memory.id)
    by_hand = {*hand.body["assigned"], *hand.body["unassigned"]} if hand else set()
    scores = scores_of(call, memory, vector, middles) if vector is not None else {}
    inside = [name for name in memory.domains if name in scores]
    vectors = {name: one.vector for name, one in middles.items()}

    def own(name: str) -> float | None:
        if not inside or name in inside or scores[name] < middles[name].range.cut:
            return None
        return own_part(name, inside, scores, vectors)

    found = [
        DomainScore(
            domain=name,
            label=middles[name].label,
            score=score,
            centre=middles[name],
            member=name in memory.domains,
            by_hand=name in by_hand,
            own=own(name),
        )
        for name, score in scores.items()
    ]
    return memory, sorted(found, key=lambda one: (-one.score, one.domain))
