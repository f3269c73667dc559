"""How rare a word is among memories: the weight of a query's words in late interaction and in confidence."""

from collections.abc import Iterable, Mapping
from math import log

BACKGROUND = 100
"""Memories without the word that are imagined beside the real ones: rarity means little among few."""
LEAST = 1e-6


def idf(frequency: int, memories: int) -> float:
    """How rare a word is that so many of the memories have (as in BM25), a little above 0 at least."""
    without = memories + BACKGROUND - frequency
    return max(LEAST, log((without + 0.5) / (frequency + 0.5)))


def mass(terms: Iterable[str], frequencies: Mapping[str, int], memories: int) -> float:
    """What these terms weigh together."""
    return sum(idf(frequencies.get(term, 0), memories) for term in terms)
