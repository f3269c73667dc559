"""FSRS-6: how fast a memory fades, and what a review does to it.

Pure functions over arrays: numbers or arrays in, float64 out, days may be fractions. The formulas and the
21 default weights are those of FSRS-6 (J. Ye and others, open-spaced-repetition, 2025), a descendant of
J. Ye, J. Su, Y. Cao, "A Stochastic Shortest Path Algorithm for Optimizing Spaced Repetition Scheduling",
KDD 2022. Where the published descriptions differ, py-fsrs 6.3 and fsrs-rs decide; tests compare with both.
"""

import enum
import math
from functools import lru_cache
from math import exp, inf

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]

W = (
    0.212, 1.2931, 2.3065, 8.2956,  # 0-3    stability after a first Again, Hard, Good, Easy
    6.4133, 0.8334, 3.0194, 0.001,  # 4-7    difficulty: start, spread by grade, step, pull to the mean
    1.8722, 0.1666, 0.796,          # 8-10   recall: gain, less for the stable, more for the nearly forgotten
    1.4835, 0.0614, 0.2629, 1.6483,  # 11-14 lapse: what is left
    0.6014, 1.8729,                 # 15-16  recall: Hard penalty, Easy bonus
    0.5425, 0.0912, 0.0658,         # 17-19  reviews within a day
    0.1542,                         # 20     how curved forgetting is
)  # fmt: skip
"""The default weights of FSRS-6, fitted to some hundred million reviews of Anki users."""

W20 = W[20]
DESIRED_RETENTION = 0.9
MIN_STABILITY_DAYS = 0.001
MAX_STABILITY_DAYS = 36_500.0
MIN_DIFFICULTY = 1.0
MAX_DIFFICULTY = 10.0


class Grade(enum.IntEnum):
    """How well a memory was recalled."""

    AGAIN = 1
    HARD = 2
    GOOD = 3
    EASY = 4


def retrievability(elapsed_days: ArrayLike, stability: ArrayLike, *, curve: ArrayLike = W20) -> Floats:
    """The chance of recall after some days: 1 at once, 0.9 after one stability. Negative days count as 0.

    `curve` (w20) is how curved forgetting is: the smaller, the steeper before one stability and the flatter
    after it.
    """
    elapsed, bend = np.maximum(_floats(elapsed_days), 0.0), _floats(curve)
    return np.power(1.0 + _factor(bend) * elapsed / _stability(stability), -bend)


def elapsed_at(retrievability: ArrayLike, stability: ArrayLike, *, curve: ArrayLike = W20) -> Floats:
    """The days after which the chance of recall has fallen to `retrievability` (in (0, 1]; 0 is never)."""
    level, bend = np.clip(_floats(retrievability), 0.0, 1.0), _floats(curve)
    with np.errstate(divide="ignore"):
        return _stability(stability) / _factor(bend) * (np.power(level, -1.0 / bend) - 1.0)


def interval_days(
    stability: ArrayLike, desired_retention: float = DESIRED_RETENTION, *, curve: ArrayLike = W20
) -> Floats:
    """The whole days until a review is due: at least one, at most the largest stability."""
    days = elapsed_at(desired_retention, stability, curve=curve)
    return np.clip(np.round(days), 1.0, MAX_STABILITY_DAYS)


def initial_stability(grade: ArrayLike) -> Floats:
    """The stability of something just learned."""
    return _floats(W)[np.asarray(grade, dtype=np.int64) - 1]


def initial_difficulty(grade: ArrayLike) -> Floats:
    """The difficulty of something just learned."""
    return np.clip(_raw_difficulty(grade), MIN_DIFFICULTY, MAX_DIFFICULTY)


def next_difficulty(difficulty: ArrayLike, grade: ArrayLike) -> Floats:
    """The difficulty after a review: up for Again and Hard, down for Easy, ever less near the top."""
    before = _floats(difficulty)
    moved = before - W[6] * (_floats(grade) - 3.0) * (MAX_DIFFICULTY - before) / 9.0
    after = W[7] * _raw_difficulty(Grade.EASY) + (1.0 - W[7]) * moved
    return np.clip(after, MIN_DIFFICULTY, MAX_DIFFICULTY)


def next_stability(
    stability: ArrayLike,
    difficulty: ArrayLike,
    retrievability: ArrayLike,
    grade: ArrayLike,
    elapsed_days: ArrayLike,
) -> Floats:
    """The stability after a review with this grade, `elapsed_days` after the one before."""
    before, given = _stability(stability), _floats(grade)
    forgotten = 1.0 - _floats(retrievability)
    recalled = _after_recall(before, _floats(difficulty), forgotten, given)
    lapsed = _after_lapse(before, _floats(difficulty), forgotten)
    later = np.where(given == Grade.AGAIN, lapsed, recalled)
    after = np.where(_floats(elapsed_days) < 1.0, _within_a_day(before, given), later)
    return _stability(after)


def _after_recall(before: Floats, difficulty: Floats, forgotten: Floats, grade: Floats) -> Floats:
    bonus: Floats = np.select([grade == Grade.HARD, grade == Grade.EASY], [W[15], W[16]], 1.0)
    gain: Floats = np.exp(W[8]) * (11.0 - difficulty) * np.power(before, -W[9]) * np.expm1(W[10] * forgotten)
    return before * (1.0 + gain * bonus)


def _after_lapse(before: Floats, difficulty: Floats, forgotten: Floats) -> Floats:
    left: Floats = W[11] * np.power(difficulty, -W[12]) * (np.power(before + 1.0, W[13]) - 1.0)
    left *= np.exp(W[14] * forgotten)
    # The first term alone could leave more than there was.
    return np.minimum(left, before / math.exp(W[17] * W[18]))


def _within_a_day(before: Floats, grade: Floats) -> Floats:
    change: Floats = np.exp(W[17] * (grade - 3.0 + W[18])) * np.power(before, -W[19])
    factor: Floats = np.where(grade == Grade.AGAIN, change, np.maximum(change, 1.0))
    return before * factor


def _raw_difficulty(grade: ArrayLike) -> Floats:
    spread: Floats = np.exp(W[5] * (_floats(grade) - 1.0))
    return W[4] - spread + 1.0


def _factor(curve: Floats) -> Floats:
    """What makes every curve pass through 0.9 after one stability."""
    return np.power(0.9, -1.0 / curve) - 1.0


def _stability(days: ArrayLike) -> Floats:
    return np.clip(_floats(days), MIN_STABILITY_DAYS, MAX_STABILITY_DAYS)


def _floats(values: ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


# -- FSRS-6 for a single memory: the same numbers as `formulas.py`, to the last bit, without arrays.

_BONUS = {Grade.HARD: W[15], Grade.GOOD: 1.0, Grade.EASY: W[16]}
_LAPSE_SHARE = exp(W[17] * W[18])
_RECALL_GAIN = float(np.exp(W[8]))
_EASY_START = W[4] - float(np.exp(W[5] * (Grade.EASY - 1.0))) + 1.0


def retrievability_scalar(elapsed_days: float, stability: float, curve: float) -> float:
    """The chance of recall after some days."""
    elapsed = max(elapsed_days, 0.0)
    return float(np.power(1.0 + _factor_scalar(curve) * elapsed / _within(stability), -curve))


def elapsed_at_scalar(retrievability: float, stability: float, curve: float) -> float:
    """The days after which the chance of recall has fallen to `retrievability_scalar`."""
    level = min(max(retrievability, 0.0), 1.0)
    fallen = float(np.power(level, -1.0 / curve)) if level > 0.0 else inf
    return _within(stability) / _factor_scalar(curve) * (fallen - 1.0)


def interval_days_scalar(stability: float, curve: float) -> float:
    """The whole days until a review is due."""
    factor = _factor_scalar(curve)
    days = _within(stability) / factor * factor  # as many as it takes to fall to DESIRED_RETENTION
    # Rounded within the bounds, which are whole days: the same, and without end there is no whole number.
    return float(round(min(max(days, 1.0), MAX_STABILITY_DAYS)))


def next_difficulty_scalar(difficulty: float, grade: Grade) -> float:
    """The difficulty after a review."""
    moved = difficulty - W[6] * (grade - 3.0) * (MAX_DIFFICULTY - difficulty) / 9.0
    after = W[7] * _EASY_START + (1.0 - W[7]) * moved
    return min(max(after, MIN_DIFFICULTY), MAX_DIFFICULTY)


def next_stability_scalar(
    stability: float, difficulty: float, retrievability: float, grade: Grade, elapsed_days: float
) -> float:
    """The stability after a review with this grade."""
    before, forgotten = _within(stability), 1.0 - retrievability
    if elapsed_days < 1.0:
        return _within(_within_a_day_scalar(before, grade))
    if grade == Grade.AGAIN:
        return _within(_after_lapse_scalar(before, difficulty, forgotten))
    return _within(_after_recall_scalar(before, difficulty, forgotten, grade))


def _after_recall_scalar(before: float, difficulty: float, forgotten: float, grade: Grade) -> float:
    eased = float(np.power(before, -W[9]))
    gain = _RECALL_GAIN * (11.0 - difficulty) * eased * float(np.expm1(W[10] * forgotten))
    return before * (1.0 + gain * _BONUS[grade])


def _after_lapse_scalar(before: float, difficulty: float, forgotten: float) -> float:
    held = float(np.power(difficulty, -W[12]))
    left = W[11] * held * (float(np.power(before + 1.0, W[13])) - 1.0)
    left *= float(np.exp(W[14] * forgotten))
    return min(left, before / _LAPSE_SHARE)


def _within_a_day_scalar(before: float, grade: Grade) -> float:
    change = _short_step(grade) * float(np.power(before, -W[19]))
    return before * (change if grade == Grade.AGAIN else max(change, 1.0))


@lru_cache(maxsize=4)  # one for each grade
def _short_step(grade: Grade) -> float:
    return float(np.exp(W[17] * (grade - 3.0 + W[18])))


@lru_cache(maxsize=64)  # a store has one curve, and had a few
def _factor_scalar(curve: float) -> float:
    return float(np.power(DESIRED_RETENTION, -1.0 / curve)) - 1.0


def _within(days: float) -> float:
    return min(max(days, MIN_STABILITY_DAYS), MAX_STABILITY_DAYS)
