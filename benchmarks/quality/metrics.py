"""Measures of one ranking against what ought to be found. All are in [0, 1]; a mean over questions is
reported."""

import math
from collections.abc import Mapping, Sequence

Gold = Mapping[str, float]
Keys = Sequence[str]


def frac(ranking: Keys, gold: Gold, k: int) -> float:
    """The share of the gold among the first k."""
    return len(gold.keys() & set(ranking[:k])) / len(gold)


def any_found(ranking: Keys, gold: Gold, k: int) -> float:
    """Whether any gold is among the first k (also called hit@k)."""
    return float(not gold.keys().isdisjoint(ranking[:k]))


def all_found(ranking: Keys, gold: Gold, k: int) -> float:
    """Whether all gold is among the first k."""
    return float(gold.keys() <= set(ranking[:k]))


def reciprocal_rank(ranking: Keys, gold: Gold) -> float:
    """1 / the place of the first gold, 0 when there is none in the ranking."""
    for place, key in enumerate(ranking, 1):
        if key in gold:
            return 1 / place
    return 0.0


def ndcg(ranking: Keys, gold: Gold, k: int) -> float:
    """Discounted gain of the first k beside that of the best order; the gain of a document is its grade."""
    best = sum(
        _discounted(grade, place) for place, grade in enumerate(sorted(gold.values(), reverse=True)[:k])
    )
    return sum(_discounted(gold.get(key, 0.0), place) for place, key in enumerate(ranking[:k])) / best


def _discounted(grade: float, place: int) -> float:
    return grade / math.log2(place + 2)
