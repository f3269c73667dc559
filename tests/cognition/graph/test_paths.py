"""Ways between memories: the best ones, in order, however dense the graph."""

from datetime import UTC, datetime
from itertools import combinations, pairwise, permutations
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.graph.paths import HOP_KEEPS, MOST_HOPS, WEAKEST, Path, best_paths, bridges
from vestige.core.models import Edge

AT = datetime(2026, 3, 1, tzinfo=UTC)
NAMES = "abcde"


def edge(source: str, target: str, weight: float = 1.0, kind: str = "semantic") -> Edge:
    return Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=AT)


def ways(edges: list[Edge], start: str, end: str, most: int = 5) -> list[str]:
    return ["".join(path.ids) for path in best_paths(edges, start, end, most=most)]


def test_a_way_is_found_against_the_direction_of_its_links() -> None:
    [path] = best_paths([edge("b", "a", 0.9), edge("b", "c", 0.4)], "a", "c", most=5)

    assert path.ids == ("a", "b", "c")
    assert path.confidence == pytest.approx(0.9 * 0.4 * HOP_KEEPS)


def test_two_strong_links_beat_one_weak_link() -> None:
    assert ways([edge("a", "c", 0.3), edge("a", "b", 0.9), edge("b", "c", 0.9)], "a", "c") == ["abc", "ac"]


def test_between_two_memories_the_strongest_link_is_taken() -> None:
    [path] = best_paths([edge("a", "b", 0.3, "temporal"), edge("b", "a", 0.8, "causal")], "a", "b", most=5)

    assert [one.kind for one in path.edges] == ["causal"]


def test_a_link_that_is_too_weak_leads_nowhere() -> None:
    assert ways([edge("a", "b", WEAKEST - 0.01)], "a", "b") == []


def test_no_way_is_longer_than_so_many_hops() -> None:
    names = [f"{number:02}" for number in range(MOST_HOPS + 2)]
    row = [edge(one, other) for one, other in pairwise(names)]

    assert len(best_paths(row, names[0], names[MOST_HOPS], most=1)) == 1
    assert best_paths(row, names[0], names[MOST_HOPS + 1], most=1) == []


def test_a_dense_graph_does_not_keep_the_far_end_from_being_found() -> None:
    crowd = [f"n{number:03}" for number in range(60)]
    edges = [edge(one, other, 0.9) for one, other in combinations(crowd, 2)]
    edges.append(edge(crowd[-1], "z", 0.5))

    [first, *_] = best_paths(edges, crowd[0], "z", most=5)

    assert first.ids == (crowd[0], crowd[-1], "z")


@given(
    st.dictionaries(
        st.sampled_from(list(combinations(NAMES, 2))), st.integers(1, 10).map(lambda n: n / 10), max_size=10
    )
)
def test_the_best_way_is_the_best_of_all(weights: dict[tuple[str, str], float]) -> None:
    def score(way: tuple[str, ...]) -> float:
        pairs = [tuple(sorted(pair)) for pair in pairwise(way)]
        return prod(HOP_KEEPS * weights.get((one, other), 0.0) for one, other in pairs)

    inner = [between for size in range(4) for between in permutations("bcd", size)]
    best = max(score(("a", *between, "e")) for between in inner)

    found = best_paths([edge(*pair, weight) for pair, weight in weights.items()], "a", "e", most=3)

    assert bool(found) == (best > 0)
    # Weights multiplied in another order differ in the last digit.
    scores = [score(path.ids) for path in found]
    assert scores == pytest.approx(sorted(scores, reverse=True))
    shown = [path.confidence for path in found]
    assert shown == pytest.approx(sorted(shown, reverse=True))
    assert all(len(set(path.ids)) == len(path.ids) for path in found)
    if found:
        assert score(found[0].ids) == pytest.approx(best)


def test_bridges_are_what_most_ways_lead_through() -> None:
    def path(ids: str, weight: float) -> Path:
        pairs = pairwise(ids)
        return Path(ids=tuple(ids), edges=tuple(edge(one, other, weight) for one, other in pairs))

    found = bridges([path("abe", 0.9), path("acbe", 0.5), path("ade", 0.7)])

    assert [(name, count) for name, count, _ in found] == [("b", 2), ("d", 1), ("c", 1)]
    assert found[0][2] == pytest.approx(0.9 * 0.9 * HOP_KEEPS)
