"""Discovery of domains: communities of the graph of shared neighbours, each with the evidence for it.

The coarse level are domains, the fine level topics below them. Everything is a function of the vectors in
their order: the samples of the stability check are always the same rows.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.graph.domains.assignment import Vectors
from vestige.cognition.graph.domains.communities import Ints, WeightedGraph, leiden
from vestige.cognition.graph.domains.neighbours import nearest_neighbours, shared_neighbour_graph
from vestige.core.errors import MissingExtra
from vestige.core.lazy_dataclass import dataclass

COARSE, FINE = 1.0, 4.0
"""The resolutions of domains and of topics."""
LEAST_SIZE = 10
"""A smaller community is dissolved."""
SAMPLES, SAMPLED = 5, 0.8
"""The runs on samples that a community should appear in again, and the share of the rows in each."""
SAME = 0.5
"""The overlap (Jaccard) from which a community of a sample is the same one."""
STABLE = 0.6
"""A community that appears in a smaller share of the samples is weak."""
UNCLASSIFIED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Community:
    """A community with its rows in order and the evidence for it: the mean cosine of its pairs, the share of
    its edge weight that leaves it, and the share of the samples in which it appears again."""

    rows: Ints
    cohesion: float
    conductance: float
    recurrence: float

    @property
    def stable(self) -> bool:
        return self.recurrence >= STABLE

    @property
    def confidence(self) -> float:
        return self.recurrence * (1.0 - self.conductance)


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The communities, largest first, and of each row the community (or UNCLASSIFIED) and the topic."""

    communities: tuple[Community, ...]
    domain_of: Ints
    topic_of: Ints


def discover(
    vectors: Vectors,
    *,
    least_size: int = LEAST_SIZE,
    samples: int = SAMPLES,
    neighbours: Ints | None = None,
    topics: bool = True,
    check: Callable[[], None] = lambda: None,
) -> Discovery:
    """The domains of unit vectors. `neighbours` are what `nearest_neighbours` finds, where that is known.
    Without `topics` each domain is one topic, without `samples` every one counts as found again in each.
    `check` is called between steps and may raise, to cancel."""
    if neighbours is None:
        neighbours, _ = nearest_neighbours(vectors)
    check()
    graph = shared_neighbour_graph(neighbours)
    coarse = leiden(graph, COARSE)
    check()
    fine = leiden(graph, FINE) if topics else coarse
    domain_of = _sized(coarse, least_size)
    found = Discovery(
        communities=_with_evidence(vectors, graph, domain_of),
        domain_of=domain_of,
        topic_of=_topics(domain_of, fine),
    )
    return resampled(found, neighbours, samples=samples, check=check) if samples else found


def resampled(
    found: Discovery, neighbours: Ints, *, samples: int = SAMPLES, check: Callable[[], None] = lambda: None
) -> Discovery:
    """The discovery with the share of samples in which each community is found again."""
    counts = np.zeros(len(found.communities))
    for seed in range(samples):
        check()
        counts += _appearing(neighbours, found.domain_of, seed)
    shares = (counts / samples).round(4).tolist()
    communities = tuple(
        replace(one, recurrence=share) for one, share in zip(found.communities, shares, strict=True)
    )
    return replace(found, communities=communities)


def discover_by_density(vectors: Vectors, *, least_size: int = LEAST_SIZE, min_samples: int = 5) -> Discovery:
    """The domains of unit vectors by HDBSCAN (Campello et al. 2013): rows in sparse regions are in none."""
    try:
        from sklearn.cluster import HDBSCAN
    except ImportError as exc:
        raise MissingExtra(
            "HDBSCAN needs scikit-learn, which is not installed.",
            hint="Run `pip install scikit-learn`, or leave `method` out.",
        ) from exc
    if len(vectors) < max(2, min_samples):  # which HDBSCAN refuses
        none = np.full(len(vectors), UNCLASSIFIED, dtype=np.int64)
        return Discovery(communities=(), domain_of=none, topic_of=none)
    found = HDBSCAN(min_cluster_size=max(2, least_size), min_samples=min_samples, copy=True).fit(vectors)
    domain_of = _sized(np.asarray(found.labels_, dtype=np.int64), least_size)
    graph = shared_neighbour_graph(nearest_neighbours(vectors)[0])
    communities = _with_evidence(vectors, graph, domain_of)
    return Discovery(communities=communities, domain_of=domain_of, topic_of=domain_of)


def stable_part(found: Discovery) -> Discovery:
    """The discovery without its weak communities: their rows are in none."""
    kept = [number for number, one in enumerate(found.communities) if one.stable]
    numbers = np.full(len(found.communities) + 1, UNCLASSIFIED, dtype=np.int64)  # the last one is for none
    numbers[kept] = np.arange(len(kept))
    domain_of = numbers[found.domain_of]
    return Discovery(
        communities=tuple(found.communities[number] for number in kept),
        domain_of=domain_of,
        topic_of=np.where(domain_of == UNCLASSIFIED, UNCLASSIFIED, found.topic_of),
    )


def _sized(part: Ints, least: int) -> Ints:
    """The communities numbered by size, the largest first, ties by their first row; smaller ones than
    `least` are dissolved."""
    names, first, counts = np.unique(part, return_index=True, return_counts=True)
    kept = (counts >= least) & (names >= 0)
    order = np.lexsort((first[kept], -counts[kept]))
    numbered = {int(names[kept][at]): number for number, at in enumerate(order)}
    return np.array([numbered.get(int(one), UNCLASSIFIED) for one in part], dtype=np.int64)


def _topics(domain_of: Ints, fine: Ints) -> Ints:
    """The topic of each row: its fine community within its domain, numbered in the order of rows."""
    keys = domain_of * (fine.max(initial=0) + 1) + fine
    _, first, at = np.unique(keys, return_index=True, return_inverse=True)
    order = np.empty(len(first), dtype=np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    topics: Ints = order[at]
    topics[domain_of == UNCLASSIFIED] = UNCLASSIFIED
    return topics


def _appearing(neighbours: Ints, domain_of: Ints, seed: int) -> NDArray[np.float64]:
    """For each community, 1 if it is found again among a sample of the rows, else 0."""
    size = len(domain_of)
    chosen = np.flatnonzero(_mixed(np.arange(size), seed) < SAMPLED)
    place = np.full(size + 1, -1, dtype=np.int64)  # the last one is for missing neighbours
    place[chosen] = np.arange(len(chosen))
    part = leiden(shared_neighbour_graph(place[neighbours[chosen]]), COARSE, most_runs=0)
    known = domain_of[chosen]
    count = domain_of.max(initial=-1) + 1
    inside = known >= 0
    table = np.zeros((count, part.max(initial=-1) + 1))
    np.add.at(table, (known[inside], part[inside]), 1.0)
    sizes = np.bincount(part, minlength=table.shape[1])
    either = np.bincount(known[inside], minlength=count)[:, None] + sizes[None, :] - table
    alike = table / np.maximum(either, 1.0)
    again: NDArray[np.float64] = (alike.max(axis=1, initial=0.0) >= SAME).astype(np.float64)
    return again


def _mixed(rows: Ints, seed: int) -> NDArray[np.float64]:
    """A number from 0 to 1 for each row that looks random and is always the same (SplitMix64)."""
    begin = (1 + seed) * 0x632BE59BD9B4E019 % 2**64
    mixed = (rows.astype(np.uint64) + np.uint64(begin)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    numbers: NDArray[np.float64] = (mixed ^ (mixed >> np.uint64(31))).astype(np.float64) / 2.0**64
    return numbers


def _with_evidence(vectors: Vectors, graph: WeightedGraph, domain_of: Ints) -> tuple[Community, ...]:
    count = domain_of.max(initial=-1) + 1
    sources = np.repeat(np.arange(len(graph)), np.diff(graph.starts))
    ours = domain_of[sources]
    leaving = ours != domain_of[graph.targets]
    inside = ours >= 0
    total = np.bincount(ours[inside], weights=graph.weights[inside], minlength=count)
    gone = inside & leaving
    left = np.bincount(ours[gone], weights=graph.weights[gone], minlength=count)
    found = []
    for number in range(count):
        rows = np.flatnonzero(domain_of == number)
        found.append(
            Community(
                rows=rows,
                cohesion=round(cohesion(vectors[rows]), 4),
                conductance=round(float(left[number] / total[number]) if total[number] else 0.0, 4),
                recurrence=1.0,
            )
        )
    return tuple(found)


def cohesion(vectors: Vectors) -> float:
    """The mean cosine of all pairs of these unit vectors; 1 for fewer than two."""
    size = len(vectors)
    if size < 2:
        return 1.0
    total = vectors.sum(axis=0, dtype=np.float64)
    own = float((vectors.astype(np.float64) ** 2).sum())
    return float((total @ total - own) / (size * (size - 1)))
