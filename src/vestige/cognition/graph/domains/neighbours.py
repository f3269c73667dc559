"""The nearest neighbours of memories by cosine, and the graph that they span."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.graph.domains.communities import Floats, Ints, WeightedGraph, graph_of
from vestige.cognition.graph.neighbour_lists import (
    NOTHING,
    UNIT,
    NeighbourLists,
    best_of_rows,
    blocks,
    brought_up,
    nearest_listed,
    rounded,
)

NEIGHBOURS = 10
BLOCK = 1_024  # rows compared at once


def nearest_neighbours(
    vectors: NDArray[np.float32], count: int = NEIGHBOURS, rows: Ints | None = None
) -> tuple[Ints, NDArray[np.float32]]:
    """For each row of unit vectors (or only for `rows`), the other rows with the highest cosine, best first,
    those found in a tie by their row. Fewer than `count` others leave -1 with a cosine of -1."""
    wanted = np.arange(len(vectors)) if rows is None else rows
    found, products = _compared(rounded(vectors), wanted, count, lambda: None)
    return found, np.where(found >= 0, products / UNIT, -1.0).astype(np.float32)


def neighbours_by_lists(
    vectors: NDArray[np.float32],
    lists: NeighbourLists,
    places: Ints,
    count: int = NEIGHBOURS,
    check: Callable[[], None] = lambda: None,
) -> Ints:
    """What `nearest_neighbours` finds, with the help of lists in which a row has this place, or -1 if it has
    none. Rows without a list are compared with all, others only where their list does not say enough."""
    whole = rounded(vectors)
    known = np.flatnonzero(places >= 0)
    held = lists.renamed(places[known])
    held = NeighbourLists(
        names=known,
        near=np.where(held.near >= 0, known[held.near], -1),
        products=held.products,
        floors=held.floors,
    )
    complete, _ = brought_up(held, np.arange(len(vectors)), whole, check)
    found, _, sure = nearest_listed(complete, count)
    unsure = np.flatnonzero(~sure)
    found = found.copy()
    found[unsure] = _compared(whole, unsure, count, check)[0]
    return found


def _compared(
    whole: NDArray[np.float32], rows: Ints, count: int, check: Callable[[], None]
) -> tuple[Ints, Ints]:
    found = np.full((len(rows), count), -1, dtype=np.int64)
    products = np.full((len(rows), count), NOTHING, dtype=np.int64)
    done = 0
    for part, block in blocks(whole, rows):
        check()
        end = done + len(part)
        found[done:end], products[done:end] = best_of_rows(block, count)
        done = end
    return found, products


def shared_neighbour_graph(neighbours: Ints) -> WeightedGraph:
    """Two rows are linked if one is a neighbour of the other. The weight is the share of common ones among
    the neighbours of both (Jaccard), each row counted among its own: rows with the same neighbours are on the
    same topic, however dense the topic is."""
    size, count = neighbours.shape
    sources = np.repeat(np.arange(size), count)
    targets = neighbours.reshape(-1)
    there = targets >= 0
    low, high = np.minimum(sources, targets)[there], np.maximum(sources, targets)[there]
    pairs = np.sort(low * size + high)  # np.unique finds the same a hundred times slower, by hashing
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    low, high = pairs // size, pairs % size
    weights = _jaccard(neighbours, low, high)
    kept = weights > 0
    return graph_of(size, low[kept], high[kept], weights[kept])


def _jaccard(neighbours: Ints, low: Ints, high: Ints) -> Floats:
    own = np.arange(len(neighbours))[:, None]
    sets = np.concatenate((np.where(neighbours < 0, own, neighbours), own), axis=1)
    sets.sort(axis=1)
    weights = np.empty(len(low))
    for begin in range(0, len(low), BLOCK * 16):
        left, right = sets[low[begin : begin + BLOCK * 16]], sets[high[begin : begin + BLOCK * 16]]
        first_left = np.concatenate((np.ones((len(left), 1), bool), left[:, 1:] != left[:, :-1]), axis=1)
        first_right = np.concatenate((np.ones((len(right), 1), bool), right[:, 1:] != right[:, :-1]), axis=1)
        common = ((left[:, :, None] == right[:, None, :]) & first_right[:, None, :]).any(axis=2) & first_left
        both = common.sum(axis=1)
        either = first_left.sum(axis=1) + first_right.sum(axis=1) - both
        weights[begin : begin + BLOCK * 16] = both / either
    return weights
