"""Candidates from earlier wordings, which no index holds: the query's words are matched against each text.

Such a text has no neighbours. Its BM25 is what the store gives a memory outside any thread, with the store's
own statistics, so that it and indexed candidates are on one scale.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from vestige.cognition.query.analyse import Asked
from vestige.cognition.query.literals import count_held
from vestige.cognition.ranking.bm25 import K1, LEAST_IDF, B, idf, is_prefix
from vestige.cognition.ranking.maxsim import Matched
from vestige.cognition.text.analyser import memory_terms
from vestige.core.candidates import CandidatePool, Floats, Integers, TermStatistics
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """The word matches of each text: the signals of a pool that need no model."""

    own: Floats
    dated: Floats
    covered: Floats
    literals: Integers

    def best(self, most: int) -> Integers:
        """The indices of the best texts: those with more literals, then by BM25, then as given."""
        return np.lexsort((-self.own, -self.literals))[:most]

    def at(self, places: Integers) -> "Words":
        """The entries at these indices."""
        return Words(
            own=self.own[places],
            dated=self.dated[places],
            covered=self.covered[places],
            literals=self.literals[places],
        )


def find_words(
    asked: Asked, memories: Sequence[Memory], common: TermStatistics, pool: CandidatePool
) -> Words:
    """The matches in these memories; the rarity of a word comes from the pool."""
    bags = [Counter(memory_terms(memory)) for memory in memories]
    sought = tuple(common.frequencies)
    counts = np.array([[_occurrences(term, bag) for term in sought] for bag in bags], dtype=np.int64)
    counts = counts.reshape(len(bags), len(sought))
    gains = _gains(counts, np.array([bag.total() for bag in bags], dtype=np.int64), common)
    rarity = np.array([idf(pool.frequencies.get(term, 0), pool.memories) for term in sought])
    names_date = np.array([term in asked.date_terms for term in sought], dtype=np.bool_)
    literals = dict.fromkeys(asked.literals)
    return Words(
        own=gains.sum(axis=1),
        dated=gains[:, names_date].sum(axis=1),
        covered=(counts > 0) @ rarity / rarity.sum() if sought else np.zeros(len(bags)),
        literals=np.array(
            [count_held(literals, memory, bag.keys()) for memory, bag in zip(memories, bags, strict=True)],
            dtype=np.int64,
        ),
    )


def _gains(counts: Integers, lengths: Integers, common: TermStatistics) -> Floats:
    """What each term adds to the BM25 of each text."""
    found = np.array(list(common.frequencies.values()), dtype=np.float64)
    rarity = np.maximum(LEAST_IDF, np.log((common.memories - found + 0.5) / (found + 0.5)))
    average = max(1, common.words) / max(1, common.memories)
    norms = K1 * (1 - B + B * lengths / average)
    return np.asarray(rarity * (K1 + 1) * counts / (counts + norms[:, np.newaxis]))


def _occurrences(term: str, bag: Mapping[str, int]) -> int:
    if not is_prefix(term):
        return bag.get(term, 0)
    return sum(count for word, count in bag.items() if word.startswith(term[:-1]))


def joined(
    pool: CandidatePool, matched: Matched | None, other: CandidatePool, other_matched: Matched | None
) -> tuple[CandidatePool, Matched | None]:
    """Both pools as one, in the order of ids, and how well their tokens match. Word weights come from the
    first one. Tokens are already compared, so the sketch is left out."""
    ids = (*pool.ids, *other.ids)
    order = np.array(sorted(range(len(ids)), key=ids.__getitem__), dtype=np.int64)
    traits: dict[str, Any] = {  # arrays of every type
        one.name: _in_order(getattr(pool.traits, one.name), getattr(other.traits, one.name), order)
        for one in fields(pool.traits)
    }
    arrays: dict[str, Any] = {  # arrays of every type
        one.name: _in_order(getattr(pool, one.name), getattr(other, one.name), order)
        for one in fields(pool)
        if isinstance(getattr(pool, one.name), np.ndarray)
    }
    both = replace(
        pool, ids=tuple(ids[at] for at in order), traits=replace(pool.traits, **traits), sketch=None, **arrays
    )
    if matched is None and other_matched is None:
        return both, None
    one, two = matched or _unmatched(len(pool.ids)), other_matched or _unmatched(len(other.ids))
    return both, Matched(
        own=_in_order(one.own, two.own, order), context=_in_order(one.context, two.context, order)
    )


def _in_order(one: Floats, other: Floats, order: Integers) -> Floats:
    return np.concatenate((one, other))[order]


def _unmatched(count: int) -> Matched:
    nothing = np.full(count, np.nan)
    return Matched(own=nothing, context=nothing)
