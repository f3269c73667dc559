"""A single memory fades as the arrays say, to the last bit."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.fsrs import formulas, strength

days = st.floats(0.0, 100_000.0) | st.floats(0.0, 2.0)
stabilities = st.floats(0.0, 40_000.0) | st.floats(0.0, 10.0)
curves = st.floats(0.05, 0.9) | st.just(formulas.W20)


@given(elapsed=days | st.floats(-10.0, 0.0), stability=stabilities, curve=curves)
def test_what_can_be_recalled(elapsed: float, stability: float, curve: float) -> None:
    many = formulas.retrievability([elapsed] * 9, stability, curve=curve)
    assert set(many.tolist()) == {formulas.retrievability_scalar(elapsed, stability, curve)}


@given(hours=st.integers(0, 1_000_000), curve=curves)
def test_the_retention_of_one_memory_is_that_of_many(hours: int, curve: float) -> None:
    made = datetime(2025, 3, 1, tzinfo=UTC)
    held, now = strength.encode(made, curve), made + timedelta(hours=hours)
    many = strength.retention([held.stability] * 9, held.retrieval, held.storage, hours / 24, curve)
    assert set(many.tolist()) == {strength.retention_of(held, now)}
