"""Predictions: which memories are likely to be needed next, from past searches.

Each channel gives a value from 0 to 1; its reliability is how far a full value alone is believed. They are
joined as independent causes (noisy-or, Pearl 1988), so that several weak signs can make one sure:

confidence = 1 - Π (1 - reliability · value)

The idea is predictive processing (Friston 2010).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.prediction.habits import SESSION, Habit, Search
from vestige.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


CO_ACCESS, CONTEXT, TEMPORAL, HABIT = "co_access", "context", "temporal", "habit"
RELIABILITY: Mapping[str, float] = {CO_ACCESS: 0.8, CONTEXT: 0.7, TEMPORAL: 0.6, HABIT: 0.2}
LEAST = 0.05
"""Below this confidence nothing is predicted."""
SUGGESTED = 0.3  # The confidence from which a prediction is a suggestion.
HABIT_HALF_LIFE_DAYS = 14.0
HALF_SHOWN = 5.0
"""The number of times shown that makes half a habit."""
NEAR_HOURS = 1
FEW_TIMES = 3
"""The number of times at about this hour that make a habit of the hour."""
HOURS = 24
OPEN = timedelta(hours=1)
"""How long a prediction stays open."""
MOST_OPEN = 10
MOST_OUTCOMES = 100
_NO_TIME, _DAY = timedelta(), timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSituation:
    """The present situation: what was shown recently and its weight, which of it was found (as the first
    hit), and what the caller is working on (by name, with its terms)."""

    now: datetime
    found: frozenset[str]
    session: Mapping[str, float]
    about: Mapping[str, frozenset[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """The value of one channel for a memory, with the reason in words."""

    channel: str
    value: float
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """A memory that is likely to be needed, by its habit in the present situation."""

    memory_id: str
    confidence: float
    habit: Habit
    situation: ForecastSituation

    @property
    def signs(self) -> tuple[Sign, ...]:
        """Why. They are put into words only for what is shown: hundreds of memories are weighed for a few."""
        found = (
            _co_access(self.habit, self.situation),
            _context(self.habit, self.situation),
            _temporal(self.habit, self.situation.now),
            _habitual(self.habit, self.situation.now),
        )
        return tuple(sign for sign in found if sign is not None and sign.value > 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MadePrediction:
    """An open prediction: when it was made, and of which memories."""

    at: datetime
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The open predictions, and the outcomes of the last ones."""

    waiting: tuple[MadePrediction, ...] = ()
    outcomes: tuple[bool, ...] = ()

    @property
    def accuracy(self) -> float | None:
        """The share of predictions of which at least one memory was needed within the hour."""
        return sum(self.outcomes) / len(self.outcomes) if self.outcomes else None


def foretell(habits: Mapping[str, Habit], situation: ForecastSituation) -> list[Foretold]:
    """The memories likely to be needed, likeliest first, without those the session has found already."""
    known = {name: habit for name, habit in habits.items() if name not in situation.found}
    values = [
        (
            _shared_value(_weights(habit, situation)),
            max(_shares(habit, situation).values(), default=0.0),
            _at_hour(habit, situation.now.hour),
            _shown_value(habit, situation.now),
        )
        for habit in known.values()
    ]
    if not values:
        return []
    levels = joined(values, list(RELIABILITY.values())).tolist()
    foretold = [
        Foretold(memory_id=memory_id, confidence=level, habit=habit, situation=situation)
        for (memory_id, habit), level in zip(known.items(), levels, strict=True)
        if level >= LEAST
    ]
    return sorted(foretold, key=lambda one: (-one.confidence, one.memory_id))


def joined(values: "ArrayLike", reliability: "ArrayLike") -> NDArray[np.float64]:
    """The chance that at least one of several independent causes holds, for each row."""
    shares = np.asarray(values, dtype=np.float64) * np.asarray(reliability, dtype=np.float64)
    return np.asarray(1.0 - np.prod(1.0 - shares, axis=-1))


def session_of(searches: Iterable[Search], now: datetime) -> dict[str, float]:
    """What was shown in the last hour, weighted by rank and age; the best showing counts."""
    session: dict[str, float] = {}
    for search in searches:
        share = 1.0 - max(timedelta(), now - search.at) / SESSION
        for memory_id, credit in search.credits.items():
            if share > 0:
                session[memory_id] = max(session.get(memory_id, 0.0), share * credit)
    return session


def waiting(forecast: Forecast, made: MadePrediction) -> Forecast:
    """The forecast with one more open prediction."""
    return Forecast(waiting=(*forecast.waiting, made)[-MOST_OPEN:], outcomes=forecast.outcomes)


def settled(forecast: Forecast, needed: Sequence[str], at: datetime) -> Forecast:
    """The forecast after these memories were needed: predictions that came true or expired are closed."""
    left, outcomes = [], list(forecast.outcomes)
    for made in forecast.waiting:
        late = at - made.at > OPEN
        met = not late and made.at <= at and not set(needed).isdisjoint(made.ids)
        if late or met:
            outcomes.append(met)
        else:
            left.append(made)
    return Forecast(waiting=tuple(left), outcomes=tuple(outcomes[-MOST_OUTCOMES:]))


def _co_access(habit: Habit, situation: ForecastSituation) -> Sign | None:
    """Ties to what was shown in this session."""
    weights = _weights(habit, situation)
    if not weights:
        return None
    value = _shared_value(weights)
    nearest = min(weights, key=lambda other: (-weights[other], other))
    return Sign(
        channel=CO_ACCESS,
        value=value,
        reason=f"met together with {nearest}, which was shown in this session ({value:.2f})",
    )


def _weights(habit: Habit, situation: ForecastSituation) -> dict[str, float]:
    """The ties to what was shown in this session, by how recently and how high."""
    now, session = situation.now, situation.session
    if session.keys().isdisjoint(habit.ties):  # so it is with most of hundreds
        return {}
    return {
        other: tie.weight_at(now) * session[other] for other, tie in habit.ties.items() if other in session
    }


def _shared_value(weights: Mapping[str, float]) -> float:
    return 1.0 - math.prod([1.0 - weight for weight in weights.values()])


def _context(habit: Habit, situation: ForecastSituation) -> Sign | None:
    """How well the caller's topics are known to lead here; the best one counts."""
    shares = _shares(habit, situation)
    best = min(shares, key=lambda name: (-shares[name], name), default=None)
    if best is None:
        return None
    return Sign(channel=CONTEXT, value=shares[best], reason=f"met under {best!r} before ({shares[best]:.2f})")


def _shares(habit: Habit, situation: ForecastSituation) -> dict[str, float]:
    counts = habit.terms
    return {
        name: sum([counts[term] / (counts[term] + 1) for term in terms if term in counts]) / len(terms)
        for name, terms in situation.about.items()
        if terms
    }


def _temporal(habit: Habit, now: datetime) -> Sign | None:
    """Whether it is met at this hour more than at others."""
    near, total = _times(habit, now.hour)
    if near < FEW_TIMES:
        return None
    value = _hourly_value(near, total)
    return Sign(
        channel=TEMPORAL,
        value=value,
        reason=f"shown {near:.1f} of {total:.1f} times at about {now.hour:02d}:00 UTC ({value:.2f})",
    )


def _times(habit: Habit, hour: int) -> tuple[float, float]:
    """How often it is shown at about this hour, and in all."""
    hours = habit.hours
    near = sum([number for other, number in hours.items() if _apart(other, hour) <= NEAR_HOURS])
    return near, sum(hours.values())


def _at_hour(habit: Habit, hour: int) -> float:
    if sum(habit.hours.values()) < FEW_TIMES:  # then not so often at this hour either
        return 0.0
    return _hourly_value(*_times(habit, hour))


def _hourly_value(near: float, total: float) -> float:
    if near < FEW_TIMES:
        return 0.0
    by_chance = (2 * NEAR_HOURS + 1) / HOURS
    return max(0.0, near / total - by_chance) / (1.0 - by_chance) * near / (near + FEW_TIMES)


def _apart(hour: int, other: int) -> int:
    return min((hour - other) % HOURS, (other - hour) % HOURS)


def _habitual(habit: Habit, now: datetime) -> Sign | None:
    """How often it is shown, discounted by age."""
    value = _shown_value(habit, now)
    return Sign(channel=HABIT, value=value, reason=f"shown {habit.shown:.1f} times so far ({value:.2f})")


def _shown_value(habit: Habit, now: datetime) -> float:
    if habit.last is None or not habit.shown:
        return 0.0
    days = max(_NO_TIME, now - habit.last) / _DAY
    return float(habit.shown / (habit.shown + HALF_SHOWN) * 0.5 ** (days / HABIT_HALF_LIFE_DAYS))


# -- A forecast as a document


def forecast_body(forecast: Forecast) -> dict[str, Any]:
    return {
        "waiting": [[made.at.isoformat(), list(made.ids)] for made in forecast.waiting],
        "outcomes": [int(met) for met in forecast.outcomes],
    }


def forecast_from(body: Mapping[str, Any]) -> Forecast:
    return Forecast(
        waiting=tuple(
            MadePrediction(at=datetime.fromisoformat(at), ids=tuple(ids)) for at, ids in body["waiting"]
        ),
        outcomes=tuple(bool(met) for met in body["outcomes"]),
    )
