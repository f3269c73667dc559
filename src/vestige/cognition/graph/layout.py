"""Graph layout by force (Fruchterman & Reingold 1991): links pull, all other nodes push.

Deterministic: the first node starts in the middle, the others on a circle around it, in the order given.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import Floats

WIDTH, HEIGHT = 800.0, 600.0
MARGIN = 10.0
"""The least distance of a node from the edge."""
ROOMY = 150.0  # The distance of the two nearest nodes from which the drawing need not be larger.
ITERATIONS = 50
HOTTEST = WIDTH / 10
"""The largest move of a node in the first iteration; it falls to almost 0 in the last."""
APART = 1e-3  # The least distance used: nodes in one spot would have no direction to move.

Pairs = NDArray[np.intp]


def layout(nodes: int, links: Sequence[tuple[int, int, float]]) -> Floats:
    """Coordinates, one row (x, y) for each node; links are (from, to, weight)."""
    at = _start(nodes)
    if nodes < 2:
        return at
    ends: Pairs = np.array([(one, other) for one, other, _ in links], dtype=np.intp).reshape(-1, 2)
    pulls = np.array([weight for _, _, weight in links], dtype=np.float64)
    ideal = np.sqrt(WIDTH * HEIGHT / nodes)
    for iteration in range(ITERATIONS):
        moved = _pushed(at, ideal) + _pulled(at, ends, pulls, ideal)
        length = np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), APART)
        heat = HOTTEST * (1 - iteration / ITERATIONS)
        at = at + moved / length * np.minimum(length, heat)
    return _fitted(at)


def _fitted(at: Floats) -> Floats:
    """The drawing, centred and scaled to the space available. Nodes are not held back by the frame while they
    move: most of a tree would end up lined along it."""
    low, high = at.min(axis=0), at.max(axis=0)
    room = np.array([WIDTH, HEIGHT]) - 2 * MARGIN
    nearest = np.linalg.norm(at[:, None] - at[None, :], axis=2)[np.triu_indices(len(at), 1)].min()
    scale = min(float((room / np.maximum(high - low, APART)).min()), ROOMY / max(float(nearest), APART))
    fitted: Floats = (at - (low + high) / 2) * scale + np.array([WIDTH, HEIGHT]) / 2
    return fitted


def _start(nodes: int) -> Floats:
    middle = np.array([WIDTH / 2, HEIGHT / 2])
    turns = 2 * np.pi * np.arange(nodes - 1) / max(1, nodes - 1)
    around = middle + HEIGHT / 3 * np.column_stack((np.cos(turns), np.sin(turns)))
    return np.vstack((middle, around))[:nodes]


def _pushed(at: Floats, ideal: float) -> Floats:
    """The repulsion between every two nodes: ideal² / distance."""
    apart = at[:, None, :] - at[None, :, :]
    squared = np.maximum((apart**2).sum(axis=2), APART**2)
    moved: Floats = (apart * (ideal**2 / squared)[:, :, None]).sum(axis=1)
    return moved


def _pulled(at: Floats, ends: Pairs, pulls: Floats, ideal: float) -> Floats:
    """The attraction of a link between its ends: weight · distance² / ideal."""
    apart = at[ends[:, 0]] - at[ends[:, 1]]
    force = apart * (pulls * np.linalg.norm(apart, axis=1) / ideal)[:, None]
    moved = np.zeros_like(at)
    np.add.at(moved, ends[:, 0], -force)
    np.add.at(moved, ends[:, 1], force)
    return moved
