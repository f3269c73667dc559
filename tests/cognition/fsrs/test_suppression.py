from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.fsrs.strength import encode
from vestige.cognition.fsrs.suppression import (
    ASKED_WITHIN,
    INHIBITION,
    MOST_INHIBITION,
    WINDOW,
    accessibility_of,
    collectable,
    inhibitable,
    inhibition,
    is_reversible,
    neighbours,
    penalty,
    reversible_until,
)
from vestige.core.models import Edge, Memory, Record

T0 = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
NOW = T0 + timedelta(days=400)
MEMORY = Memory(id="m", content="tin", created_at=T0, updated_at=T0)


def edge(source: str, target: str, kind: str = "semantic", weight: float = 1.0) -> Edge:
    return Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=T0)


def record(memory: Memory = MEMORY, **strength: object) -> Record:
    faded = replace(encode(T0), retrieval=0.05, last_accessed=T0)
    return Record(memory=memory, strength=replace(faded, **strength))  # type: ignore[arg-type]  # any field


@pytest.mark.parametrize(("count", "taken"), [(0, 0.0), (1, 0.15), (3, 0.45), (6, 0.8), (60, 0.8)])
def test_each_suppression_takes_more_of_the_score_up_to_a_limit(count: int, taken: float) -> None:
    assert penalty(count) == pytest.approx(taken)


def test_a_suppression_can_be_taken_back_until_just_before_its_window_ends() -> None:
    hushed = replace(MEMORY, suppression_count=1, suppressed_at=T0)
    assert reversible_until(hushed) == T0 + WINDOW
    assert is_reversible(hushed, T0 + WINDOW - timedelta(microseconds=1))
    assert not is_reversible(hushed, T0 + WINDOW)
    assert not is_reversible(MEMORY, T0)
    assert reversible_until(replace(MEMORY, suppression_count=1)) is None


def test_neighbours_are_met_in_both_directions_by_their_heaviest_link() -> None:
    edges = [
        edge("m", "a", weight=0.2),
        edge("a", "m", "user_defined", weight=0.9),
        edge("b", "m", weight=0.5),
        edge("m", "old", "supersedes"),
        edge("a", "b"),
    ]
    assert neighbours("m", edges) == {"a": 0.9, "b": 0.5}


@given(st.floats(-5, 5), st.floats(-5, 5))
def test_inhibition_grows_with_the_weight_and_stays_within_bounds(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert 0.0 <= inhibition(low) <= inhibition(high) <= MOST_INHIBITION
    assert inhibition(1.0) == INHIBITION


@pytest.mark.parametrize("spared", [{"pinned": True}, {"suppression_count": 1}, {"archived_at": T0}])
def test_what_is_pinned_suppressed_or_archived_is_not_weakened(spared: dict[str, object]) -> None:
    assert inhibitable(MEMORY)
    assert not inhibitable(replace(MEMORY, **spared))  # type: ignore[arg-type]  # any field


def test_what_has_faded_below_the_threshold_may_be_put_aside() -> None:
    level = accessibility_of(record(), NOW)
    assert collectable(record(), below=level + 0.001, now=NOW)
    assert not collectable(record(), below=level, now=NOW)


@pytest.mark.parametrize(
    "kept",
    [
        record(replace(MEMORY, pinned=True)),
        record(replace(MEMORY, archived_at=T0)),
        record(replace(MEMORY, suppression_count=1, suppressed_at=NOW - WINDOW / 2)),
        record(due_at=NOW + timedelta(seconds=1)),
        record(last_accessed=NOW - ASKED_WITHIN + timedelta(seconds=1)),
    ],
)
def test_what_somebody_cares_about_is_never_put_aside(kept: Record) -> None:
    assert not collectable(kept, below=1.0, now=NOW)
    assert collectable(record(), below=1.0, now=NOW)
