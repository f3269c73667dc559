"""Places for the nodes of a graph."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige.cognition.graph.layout import HEIGHT, MARGIN, WIDTH, layout

links = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.floats(0, 1)), max_size=30)


@given(st.integers(0, 12), links)
@settings(max_examples=40, deadline=None)
def test_every_node_has_a_place_inside_the_picture(nodes: int, pairs: list[tuple[int, int, float]]) -> None:
    inside = [pair for pair in pairs if pair[0] < nodes and pair[1] < nodes]

    at = layout(nodes, inside)

    assert at.shape == (nodes, 2)
    assert np.isfinite(at).all()
    assert (at > MARGIN - 1e-6).all()
    assert (at < (WIDTH - MARGIN + 1e-6, HEIGHT - MARGIN + 1e-6)).all()


def test_the_same_graph_is_drawn_the_same_way() -> None:
    pairs = [(0, 1, 1.0), (1, 2, 0.5), (2, 3, 0.5)]

    assert (layout(5, pairs) == layout(5, pairs)).all()


def test_a_memory_alone_stands_in_the_middle() -> None:
    assert layout(1, []).tolist() == [[WIDTH / 2, HEIGHT / 2]]


def test_what_is_linked_stands_nearer_together() -> None:
    at = layout(8, [(0, 1, 1.0), (0, 2, 1.0), (1, 2, 1.0), (3, 4, 1.0), (4, 5, 1.0), (3, 5, 1.0)])

    def apart(one: int, other: int) -> float:
        return float(np.linalg.norm(at[one] - at[other]))

    linked = [apart(0, 1), apart(1, 2), apart(3, 4), apart(4, 5)]
    others = [apart(0, 4), apart(1, 3), apart(2, 5), apart(6, 0)]
    assert max(linked) < min(others)


STAR = [(0, other, 1.0) for other in range(1, 60)]
TREE = [(node, node // 3, 0.7) for node in range(1, 60)]


@pytest.mark.parametrize("pairs", [STAR, TREE], ids=["star", "tree"])
def test_a_picture_is_filled_and_no_two_nodes_touch(pairs: list[tuple[int, int, float]]) -> None:
    at = layout(60, pairs)

    gaps = np.linalg.norm(at[:, None] - at[None, :], axis=2) + 1_000 * np.eye(60)
    assert gaps.min() > 12  # two circles of a drawing
    width, height = at.max(axis=0) - at.min(axis=0)
    assert width > WIDTH - 2 * MARGIN - 1 or height > HEIGHT - 2 * MARGIN - 1
    lined_up = (at < MARGIN + 1) | (at > (WIDTH - MARGIN - 1, HEIGHT - MARGIN - 1))
    assert lined_up.any(axis=1).mean() < 0.2


@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_two_nodes_are_apart_even_with_a_link(weight: float) -> None:
    one, other = layout(2, [(0, 1, weight)])

    assert np.linalg.norm(one - other) > 50
