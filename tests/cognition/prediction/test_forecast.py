"""Foretelling: each channel by itself, their joint, and what becomes of a prediction."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.prediction.forecast import (
    LEAST,
    MOST_OPEN,
    MOST_OUTCOMES,
    OPEN,
    RELIABILITY,
    Forecast,
    ForecastSituation,
    MadePrediction,
    forecast_body,
    forecast_from,
    foretell,
    joined,
    session_of,
    settled,
    waiting,
)
from vestige.cognition.prediction.habits import NO_HABIT, SESSION, Habit, Search, Tie

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SHARES = st.floats(0, 1)


def situation(**known: Any) -> ForecastSituation:
    return ForecastSituation(**{"now": NOON, "session": {}, "found": frozenset(), "about": {}, **known})


def channels(habit: Habit, now: ForecastSituation) -> Mapping[str, float]:
    """What each channel says of one memory."""
    return {sign.channel: sign.value for one in foretell({"m": habit}, now) for sign in one.signs}


def test_nothing_is_foretold_of_what_was_never_met() -> None:
    assert foretell({"m": NO_HABIT}, situation(session={"a": 1.0})) == []
    assert foretell({}, situation()) == []


def test_what_is_tied_to_something_of_this_session_is_foretold_by_both_weights() -> None:
    habit = replace(NO_HABIT, ties={"a": Tie(base=0.0, credit=1.0, at=NOON)})
    assert channels(habit, situation(session={"a": 0.5}))["co_access"] == pytest.approx(0.25)
    assert channels(habit, situation(session={"b": 1.0})) == {}


def test_a_topic_at_hand_counts_as_often_as_it_led_here() -> None:
    habit = replace(NO_HABIT, terms={"tea": 3.0})
    about = {"tea": frozenset({"tea"}), "green cups": frozenset({"green", "cup"})}
    assert channels(habit, situation(about=about))["context"] == 0.75


@pytest.mark.parametrize(
    ("hours", "seen"), [({12: 2.0}, False), ({11: 2.0, 13: 1.0}, True), ({3: 9.0}, False)]
)
def test_an_hour_counts_when_it_was_met_then_often_enough(hours: dict[int, float], seen: bool) -> None:
    habit = replace(NO_HABIT, hours=hours, shown=9.0, last=NOON)
    assert ("temporal" in channels(habit, situation())) == seen


def test_midnight_is_near_both_evening_and_morning() -> None:
    habit = replace(NO_HABIT, hours={23: 2.0, 0: 2.0, 1: 2.0}, last=NOON, shown=6.0)
    assert channels(habit, situation(now=NOON + timedelta(hours=12)))["temporal"] > 0.5


def test_what_is_met_at_all_hours_is_not_met_at_this_one() -> None:
    habit = replace(NO_HABIT, hours=dict.fromkeys(range(24), 3.0), shown=72.0, last=NOON)
    assert "temporal" not in channels(habit, situation())


def test_a_habit_grows_with_use_and_is_lost_with_time() -> None:
    levels = [
        channels(replace(NO_HABIT, shown=shown, last=NOON - timedelta(days=days)), situation())["habit"]
        for shown, days in ((20.0, 0), (5.0, 0), (5.0, 14))
    ]
    assert levels == pytest.approx([0.8, 0.5, 0.25])


def test_what_the_session_has_found_is_not_foretold() -> None:
    habit = replace(NO_HABIT, shown=20.0, last=NOON)
    assert foretell({"m": habit}, situation())[0].memory_id == "m"
    assert foretell({"m": habit}, situation(found=frozenset({"m"}))) == []


def test_weak_signs_are_left_out_and_ties_go_by_id() -> None:
    weak = replace(NO_HABIT, shown=1.0, last=NOON)
    strong = replace(NO_HABIT, shown=20.0, last=NOON)
    found = foretell({"b": strong, "w": weak, "a": strong}, situation())
    assert [one.memory_id for one in found] == ["a", "b"]
    assert all(one.confidence >= LEAST for one in found)


@given(st.lists(SHARES, min_size=1, max_size=5), SHARES)
def test_more_evidence_never_lowers_a_confidence_which_can_come_near_one(
    values: list[float], more: float
) -> None:
    alone = float(joined(values, 1.0))
    assert alone - 1e-12 <= float(joined([*values, more], 1.0)) <= 1.0
    assert float(joined([1.0] * len(RELIABILITY), list(RELIABILITY.values()))) > 0.95


def test_rows_are_joined_each_for_itself() -> None:
    values = np.array([[0.0, 0.0], [1.0, 0.0], [1.0, 1.0]])
    assert joined(values, [0.5, 0.5]).tolist() == [0.0, 0.5, 0.75]


def test_a_session_is_what_was_shown_within_the_hour_by_place_and_age() -> None:
    searches = [
        Search(at=NOON - SESSION / 2, terms={}, shown=("a", "b")),
        Search(at=NOON - SESSION / 4, terms={}, shown=("c", "a")),
        Search(at=NOON - 2 * SESSION, terms={}, shown=("old",)),
    ]
    assert session_of(searches, NOON) == {"a": 0.5, "b": 0.25, "c": 0.75}


# -- what becomes of predictions ------------------------------------------------------------------


def made(*ids: str, at: datetime = NOON) -> MadePrediction:
    return MadePrediction(at=at, ids=ids)


def test_a_prediction_comes_true_when_any_of_it_is_needed_within_the_hour() -> None:
    forecast = waiting(Forecast(), made("a", "b"))
    assert settled(forecast, ["c"], NOON + OPEN) == forecast
    assert settled(forecast, ["b"], NOON + OPEN) == Forecast(outcomes=(True,))
    assert settled(forecast, ["b"], NOON + 2 * OPEN) == Forecast(outcomes=(False,))
    assert Forecast(outcomes=(True, False)).accuracy == 0.5
    assert Forecast().accuracy is None


def test_only_the_last_predictions_are_kept() -> None:
    forecast = Forecast(outcomes=(True,) * MOST_OUTCOMES)
    for number in range(MOST_OPEN + 1):
        forecast = waiting(forecast, made(str(number)))
    assert len(forecast.waiting) == MOST_OPEN
    later = settled(forecast, [], NOON + 2 * OPEN)
    assert (later.waiting, len(later.outcomes), sum(later.outcomes)) == ((), 100, 90)


def test_a_forecast_survives_being_written_down() -> None:
    forecast = Forecast(waiting=(made("a", "b"),), outcomes=(True, False))
    assert forecast_from(forecast_body(forecast)) == forecast
