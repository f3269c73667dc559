"""FSRS-6 against published numbers, py-fsrs, and its own laws."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsrs import Card, Rating, Scheduler
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from vestige.cognition.fsrs import formulas
from vestige.cognition.fsrs.formulas import Grade

VECTORS: dict[str, Any] = json.loads(  # Any: the file's own shape is what is under test
    Path(__file__).with_name("fsrs_vectors.json").read_text(encoding="utf-8")
)
LAW = settings(deadline=None, max_examples=effort(50, nightly=1000))

stabilities = st.floats(formulas.MIN_STABILITY_DAYS, formulas.MAX_STABILITY_DAYS)
difficulties = st.floats(formulas.MIN_DIFFICULTY, formulas.MAX_DIFFICULTY)
chances = st.floats(0.0, 1.0)
days = st.floats(0.0, 100_000.0)
grades = st.sampled_from(Grade)


def replay(ratings: list[Grade], delta_t: list[float]) -> list[tuple[float, float]]:
    """Stability and difficulty after each review; the first one creates the memory."""
    stability = formulas.initial_stability(ratings[0])
    difficulty = formulas.initial_difficulty(ratings[0])
    states = [(stability, difficulty)]
    for rating, elapsed in zip(ratings[1:], delta_t[1:], strict=True):
        chance = float(formulas.retrievability(elapsed, stability))
        stability, difficulty = (
            formulas.next_stability(stability, difficulty, chance, rating, elapsed),
            formulas.next_difficulty(difficulty, rating),
        )
        states.append((stability, difficulty))
    return states


# -- numbers -------------------------------------------------------------------------------------


def test_the_weights_and_the_curve_are_the_published_ones() -> None:
    assert list(formulas.W) == VECTORS["parameters"]
    assert VECTORS["decay"] == -formulas.W20
    assert 1 / formulas.elapsed_at(0.9, 1.0) == pytest.approx(1.0)
    assert float(formulas.retrievability(1.0, 1.0)) == pytest.approx(
        (1 + VECTORS["factor"]) ** VECTORS["decay"]
    )


def test_every_stored_sequence_of_reviews_is_reproduced_review_by_review() -> None:
    tolerance = VECTORS["tolerance"]
    for sequence in VECTORS["sequences"]:
        reviews = sequence["reviews"]
        states = replay([r["rating"] for r in reviews], [r["delta_t"] for r in reviews])
        for (stability, difficulty), expected in zip(states, reviews, strict=True):
            assert stability == pytest.approx(expected["stability"], rel=tolerance["stability_rel"])
            assert difficulty == pytest.approx(expected["difficulty"], abs=tolerance["difficulty_abs"])
            assert formulas.interval_days(stability) == expected["interval_days"]
        final = sequence["fsrs_rs_final"]
        assert states[-1][0] == pytest.approx(final["stability"], rel=tolerance["stability_rel"])
        assert states[-1][1] == pytest.approx(final["difficulty"], abs=tolerance["difficulty_abs"])


def test_the_published_memory_state_is_reproduced() -> None:
    published = VECTORS["published_test_values"]["memo_state"]
    stability, difficulty = replay(published["ratings"], published["delta_t"])[-1]
    assert stability == pytest.approx(published["stability"], abs=published["tol"])
    assert difficulty == pytest.approx(published["difficulty"], abs=published["tol"])


def test_the_published_history_of_intervals_is_reproduced() -> None:
    published = VECTORS["published_test_values"]["interval_history"]
    ratings, expected = published["ratings"], published["expect"]
    # Each review comes when the one before made it due; 0 stands for a learning step of some minutes.
    states = replay(ratings, [0, *expected[:-1]])
    intervals = [formulas.interval_days(stability) for stability, _ in states]
    due_in_days = [(mine, theirs) for mine, theirs in zip(intervals, expected, strict=True) if theirs]
    assert [mine for mine, _ in due_in_days] == [theirs for _, theirs in due_in_days]


@pytest.mark.parametrize(
    ("elapsed_days", "chance"), [(1, 0.9468), (7, 0.8083), (30, 0.6675), (90, 0.5678), (365, 0.4589)]
)
def test_a_new_memory_fades_as_the_forgetting_page_says(elapsed_days: float, chance: float) -> None:
    assert float(formulas.retrievability(elapsed_days, 2.3065)) == pytest.approx(chance, abs=5e-5)


@pytest.mark.parametrize(
    ("grade", "stability", "interval"),
    [(Grade.AGAIN, 0.64, 1), (Grade.HARD, 9.23, 9), (Grade.GOOD, 13.83, 14), (Grade.EASY, 23.88, 24)],
)
def test_a_review_after_three_days_does_what_the_forgetting_page_says(
    grade: Grade, stability: float, interval: int
) -> None:
    after = replay([Grade.GOOD, grade], [0, 3])[-1][0]
    assert after == pytest.approx(stability, abs=5e-3)
    assert formulas.interval_days(after) == interval


def test_first_difficulties_are_the_published_ones_and_easy_is_limited() -> None:
    first = [formulas.initial_difficulty(grade) for grade in Grade]
    assert first == pytest.approx([6.4133, 5.1122, 2.1181, 1.0], abs=5e-5)


def test_a_hard_review_within_the_day_keeps_the_stability_and_an_again_costs_some() -> None:
    again, hard, good, _ = (formulas.next_stability(2.3065, 2.118, 1.0, grade, 0.01) for grade in Grade)
    assert [hard, good] == pytest.approx([2.3065, 2.3065])
    assert again < 1.0


# -- py-fsrs as oracle ---------------------------------------------------------------------------


@LAW
@given(st.lists(st.tuples(grades, st.integers(0, 400)), min_size=1, max_size=12))
def test_any_history_at_whole_days_gives_what_py_fsrs_gives(history: list[tuple[Grade, int]]) -> None:
    scheduler = Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
    card, now = Card(), datetime(2026, 1, 1, tzinfo=UTC)
    states = replay([grade for grade, _ in history], [elapsed for _, elapsed in history])
    for (grade, elapsed), (stability, difficulty) in zip(history, states, strict=True):
        now += timedelta(days=elapsed)
        chance = scheduler.get_card_retrievability(card, now)
        if card.stability is not None:
            assert float(formulas.retrievability(elapsed, card.stability)) == pytest.approx(chance)
        card, _ = scheduler.review_card(card, Rating(int(grade)), now)
        assert card.stability is not None
        # py-fsrs limits the interval to 36,500 days, and we the stability as well.
        assert stability == pytest.approx(min(card.stability, formulas.MAX_STABILITY_DAYS), rel=1e-9)
        assert difficulty == pytest.approx(card.difficulty, rel=1e-9)
        if card.stability > formulas.MAX_STABILITY_DAYS:
            return
        assert formulas.interval_days(stability) == (card.due - now).days


# -- laws ----------------------------------------------------------------------------------------


@LAW
@given(stabilities)
def test_after_one_stability_the_chance_is_nine_in_ten(stability: float) -> None:
    assert float(formulas.retrievability(stability, stability)) == pytest.approx(0.9, abs=1e-12)


@LAW
@given(stabilities, days, days)
def test_the_chance_of_recall_starts_at_one_and_never_rises(
    stability: float, one: float, other: float
) -> None:
    earlier, later = formulas.retrievability(sorted((one, other)), stability)
    assert float(formulas.retrievability(0.0, stability)) == 1.0
    assert 0.0 < later <= earlier <= 1.0


def test_time_before_the_memory_counts_as_no_time() -> None:
    assert float(formulas.retrievability(-3.0, 2.0)) == 1.0


@LAW
@given(st.floats(0.05, 1.0), stabilities)
def test_the_elapsed_time_gives_back_the_chance_it_was_asked_for(chance: float, stability: float) -> None:
    elapsed = formulas.elapsed_at(chance, stability)
    assert float(formulas.retrievability(elapsed, stability)) == pytest.approx(chance, rel=1e-9)


def test_a_chance_of_nothing_is_never_reached() -> None:
    assert formulas.elapsed_at(0.0, 2.0) == np.inf


@LAW
@given(stabilities, difficulties, chances, grades, days)
def test_a_review_keeps_stability_and_difficulty_within_their_limits(
    stability: float, difficulty: float, chance: float, grade: Grade, elapsed: float
) -> None:
    after = formulas.next_stability(stability, difficulty, chance, grade, elapsed)
    assert formulas.MIN_STABILITY_DAYS <= after <= formulas.MAX_STABILITY_DAYS
    harder = formulas.next_difficulty(difficulty, grade)
    assert formulas.MIN_DIFFICULTY <= harder <= formulas.MAX_DIFFICULTY
    assert 1 <= formulas.interval_days(after) <= formulas.MAX_STABILITY_DAYS


@LAW
@given(stabilities, difficulties, chances, days)
def test_a_harder_grade_never_gives_more_stability_or_less_difficulty(
    stability: float, difficulty: float, chance: float, elapsed: float
) -> None:
    by_grade = [formulas.next_stability(stability, difficulty, chance, grade, elapsed) for grade in Grade]
    assert by_grade == sorted(by_grade)
    harder = [formulas.next_difficulty(difficulty, grade) for grade in Grade]
    assert harder == sorted(harder, reverse=True)


@LAW
@given(stabilities, difficulties, chances, days)
def test_a_recall_never_costs_stability_and_a_lapse_never_adds_any(
    stability: float, difficulty: float, chance: float, elapsed: float
) -> None:
    by_grade = [formulas.next_stability(stability, difficulty, chance, grade, elapsed) for grade in Grade]
    again, *recalled = by_grade
    assert again <= stability
    assert min(recalled) >= stability


@LAW
@given(st.lists(st.tuples(stabilities, days), min_size=1, max_size=20))
def test_arrays_give_what_their_elements_give(rows: list[tuple[float, float]]) -> None:
    stability, elapsed = (np.array(column) for column in zip(*rows, strict=True))
    np.testing.assert_allclose(
        formulas.retrievability(elapsed, stability),
        [float(formulas.retrievability(days, stable)) for stable, days in rows],
        rtol=1e-12,
    )
