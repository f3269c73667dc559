"""A personal forgetting curve: w20 of FSRS-6, fitted to real reviews.

The curve passes through 0.9 after one stability whatever its w20 is, so a memory's stability keeps its
meaning and only the curvature is fitted. The fit is the most probable w20: log loss is the likelihood of the
reviews, weighed against a prior. Without a prior a hundred reviews predict worse than the default does
(numbers in docs/concepts/personal-curve.md).

A person who fails more often than the stabilities predict forgets faster, which says nothing about the
curvature; yet before one stability a smaller w20 predicts more failures. So the fit allows all stabilities to
be wrong by one factor, and integrates over it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.fsrs.formulas import W20, Floats, retrievability
from vestige.cognition.fsrs.strength import StrengthLine, after_sighting, encode, faded_days
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence

FLATTEST = 0.08
STEEPEST = 0.8
"""The bounds of w20. Reviews without failures pull it towards 0, which is no forgetting; 0.8 is the bound of
py-fsrs."""
TOLERANCE = 0.001
SPREAD = 0.5
"""The standard deviation of the logarithm of w20 around the default."""
STRETCHES = np.linspace(-4.0, 4.0, 33)
"""Factors by which the stabilities may be wrong, as logarithms; their standard deviation is 1. A thousand
reviews hardly distinguish neighbours."""

LEAST_REVIEWS = 100
LEAST_OF_EACH = 5
"""The least number of failed, and of successful, reviews."""
NEWEST = 1_000  # The number of reviews that count, newest first: people change.
LEAST_DAYS = 1.0  # A review sooner than this says nothing about forgetting over days.

RECALLED: Mapping[Evidence, bool] = {
    Evidence.AGAIN: False,
    Evidence.HARD: True,
    Evidence.GOOD: True,
    Evidence.EASY: True,
}
"""The evidence that counts as a review, and whether it says that the memory was recalled. Being found,
repeated, replayed or captured is not a review, because no one judged; nor is a vote, which judges whether the
memory is right or wanted."""

SURELY = 1e-6  # The bound of the probability of a review: one surprise must not outweigh all others.
GOLDEN = (5**0.5 - 1) / 2

ReviewRow = tuple[datetime, float, float, float, bool]
"""One review: time, days faded, stability and level before, whether it was recalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """Reviews as parallel arrays, oldest first: the days since the memory began to fade, its stability and
    level before, and whether it was recalled."""

    elapsed_days: Floats
    stability: Floats
    level: Floats
    recalled: NDArray[np.bool_]

    @property
    def failures(self) -> int:
        return int(np.count_nonzero(~self.recalled))

    def usable(self) -> "Reviews":
        """The newest reviews that say something about the curve."""
        kept = np.flatnonzero(self.elapsed_days >= LEAST_DAYS)[-NEWEST:]
        return Reviews(
            elapsed_days=self.elapsed_days[kept],
            stability=self.stability[kept],
            level=self.level[kept],
            recalled=self.recalled[kept],
        )


def reviews_in(histories: Iterable[tuple[datetime, Iterable[StrengthLine]]]) -> Reviews:
    """The reviews in the histories of memories: when each was made, and its sightings in order."""
    rows = [one for made_at, seen in histories for one in _reviews(made_at, seen)]
    rows.sort(key=itemgetter(0))  # by time alone: the outcome must not decide which are the newest
    columns = list(zip(*rows, strict=True)) or [()] * 5
    return Reviews(
        elapsed_days=np.array(columns[1], dtype=np.float64),
        stability=np.array(columns[2], dtype=np.float64),
        level=np.array(columns[3], dtype=np.float64),
        recalled=np.array(columns[4], dtype=np.bool_),
    )


def _reviews(made_at: datetime, sightings: Iterable[StrengthLine]) -> Iterator[ReviewRow]:
    """One memory's reviews, each with the strength before it."""
    strength = encode(made_at)
    for seen in sightings:
        if seen.evidence is not None and seen.evidence in RECALLED:
            at = max(seen.at, strength.retention_at)
            days = faded_days(strength, at)
            yield at, days, strength.stability, strength.retrieval, RECALLED[seen.evidence]
        strength = after_sighting(strength, seen)


def lacking(reviews: Reviews) -> str | None:
    """What these reviews lack for a fit, as a sentence; None when they suffice."""
    count, failures = len(reviews.recalled), reviews.failures
    if count < LEAST_REVIEWS:
        return f"There are {count} reviews at least a day apart; {LEAST_REVIEWS} are needed."
    if failures < LEAST_OF_EACH:
        return f"Only {failures} of {count} reviews failed; {LEAST_OF_EACH} are needed to see forgetting."
    if count - failures < LEAST_OF_EACH:
        return f"Only {count - failures} of {count} reviews succeeded; {LEAST_OF_EACH} are needed."
    return None


def fit(reviews: Reviews) -> float:
    """The most probable w20 given these reviews, within its bounds."""
    return round(_lowest(lambda w20: surprise(reviews, w20)), 4)


def surprise(reviews: Reviews, w20: float) -> float:
    """The loss of a curve: minus the logarithm of its probability given the reviews, up to a constant."""
    stability = np.exp(STRETCHES)[:, np.newaxis] * reviews.stability
    chance = reviews.level * retrievability(reviews.elapsed_days, stability, curve=w20)
    chance = np.clip(chance, SURELY, 1.0 - SURELY)
    seen: Floats = np.log(np.where(reviews.recalled, chance, 1.0 - chance)).sum(axis=1)
    unusual = np.log(w20 / W20) / SPREAD
    return float(unusual**2 / 2.0 - np.logaddexp.reduce(seen - STRETCHES**2 / 2.0))


def _lowest(loss: Callable[[float], float]) -> float:
    """The minimum of a loss with one valley, by golden section."""
    low, high = FLATTEST, STEEPEST
    while high - low > TOLERANCE:
        step = GOLDEN * (high - low)
        if loss(high - step) < loss(low + step):
            high = low + step
        else:
            low = high - step
    return (low + high) / 2.0
