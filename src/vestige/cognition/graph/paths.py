"""The best paths from one memory to another over links, best first, with bounds.

Best-first search over paths without loops. A path's score is the product of its links' weights, each less the
cost of a hop, so a short path over strong links is found first and no longer path can beat it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from heapq import heappop, heappush
from math import prod

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge

HOP_KEEPS = 0.9  # The factor of each hop, beside the link's weight.
WEAKEST = 0.1  # A weaker link is not followed.
MOST_HOPS = 10
MOST_STATES = 1_000
"""The limit of partial paths that are extended: a dense graph has too many to list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """Memories in a row, and the links from each to the next, in either direction."""

    ids: tuple[str, ...]
    edges: tuple[Edge, ...]

    @property
    def confidence(self) -> float:
        """The product of the links' weights, less the cost of each further hop: what paths are ranked by."""
        return float(prod(_weight(edge) for edge in self.edges) * HOP_KEEPS ** (len(self.edges) - 1))


Neighbours = Mapping[str, Sequence[tuple[str, Edge]]]


def neighbours(edges: Iterable[Edge]) -> Neighbours:
    """For each memory its neighbours, either way, with the strongest link between the two."""
    strongest: dict[tuple[str, str], Edge] = {}
    for edge in sorted(edges, key=lambda one: (-one.weight, one.source_id, one.target_id, one.kind)):
        if edge.weight >= WEAKEST:
            strongest.setdefault((edge.source_id, edge.target_id), edge)
            strongest.setdefault((edge.target_id, edge.source_id), edge)
    found: dict[str, list[tuple[str, Edge]]] = {}
    for (start, end), edge in strongest.items():
        found.setdefault(start, []).append((end, edge))
    return found


def best_paths(edges: Iterable[Edge], start: str, end: str, *, most: int) -> list[Path]:
    """Up to `most` paths from one memory to another, best first; ties go by ids."""
    linked = neighbours(edges)
    waiting: list[tuple[float, tuple[str, ...], tuple[Edge, ...]]] = []
    heappush(waiting, (-1.0, (start,), ()))
    passed: Counter[str] = Counter()
    paths: list[Path] = []
    states = 0
    while waiting and len(paths) < most and states < MOST_STATES:
        score, ids, taken = heappop(waiting)
        if ids[-1] == end:
            paths.append(Path(ids=ids, edges=taken))
            continue
        # As many paths as are asked for may lead through a memory; more would only be worse.
        if passed[ids[-1]] == most or len(taken) == MOST_HOPS:
            continue
        passed[ids[-1]] += 1
        states += 1
        for other, edge in linked.get(ids[-1], ()):
            if other not in ids:
                heappush(waiting, (score * HOP_KEEPS * _weight(edge), (*ids, other), (*taken, edge)))
    return paths


def bridges(paths: Sequence[Path]) -> list[tuple[str, int, float]]:
    """The memories between the ends: how many of the paths lead through each, and the best confidence. Those
    on most paths come first, then those on the path with the highest confidence, then by id."""
    through: Counter[str] = Counter()
    surest: dict[str, float] = {}
    for path in paths:
        for memory_id in path.ids[1:-1]:
            through[memory_id] += 1
            surest[memory_id] = max(surest.get(memory_id, 0.0), path.confidence)
    found = [(memory_id, count, surest[memory_id]) for memory_id, count in through.items()]
    return sorted(found, key=lambda one: (-one[1], -one[2], one[0]))


def _weight(edge: Edge) -> float:
    return min(1.0, max(0.0, edge.weight))
