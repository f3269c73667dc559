"""The strength of a memory: a fold over its log of evidence.

Storage strength (how well learned; it only grows) and retrieval strength (how easily recalled; it fades) are
the two strengths of Bjork & Bjork, "A new theory of disuse" (1992). Retrieval fades on the FSRS-6 curve
(formulas.py). Retrieval strengthens a memory, by the testing effect of Roediger & Karpicke (2006): a review
does so strongly, a search hit weakly and at most once a day.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from vestige.cognition.fsrs import formulas
from vestige.cognition.fsrs.formulas import Floats, Grade
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, LearningState, MemoryState, Strength

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


RETRIEVAL_SHARE = 0.7
STORAGE_SHARE = 0.3
MAX_STORAGE = 10.0
NEW = RETRIEVAL_SHARE + STORAGE_SHARE / MAX_STORAGE
"""The retention of a new memory, whose storage strength is 1."""

STORAGE_GAIN_SUCCESS = 0.1
# Failing and seeing the answer teaches more than knowing it (Kornell, Hays & Bjork 2009).
STORAGE_GAIN_AGAIN = 0.3
STORAGE_GAIN_USEFUL = 0.05
STORAGE_GAIN_EXPOSED = 0.02
STORAGE_GAIN_CAPTURED = 0.1
STORAGE_GAIN_REPLAYED = 0.05

REPLAY_STEP = 0.05  # The share that a replay adds to the stability.

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


# -- Reading a strength


def retention(
    stability: "ArrayLike",
    retrieval: "ArrayLike",
    storage: "ArrayLike",
    elapsed_days: "ArrayLike",
    curve: "ArrayLike",
) -> Floats:
    """The retention of a memory, 0 to 1: what can be recalled now, and how well it was learned."""
    return retention_from(recall_chance(stability, retrieval, elapsed_days, curve), storage)


def retention_from(recalled: Floats, storage: "ArrayLike") -> Floats:
    """The same where the chance of recall is known."""
    learned: Floats = np.minimum(np.asarray(storage, dtype=np.float64) / MAX_STORAGE, 1.0)
    return RETRIEVAL_SHARE * recalled + STORAGE_SHARE * learned


def recall_chance(
    stability: "ArrayLike", retrieval: "ArrayLike", elapsed_days: "ArrayLike", curve: "ArrayLike"
) -> Floats:
    """The chance that a memory is recalled now: its level, faded since."""
    return np.asarray(retrieval, dtype=np.float64) * formulas.retrievability(
        elapsed_days, stability, curve=curve
    )


def retention_of(strength: Strength, now: datetime) -> float:
    learned = min(strength.storage / MAX_STORAGE, 1.0)
    return RETRIEVAL_SHARE * retrieval_of(strength, now) + STORAGE_SHARE * learned


def retrieval_of(strength: Strength, now: datetime) -> float:
    left = formulas.retrievability_scalar(faded_days(strength, now), strength.stability, strength.curve)
    return strength.retrieval * left


def faded_days(strength: Strength, now: datetime) -> float:
    """The days for which it has faded, never negative."""
    return max(0.0, (now - strength.decay_from) / _DAY)


def accessibility(retention: "ArrayLike", suppression_count: "ArrayLike") -> Floats:
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


# -- Changing a strength


def encode(at: datetime, curve: float = formulas.W20) -> Strength:
    """The strength of a new memory: its creation counts as a first Good."""
    return _encode(at, curve)


@lru_cache(maxsize=64)  # a batch is encoded at one moment
def _encode(at: datetime, curve: float) -> Strength:
    fresh = Strength(
        stability=formulas.initial_stability(Grade.GOOD),
        difficulty=formulas.initial_difficulty(Grade.GOOD),
        decay_from=at,
        due_at=at,
        last_accessed=at,
        retention=0.0,
        retention_at=at,
        curve=curve,
    )
    return _settled(fresh, at)


def after(strength: Strength, evidence: Evidence, at: datetime, amount: float = 1.0) -> Strength:
    """The strength after one more piece of evidence. A clock that was set back does not undo time. `amount`
    is the degree of evidence that has one: importance, capture, replay, inhibition."""
    if not 0.0 <= amount <= 1.0:
        raise InvalidInput("The amount of evidence must be between 0 and 1.", details={"amount": amount})
    if evidence is Evidence.ENCODED:
        raise InvalidInput("Encoding begins a memory; it is not evidence about one that exists.")
    at = max(at, strength.retention_at)
    return _settled(_EFFECTS[evidence](strength, at, amount), at)


def settled(strength: Strength, at: datetime) -> Strength:
    """The same strength with its retention at this time."""
    at = max(at, strength.retention_at)
    return replace(strength, retention=retention_of(strength, at), retention_at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class StrengthLine:
    """A log entry about one memory: evidence, an imported strength (`carried`), or neither: only a look at
    its state. `curve` is the one it faded on when that was logged."""

    evidence: Evidence | None
    at: datetime
    amount: float = 1.0
    curve: float = formulas.W20
    carried: Strength | None = None


def fold(encoded_at: datetime, sightings: Iterable[StrengthLine], curve: float = formulas.W20) -> Strength:
    """The strength of a memory made at `encoded_at`, after these sightings in order, on the curve in force
    since."""
    strength = encode(encoded_at)
    for seen in sightings:
        strength = after_sighting(strength, seen)
    return replace(strength, curve=curve)


def after_sighting(strength: Strength, seen: StrengthLine) -> Strength:
    """The strength after one more log entry."""
    if seen.carried is not None:
        return replace(seen.carried, curve=seen.curve)
    on_curve = strength if strength.curve == seen.curve else replace(strength, curve=seen.curve)
    if seen.evidence is None:
        return settled(on_curve, seen.at)
    return after(on_curve, seen.evidence, seen.at, seen.amount)


def moved(before: Strength, after: Strength, suppressions: int) -> tuple[str, str] | None:
    """The states in which the memory was last seen and is seen now, if they differ."""
    left = 1.0 - min(SUPPRESSION_STEP * suppressions, MAX_SUPPRESSION)  # as `accessibility` says of many
    was, now = state(before.retention * left), state(after.retention * left)
    return None if was is now else (was.value, now.value)


def _reviewed(strength: Strength, grade: Grade, at: datetime) -> Strength:
    """After a review: rescheduled, and fading from now on."""
    graded = _graded(strength, grade, at)
    if grade == Grade.AGAIN:
        return replace(graded, storage=_stored(strength, STORAGE_GAIN_AGAIN), decay_from=at, last_accessed=at)
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
    """The FSRS part of a review. An Again counts as a lapse if something learned could be lost."""
    stability = formulas.next_stability(
        strength.stability, strength.difficulty, retrieval_of(strength, at), grade, faded_days(strength, at)
    )
    lapsed = grade == Grade.AGAIN and strength.learning_state != LearningState.NEW
    return replace(
        strength,
        stability=stability,
        difficulty=formulas.next_difficulty(strength.difficulty, grade),
        learning_state=LearningState.RELEARNING if lapsed else strength.learning_state,
        reps=strength.reps + 1,
        lapses=strength.lapses + lapsed,
    )


def exposable(strength: Strength, at: datetime) -> bool:
    """Whether being shown now would leave a trace: at most one a day does."""
    return strength.exposed_at is None or at - strength.exposed_at >= EXPOSURE_EVERY


def exposure(place: int) -> float:
    """The weight of being shown at this rank, from 0: the first hit is the answer."""
    return 1.0 / (1 + place)


def _exposed(strength: Strength, at: datetime, amount: float) -> Strength:
    """After a search hit: always counted, but a trace at most once a day."""
    times = strength.times_retrieved + 1
    if not exposable(strength, at):
        return replace(strength, times_retrieved=times, last_accessed=at)
    return replace(
        strength,
        times_retrieved=times,
        last_accessed=at,
        decay_from=_lifted(strength, at, EXPOSURE_LIFT * amount),
        storage=_stored(strength, STORAGE_GAIN_EXPOSED * amount),
        exposed_at=at,
    )


def _useful(strength: Strength, at: datetime) -> Strength:
    """After a "useful" vote: always counted, but it leaves no more traces than days on which the memory was
    found, or one. So votes are worth no more than the use that was made of it."""
    times = strength.times_useful + 1
    if strength.times_useful >= max(1, strength.times_retrieved):
        return replace(strength, times_useful=times, last_accessed=at)
    return replace(
        strength,
        times_useful=times,
        last_accessed=at,
        decay_from=_lifted(strength, at, EXPOSURE_LIFT),
        storage=_stored(strength, STORAGE_GAIN_USEFUL),
    )


def _lifted(strength: Strength, at: datetime, step: float) -> datetime:
    """When it fades from, with its retrievability a little higher, as if less time had passed: no later
    moment is worse off."""
    curve = strength.curve
    now = formulas.retrievability_scalar(faded_days(strength, at), strength.stability, curve)
    younger = at - _DAY * formulas.elapsed_at(now + step, strength.stability, curve=curve)
    return max(strength.decay_from, younger)


def _stabilised(strength: Strength, share: float, gain: float = 0.0) -> Strength:
    """More or less stable by a share: it fades more slowly or faster, as if it always had."""
    stability = strength.stability * (1.0 + share)
    within = min(max(stability, formulas.MIN_STABILITY_DAYS), formulas.MAX_STABILITY_DAYS)
    return replace(strength, stability=within, storage=_stored(strength, gain))


def _promoted(strength: Strength, at: datetime) -> Strength:
    """After a vote for it. It lifts the level one step, where a successful review restores it. Within a day
    of an earlier judgement it does no more than that."""
    level = min(1.0, strength.retrieval + PROMOTE_STEP)
    voted = replace(_reviewed(strength, Grade.EASY, at), retrieval=level)
    if strength.reps == 0 or faded_days(strength, at) >= 1.0:
        return voted
    return replace(
        voted, stability=strength.stability, difficulty=strength.difficulty, storage=strength.storage
    )


def _settled(strength: Strength, at: datetime) -> Strength:
    """With the derived fields: when it is due, and its retention now."""
    return replace(
        strength,
        due_at=_later(strength.decay_from, formulas.interval_days(strength.stability, curve=strength.curve)),
        retention=retention_of(strength, at),
        retention_at=at,
    )


def _stored(strength: Strength, gain: float) -> float:
    return min(MAX_STORAGE, strength.storage + gain)


def _later(moment: datetime, days: float) -> datetime:
    """That many days later, or the end of the calendar."""
    end = datetime.max.replace(tzinfo=moment.tzinfo)
    return moment + min(_DAY * days, end - moment)


Effect = Callable[[Strength, datetime, float], Strength]

_EFFECTS: Mapping[Evidence, Effect] = {
    Evidence.AGAIN: lambda strength, at, _: _reviewed(strength, Grade.AGAIN, at),
    Evidence.HARD: lambda strength, at, _: _reviewed(strength, Grade.HARD, at),
    Evidence.GOOD: lambda strength, at, _: _reviewed(strength, Grade.GOOD, at),
    Evidence.REINFORCED: lambda strength, at, _: _reviewed(strength, Grade.GOOD, at),
    Evidence.RECONSOLIDATED: lambda strength, at, _: _reviewed(strength, Grade.GOOD, at),
    Evidence.EASY: lambda strength, at, _: _reviewed(strength, Grade.EASY, at),
    Evidence.PROMOTED: lambda strength, at, _: _promoted(strength, at),
    Evidence.DEMOTED: lambda strength, at, _: _demoted(strength, at),
    Evidence.USEFUL: lambda strength, at, _: _useful(strength, at),
    Evidence.EXPOSED: lambda strength, at, amount: _exposed(strength, at, amount),
    Evidence.IMPORTANT: lambda strength, _, amount: _stabilised(strength, amount),
    Evidence.CAPTURED: lambda strength, _, amount: _stabilised(
        strength, amount, STORAGE_GAIN_CAPTURED * amount
    ),
    Evidence.REPLAYED: lambda strength, _, amount: _stabilised(
        strength, REPLAY_STEP * amount, STORAGE_GAIN_REPLAYED * amount
    ),
    Evidence.INHIBITED: lambda strength, _, amount: _stabilised(strength, -amount),
}
"""The effect of each kind of evidence, except encoding, which begins a memory."""


# -- A summary of all memories

BUCKETS = ("0-20%", "20-40%", "40-60%", "60-80%", "80-100%")
EDGES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
WEAK, HALF = 0.3, 0.5

ADVICE = (
    (0.8, "Well kept: go on using it as you do."),
    (0.6, "Mostly well kept. Review what is due now and then."),
    (0.4, "Fading. Review what is due, and promote what still helps."),
    (0.0, "Most of it is nearly forgotten. Review what matters, and let the rest go."),
)
"""The advice from this average chance of recall on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeping:
    """The average retention and its distribution over the buckets; the average chance of recall; advice. An
    empty store has no chance of recall."""

    average: float
    recall: float | None
    distribution: dict[str, int]
    below_weak: int
    below_half: int
    advice: str


def states_of(accessibilities: "ArrayLike") -> dict[MemoryState, int]:
    """The number of memories in each state."""
    bounds = (SILENT_FROM, DORMANT_FROM, ACTIVE_FROM)
    places = np.searchsorted(bounds, np.asarray(accessibilities, dtype=np.float64), side="right")
    counts = np.bincount(places, minlength=len(bounds) + 1).tolist()
    rising = (MemoryState.UNAVAILABLE, MemoryState.SILENT, MemoryState.DORMANT, MemoryState.ACTIVE)
    found = dict(zip(rising, counts, strict=True))
    return {one: found[one] for one in MemoryState}


def keeping(retentions: "ArrayLike", retrievals: "ArrayLike") -> Keeping:
    """The summary of one retention and one chance of recall per memory."""
    values = np.asarray(retentions, dtype=np.float64)
    recall = float(np.asarray(retrievals, dtype=np.float64).mean()) if values.size else None
    advice = next(text for least, text in ADVICE if (recall or 0.0) >= least)
    counts, _ = np.histogram(np.clip(values, 0.0, 1.0), bins=EDGES)
    return Keeping(
        average=float(values.mean()) if values.size else 0.0,
        recall=recall,
        distribution=dict(zip(BUCKETS, counts.tolist(), strict=True)),
        below_weak=int((values < WEAK).sum()),
        below_half=int((values < HALF).sum()),
        advice="Nothing is remembered yet." if recall is None else advice,
    )
