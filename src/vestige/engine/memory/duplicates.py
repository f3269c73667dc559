"""Duplicate memories: candidate pairs by normal form, vectors and words, grouped into clusters.

The lists of neighbours that the store keeps name the pairs. The work of a call is bounded, however large the
store is: while there are no lists yet, because it would take too long to make them at once, the latest
memories are compared by vectors and the others by words.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from itertools import combinations

import numpy as np

from vestige.cognition.evidence.duplicates import (
    Pair,
    Texts,
    apart,
    clusters,
    identical_pairs,
    listed_pairs,
    merge_score,
    near_pairs,
    nearest_pairs,
    unfit,
    whole,
)
from vestige.cognition.evidence.merge import in_order
from vestige.cognition.text.analyser import fingerprint, terms
from vestige.cognition.text.likeness import alike_pairs
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Filter, Record
from vestige.engine.context import Call
from vestige.engine.memory.merge import marked_apart
from vestige.store.contract.answers import NearestMemories

MOST_MEMORIES = 50_000
"""In a larger scope, only the latest memories are compared."""
MOST_COSINES = 400_000_000
"""The most cosines that a call computes: all pairs of 20,000 memories, in about ten seconds."""
MOST_TO_MERGE = 3
"""A user should look at every memory of a larger cluster."""
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicateCluster:
    """Memories that are pairwise alike, the leading one first, each with its similarity to that one. `score`
    is that of the pair which merges worst, `objections` are reasons to look before merging."""

    records: tuple[Record, ...]
    similarities: tuple[float, ...]
    score: float
    objections: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundDuplicates:
    """The clusters that merge best, and how much was compared. `by_words` memories were compared by words
    only, `left_out` not at all."""

    clusters: tuple[DuplicateCluster, ...]
    total: int
    memories: int
    pairs: int
    by_words: int
    left_out: int


@dataclass(slots=True, kw_only=True)
class _DuplicateSurvey:
    """The memories to compare, by index, and the pairs found so far."""

    call: Call
    records: Sequence[Record]
    texts: Texts
    cosines_left: int
    pairs: set[Pair] = field(default_factory=set)
    loaded: set[int] = field(default_factory=set)
    asked: int = 0


def find_duplicates(
    call: Call, where: Filter, *, least: float, limit: int, offset: int = 0
) -> FoundDuplicates:
    """The clusters of memories that pass the filter, are valid now and may be merged."""
    records, passed = _mergeable(call, where)
    signature = call.engine.store.signature()
    survey = _DuplicateSurvey(
        call=call,
        records=records,
        texts=Texts(
            wholes=np.zeros((len(records), signature.dimension if signature else 1), dtype=np.float32),
            known=np.zeros(len(records), dtype=np.bool_),
            marks=[fingerprint(record.memory.content) for record in records],
        ),
        cosines_left=MOST_COSINES,
    )
    near = call.engine.store.neighbours(access=call.access, most_products=MOST_COSINES, check=call.check)
    by_scope: defaultdict[str, list[int]] = defaultdict(list)
    for at, record in enumerate(records):
        by_scope[record.memory.scope].append(at)
    for members in by_scope.values():
        survey.pairs.update(identical_pairs(survey.texts, members))
        if near is None:
            _compare_vectors(survey, members, least)
        else:
            _compare_listed(survey, near, members, least)
    if survey.asked < len(records):
        survey.texts = _with_words(survey)
        for members in by_scope.values():
            _compare_words(survey, members)
    _load(survey, sorted({at for pair in survey.pairs for at in pair}))
    groups = clusters(survey.texts, survey.pairs, least)
    ranked = sorted(
        ((-_score(survey, group), group) for group in groups),
        key=lambda one: (len(one[1]) > MOST_TO_MERGE, one),
    )
    return FoundDuplicates(
        clusters=tuple(_cluster(survey, group, -score) for score, group in ranked[offset : offset + limit]),
        total=len(groups),
        memories=len(records),
        pairs=len(survey.pairs),
        by_words=len(records) - survey.asked,
        left_out=passed - len(records),
    )


def _mergeable(call: Call, where: Filter) -> tuple[Sequence[Record], int]:
    """The latest memories that may be merged, in the order of arrival, and how many there are."""
    now, passed = call.engine.now(), 0
    latest: deque[Record] = deque(maxlen=MOST_MEMORIES)
    for batch in call.engine.store.stream(where, access=call.access, batch=BATCH):
        call.check()
        fitting = [record for record in batch if unfit(record.memory, now) is None]
        passed += len(fitting)
        latest.extend(fitting)
    return tuple(latest), passed


def _load(survey: _DuplicateSurvey, members: Iterable[int]) -> None:
    """Read the vectors of these memories that are not there yet; who has none stays unknown."""
    store, texts = survey.call.engine.store, survey.texts
    signature = store.signature()
    wanted = [at for at in members if at not in survey.loaded]
    survey.loaded.update(wanted)
    for start in range(0, len(wanted) if signature else 0, BATCH):
        survey.call.check()
        part = wanted[start : start + BATCH]
        ids = [survey.records[at].memory.id for at in part]
        held = store.vectors(ids, signature, access=survey.call.access) if signature else {}
        for at, memory_id in zip(part, ids, strict=True):
            texts.known[at] = memory_id in held
            if memory_id in held:
                texts.wholes[at] = whole(held[memory_id])


def _compare_listed(
    survey: _DuplicateSurvey, near: NearestMemories, members: Sequence[int], least: float
) -> None:
    """Find the nearest of all members by the lists of the store, or by their vectors where a list does not
    say enough."""
    survey.call.check()
    survey.call.progress(survey.asked, len(survey.records), "comparing vectors")
    places = {name: at for at, name in enumerate(near.ids)}
    known = [at for at in members if survey.records[at].memory.id in places]
    chosen = np.array([places[survey.records[at].memory.id] for at in known], dtype=np.int64)
    likely, unsure = listed_pairs(near.lists.renamed(chosen), survey.texts.wholes.shape[1], least)
    _load(survey, known if unsure else sorted({known[at] for pair in likely for at in pair}))
    survey.texts.known[known] = True
    pairs = nearest_pairs(survey.texts.wholes, [(known[one], known[other]) for one, other in likely], least)
    survey.pairs.update(pairs)
    for found in near_pairs(survey.texts.wholes[known], unsure, least):
        survey.call.check()
        survey.pairs.update((known[one], known[other]) for one, other in found)
    survey.asked += len(known)


def _compare_vectors(survey: _DuplicateSurvey, members: Sequence[int], least: float) -> None:
    """Find the nearest of the latest members, as far as the budget of cosines allows."""
    _load(survey, members)
    known = [at for at in members if survey.texts.known[at]]
    if not known:
        return
    asking = min(len(known), survey.cosines_left // len(known))
    survey.cosines_left -= asking * len(known)
    for found in near_pairs(survey.texts.wholes[known], range(len(known) - asking, len(known)), least):
        survey.call.check()
        survey.call.progress(survey.asked, len(survey.records), "comparing vectors")
        survey.pairs.update((known[one], known[other]) for one, other in found)
    survey.asked += asking


def _with_words(survey: _DuplicateSurvey) -> Texts:
    words = []
    for at, record in enumerate(survey.records):
        if at % BATCH == 0:
            survey.call.check()
        words.append(frozenset(terms(record.memory.content)))
    return replace(survey.texts, words=words)


def _compare_words(survey: _DuplicateSurvey, members: Sequence[int]) -> None:
    """Add the pairs with the most words in common."""
    for at, found in enumerate(alike_pairs([survey.texts.words[member] for member in members])):
        if at % BATCH == 0:
            survey.call.check()
            survey.call.progress(at, len(members), "comparing words")
        survey.pairs.update((members[one], members[other]) for one, other in found)


def _score(survey: _DuplicateSurvey, group: Sequence[int]) -> float:
    """How well the worst pair of a group merges."""
    memories = {at: survey.records[at].memory for at in group}
    words = {at: frozenset(terms(memory.content)) for at, memory in memories.items()}
    return min(
        merge_score(memories[a], memories[b], survey.texts.similarity(a, b), (words[a], words[b]))
        for a, b in combinations(group, 2)
    )


def _cluster(survey: _DuplicateSurvey, group: Sequence[int], score: float) -> DuplicateCluster:
    survey.call.check()
    places = {survey.records[at].memory.id: at for at in group}
    ordered = [places[memory.id] for memory in in_order(survey.records[at].memory for at in group)]
    memories = [survey.records[at].memory for at in ordered]
    objections = [reason for pair in combinations(memories, 2) if (reason := apart(*pair))]
    objections += marked_apart(survey.call, [survey.records[at] for at in ordered])
    if len(group) > MOST_TO_MERGE:
        objections.append(f"the cluster has {len(group)} memories: look at each")
    return DuplicateCluster(
        records=tuple(survey.records[at] for at in ordered),
        similarities=tuple(survey.texts.similarity(ordered[0], at) for at in ordered),
        score=score,
        objections=tuple(objections),
    )
