"""Duplicate detection: pairs of similar memories, clusters in which every two are alike, and merge scores.

The pairs are the few nearest of each text. A cluster is as good as its weakest pair: two texts are never
joined because both are like a third.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.gate.relation import LONG_CHARS, comes_after, conflict_between
from vestige.cognition.graph.neighbour_lists import SCALE, UNIT, NeighbourLists
from vestige.cognition.text.analyser import fingerprint, overlap
from vestige.cognition.text.likeness import Words
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory

Vectors = NDArray[np.float32]
Pair = tuple[int, int]
"""Two texts by index, the earlier one first."""

LIKELY = 0.9  # The similarity from which a new memory may repeat an existing one.
NEIGHBOURS = 5  # The number of nearest texts that each text is compared with.
MOST_MEMBERS = 20  # The limit of memories merged at once.
BLOCK_COSINES = 4_000_000  # The number of cosines computed at once: 16 MB.
BLOCK_PAIRS = 20_000  # The number of pairs whose cosines are computed at once: 60 MB.
ROUNDING = 1e-6  # The rounding error of the cosine of a vector with itself, in single precision.
MEANING_SHARE, TAGS_SHARE, WORDS_SHARE = 0.70, 0.15, 0.15
"""The weights of the cosine, the common tags and the common words in a merge score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Texts:
    """Texts to compare: a unit vector each, where `known`; the words of each; and its normal form. `words`
    may be empty when every vector is known."""

    wholes: Vectors
    known: NDArray[np.bool_]
    marks: Sequence[str]
    words: Sequence[Words] = ()

    def similarity(self, one: int, other: int) -> float:
        """1 for the same text, else the cosine, else the share of common words."""
        if self.marks[one] == self.marks[other]:
            return 1.0
        if self.known[one] and self.known[other]:
            return min(1.0, max(0.0, float(self.wholes[one] @ self.wholes[other])))
        return overlap(self.words[one], self.words[other])


def whole(pieces: Vectors) -> Vectors:
    """The unit vector of a text of several pieces: their mean."""
    mean = pieces.mean(axis=0)
    unit: Vectors = (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)
    return unit


def identical_pairs(texts: Texts, members: Sequence[int]) -> list[Pair]:
    """Every text paired with the previous one that has the same normal form."""
    last: dict[str, int] = {}
    pairs = []
    for at in members:
        mark = texts.marks[at]
        if mark in last:
            pairs.append((last[mark], at))
        last[mark] = at
    return pairs


def near_pairs(wholes: Vectors, asking: Sequence[int], least: float) -> Iterator[set[Pair]]:
    """The texts `asking`, each with its nearest neighbours that reach `least`, in batches."""
    least -= ROUNDING
    rows = max(1, BLOCK_COSINES // max(1, len(wholes)))
    for start in range(0, len(asking), rows):
        asked = np.array(asking[start : start + rows], dtype=np.int64)
        cosines = wholes[asked] @ wholes.T
        cosines[np.arange(len(asked)), asked] = -np.inf
        yield _nearest(cosines, asked, least)


def listed_pairs(lists: NeighbourLists, dimension: int, least: float) -> tuple[list[Pair], list[int]]:
    """Pairs of texts among which, by their lists, are all that `near_pairs` finds, and the texts whose lists
    do not say enough. A list knows a cosine but for the rounding of its vectors."""
    margin = UNIT * dimension**0.5 / SCALE
    floors = lists.floors.astype(np.float64)
    last = lists.products[:, min(NEIGHBOURS, lists.products.shape[1]) - 1]
    unsure = (floors >= UNIT * (least - ROUNDING) - margin) & (last < floors + 2 * margin)
    likely = (lists.near >= 0) & (lists.products >= UNIT * (least - ROUNDING) - margin)
    likely[unsure] = False
    ones, columns = np.nonzero(likely)
    pairs = zip(ones.tolist(), lists.near[ones, columns].tolist(), strict=True)
    return list(pairs), np.flatnonzero(unsure).tolist()


def nearest_pairs(wholes: Vectors, likely: Sequence[Pair], least: float) -> set[Pair]:
    """Of the likely pairs of each first text those with its nearest neighbours that reach `least`."""
    if not likely:
        return set()
    ones, others = np.array(likely, dtype=np.int64).T
    cosines = np.concatenate(
        [
            np.einsum("ij,ij->i", wholes[ones[at : at + BLOCK_PAIRS]], wholes[others[at : at + BLOCK_PAIRS]])
            for at in range(0, len(ones), BLOCK_PAIRS)
        ]
    )
    order = np.lexsort((others, -cosines, ones))
    ones, others, cosines = ones[order], others[order], cosines[order]
    place = np.arange(len(ones)) - np.searchsorted(ones, ones)
    kept = (place < NEIGHBOURS) & (cosines >= least - ROUNDING)
    return {(min(pair), max(pair)) for pair in zip(ones[kept].tolist(), others[kept].tolist(), strict=True)}


def _nearest(cosines: Vectors, asked: NDArray[np.int64], least: float) -> set[Pair]:
    count = min(NEIGHBOURS, cosines.shape[1] - 1)
    if count < 1:
        return set()
    near = np.argpartition(cosines, -count, axis=1)[:, -count:]
    enough = np.take_along_axis(cosines, near, axis=1) >= least
    ones = np.broadcast_to(asked[:, np.newaxis], near.shape)[enough].tolist()
    return {(min(pair), max(pair)) for pair in zip(ones, near[enough].tolist(), strict=True)}


def clusters(texts: Texts, pairs: Iterable[Pair], least: float) -> list[list[int]]:
    """Groups of 2 to MOST_MEMBERS texts of which every two reach `least`; the most alike are joined first."""
    least -= ROUNDING
    scored = ((-texts.similarity(*pair), pair) for pair in pairs)
    groups: dict[int, list[int]] = {}
    for _, (one, other) in sorted(one for one in scored if -one[0] >= least):
        left, right = groups.setdefault(one, [one]), groups.setdefault(other, [other])
        if left is right or len(left) + len(right) > MOST_MEMBERS:
            continue
        if all(texts.similarity(a, b) >= least for a in left for b in right):
            left.extend(right)
            groups.update(dict.fromkeys(right, left))
    distinct = {id(group): sorted(group) for group in groups.values() if len(group) > 1}
    return sorted(distinct.values())


def merge_score(one: Memory, other: Memory, similarity: float, words: tuple[Words, Words]) -> float:
    """How well two memories merge, from 0 to 1."""
    tags = frozenset(one.tags), frozenset(other.tags)
    # Where neither has any, tags do not speak against it.
    alike = overlap(*tags) if tags[0] | tags[1] else 1.0
    return MEANING_SHARE * similarity + TAGS_SHARE * alike + WORDS_SHARE * overlap(*words)


def unfit(memory: Memory, now: datetime) -> str | None:
    """Why a memory cannot be part of any merge now, or None."""
    if memory.superseded_by is not None:
        return f"{memory.id} was superseded"  # not by what: the reader may have no access to it
    if not memory.valid_at(now):
        return f"{memory.id} is not true now"
    if memory.pinned:
        return f"{memory.id} is pinned, which protects it"
    if memory.thread is not None:
        return f"{memory.id} is part of a thread"
    if memory.suppression_count:
        return f"{memory.id} is suppressed"
    return None


def apart(one: Memory, other: Memory) -> str | None:
    """Why two memories must not be merged, or None."""
    if one.scope != other.scope:
        return f"{one.id} is in {one.scope}, {other.id} in {other.scope}"
    if one.valid_until != other.valid_until:
        return f"{one.id} and {other.id} do not end at the same time"
    if one.occurred_at and other.occurred_at and one.occurred_at != other.occurred_at:
        return f"{one.id} and {other.id} happened at different times"
    newer, older = (one, other) if comes_after(one, other) else (other, one)
    conflict = conflict_between(newer, older) if comparable(one, other) else None
    return f"{newer.id} contradicts {older.id} ({conflict.detail})" if conflict else None


def comparable(one: Memory, other: Memory) -> bool:
    """Whether two texts are checked for contradictions: not identical, and not long."""
    if max(len(one.content), len(other.content)) > LONG_CHARS:
        return False
    return fingerprint(one.content) != fingerprint(other.content)
