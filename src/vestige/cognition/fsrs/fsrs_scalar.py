"""FSRS-6 for a single memory: the same numbers as `fsrs.py`, to the last bit, without arrays.

`fsrs.py` is the definition. An array of one number costs twenty times the arithmetic in it, and strength is
folded event by event. Powers and exponentials still come from numpy, because those of `math` may differ in
the last bit.
"""

from functools import lru_cache
from math import exp, inf

import numpy as np

from vestige.cognition.fsrs.fsrs import (
    DESIRED_RETENTION,
    MAX_DIFFICULTY,
    MAX_STABILITY_DAYS,
    MIN_DIFFICULTY,
    MIN_STABILITY_DAYS,
    Grade,
    W,
)

_BONUS = {Grade.HARD: W[15], Grade.GOOD: 1.0, Grade.EASY: W[16]}
_LAPSE_SHARE = exp(W[17] * W[18])
_RECALL_GAIN = float(np.exp(W[8]))
_EASY_START = W[4] - float(np.exp(W[5] * (Grade.EASY - 1.0))) + 1.0


def retrievability(elapsed_days: float, stability: float, curve: float) -> float:
    """The chance of recall after some days."""
    elapsed = max(elapsed_days, 0.0)
    return float(np.power(1.0 + _factor(curve) * elapsed / _within(stability), -curve))


def elapsed_at(retrievability: float, stability: float, curve: float) -> float:
    """The days after which the chance of recall has fallen to `retrievability`."""
    level = min(max(retrievability, 0.0), 1.0)
    fallen = float(np.power(level, -1.0 / curve)) if level > 0.0 else inf
    return _within(stability) / _factor(curve) * (fallen - 1.0)


def interval_days(stability: float, curve: float) -> float:
    """The whole days until a review is due."""
    factor = _factor(curve)
    days = _within(stability) / factor * factor  # as many as it takes to fall to DESIRED_RETENTION
    # Rounded within the bounds, which are whole days: the same, and without end there is no whole number.
    return float(round(min(max(days, 1.0), MAX_STABILITY_DAYS)))


def next_difficulty(difficulty: float, grade: Grade) -> float:
    """The difficulty after a review."""
    moved = difficulty - W[6] * (grade - 3.0) * (MAX_DIFFICULTY - difficulty) / 9.0
    after = W[7] * _EASY_START + (1.0 - W[7]) * moved
    return min(max(after, MIN_DIFFICULTY), MAX_DIFFICULTY)


def next_stability(
    stability: float, difficulty: float, retrievability: float, grade: Grade, elapsed_days: float
) -> float:
    """The stability after a review with this grade."""
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
    return min(left, before / _LAPSE_SHARE)


def _within_a_day(before: float, grade: Grade) -> float:
    change = _short_step(grade) * float(np.power(before, -W[19]))
    return before * (change if grade == Grade.AGAIN else max(change, 1.0))


@lru_cache(maxsize=4)  # one for each grade
def _short_step(grade: Grade) -> float:
    return float(np.exp(W[17] * (grade - 3.0 + W[18])))


@lru_cache(maxsize=64)  # a store has one curve, and had a few
def _factor(curve: float) -> float:
    return float(np.power(DESIRED_RETENTION, -1.0 / curve)) - 1.0


def _within(days: float) -> float:
    return min(max(days, MIN_STABILITY_DAYS), MAX_STABILITY_DAYS)
