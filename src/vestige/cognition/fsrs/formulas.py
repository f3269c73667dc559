"""FSRS-6: how fast a memory fades, and what a review does to it.

Pure functions; days may be fractions. The chance of recall is also computed for arrays of memories. The
formulas and the 21 default weights are those of FSRS-6 (J. Ye and others, open-spaced-repetition, 2025), a
descendant of J. Ye, J. Su, Y. Cao, "A Stochastic Shortest Path Algorithm for Optimizing Spaced Repetition
Scheduling", KDD 2022. Where the published descriptions differ, py-fsrs 6.3 and fsrs-rs decide; tests compare
with both.
"""

import enum
from functools import lru_cache
from math import exp, inf
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


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
LEAST_W20, MOST_W20 = 0.01, 2.0
"""The range of w20. The fit stays within 0.08 and 0.8; outside of this range numbers overflow."""
DESIRED_RETENTION = 0.9
MIN_STABILITY_DAYS = 0.001
MAX_STABILITY_DAYS = 36_500.0
MIN_DIFFICULTY = 1.0
MAX_DIFFICULTY = 10.0


def is_curve(w20: object) -> TypeGuard[float]:
    """Whether this is a number that w20 can be."""
    return isinstance(w20, int | float) and not isinstance(w20, bool) and LEAST_W20 <= w20 <= MOST_W20


class Grade(enum.IntEnum):
    """How well a memory was recalled."""

    AGAIN = 1
    HARD = 2
    GOOD = 3
    EASY = 4


def retrievability(elapsed_days: "ArrayLike", stability: "ArrayLike", *, curve: "ArrayLike" = W20) -> Floats:
    """The chance of recall after some days: 1 at once, 0.9 after one stability. Negative days count as 0.

    `curve` (w20) is how curved forgetting is: the smaller, the steeper before one stability and the flatter
    after it.
    """
    bend, elapsed = _floats(curve), np.maximum(_floats(elapsed_days), 0.0)
    within = np.clip(_floats(stability), MIN_STABILITY_DAYS, MAX_STABILITY_DAYS)
    factor = np.power(DESIRED_RETENTION, -1.0 / bend) - 1.0  # R is 0.9 after one stability, on every curve
    return np.power(1.0 + factor * elapsed / within, -bend)


def _floats(values: "ArrayLike") -> Floats:
    return np.asarray(values, dtype=np.float64)


# -- A single memory

_BONUS = {Grade.HARD: W[15], Grade.GOOD: 1.0, Grade.EASY: W[16]}
_LAPSE_SHARE = exp(W[17] * W[18])
_RECALL_GAIN = float(np.exp(W[8]))


def retrievability_scalar(elapsed_days: float, stability: float, curve: float) -> float:
    """The chance of recall after some days: the number of `retrievability`, to the last bit."""
    elapsed = max(elapsed_days, 0.0)
    return float(np.power(1.0 + _factor_scalar(curve) * elapsed / _within(stability), -curve))


def elapsed_at(retrievability: float, stability: float, *, curve: float = W20) -> float:
    """The days after which the chance of recall has fallen to `retrievability` (in (0, 1]; 0 is never)."""
    level = min(max(retrievability, 0.0), 1.0)
    fallen = float(np.power(level, -1.0 / curve)) if level > 0.0 else inf
    return _within(stability) / _factor_scalar(curve) * (fallen - 1.0)


def interval_days(stability: float, *, curve: float = W20) -> float:
    """The whole days until a review is due: at least one, at most the largest stability."""
    factor = _factor_scalar(curve)
    days = _within(stability) / factor * factor  # as many as it takes to fall to DESIRED_RETENTION
    # Rounded within the bounds, which are whole days: the same, and without end there is no whole number.
    return float(round(min(max(days, 1.0), MAX_STABILITY_DAYS)))


def initial_stability(grade: Grade) -> float:
    """The stability of something just learned."""
    return W[grade - 1]


def initial_difficulty(grade: Grade) -> float:
    """The difficulty of something just learned."""
    return min(max(_raw_difficulty(grade), MIN_DIFFICULTY), MAX_DIFFICULTY)


@lru_cache(maxsize=4)  # one for each grade
def _raw_difficulty(grade: Grade) -> float:
    return W[4] - float(np.exp(W[5] * (grade - 1.0))) + 1.0


def next_difficulty(difficulty: float, grade: Grade) -> float:
    """The difficulty after a review: up for Again and Hard, down for Easy, ever less near the top."""
    moved = difficulty - W[6] * (grade - 3.0) * (MAX_DIFFICULTY - difficulty) / 9.0
    after = W[7] * _raw_difficulty(Grade.EASY) + (1.0 - W[7]) * moved
    return min(max(after, MIN_DIFFICULTY), MAX_DIFFICULTY)


def next_stability(
    stability: float, difficulty: float, retrievability: float, grade: Grade, elapsed_days: float
) -> float:
    """The stability after a review with this grade, `elapsed_days` after the one before."""
    before, forgotten = _within(stability), 1.0 - retrievability
    if elapsed_days < 1.0:
        return _within(_within_a_day(before, grade))
    if grade == Grade.AGAIN:
        return _within(_after_lapse(before, difficulty, forgotten))
    return _within(_after_recall(before, difficulty, forgotten, grade))


def _after_recall(before: float, difficulty: float, forgotten: float, grade: Grade) -> float:
    eased = float(np.power(before, -W[9]))
    gain = _RECALL_GAIN * (11.0 - difficulty) * eased * float(np.expm1(W[10] * forgotten))
    return before * (1.0 + gain * _BONUS[grade])


def _after_lapse(before: float, difficulty: float, forgotten: float) -> float:
    held = float(np.power(difficulty, -W[12]))
    left = W[11] * held * (float(np.power(before + 1.0, W[13])) - 1.0)
    left *= float(np.exp(W[14] * forgotten))
    # The first term alone could leave more than there was.
    return min(left, before / _LAPSE_SHARE)


def _within_a_day(before: float, grade: Grade) -> float:
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
