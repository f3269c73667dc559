"""How strongly a memory is held: a fold over what happened to it.

Storage strength (how well learned; it only grows) and retrieval strength (how easily recalled; it fades)
are the two strengths of Bjork & Bjork, "A new theory of disuse" (1992). Retrieval fades on the FSRS-6 curve
(decay.py). That being retrieved strengthens is the testing effect of Roediger & Karpicke (2006): here a
review does so strongly, a mere search hit weakly and at most once a day.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import assert_never

import numpy as np
from numpy.typing import ArrayLike

from vestige.cognition import decay
from vestige.cognition.decay import Floats, Grade
from vestige.errors import InvalidInput
from vestige.models import Evidence, LearningState, MemoryState, Strength

RETRIEVAL_SHARE = 0.7
STORAGE_SHARE = 0.3
MAX_STORAGE = 10.0

STORAGE_GAIN_SUCCESS = 0.1
# Failing and being told the answer teaches more than knowing it (Kornell, Hays & Bjork 2009).
STORAGE_GAIN_AGAIN = 0.3
STORAGE_GAIN_USEFUL = 0.05
STORAGE_GAIN_EXPOSED = 0.02

EXPOSURE_LIFT = 0.05
EXPOSURE_EVERY = timedelta(hours=24)
PROMOTE_STEP = 0.2
DEMOTE_STEP = 0.3
MIN_RETRIEVAL = 0.05

SUPPRESSION_STEP = 0.15
MAX_SUPPRESSION = 0.8

ACTIVE_FROM = 0.7
DORMANT_FROM = 0.4
SILENT_FROM = 0.1

_DAY = timedelta(days=1)


# -- reading a strength --------------------------------------------------------------------------


def retention(
    stability: ArrayLike, retrieval: ArrayLike, storage: ArrayLike, elapsed_days: ArrayLike
) -> Floats:
    """How much of a memory is there, 0 to 1: what can be recalled now, and how well it was learned."""
    learned: Floats = np.minimum(np.asarray(storage, dtype=np.float64) / MAX_STORAGE, 1.0)
    return RETRIEVAL_SHARE * recall_chance(stability, retrieval, elapsed_days) + STORAGE_SHARE * learned


def recall_chance(stability: ArrayLike, retrieval: ArrayLike, elapsed_days: ArrayLike) -> Floats:
    """The chance that a memory is recalled now: its level, faded since."""
    return np.asarray(retrieval, dtype=np.float64) * decay.retrievability(elapsed_days, stability)


def retention_of(strength: Strength, now: datetime) -> float:
    """One memory's retention now."""
    elapsed_days = _days(strength.decay_from, now)
    return float(retention(strength.stability, strength.retrieval, strength.storage, elapsed_days))


def retrieval_of(strength: Strength, now: datetime) -> float:
    """The chance that one memory is recalled now."""
    elapsed_days = _days(strength.decay_from, now)
    return float(recall_chance(strength.stability, strength.retrieval, elapsed_days))


def accessibility(retention: ArrayLike, suppression_count: ArrayLike) -> Floats:
    """Retention, less what suppression takes from it."""
    taken = np.minimum(SUPPRESSION_STEP * np.asarray(suppression_count, dtype=np.float64), MAX_SUPPRESSION)
    return np.asarray(retention, dtype=np.float64) * (1.0 - taken)


def state(accessibility: float) -> MemoryState:
    """The one definition of a memory's state."""
    if accessibility >= ACTIVE_FROM:
        return MemoryState.ACTIVE
    if accessibility >= DORMANT_FROM:
        return MemoryState.DORMANT
    return MemoryState.SILENT if accessibility >= SILENT_FROM else MemoryState.UNAVAILABLE


# -- changing it ---------------------------------------------------------------------------------


@lru_cache(maxsize=64)  # a batch is encoded at one moment
def encode(at: datetime) -> Strength:
    """The strength of a memory just made: its creation counts as a first Good."""
    fresh = Strength(
        stability=float(decay.initial_stability(Grade.GOOD)),
        difficulty=float(decay.initial_difficulty(Grade.GOOD)),
        decay_from=at,
        due_at=at,
        last_accessed=at,
        retention=0.0,
        retention_at=at,
    )
    return _settled(fresh, at)


def after(strength: Strength, evidence: Evidence, at: datetime) -> Strength:
    """The strength after one more piece of evidence. A clock that was set back does not undo time."""
    at = max(at, strength.retention_at)
    match evidence:
        case Evidence.AGAIN:
            changed = _reviewed(strength, Grade.AGAIN, at)
        case Evidence.HARD:
            changed = _reviewed(strength, Grade.HARD, at)
        case Evidence.GOOD | Evidence.REINFORCED:
            changed = _reviewed(strength, Grade.GOOD, at)
        case Evidence.EASY:
            changed = _reviewed(strength, Grade.EASY, at)
        case Evidence.PROMOTED:
            # A vote, not a recall: it lifts the level a step where a successful review restores it.
            level = min(1.0, strength.retrieval + PROMOTE_STEP)
            changed = replace(_reviewed(strength, Grade.EASY, at), retrieval=level)
        case Evidence.DEMOTED:
            changed = _demoted(strength, at)
        case Evidence.USEFUL:
            changed = _useful(strength, at)
        case Evidence.EXPOSED:
            changed = _exposed(strength, at)
        case Evidence.ENCODED:
            raise InvalidInput("Encoding begins a memory; it is not evidence about one that exists.")
        case _:  # never runs: the type checker proves that every kind is handled above
            assert_never(evidence)
    return _settled(changed, at)


def fold(encoded_at: datetime, events: Iterable[tuple[Evidence, datetime]]) -> Strength:
    """The strength of a memory made at `encoded_at`, after these events in their order."""
    strength = encode(encoded_at)
    for evidence, at in events:
        strength = after(strength, evidence, at)
    return strength


def _reviewed(strength: Strength, grade: Grade, at: datetime) -> Strength:
    """After a review: scheduled anew, and fading again from now on."""
    graded = _graded(strength, grade, at)
    if grade == Grade.AGAIN:
        return replace(
            graded,
            storage=_stored(strength, STORAGE_GAIN_AGAIN),
            decay_from=at,
            last_accessed=at,
        )
    return replace(
        graded,
        learning_state=LearningState.REVIEW,
        retrieval=1.0,
        storage=_stored(strength, STORAGE_GAIN_SUCCESS),
        decay_from=at,
        last_accessed=at,
    )


def _demoted(strength: Strength, at: datetime) -> Strength:
    """After a vote against it: FSRS sees an Again, but nothing makes the memory fresher or better learned."""
    graded = _graded(strength, Grade.AGAIN, at)
    return replace(graded, retrieval=max(MIN_RETRIEVAL, strength.retrieval - DEMOTE_STEP))


def _graded(strength: Strength, grade: Grade, at: datetime) -> Strength:
    """The FSRS part of a review. An Again counts as a lapse when there was something learned to lose."""
    stability = decay.next_stability(
        strength.stability,
        strength.difficulty,
        retrieval_of(strength, at),
        grade,
        _days(strength.decay_from, at),
    )
    lapsed = grade == Grade.AGAIN and strength.learning_state != LearningState.NEW
    return replace(
        strength,
        stability=float(stability),
        difficulty=float(decay.next_difficulty(strength.difficulty, grade)),
        learning_state=LearningState.RELEARNING if lapsed else strength.learning_state,
        reps=strength.reps + 1,
        lapses=strength.lapses + lapsed,
    )


def exposable(strength: Strength, at: datetime) -> bool:
    """Whether being shown at this moment would leave a trace: at most one a day does."""
    return strength.exposed_at is None or at - strength.exposed_at >= EXPOSURE_EVERY


def _exposed(strength: Strength, at: datetime) -> Strength:
    """After a search hit: always counted, but a trace at most once a day."""
    seen = replace(strength, times_retrieved=strength.times_retrieved + 1, last_accessed=at)
    if not exposable(strength, at):
        return seen
    return replace(
        _lifted(seen, at),
        storage=_stored(strength, STORAGE_GAIN_EXPOSED),
        exposed_at=at,
    )


def _useful(strength: Strength, at: datetime) -> Strength:
    """After somebody said that it helped: the trace of a search hit, as often as it happens."""
    return replace(
        _lifted(strength, at),
        storage=_stored(strength, STORAGE_GAIN_USEFUL),
        times_useful=strength.times_useful + 1,
        last_accessed=at,
    )


def _lifted(strength: Strength, at: datetime) -> Strength:
    """Retrievability a little higher, as if less time had passed: so no later moment is worse off."""
    elapsed_days = _days(strength.decay_from, at)
    lifted = decay.retrievability(elapsed_days, strength.stability) + EXPOSURE_LIFT
    younger = at - _DAY * float(decay.elapsed_at(lifted, strength.stability))
    return replace(strength, decay_from=max(strength.decay_from, younger))


def _settled(strength: Strength, at: datetime) -> Strength:
    """With what follows from the rest: when it is due, and its retention now."""
    return replace(
        strength,
        due_at=_later(strength.decay_from, float(decay.interval_days(strength.stability))),
        retention=retention_of(strength, at),
        retention_at=at,
    )


def _stored(strength: Strength, gain: float) -> float:
    return min(MAX_STORAGE, strength.storage + gain)


def _days(start: datetime, end: datetime) -> float:
    """The days between, never negative."""
    return max(0.0, (end - start) / _DAY)


def _later(moment: datetime, days: float) -> datetime:
    """So many days later, or the end of the calendar."""
    end = datetime.max.replace(tzinfo=moment.tzinfo)
    return moment + min(_DAY * days, end - moment)
