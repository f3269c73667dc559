"""Neighbour lists stay exact while vectors come and go, whatever the order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige.cognition.graph.domains.neighbours import nearest_neighbours, neighbours_by_lists
from vestige.cognition.graph.neighbour_lists import (
    CHUNK,
    KEPT,
    NOTHING,
    SCALE,
    Ints,
    NeighbourLists,
    Vectors,
    best_of_rows,
    blocks,
    brought_up,
    direction,
    nearest_listed,
    rounded,
    whole_vectors,
)


def units(size: int, seed: int = 0, dimension: int = 24, groups: int = 6) -> Vectors:
    rng = np.random.default_rng(seed)
    middles = rng.standard_normal((groups, dimension))
    return direction(middles[rng.integers(0, groups, size)] + 0.7 * rng.standard_normal((size, dimension)))


def check_lists(lists: NeighbourLists, names: Ints, whole: Vectors) -> None:
    """Every list is what comparing all pairs says."""
    assert lists.names.tolist() == names.tolist()
    products = (whole.astype(np.int64) @ whole.astype(np.int64).T).tolist()
    place = {name: at for at, name in enumerate(names.tolist())}
    for at, name in enumerate(names.tolist()):
        entries = [
            (p, n)
            for n, p in zip(lists.near[at].tolist(), lists.products[at].tolist(), strict=True)
            if n >= 0
        ]
        assert name not in [n for _, n in entries]
        assert entries == sorted(entries, key=lambda one: (-one[0], one[1]))
        assert all(products[at][place[n]] == p for p, n in entries)
        above = {n for n in names.tolist() if n != name and products[at][place[n]] > lists.floors[at]}
        assert above == {n for _, n in entries}


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.tuples(st.integers(0, 60), st.floats(0, 0.6)), min_size=1, max_size=6),
    seed=st.integers(0, 1000),
    groups=st.sampled_from([1, 4]),
)
def test_lists_that_were_brought_up_are_those_of_all_pairs(
    steps: list[tuple[int, float]], seed: int, groups: int
) -> None:
    rng = np.random.default_rng(seed)
    every = rounded(units(400, seed, groups=groups))
    every[50:60] = every[49]  # the same text several times
    lists, names, last = NeighbourLists.none(), np.empty(0, dtype=np.int64), 0
    for come, gone in steps:
        staying = names[rng.random(len(names)) >= gone]
        names = np.concatenate((staying, np.arange(last, last + come)))
        last += come
        lists, _ = brought_up(lists, names, every[names])
        check_lists(lists, names, every[names])


def test_only_lists_that_changed_are_named() -> None:
    whole = rounded(units(300))
    names = np.arange(300)
    first, _ = brought_up(NeighbourLists.none(), names[:-1], whole[:-1])
    again, nothing = brought_up(first, names[:-1], whole[:-1])
    second, changed = brought_up(first, names, whole)
    assert not nothing.any()
    assert 1 < changed.sum() < 150
    for row in np.flatnonzero(~changed).tolist():
        assert second.near[row].tolist() == first.near[row].tolist() == again.near[row].tolist()


def test_a_list_that_lost_most_of_its_members_is_made_again() -> None:
    whole = rounded(units(200, groups=1))
    lists, _ = brought_up(NeighbourLists.none(), np.arange(200), whole)
    names = np.setdiff1d(np.arange(200), lists.near[0])
    after, changed = brought_up(lists, names, whole[names])
    check_lists(after, names, whole[names])
    assert changed[0]
    assert (after.near[0] >= 0).sum() == KEPT


@pytest.mark.parametrize("dimension", [3, 384, 1024, 4096])
def test_products_are_exact_for_any_model(dimension: int) -> None:
    rng = np.random.default_rng(1)
    vectors = direction(rng.standard_normal((70, dimension)))
    vectors[0] = direction(np.ones((1, dimension)))[0]
    whole = rounded(vectors)
    exact = whole.astype(np.int64) @ whole.astype(np.int64).T
    assert exact.max() <= 2**24
    np.fill_diagonal(exact, NOTHING)
    for rows, products in blocks(whole, np.arange(70)):
        assert (products[:, :70].astype(np.int64) == exact[rows]).all()
    assert abs(exact[1, 2] / SCALE**2 - float(vectors[1] @ vectors[2])) < 3e-3


def test_many_ties_go_by_column() -> None:
    products = np.full((2, 20 * CHUNK), 5.0, dtype=np.float32)
    products[1, 700] = 9.0
    found, scores = best_of_rows(products, 4)
    assert found.tolist() == [[0, 1, 2, 3], [700, 0, 1, 2]]
    assert scores.tolist() == [[5] * 4, [9, 5, 5, 5]]


def test_a_vector_is_the_same_in_any_company() -> None:
    rng = np.random.default_rng(2)
    mean = rng.standard_normal((500, 384))
    together = direction(mean)
    assert all((direction(mean[at : at + 1])[0] == together[at]).all() for at in range(500))
    assert (direction(mean[7:331])[5] == together[12]).all()
    assert direction(np.zeros((1, 4))).tolist() == [[0, 0, 0, 0]]


def test_a_memory_of_several_pieces_has_their_mean_direction() -> None:
    pieces = units(6)
    wholes = whole_vectors(pieces, np.array([4, 4, 9, 2, 2, 2]))
    mean = direction(pieces[3:6].mean(axis=0, dtype=np.float64)[np.newaxis])[0]
    assert (wholes[2] == mean).all()
    assert np.allclose(wholes[1], pieces[2])
    assert len(wholes) == 3


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1000), share=st.floats(0, 1), listed=st.floats(0, 1))
def test_lists_of_more_vectors_give_the_neighbours_of_a_part(seed: int, share: float, listed: float) -> None:
    """Those of a part that has none of its own in the lists, too: threads are such."""
    rng = np.random.default_rng(seed)
    vectors = units(260, seed)
    vectors[30:60] = vectors[29]
    lists, _ = brought_up(NeighbourLists.none(), np.arange(260), rounded(vectors))
    chosen = np.sort(rng.permutation(260)[: int(260 * share)])
    places = np.where(rng.random(len(chosen)) < listed, chosen, -1)
    found = neighbours_by_lists(vectors[chosen], lists, places)
    assert found.tolist() == nearest_neighbours(vectors[chosen])[0].tolist()


def test_a_short_answer_of_a_list_is_not_taken_for_the_nearest() -> None:
    vectors = units(200, groups=1)
    lists, _ = brought_up(NeighbourLists.none(), np.arange(200), rounded(vectors))
    part = lists.renamed(np.arange(0, 200, 10))
    _, _, sure = nearest_listed(part, 10)
    assert not sure.all()
