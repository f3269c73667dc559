"""Communities of a weighted graph by the Leiden algorithm (Traag, Waltman & van Eck 2019), not randomised.

Nodes are visited in the order of their index and ties go to the lower index, so that the same graph always
has the same communities. The published algorithm draws the refinement at random; here each node joins the
best part.
Modularity with a resolution is what is maximised (Reichardt & Bornholdt 2006).
"""

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

MOST_LEVELS = 30  # Each level at least merges two nodes; real graphs need about five.
MOST_RUNS, WORTH_A_RUN = 10, 1e-6
"""The most further runs, and the modularity that one must gain for another one."""
ENOUGH = 1e-12  # A gain that is smaller is rounding.


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightedGraph:
    """An undirected graph in compressed rows: the neighbours of node `i` are
    `targets[starts[i]:starts[i + 1]]`, each edge is in both rows. `loops` is the weight inside each node,
    counted twice as in a degree."""

    starts: Ints
    targets: Ints
    weights: Floats
    loops: Floats

    def __len__(self) -> int:
        return len(self.starts) - 1


def graph_of(size: int, sources: Ints, targets: Ints, weights: Floats) -> WeightedGraph:
    """The graph of these edges, each given once in any direction; weights of an edge given twice add up."""
    rows = np.concatenate((sources, targets)).astype(np.int64)
    columns = np.concatenate((targets, sources)).astype(np.int64)
    return _compressed(size, rows, columns, np.concatenate((weights, weights)).astype(np.float64))


def _compressed(size: int, rows: Ints, columns: Ints, weights: Floats) -> WeightedGraph:
    loops = np.zeros(size)
    inside = rows == columns
    np.add.at(loops, rows[inside], weights[inside])
    keys = rows[~inside] * size + columns[~inside]
    unique, at = np.unique(keys, return_inverse=True)
    starts = np.searchsorted(unique, np.arange(size + 1) * size)
    added = np.zeros(len(unique))
    np.add.at(added, at, weights[~inside])
    return WeightedGraph(starts=starts, targets=unique % size, weights=added, loops=loops)


def leiden(graph: WeightedGraph, resolution: float, most_runs: int = MOST_RUNS) -> Ints:
    """The community of each node: numbers from 0 on, in the order of their first node. Each run begins with
    the communities of the one before, until none is better, or after `most_runs`."""
    part = _run(graph, resolution, list(range(len(graph))))
    best = modularity(graph, part, resolution)
    for _ in range(most_runs):
        again = _run(graph, resolution, part.tolist())
        reached = modularity(graph, again, resolution)
        if reached < best + WORTH_A_RUN:
            break
        part, best = again, reached
    return part


def _run(graph: WeightedGraph, resolution: float, part: list[int]) -> Ints:
    """Move, refine and merge nodes, level by level, until nothing is merged any more."""
    nodes = np.arange(len(graph))  # the node of the present level that each node of the graph is in
    for _ in range(MOST_LEVELS):
        part = _moved(graph, part, resolution)
        refined = _refined(graph, part, resolution)
        count = max(refined, default=-1) + 1
        if count == len(graph):
            break
        part = _of_parts(part, refined, count)
        graph = _aggregated(graph, np.array(refined), count)
        nodes = np.array(refined)[nodes]
    return _numbered(np.array(part, dtype=np.int64)[nodes])


def modularity(graph: WeightedGraph, part: Ints, resolution: float) -> float:
    """How much more weight lies inside the communities than chance would put there; at most 1."""
    if not len(graph):
        return 0.0
    total = float(graph.weights.sum() + graph.loops.sum())
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    inside = float(graph.weights[part[rows] == part[graph.targets]].sum() + graph.loops.sum())
    degrees = np.bincount(part, weights=_degrees(graph))
    return inside / total - resolution * float(((degrees / total) ** 2).sum()) if total else 0.0


def _degrees(graph: WeightedGraph) -> Floats:
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    return np.bincount(rows, weights=graph.weights, minlength=len(graph)) + graph.loops


def _moved(graph: WeightedGraph, part: list[int], resolution: float) -> list[int]:
    """Move nodes, one after the other, to the community that gains most, until none gains. A node is looked
    at again when a neighbour has moved elsewhere."""
    part = list(part)
    starts, targets, weights = graph.starts.tolist(), graph.targets.tolist(), graph.weights.tolist()
    degrees = _degrees(graph).tolist()
    scale = resolution / max(sum(degrees), ENOUGH)
    held = [0.0] * (max(part, default=-1) + 1)
    for node, community in enumerate(part):
        held[community] += degrees[node]
    waiting, queued = deque(range(len(part))), [True] * len(part)
    while waiting:
        node = waiting.popleft()
        queued[node] = False
        own, degree = part[node], degrees[node]
        held[own] -= degree
        begin, end = starts[node], starts[node + 1]
        nearby = targets[begin:end]
        links: dict[int, float] = {own: 0.0}
        for near, weight in zip(nearby, weights[begin:end], strict=True):
            other = part[near]
            links[other] = links.get(other, 0.0) + weight
        if len(links) == 1:  # all its neighbours are in its own community
            held[own] += degree
            continue
        price = degree * scale
        best, most = own, links[own] - price * held[own]
        for other, weight in links.items():
            gain = weight - price * held[other]
            if gain > most - ENOUGH and (gain > most + ENOUGH or (other < best and best != own)):
                best, most = other, gain
        held[best] += degree
        if best != own:
            part[node] = best
            for near in nearby:
                if not queued[near] and part[near] != best:
                    queued[near] = True
                    waiting.append(near)
    return part


def _refined(graph: WeightedGraph, part: list[int], resolution: float) -> list[int]:
    """Split each community into well-connected parts: nodes begin alone and join the best part of their
    community, if both are well connected with the rest of it. Parts are numbered from 0 on."""
    starts, targets, weights = graph.starts.tolist(), graph.targets.tolist(), graph.weights.tolist()
    degrees = _degrees(graph).tolist()
    scale = resolution / max(sum(degrees), ENOUGH)
    size = len(part)
    whole = [0.0] * (max(part, default=-1) + 1)
    for node, community in enumerate(part):
        whole[community] += degrees[node]
    refined = list(range(size))
    held, alone = list(degrees), [True] * size
    rows, parts_of = np.repeat(np.arange(size), np.diff(graph.starts)), np.array(part, dtype=np.int64)
    inside = parts_of[rows] == parts_of[graph.targets]
    # The weight from each part to the rest of its community.
    outward = np.bincount(rows[inside], weights=graph.weights[inside], minlength=size).tolist()
    for node in range(size):
        community, degree = part[node], degrees[node]
        if not alone[node] or outward[node] < degree * (whole[community] - degree) * scale:
            continue
        links: dict[int, float] = {}
        begin, end = starts[node], starts[node + 1]
        for near, weight in zip(targets[begin:end], weights[begin:end], strict=True):
            if part[near] == community:
                joined = refined[near]
                links[joined] = links.get(joined, 0.0) + weight
        best, most = node, 0.0
        for other, weight in links.items():
            connected = outward[other] >= held[other] * (whole[community] - held[other]) * scale
            gain = weight - degree * held[other] * scale
            if connected and (
                gain > most + ENOUGH or (gain > most - ENOUGH and best != node and other < best)
            ):
                best, most = other, gain
        if best != node:
            refined[node] = best
            alone[node] = alone[best] = False
            held[best] += degree
            outward[best] += outward[node] - 2 * links[best]
    parts: list[int] = _numbered(np.array(refined, dtype=np.int64)).tolist()
    return parts


def _of_parts(part: Sequence[int], refined: Sequence[int], count: int) -> list[int]:
    """The community of each part, numbered from 0 on."""
    of = np.zeros(count, dtype=np.int64)
    of[np.array(refined)] = np.array(part)
    communities: list[int] = _numbered(of).tolist()
    return communities


def _aggregated(graph: WeightedGraph, part: Ints, count: int) -> WeightedGraph:
    """The graph whose nodes are the parts."""
    rows = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    made = _compressed(count, part[rows], part[graph.targets], graph.weights)
    return WeightedGraph(
        starts=made.starts,
        targets=made.targets,
        weights=made.weights,
        loops=made.loops + np.bincount(part, weights=graph.loops, minlength=count),
    )


def _numbered(part: Ints) -> Ints:
    """The same communities with numbers from 0 on, in the order of their first node."""
    _, first, at = np.unique(part, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[at]
