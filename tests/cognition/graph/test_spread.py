"""Spreading activation: one step at a time, level by level."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.graph.spread import (
    CROSS_DOMAIN,
    CROSSING,
    DECAY,
    LEAST,
    Activation,
    in_other_domains,
    raised,
    received,
)
from vestige.core.models import Edge, Memory

AT = datetime(2026, 3, 1, tzinfo=UTC)
SEED = {"a": Activation(level=1.0)}


def edge(source: str, target: str, *, weight: float = 1.0, kind: str = "semantic") -> Edge:
    return Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=AT)


def memory(name: str, scope: str = "/", *domains: str) -> Memory:
    return Memory(id=name, content=name, created_at=AT, updated_at=AT, scope=scope, domains=domains)


def test_activation_crosses_a_link_in_both_directions_and_fades() -> None:
    reached = received(SEED, [edge("a", "b"), edge("c", "a", weight=0.5)])

    assert reached["b"] == Activation(level=DECAY, via="a", kind="semantic")
    assert reached["c"].level == pytest.approx(0.5 * DECAY)
    assert "a" not in reached


def test_the_strongest_path_counts_not_the_number_of_paths() -> None:
    seeds = {**SEED, "b": Activation(level=0.5)}

    reached = received(seeds, [edge("a", "x"), edge("b", "x")])

    assert reached["x"].via == "a"
    assert reached["x"].level == pytest.approx(DECAY)


def test_what_is_too_weak_dies_out() -> None:
    weak = [edge("a", "b", weight=LEAST / DECAY - 0.01)]

    assert received(SEED, weak) == {}
    assert "b" in received(SEED, [edge("a", "b", weight=1.01 * LEAST / DECAY)])


@pytest.mark.parametrize("kind", ["supersedes", "merges"])
def test_nothing_comes_back_through_what_took_its_place(kind: str) -> None:
    assert received(SEED, [edge("new", "old", kind=kind), edge("a", "old", kind=kind)]) == {}


@pytest.mark.parametrize(
    ("one", "other", "factor"),
    [
        (memory("a"), memory("b"), 1.0),
        (memory("a", "/project/x"), memory("b", "/project/y"), CROSSING),
        (memory("a", "/", "music"), memory("b", "/", "music", "work"), 1.0),
        (memory("a", "/", "music"), memory("b", "/", "work"), CROSS_DOMAIN),
        (memory("a", "/x", "music"), memory("b", "/", "work"), CROSS_DOMAIN),
        (memory("a", "/", "music"), memory("b"), 1.0),
    ],
)
def test_a_link_into_another_scope_or_domain_carries_less(one: Memory, other: Memory, factor: float) -> None:
    known: Mapping[str, Memory] = {"a": one, "b": other}

    assert in_other_domains(one, other) is in_other_domains(other, one) is (factor == CROSS_DOMAIN)
    assert received(SEED, [edge("a", "b")], known)["b"].level == pytest.approx(DECAY * factor)
    assert received(SEED, [edge("a", "b")], known, cross_domain=1.0)["b"].level == pytest.approx(
        DECAY * (CROSSING if one.scope != other.scope else 1)
    )


def test_a_way_within_the_field_beats_a_slightly_stronger_one_from_outside() -> None:
    seeds = {**SEED, "b": Activation(level=0.9)}
    known = {"a": memory("a", "/far"), "b": memory("b"), "x": memory("x")}

    assert received(seeds, [edge("a", "x"), edge("b", "x")], known)["x"].via == "b"


def test_only_what_became_more_active_is_passed_on_from_again() -> None:
    active = {"a": Activation(level=0.5), "b": Activation(level=0.5)}
    higher = Activation(level=0.6, via="c")

    assert raised(active, {"a": higher, "b": Activation(level=0.5, via="c"), "d": higher}) == {
        "a": higher,
        "d": higher,
    }


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef"), st.floats(-2, 2))))
def test_no_cycle_and_no_weight_ever_lifts_a_level_above_its_seed(
    links: list[tuple[str, str, float]],
) -> None:
    seed = {"a": Activation(level=0.8)}
    active, fresh = dict(seed), dict(seed)
    edges = [edge(source, target, weight=weight) for source, target, weight in links if source != target]
    for _ in range(4):
        fresh = raised(active, received(fresh, edges))
        active |= fresh

    assert active["a"] == seed["a"]
    assert all(LEAST <= one.level <= 0.8 * DECAY for name, one in active.items() if name != "a")
