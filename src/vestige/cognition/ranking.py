"""The stages of recall over the whole pool: a ranking in, a ranking out, nothing cut off before the end.

Relevance comes first (relevance.py). Every later stage multiplies it by something close to 1: what is
remembered well, fits the time asked for or has helped before wins among equals, and never buries a better
answer. Each stage leaves its effect behind in `steps`: that is what `explain` shows.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vestige.cognition import strength
from vestige.cognition.form import Form
from vestige.pool import Floats, Integers, Traits

IN_TIME = 0.1
"""What a memory gains that happened in the time asked for."""
LATEST = 0.1
LATEST_HALF_LIFE_DAYS = 30.0
"""What the newest memory gains where the latest is asked for; half of it for one this much older. Nowhere
else does being new count by itself: fading with time is what accessibility is about."""
FADED_NOTE = 0.2
FADED_PART = 0.02
"""What separates a memory that is fully there from one that is all but gone: a note, and a part of a talk or
a text. A note is used or drops out of use; a record of what was said is no worse for being old."""
IN_CONTEXT = 0.1
"""What a memory gains whose context is the caller's in all that is known of both."""
OVERTAKEN = 0.999
"""A memory that was replaced by another candidate stands right behind it."""
ACTIVATED = 0.05
"""What a memory gains that is fully activated by its links to the best ones."""
HELPFUL = 0.03
"""What a memory gains that always helped."""
DOUBTS = 2.0
"""Showings that count as not helpful before there is any evidence."""

SECONDS_PER_DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What the stages judge by, beside the pool: per candidate, or for the query as a whole.

    `window` is the time asked for (seconds since 1970), `latest` whether the newest is wanted. `context` is
    how well the caller's context fits a candidate's (0 to 1), `replaced_by` the index of the candidate that
    superseded it and `newer` that of a rival that was told later (-1 for none), `activation` what reaches it
    through links (0 to 1).
    """

    now: float
    traits: Traits
    window: tuple[float, float] | None
    latest: bool
    context: Floats
    replaced_by: Integers
    newer: Integers
    activation: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Candidates in the order of their ids, with their scores now and after each stage so far."""

    ids: tuple[str, ...]
    scores: Floats
    steps: tuple[tuple[str, Floats], ...] = ()

    def scored(self, stage: str, scores: Floats) -> "Ranking":
        """The same candidates after a stage."""
        return Ranking(ids=self.ids, scores=scores, steps=(*self.steps, (stage, scores)))

    def best(self, limit: int | None = None) -> list[int]:
        """Indices of the best candidates: score descending, then id ascending."""
        order: list[int] = np.argsort(-self.scores, kind="stable")[:limit].tolist()
        return order

    def lowered_by(self, stage: str) -> frozenset[str]:
        """The candidates whose score a stage has lowered; none where it took no part."""
        steps = [scores for _, scores in self.steps]
        for at, (name, scores) in enumerate(self.steps):
            if name == stage and at:
                return frozenset(self.ids[one] for one in np.flatnonzero(scores < steps[at - 1]))
        return frozenset()


Stage = Callable[[Ranking, Situation], Ranking]


def temporal(ranking: Ranking, given: Situation) -> Ranking:
    """What happened in the time asked for, or last, where the query asks for that."""
    happened = np.where(np.isnan(given.traits.happened), given.traits.created, given.traits.happened)
    gain = np.zeros(len(ranking.ids))
    if given.window is not None:
        begin, end = given.window
        gain += IN_TIME * ((happened >= begin) & (happened < end))
    if given.latest and len(happened):
        older_days = (happened.max() - happened) / SECONDS_PER_DAY
        gain += LATEST * np.exp2(-older_days / LATEST_HALF_LIFE_DAYS)
    return ranking.scored("temporal", ranking.scores * (1 + gain))


def accessibility(ranking: Ranking, given: Situation) -> Ranking:
    """What is fading comes to mind a little less easily, what was suppressed much less."""
    traits = given.traits
    kept = ease(retention(traits, given.now), traits.suppressions, notes=traits.form == Form.NOTE)
    return ranking.scored("accessibility", ranking.scores * kept)


def suppression(ranking: Ranking, given: Situation) -> Ranking:
    """The part of accessibility that is no fading: where decay is switched off."""
    kept = ease(1.0, given.traits.suppressions, notes=False)
    return ranking.scored("accessibility", ranking.scores * kept)


def ease(retention: ArrayLike, suppressions: ArrayLike, *, notes: ArrayLike) -> Floats:
    """The share of its score that a memory keeps: the less, the more it has faded or was suppressed."""
    kept = strength.accessibility(1.0, suppressions)
    weight = np.where(notes, FADED_NOTE, FADED_PART)
    return kept * (1 - weight * (1 - np.asarray(retention, dtype=np.float64)))


def joining(retention: float, suppressions: int, *, note: bool) -> float:
    """The share of its activation that a memory keeps which links bring in: all of it, if it is new. What
    activates it has been judged by its own ease already."""
    return float(ease(retention, suppressions, notes=note) / ease(strength.NEW, 0, notes=note))


def context(ranking: Ranking, given: Situation) -> Ranking:
    """Encoding specificity (Tulving & Thomson 1973): what was learned in a context like the present one."""
    return ranking.scored("context", ranking.scores * (1 + IN_CONTEXT * given.context))


def competition(ranking: Ranking, given: Situation) -> Ranking:
    """Between rivals the one that holds now wins (retrieval-induced forgetting, Anderson et al. 1994).

    A memory that another candidate superseded stands behind it; of two that are about the same thing the one
    told last goes first (rivalry.py), with the score of the better one.
    """
    scores = ranking.scores.copy()
    rivals = np.flatnonzero(given.newer >= 0)
    oldest_first = rivals[np.argsort(given.traits.created[rivals], kind="stable")]
    for older in oldest_first:
        scores[given.newer[older]] = max(scores[given.newer[older]], scores[older])
    for older in oldest_first[::-1]:
        scores[older] = min(scores[older], OVERTAKEN * scores[given.newer[older]])
    replaced = np.flatnonzero(given.replaced_by >= 0)
    for _ in replaced:  # a successor may have been replaced itself: as often as the longest chain has links
        scores[replaced] = np.minimum(scores[replaced], OVERTAKEN * scores[given.replaced_by[replaced]])
    return ranking.scored("competition", scores)


def spreading(ranking: Ranking, given: Situation) -> Ranking:
    """What is linked to the best candidates comes to mind with them (Collins & Loftus 1975)."""
    return ranking.scored("spreading", ranking.scores * (1 + ACTIVATED * given.activation))


def utility(ranking: Ranking, given: Situation) -> Ranking:
    """What helped when it was shown before is more likely to help again."""
    useful = given.traits.useful.astype(np.float64)
    shown = np.maximum(given.traits.retrieved, given.traits.useful)
    return ranking.scored("utility", ranking.scores * (1 + HELPFUL * useful / (shown + DOUBTS)))


STAGES: Mapping[str, Stage] = {
    "temporal": temporal,
    "decay": accessibility,
    "context": context,
    "competition": competition,
    "spreading": spreading,
    "utility": utility,
}
"""The stages in their order, by the mechanism behind each."""


def stages_without(off: Collection[str] = ()) -> tuple[Stage, ...]:
    """The stages without those of mechanisms that are switched off; suppression counts without decay, too."""
    stages = {**STAGES, "decay": suppression} if "decay" in off else STAGES
    return tuple(stage for name, stage in stages.items() if name == "decay" or name not in off)


def rank(ranking: Ranking, given: Situation, stages: Iterable[Stage] = tuple(STAGES.values())) -> Ranking:
    """The ranking after all stages, in order."""
    for stage in stages:
        ranking = stage(ranking, given)
    return ranking


def retention(traits: Traits, now: float) -> Floats:
    """How much of each candidate is there now, 0 to 1."""
    elapsed_days = np.maximum(now - traits.decay_from, 0) / SECONDS_PER_DAY
    return strength.retention(traits.stability, traits.retrieval, traits.storage, elapsed_days, traits.curve)
