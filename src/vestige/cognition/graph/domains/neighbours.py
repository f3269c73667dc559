"""The nearest neighbours of memories by cosine, and the graph that they span."""

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.graph.domains.communities import Floats, Ints, WeightedGraph, graph_of

NEIGHBOURS = 10
BLOCK = 1_024  # rows compared at once: 1,024 x 100,000 float32 are 400 MB
BYTES = 64 << 20  # the most that one block of cosines may take


def nearest_neighbours(
    vectors: NDArray[np.float32], count: int = NEIGHBOURS, rows: Ints | None = None
) -> tuple[Ints, NDArray[np.float32]]:
    """For each row of unit vectors (or only for `rows`), the other rows with the highest cosine, best first,
    those found in a tie by their row. Fewer than `count` others leave -1 with a cosine of -1."""
    wanted = np.arange(len(vectors)) if rows is None else rows
    found = np.full((len(wanted), count), -1, dtype=np.int64)
    cosines = np.full((len(wanted), count), -1.0, dtype=np.float32)
    most = min(count, max(0, len(vectors) - 1))
    if not most:
        return found, cosines
    step = max(1, min(BLOCK, BYTES // (4 * len(vectors))))
    for begin in range(0, len(wanted), step):
        part = wanted[begin : begin + step]
        alike = vectors[part] @ vectors.T
        alike[np.arange(len(part)), part] = -2.0
        best = np.argpartition(-alike, most - 1, axis=1)[:, :most]
        best.sort(axis=1)
        scores = np.take_along_axis(alike, best, axis=1)
        order = np.argsort(-scores, axis=1, kind="stable")
        found[begin : begin + step, :most] = np.take_along_axis(best, order, axis=1)
        cosines[begin : begin + step, :most] = np.take_along_axis(scores, order, axis=1)
    return found, cosines


def shared_neighbour_graph(neighbours: Ints) -> WeightedGraph:
    """Two rows are linked if one is a neighbour of the other. The weight is the share of common ones among
    the neighbours of both (Jaccard), each row counted among its own: rows with the same neighbours are on the
    same topic, however dense the topic is."""
    size, count = neighbours.shape
    sources = np.repeat(np.arange(size), count)
    targets = neighbours.reshape(-1)
    there = targets >= 0
    low, high = np.minimum(sources, targets)[there], np.maximum(sources, targets)[there]
    pairs = np.unique(low * size + high)
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
