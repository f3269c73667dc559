"""Which domains a memory belongs to: those whose own threshold its cosine passes, near the best one.

Cosines of one model differ between topics, so that no flat threshold fits: each domain has its own, the
cosine that all but the `QUANTILE` of its own members reach. They differ between stores, too: where all texts
are alike, a memory is similar to every domain. So what counts is how far a score is above the ordinary one.

Domains overlap: what is about one is similar to its neighbours. So a further domain is judged by its own part
of the score, without what the domains that the memory is in already explain.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.graph.neighbour_lists import direction
from vestige.core.lazy_dataclass import dataclass

Vectors = NDArray[np.float32]

QUANTILE = 0.05
MARGIN = 0.6
"""The share of the best score above the ordinary one that a further domain must reach."""
MOST_DOMAINS = 3
OWN_SHARE = 0.6
"""The part of its cut that the own part of the score for a further domain must reach (ADR 0086)."""
RIDGE = 1e-6
"""Lets equal centroids share what they explain, in equal parts."""
MOST_BOOST, MOST_BOOSTS = 0.10, 0.15
"""The most that one context prior, and all together, change a score."""
GIT_TERMS = frozenset("rust async trait function class def git commit fn code".split())
EDITOR_TERMS = frozenset("file line editor vscode neovim rust-analyzer lsp".split())
"""The terms of domains that a repository, or an editor, in the metadata of a memory speaks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainRange:
    """The cosines of a domain's members to its centroid: the threshold, and where 5 % to 95 % of them lie."""

    cut: float
    low: float
    high: float


def centroid(vectors: Vectors) -> Vectors:
    """The direction of the mean of unit vectors; zeros if they cancel out."""
    middle: Vectors = direction(vectors.mean(axis=0, dtype=np.float64)[np.newaxis])[0]
    return middle


def member_range(vectors: Vectors, middle: Vectors, quantile: float = QUANTILE) -> DomainRange:
    cosines = np.sort(vectors @ middle)
    cut, low, high = (float(np.quantile(cosines, at)) for at in (quantile, 0.05, 0.95))
    return DomainRange(cut=round(cut, 4), low=round(low, 4), high=round(high, 4))


def assigned(
    scores: Mapping[str, float],
    cuts: Mapping[str, float],
    middles: Mapping[str, Vectors],
    *,
    home: str | None = None,
    margin: float = MARGIN,
    most: int = MOST_DOMAINS,
) -> tuple[str, ...]:
    """The domains whose cut a score passes, within the margin of the best one, best first, ties by id. After
    the first one, the own part of the score must reach its share of the cut. `middles` are the centroids;
    `home` is where the memory is in any case, and comes first."""
    ranked = sorted(scores.values(), reverse=True)
    best, ordinary = max(ranked, default=0.0), ordinary_score(ranked[most:])
    least = ordinary + margin * (best - ordinary)
    passing = [name for name, score in scores.items() if score >= cuts[name] and score >= least and score > 0]
    found = [home] if home is not None else []
    for name in sorted(passing, key=lambda name: (-scores[name], name)):
        if len(found) >= most:
            break
        if name in found:
            continue
        if not found or own_part(name, found, scores, middles) >= OWN_SHARE * cuts[name]:
            found.append(name)
    return tuple(found)


def own_part(
    name: str, others: Sequence[str], scores: Mapping[str, float], middles: Mapping[str, Vectors]
) -> float:
    """What of the score for a domain its overlap with others leaves: its coefficient if the memory is
    described by all their centroids together (least squares). It is the score itself without overlap."""
    names = (name, *others)
    rows = np.stack([middles[one] for one in names])
    overlaps = (rows @ rows.T).astype(np.float64) + RIDGE * np.eye(len(names))
    return float(np.linalg.solve(overlaps, [scores[one] for one in names])[0])


def ordinary_score(others: Sequence[float]) -> float:
    """The median of the scores for the domains that a memory cannot be in, because others are nearer; 0 for
    none. `others` is sorted."""
    return max(0.0, others[len(others) // 2]) if others else 0.0


def clamped(score: float) -> float:
    return min(1.0, max(0.0, score))


def boosts(sources: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """What context priors add to the scores of domains; each and their sum are limited."""
    total: dict[str, float] = {}
    for source in sources:
        for name, delta in source.items():
            total[name] = total.get(name, 0.0) + min(MOST_BOOST, max(-MOST_BOOST, delta))
    return {name: min(MOST_BOOSTS, max(-MOST_BOOSTS, delta)) for name, delta in total.items()}


def context_priors(
    metadata: Mapping[str, object], terms: Mapping[str, Sequence[str]], git_boost: float, ide_boost: float
) -> dict[str, float]:
    """What the metadata of a memory speaks for: a repository for domains about code, an editor for those
    about files. Only the metadata is read, never a disk."""
    sources = []
    if metadata.get("git_repo") and git_boost:
        sources.append({name: git_boost for name, words in terms.items() if _shares(words, GIT_TERMS)})
    if (metadata.get("editor") or metadata.get("ide")) and ide_boost:
        sources.append({name: ide_boost for name, words in terms.items() if _shares(words, EDITOR_TERMS)})
    return boosts(sources)


def _shares(words: Sequence[str], known: frozenset[str]) -> bool:
    return any(not known.isdisjoint(word.casefold().split()) for word in words)
