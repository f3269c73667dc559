"""Communities: the same for the same graph, connected, and never worse than no communities at all."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige.cognition.graph.domains.communities import Ints, WeightedGraph, graph_of, leiden, modularity

SIZE = 14
edges = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1), st.sampled_from((0.25, 0.5, 1.0))).filter(
        lambda edge: edge[0] != edge[1]
    ),
    max_size=40,
)
resolutions = st.sampled_from((0.5, 1.0, 4.0))
Edges = list[tuple[int, int, float]]


def graph(ends: Edges, size: int = SIZE) -> WeightedGraph:
    rows, columns, weights = (list(one) for one in zip(*ends, strict=True)) if ends else ([], [], [])
    return graph_of(
        size,
        np.array(rows, dtype=np.int64),
        np.array(columns, dtype=np.int64),
        np.array(weights, dtype=float),
    )


def cliques(*sizes: int, bridge: float = 0.1) -> WeightedGraph:
    """Groups in which all are linked, each with one weak link to the next."""
    ends: Edges = []
    begin = 0
    for at, size in enumerate(sizes):
        ends += [(one, other, 1.0) for one in range(begin, begin + size) for other in range(begin, one)]
        if at:
            ends.append((begin - 1, begin, bridge))
        begin += size
    return graph(ends, sum(sizes))


def as_sets(part: Ints) -> set[frozenset[int]]:
    return {frozenset(np.flatnonzero(part == one).tolist()) for one in set(part.tolist())}


def test_groups_that_are_hardly_linked_are_communities() -> None:
    assert leiden(cliques(6, 9, 5), 1.0).tolist() == [0] * 6 + [1] * 9 + [2] * 5


def test_an_empty_graph_and_one_without_edges_have_no_communities_to_find() -> None:
    assert leiden(graph([], 0), 1.0).tolist() == []
    assert leiden(graph([], 3), 1.0).tolist() == [0, 1, 2]


@given(edges, resolutions)
def test_the_same_graph_has_the_same_communities_whatever_the_order_of_its_edges(
    ends: Edges, resolution: float
) -> None:
    found = leiden(graph(ends), resolution)
    turned = [(other, one, weight) for one, other, weight in reversed(ends)]
    assert found.tolist() == leiden(graph(ends), resolution).tolist()
    assert found.tolist() == leiden(graph(turned), resolution).tolist()


@given(edges, resolutions)
def test_communities_are_numbered_in_the_order_of_their_first_node(ends: Edges, resolution: float) -> None:
    found = leiden(graph(ends), resolution).tolist()
    assert list(dict.fromkeys(found)) == list(range(max(found) + 1))


@given(edges, resolutions)
def test_modularity_is_never_below_that_of_nodes_alone(ends: Edges, resolution: float) -> None:
    whole = graph(ends)
    alone = modularity(whole, np.arange(SIZE), resolution)
    assert modularity(whole, leiden(whole, resolution), resolution) >= alone - 1e-12


@given(edges, resolutions)
def test_every_community_is_connected(ends: Edges, resolution: float) -> None:
    for community in as_sets(leiden(graph(ends), resolution)):
        reached, waiting = set(), [min(community)]
        while waiting:
            node = waiting.pop()
            reached.add(node)
            near = {two if one == node else one for one, two, _ in ends if node in (one, two)}
            waiting += sorted((near & community) - reached)
        assert reached == community


@given(st.permutations(range(3)))
@settings(max_examples=6)
def test_the_order_of_disconnected_parts_changes_no_community(order: list[int]) -> None:
    sizes = (5, 8, 6)
    ends: Edges = []
    begin = dict.fromkeys(range(3), 0)
    at = 0
    for number in order:
        begin[number] = at
        ends += [(at + one, at + other, 1.0) for one in range(sizes[number]) for other in range(one)]
        at += sizes[number]
    expected = {frozenset(range(begin[number], begin[number] + sizes[number])) for number in range(3)}
    assert as_sets(leiden(graph(ends, sum(sizes)), 1.0)) == expected


GOLDEN = {1: 0.429333, 2: 0.415665, 3: 0.384544}
"""The modularity that graspologic-native 1.2.5 reaches on the graphs below, made once with `leiden(edges,
starting_communities=None, resolution=1.0, randomness=0.001, iterations=5, use_modularity=True, seed=1,
trials=5)`."""


def planted(seed: int) -> WeightedGraph:
    """Four groups of 30 nodes: each pair inside is linked with a chance of .3, others with .05."""
    rng = np.random.default_rng(seed)
    group = np.repeat(np.arange(4), 30)
    chance = np.where(group[:, None] == group[None, :], 0.3, 0.05)
    rows, columns = np.nonzero(np.triu(rng.random((120, 120)) < chance, 1))
    return graph_of(120, rows, columns, np.ones(len(rows)))


@pytest.mark.parametrize("seed", GOLDEN)
def test_modularity_is_as_high_as_that_of_the_reference_implementation(seed: int) -> None:
    whole = planted(seed)
    assert modularity(whole, leiden(whole, 1.0), 1.0) >= GOLDEN[seed] - 1e-6
