"""Spreading activation: one step at a time, level by level."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.activation import DECAY, LEAST, Activation, step
from vestige.models import Edge

AT = datetime(2026, 3, 1, tzinfo=UTC)


def edge(source: str, target: str, *, weight: float = 1.0, kind: str = "semantic") -> Edge:
    return Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=AT)


def test_activation_crosses_a_link_in_both_directions_and_fades() -> None:
    active = step({"a": Activation(level=1.0)}, [edge("a", "b"), edge("c", "a", weight=0.5)])

    assert active["b"] == Activation(level=DECAY, via="a", kind="semantic")
    assert active["c"].level == pytest.approx(0.5 * DECAY)
    assert active["a"] == Activation(level=1.0)


def test_the_strongest_path_counts_not_the_number_of_paths() -> None:
    seeds = {"a": Activation(level=1.0), "b": Activation(level=0.5)}

    active = step(seeds, [edge("a", "x"), edge("b", "x")])

    assert active["x"].via == "a"
    assert active["x"].level == pytest.approx(DECAY)


def test_what_is_too_weak_dies_out() -> None:
    assert "b" not in step({"a": Activation(level=1.0)}, [edge("a", "b", weight=LEAST / DECAY - 0.01)])


def test_nothing_comes_back_through_what_superseded_it() -> None:
    assert "old" not in step({"new": Activation(level=1.0)}, [edge("new", "old", kind="supersedes")])


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.floats(-2, 2))))
def test_no_cycle_and_no_weight_ever_lifts_a_level_above_its_seed(
    links: list[tuple[str, str, float]],
) -> None:
    active = {"a": Activation(level=0.8)}
    edges = [edge(source, target, weight=weight) for source, target, weight in links]
    for _ in range(4):
        active = step(active, edges)

    assert active["a"] == Activation(level=0.8)
    assert all(LEAST <= one.level <= 0.8 * DECAY for name, one in active.items() if name != "a")
