"""What it means that two stores give the same answer."""

from collections.abc import Sequence
from dataclasses import fields, replace
from math import isclose

import pytest

from tests.store.generators import T0
from vestige.models import LogEvent, Record, StoreStats, Strength
from vestige.store.protocol import Scored

STRENGTH_TOLERANCE = 1e-9
SCORE_TOLERANCE = 1e-6

BLANK = Strength(
    stability=1.0,
    difficulty=1.0,
    decay_from=T0,
    due_at=T0,
    last_accessed=T0,
    retention=1.0,
    retention_at=T0,
)


def assert_same_strength(one: Strength, other: Strength) -> None:
    """Numbers within a tolerance; times and counts exactly."""
    for field in fields(Strength):
        first, second = getattr(one, field.name), getattr(other, field.name)
        if isinstance(first, float):
            assert isclose(first, second, rel_tol=0, abs_tol=STRENGTH_TOLERANCE), field.name
        else:
            assert first == second, field.name


def assert_same_records(one: Sequence[Record], other: Sequence[Record]) -> None:
    """The same memories in the same order, with the same strength."""
    assert [replace(record, strength=BLANK) for record in one] == [
        replace(record, strength=BLANK) for record in other
    ]
    for first, second in zip(one, other, strict=True):
        assert_same_strength(first.strength, second.strength)


def assert_same_log(one: Sequence[LogEvent], other: Sequence[LogEvent]) -> None:
    """The same events; each store has its own node and its own positions."""
    assert [replace(event, node="", position=0) for event in one] == [
        replace(event, node="", position=0) for event in other
    ]


def assert_same_stats(one: StoreStats, other: StoreStats) -> None:
    """The same counts, and levels within a tolerance."""
    assert replace(one, retentions=(), accessibilities=()) == replace(
        other, retentions=(), accessibilities=()
    )
    assert one.retentions == pytest.approx(other.retentions, abs=STRENGTH_TOLERANCE)
    assert one.accessibilities == pytest.approx(other.accessibilities, abs=STRENGTH_TOLERANCE)


def assert_same_ranking(one: Sequence[Scored], other: Sequence[Scored]) -> None:
    """The same scores in order; memories may only trade places within the tolerance."""
    assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=SCORE_TOLERANCE)
    expected = {hit.memory_id: hit for hit in other}
    last = other[-1].score if other else 0.0
    for hit in one:
        if hit.memory_id in expected:
            assert hit.score == pytest.approx(expected[hit.memory_id].score, abs=SCORE_TOLERANCE)
        else:  # tied with the last one that got in
            assert hit.score == pytest.approx(last, abs=SCORE_TOLERANCE)
