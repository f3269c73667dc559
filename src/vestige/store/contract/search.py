"""What a search asks a store for, and what it gets beside the pool."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import (
    NEARBY,
    OFFSETS,
    CandidatePool,
    LexicalScores,
    Sketch,
    TermStatistics,
    Traits,
    Voices,
)
from vestige.core.models import ANYTHING, Filter, Record
from vestige.embed.protocol import Signature

__all__ = [
    "NEARBY",
    "OFFSETS",
    "POSTINGS_BUDGET",
    "CandidatePool",
    "LexicalScores",
    "Probe",
    "Reworded",
    "Sketch",
    "TermStatistics",
    "Traits",
    "Voices",
]

POSTINGS_BUDGET = 60_000
"""Occurrences of terms that one search visits at most, the rarest terms first. It bounds the cost of
common words in a large store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """What to look for.

    `terms` are the analyser's (a repeated one counts as often, one ending in `*` is a prefix), `date_terms`
    those of them that tell a date, `names` hashes of words that may be a speaker's (`form.name_hash`),
    `literals` texts that must occur as they are, `vector` the query's in the space of `signature`. Each arm
    finds at most `per_arm` memories among those that pass `where`.
    """

    terms: tuple[str, ...] = ()
    date_terms: tuple[str, ...] = ()
    names: frozenset[int] = frozenset()
    literals: tuple[str, ...] = ()
    vector: NDArray[np.float32] | None = None
    signature: Signature | None = None
    where: Filter = ANYTHING
    per_arm: int
    least_cosine: float = -1.0
    postings: int | None = POSTINGS_BUDGET


@dataclass(frozen=True, slots=True, kw_only=True)
class Reworded:
    """Memories whose searchable text was another one once, as they were then, and the statistics by which
    the store would score the terms asked for. Strength and `embedded` are today's."""

    records: tuple[Record, ...]
    statistics: TermStatistics
