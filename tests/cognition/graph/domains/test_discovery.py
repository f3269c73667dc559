"""Discovery: blobs become domains, small groups none, and the same vectors always the same."""

import sys
from dataclasses import replace
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from vestige.cognition.graph.domains.discovery import (
    UNCLASSIFIED,
    cohesion,
    discover,
    discover_by_density,
    resampled,
    stable_part,
)
from vestige.cognition.graph.domains.neighbours import nearest_neighbours
from vestige.core.errors import MissingExtra


def blobs(*sizes: int, seed: int = 0, spread: float = 0.6, dimension: int = 32) -> NDArray[np.float32]:
    """Unit vectors around one centre for each size, one group after the other."""
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((len(sizes), dimension))
    rows = np.repeat(np.arange(len(sizes)), sizes)
    found = centres[rows] + spread * rng.standard_normal((len(rows), dimension))
    unit: NDArray[np.float32] = (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)
    return unit


def test_each_blob_is_a_stable_domain_the_largest_first() -> None:
    found = discover(blobs(40, 60, 50))
    assert [len(one.rows) for one in found.communities] == [60, 50, 40]
    assert found.domain_of.tolist() == [2] * 40 + [0] * 60 + [1] * 50
    assert all(one.stable and one.conductance < 0.2 and one.cohesion > 0.6 for one in found.communities)


def test_the_same_vectors_have_the_same_domains_and_evidence() -> None:
    one, other = (discover(blobs(40, 60, 50)) for _ in range(2))
    assert one.domain_of.tobytes() == other.domain_of.tobytes()
    assert one.topic_of.tobytes() == other.topic_of.tobytes()
    assert [c.confidence for c in one.communities] == [c.confidence for c in other.communities]


def test_samples_can_be_compared_later() -> None:
    vectors = blobs(40, 60, 50, spread=1.2)
    at_once, first = discover(vectors), discover(vectors, samples=0)
    assert all(one.recurrence == 1.0 for one in first.communities)
    later = resampled(first, nearest_neighbours(vectors)[0])
    assert [one.recurrence for one in later.communities] == [one.recurrence for one in at_once.communities]
    assert later.domain_of.tobytes() == at_once.domain_of.tobytes()


def test_a_group_below_the_least_size_is_dissolved_and_a_higher_size_finds_no_more() -> None:
    vectors = blobs(40, 15, 50)
    small, large = discover(vectors, least_size=10), discover(vectors, least_size=20)
    assert len(small.communities) == 3
    assert len(large.communities) == 2
    assert set(large.domain_of[40:55].tolist()) == {UNCLASSIFIED}
    assert set(large.topic_of[40:55].tolist()) == {UNCLASSIFIED}


def test_a_topic_lies_within_one_domain() -> None:
    found = discover(blobs(80, 60, 70, spread=1.0))
    for topic in set(found.topic_of.tolist()) - {UNCLASSIFIED}:
        assert len(set(found.domain_of[found.topic_of == topic].tolist())) == 1


@pytest.mark.parametrize("size", [0, 1, 3])
def test_a_few_vectors_have_no_domains(size: int) -> None:
    found = discover(blobs(size) if size else np.zeros((0, 8), dtype=np.float32))
    assert found.communities == ()
    assert found.domain_of.tolist() == [UNCLASSIFIED] * size


def test_equal_vectors_are_one_domain() -> None:
    vectors = np.tile(blobs(1), (200, 1))
    found = discover(vectors)
    assert [len(one.rows) for one in found.communities] == [200]
    assert found.communities[0].cohesion == pytest.approx(1.0, abs=1e-3)


def test_work_can_be_cancelled_between_the_steps() -> None:
    class Stopped(Exception):
        pass

    def check() -> None:
        raise Stopped

    with pytest.raises(Stopped):
        discover(blobs(20, 20), check=check)


def test_cohesion_is_the_mean_cosine_of_all_pairs() -> None:
    vectors = blobs(7)
    cosines = vectors @ vectors.T
    expected = (cosines.sum() - np.trace(cosines)) / (7 * 6)
    assert cohesion(vectors) == pytest.approx(float(expected), abs=1e-5)
    assert cohesion(vectors[:1]) == 1.0


def test_neighbours_are_those_with_the_highest_cosine_and_missing_ones_are_marked() -> None:
    vectors = blobs(5)
    found, cosines = nearest_neighbours(vectors, 10)
    alike = vectors @ vectors.T
    np.fill_diagonal(alike, -2.0)
    assert found[:, :4].tolist() == np.argsort(-alike, axis=1, kind="stable")[:, :4].tolist()
    assert (found[:, 4:] == -1).all()
    assert (cosines[:, 4:] == -1.0).all()
    some, _ = nearest_neighbours(vectors, 10, rows=np.array([2, 4]))
    assert some.tolist() == found[[2, 4]].tolist()


def test_what_samples_do_not_show_again_can_be_left_out() -> None:
    found = discover(blobs(40, 30, 20))
    first, *others = found.communities
    weak = replace(first, recurrence=0.2)
    left = stable_part(replace(found, communities=(weak, *others)))
    assert [one.rows.tolist() for one in left.communities] == [one.rows.tolist() for one in others]
    assert set(left.domain_of[first.rows].tolist()) == set(left.topic_of[first.rows].tolist()) == {-1}
    for number, one in enumerate(others):
        assert set(left.domain_of[one.rows].tolist()) == {number}


class OneCluster:
    """Stands in for the HDBSCAN of scikit-learn: it refuses few rows, too, and else finds one group."""

    def __init__(self, *, min_cluster_size: int, min_samples: int, copy: bool) -> None:
        self._least = max(2, min_samples)

    def fit(self, vectors: NDArray[np.float32]) -> "OneCluster":
        if len(vectors) < self._least:
            raise ValueError("min_samples must be at most the number of samples")
        self.labels_ = np.zeros(len(vectors), dtype=np.int64)
        return self


@pytest.mark.parametrize("count", [0, 1, 4])
def test_fewer_texts_than_density_needs_are_in_no_domain(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = ModuleType("sklearn.cluster")
    vars(cluster)["HDBSCAN"] = OneCluster
    monkeypatch.setitem(sys.modules, "sklearn", ModuleType("sklearn"))
    monkeypatch.setitem(sys.modules, "sklearn.cluster", cluster)
    few = discover_by_density(blobs(20)[:count], least_size=2)
    assert (few.communities, few.domain_of.tolist()) == ((), [UNCLASSIFIED] * count)
    assert len(discover_by_density(blobs(20)).communities) == 1


def test_without_scikit_learn_density_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtra, match="scikit-learn"):
        discover_by_density(blobs(20))
