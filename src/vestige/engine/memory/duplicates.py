"""Duplicate memories: candidate pairs by normal form, vectors and words, grouped into clusters.

The lists of neighbours that the store keeps name the pairs. The work of a call is bounded, however large the
store is: while there are no lists yet, because it would take too long to make them at once, the latest
memories are compared by vectors and the others by words.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from hashlib import blake2b
from itertools import combinations
from weakref import WeakKeyDictionary

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
from vestige.core.models import Access, Filter, Record
from vestige.engine.context import Call
from vestige.engine.memory.contradictions import (
    ComparisonBasis,
    LogMark,
    keep,
    kept_for,
    log_mark,
    memory_digest,
    true_records,
)
from vestige.engine.memory.merge import marked_apart
from vestige.store.contract.answers import NearestMemories
from vestige.store.contract.store import MemoryStore

MOST_MEMORIES = 50_000
"""In a larger scope, only the latest memories are compared."""
MOST_COSINES = 400_000_000
"""The most cosines that a call computes: all pairs of 20,000 memories, in about ten seconds."""
MOST_TO_MERGE = 3
"""A user should look at every memory of a larger cluster."""
BATCH = 500
COMPARED: dict[bytes, "_ComparedDuplicates"] = {}
"""The last comparisons of this process, by a digest of all that was compared, as for contradictions."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Group:
    """A cluster by the indices of its memories, the leading one first."""

    members: tuple[int, ...]
    similarities: tuple[float, ...]
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _ComparedDuplicates:
    """A finished comparison, what merges best first. `objections` are found when a cluster is first shown."""

    groups: tuple[_Group, ...]
    pairs: int
    by_words: int
    objections: dict[tuple[int, ...], tuple[str, ...]] = field(default_factory=dict)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _KnownDuplicates:
    """A comparison of a whole scope, its basis with a digest of the lists of neighbours, and the ids of the
    memories in groups by their index. `memories` were compared, `left_out` were not."""

    basis: ComparisonBasis
    near: bytes | None
    compared: _ComparedDuplicates
    ids: Mapping[int, str]
    memories: int
    left_out: int


_KNOWN: WeakKeyDictionary[MemoryStore, dict[tuple[Access, Filter, float], _KnownDuplicates]] = (
    WeakKeyDictionary()
)
"""The last comparisons of each store."""


def find_duplicates(
    call: Call, where: Filter, *, least: float, limit: int, offset: int = 0
) -> FoundDuplicates:
    """The clusters of memories that pass the filter, are valid now and may be merged. While nothing has
    changed, only those of the clusters asked for are read again."""
    store, mark = call.engine.store, log_mark(call)
    near = store.neighbours(access=call.access, most_products=MOST_COSINES, check=call.check)
    lists = None if near is None else _near_digest(call, near)
    kept, key = _KNOWN.setdefault(store, {}), (*kept_for(call, where), least)
    known, passing = kept.get(key), store.count(where, access=call.access)
    if known is None or known.near != lists or not known.basis.holds(mark, passing, call.engine.now()):
        known = _compare_all(call, where, mark, near, least)
        if near is not None:  # otherwise a later call has lists, and finds more
            keep(kept, key, known)
    groups = known.compared.groups[offset : offset + limit]
    wanted = [known.ids[at] for group in groups for at in group.members]
    there = {record.memory.id: record for record in store.get_many(wanted, access=call.access)}
    return FoundDuplicates(
        clusters=tuple(
            _cluster(call, [there[known.ids[at]] for at in group.members], known.compared, group)
            for group in groups
            if all(known.ids[at] in there for at in group.members)  # else one was deleted just now
        ),
        total=len(known.compared.groups),
        memories=known.memories,
        pairs=known.compared.pairs,
        by_words=known.compared.by_words,
        left_out=known.left_out,
    )


def _compare_all(
    call: Call, where: Filter, mark: LogMark, near: NearestMemories | None, least: float
) -> _KnownDuplicates:
    """The comparison of all memories that pass the filter and may be merged."""
    now = call.engine.now()
    found = true_records(call, where, mark, MOST_MEMORIES, lambda memory: unfit(memory, now) is None)
    compared = _compared(call, found.records, near, least)
    return _KnownDuplicates(
        basis=found.basis,
        near=None if near is None else _near_digest(call, near),
        compared=compared,
        ids={at: found.records[at].memory.id for group in compared.groups for at in group.members},
        memories=len(found.records),
        left_out=found.fitting - len(found.records),
    )


def _compared(
    call: Call, records: Sequence[Record], near: NearestMemories | None, least: float
) -> _ComparedDuplicates:
    """The comparison of these memories: that of an earlier call if nothing that it depends on has changed."""
    if near is None:
        return _compare(call, records, near, least)
    key = _digest(call, records, near, least)
    known = COMPARED.get(key)
    if known is None:
        known = _compare(call, records, near, least)
        keep(COMPARED, key, known)
    return known


def _near_digest(call: Call, near: NearestMemories) -> bytes:
    """The lists of neighbours in a few bytes."""
    whole = blake2b(repr((call.engine.store.signature(), near.ids)).encode(), digest_size=32)
    for numbers in (near.lists.near, near.lists.products, near.lists.floors):
        whole.update(numbers.tobytes())
    return whole.digest()


def _digest(call: Call, records: Sequence[Record], near: NearestMemories, least: float) -> bytes:
    """All that a comparison depends on, in a few bytes."""
    whole = blake2b(repr(least).encode() + _near_digest(call, near), digest_size=32)
    for record in records:
        memory = record.memory
        whole.update(memory_digest(memory))
        whole.update(repr((memory.tags, memory.valid_until, memory.valid_from, memory.occurred_at)).encode())
    return whole.digest()


def _compare(
    call: Call, records: Sequence[Record], near: NearestMemories | None, least: float
) -> _ComparedDuplicates:
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
    groups = [_group(survey, group) for group in clusters(survey.texts, survey.pairs, least)]
    groups.sort(key=lambda one: (len(one.members) > MOST_TO_MERGE, -one.score, sorted(one.members)))
    return _ComparedDuplicates(
        groups=tuple(groups), pairs=len(survey.pairs), by_words=len(records) - survey.asked
    )


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


def _group(survey: _DuplicateSurvey, group: Sequence[int]) -> _Group:
    """A cluster with the leading memory first, and how well its worst pair merges."""
    memories = {at: survey.records[at].memory for at in group}
    words = {at: frozenset(terms(memory.content)) for at, memory in memories.items()}
    places = {memory.id: at for at, memory in memories.items()}
    ordered = tuple(places[memory.id] for memory in in_order(memories.values()))
    return _Group(
        members=ordered,
        similarities=tuple(survey.texts.similarity(ordered[0], at) for at in ordered),
        score=min(
            merge_score(memories[a], memories[b], survey.texts.similarity(a, b), (words[a], words[b]))
            for a, b in combinations(group, 2)
        ),
    )


def _cluster(
    call: Call, members: Sequence[Record], compared: _ComparedDuplicates, group: _Group
) -> DuplicateCluster:
    call.check()
    objections = compared.objections.get(group.members)
    if objections is None:
        pairs = combinations([record.memory for record in members], 2)
        objections = tuple(reason for pair in pairs if (reason := apart(*pair)))
        compared.objections[group.members] = objections
    more = marked_apart(call, members)
    if len(members) > MOST_TO_MERGE:
        more.append(f"the cluster has {len(members)} memories: look at each")
    return DuplicateCluster(
        records=tuple(members),
        similarities=group.similarities,
        score=group.score,
        objections=(*objections, *more),
    )
