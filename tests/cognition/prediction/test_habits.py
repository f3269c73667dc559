"""What searches leave behind: laws of the ties, the counts and the words."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.prediction.habits import (
    FIRST_WEIGHT,
    MOST_TERMS,
    MOST_TIES,
    SESSION,
    STEP,
    Habit,
    Search,
    after_search,
    asked_terms,
    habit_body,
    habit_from,
    interests,
    search_body,
    search_from,
    strengthened,
)

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
DAY = timedelta(days=1)


def search(*shown: str, at: datetime = NOON, terms: str = "tea") -> Search:
    return Search(at=at, terms=asked_terms((terms,)), shown=shown)


def after(habits: dict[str, Habit], *searches: Search) -> dict[str, Habit]:
    """The habits after these searches, each within a session of the one before."""
    before: dict[str, float] = {}
    for one in searches:
        habits = habits | after_search(habits, one, before, {})
        before = one.credits
    return habits


def weight(habits: dict[str, Habit], one: str, other: str, at: datetime = NOON) -> float:
    return habits[one].ties[other].weight_at(at)


def test_two_that_are_found_one_after_the_other_are_tied_both_ways() -> None:
    habits = after({}, search("a"), search("b"))
    assert weight(habits, "a", "b") == weight(habits, "b", "a") == FIRST_WEIGHT
    assert strengthened({}, habits, NOON) == {("a", "b"): FIRST_WEIGHT}


def test_within_a_session_a_pair_counts_once_however_often_it_is_met() -> None:
    once = after({}, search("a"), search("b"))
    often = after(once, search("a"), search("b"), search("a"))
    assert weight(often, "a", "b") == FIRST_WEIGHT
    assert strengthened(once, often, NOON) == {}


def test_every_further_session_adds_a_step_up_to_one() -> None:
    habits: dict[str, Habit] = {}
    weights = []
    for number in range(12):
        at = NOON + number * SESSION
        habits = after(habits, search("a", at=at), search("b", at=at))
        weights.append(weight(habits, "a", "b", at))
    assert weights[1] == pytest.approx(FIRST_WEIGHT + STEP, abs=0.001)
    assert weights == sorted(weights)
    assert weights[-1] == 1.0


def test_a_better_place_in_the_same_session_makes_up_for_a_worse_one() -> None:
    habits = after({}, search("a", "x", "y", "b"), search("b"))
    assert weight(habits, "a", "b") == FIRST_WEIGHT
    assert habits["b"].shown == 1.0
    assert habits["b"].terms == {"tea": 1.0}


def test_what_was_only_in_view_is_tied_less_and_what_met_by_chance_not_at_all() -> None:
    habits = after({}, search("a", "b", "c"))
    assert weight(habits, "a", "b") == FIRST_WEIGHT / 2
    assert weight(habits, "a", "c") == pytest.approx(FIRST_WEIGHT / 3)
    assert "c" not in habits["b"].ties


def test_a_tie_fades_by_the_day() -> None:
    habits = after({}, search("a"), search("b"))
    levels = [weight(habits, "a", "b", NOON + days * DAY) for days in (0, 1, 7, 365)]
    assert levels == sorted(levels, reverse=True)
    assert levels[1] == pytest.approx(0.99 * FIRST_WEIGHT)
    assert levels[3] < 0.02


def test_hours_and_words_are_counted_by_the_place_and_once_a_session() -> None:
    habits = after({}, search("a", "b"), search("a", "b", terms="green tea"))
    assert habits["a"].hours == {12: 1.0}
    assert habits["b"].hours == {12: 0.5}
    assert habits["a"].terms == {"tea": 1.0, "green": 1.0}
    later = after(habits, search("a", at=NOON + DAY))
    assert later["a"].hours == {12: 2.0}
    assert later["a"].terms["tea"] == 2.0


def test_a_habit_stays_small() -> None:
    habits: dict[str, Habit] = {}
    for number in range(80):
        habits = after(habits, search(f"m{number}", "hub", terms=f"word{number}"))
    assert len(habits["hub"].ties) == MOST_TIES
    assert len(habits["hub"].terms) == MOST_TERMS


def test_words_are_kept_with_their_terms_but_neither_stop_words_nor_keys() -> None:
    asked = asked_terms(("Where are the deployments of eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9?",))
    assert asked == {"deploy": "deployments"}


def test_interests_are_what_is_asked_for_most_and_lately() -> None:
    weights = interests(
        [
            search(terms="tea"),
            search(terms="tea cups", at=NOON - DAY),
            search(terms="rain", at=NOON - 30 * DAY),
        ],
        NOON,
    )
    assert weights["tea"] == 1.0
    assert weights["rain"] < 0.1 < weights["cup"] < 1.0


NAMES = st.lists(st.sampled_from("abcdefgh"), max_size=5, unique=True).map(tuple)


@given(st.lists(st.tuples(NAMES, st.integers(0, 200)), max_size=12))
def test_whatever_is_searched_for_habits_survive_being_written_down(
    told: list[tuple[tuple[str, ...], int]],
) -> None:
    at, habits = NOON, dict[str, Habit]()
    for shown, hours in told:
        at += timedelta(hours=hours)
        habits = after(habits, search(*shown, at=at))
    for habit in habits.values():
        assert habit_from(habit_body(habit)) == habit_from(habit_body(habit_from(habit_body(habit))))
        assert all(0.0 <= tie.weight_at(at) <= 1.0 for tie in habit.ties.values())
        assert sum(habit.hours.values()) == pytest.approx(habit.shown)


def test_a_search_survives_being_written_down() -> None:
    one = Search(number=7, at=NOON, terms={"cup": "cups"}, shown=("a", "b"))
    assert search_from(search_body(one), one.shown) == one
