"""The stages of recall over the whole pool: candidates in, candidates out, nothing cut off before
the end.

`Candidates` is parallel arrays, so a stage is one vector expression. Every stage leaves its effect
behind in `steps`: that is what `explain` shows.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from vestige.cognition.fusion import Scores, weighted

RECENCY_WEIGHT = 0.02
RECENCY_HALF_LIFE_DAYS = 30.0
"""A fresh memory gets at most this share more: enough to break ties, too little to bury the old."""

ACCESSIBILITY_WEIGHT = 0.15
"""A memory that can hardly be recalled keeps at least 1 - this share of its score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """The pool. `dense` is None when no vectors took part; a candidate an arm missed has 0 there."""

    ids: tuple[str, ...]
    lexical: Scores
    dense: Scores | None
    age_days: Scores
    accessibility: Scores
    scores: Scores
    steps: tuple[tuple[str, Scores], ...] = ()

    def scored(self, stage: str, scores: Scores) -> "Candidates":
        """The same pool after a stage."""
        return replace(self, scores=scores, steps=(*self.steps, (stage, scores)))

    def best(self, limit: int) -> list[int]:
        """Indices of the best candidates: score descending, then id ascending."""
        return sorted(range(len(self.ids)), key=lambda i: (-self.scores[i], self.ids[i]))[:limit]


Stage = Callable[[Candidates], Candidates]


def relevance(pool: Candidates) -> Candidates:
    """How well words and meaning match the query."""
    return pool.scored("relevance", weighted(pool.lexical, pool.dense))


def temporal(pool: Candidates) -> Candidates:
    """The newer of two equal matches first. Validity is a filter, and recency is counted only here."""
    recency = np.exp2(-np.maximum(pool.age_days, 0) / RECENCY_HALF_LIFE_DAYS)
    return pool.scored("temporal", pool.scores * (1 + RECENCY_WEIGHT * recency))


def accessibility(pool: Candidates) -> Candidates:
    """What is fading or suppressed comes to mind less easily (strength.accessibility)."""
    share = 1 - ACCESSIBILITY_WEIGHT * (1 - pool.accessibility)
    return pool.scored("accessibility", pool.scores * share)


STAGES: tuple[Stage, ...] = (relevance, temporal, accessibility)


def rank(pool: Candidates) -> Candidates:
    """All stages, in order."""
    for stage in STAGES:
        pool = stage(pool)
    return pool
