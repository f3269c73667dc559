"""A single memory fades as the arrays say, to the last bit."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.fsrs import formulas, strength
from vestige.cognition.fsrs.formulas import Grade

days = st.floats(0.0, 100_000.0) | st.floats(0.0, 2.0)
stabilities = st.floats(0.0, 40_000.0) | st.floats(0.0, 10.0)
curves = st.floats(0.05, 0.9) | st.just(formulas.W20)
levels = st.just(0.0) | st.floats(0.001, 1.1)
difficulties = st.floats(1.0, 10.0)
grades = st.sampled_from(Grade)


@given(elapsed=days | st.floats(-10.0, 0.0), stability=stabilities, curve=curves)
def test_what_can_be_recalled(elapsed: float, stability: float, curve: float) -> None:
    many = formulas.retrievability([elapsed] * 9, stability, curve=curve)
    assert set(many.tolist()) == {formulas.retrievability_scalar(elapsed, stability, curve)}


@given(level=levels, stability=stabilities, curve=curves)
def test_how_long_it_takes_to_fade(level: float, stability: float, curve: float) -> None:
    many = formulas.elapsed_at([level] * 9, stability, curve=curve)
    assert set(many.tolist()) == {formulas.elapsed_at_scalar(level, stability, curve)}


@given(stability=stabilities, curve=curves)
def test_when_it_is_due(stability: float, curve: float) -> None:
    many = formulas.interval_days([stability] * 9, curve=curve)
    assert set(many.tolist()) == {formulas.interval_days_scalar(stability, curve)}


@pytest.mark.parametrize("grade", Grade)
@given(difficulty=difficulties)
def test_how_difficult_it_is_after_a_review(grade: Grade, difficulty: float) -> None:
    many = formulas.next_difficulty([difficulty] * 9, grade)
    assert set(many.tolist()) == {formulas.next_difficulty_scalar(difficulty, grade)}


@pytest.mark.parametrize("grade", Grade)
@given(stability=stabilities, difficulty=difficulties, level=st.floats(0.0, 1.0), elapsed=days)
def test_how_stable_it_is_after_a_review(
    grade: Grade, stability: float, difficulty: float, level: float, elapsed: float
) -> None:
    many = formulas.next_stability([stability] * 9, difficulty, level, grade, elapsed)
    assert set(many.tolist()) == {
        formulas.next_stability_scalar(stability, difficulty, level, grade, elapsed)
    }


@given(hours=st.integers(0, 1_000_000), curve=curves)
def test_the_retention_of_one_memory_is_that_of_many(hours: int, curve: float) -> None:
    made = datetime(2025, 3, 1, tzinfo=UTC)
    held, now = strength.encode(made, curve), made + timedelta(hours=hours)
    many = strength.retention([held.stability] * 9, held.retrieval, held.storage, hours / 24, curve)
    assert set(many.tolist()) == {strength.retention_of(held, now)}
