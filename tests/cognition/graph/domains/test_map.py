"""The map: islands apart, places that stay."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.graph.domains.map import Islands, islands, member_place, plane


def centroids(count: int, seed: int = 3) -> "np.ndarray[tuple[int, ...], np.dtype[np.float64]]":
    return np.random.default_rng(seed).normal(size=(count, 16))


@given(st.integers(1, 12), st.integers(0, 50))
def test_islands_do_not_overlap(count: int, seed: int) -> None:
    sizes = [5 + 7 * (number % 4) for number in range(count)]
    found = islands(centroids(count, seed), sizes)
    for one in range(count):
        for other in range(one):
            far = np.linalg.norm(found.centres[one] - found.centres[other])
            assert far > found.radii[one] + found.radii[other]


def test_the_same_centroids_give_the_same_islands() -> None:
    first, second = (islands(centroids(6), [10] * 6) for _ in range(2))
    assert np.array_equal(first.centres, second.centres)


def test_equal_centroids_still_have_places_of_their_own() -> None:
    found = islands(np.ones((3, 8)), [4, 4, 4])
    assert len({tuple(np.round(one, 3)) for one in found.centres}) == 3


def test_the_area_of_an_island_follows_its_size() -> None:
    found = islands(centroids(2), [4, 16])
    assert found.radii[1] == pytest.approx(2 * found.radii[0])


TWO = Islands(centres=np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]]), radii=np.array([3.0, 3.0, 3.0]))


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.text(max_size=20))
def test_a_member_is_on_its_island(own: float, one: float, other: float, memory_id: str) -> None:
    x, y = member_place(memory_id, np.array([own, one, other]), 0, TWO, (0.3, 0.8))
    assert np.hypot(x, y) <= 3.0


@given(st.text(max_size=20))
def test_a_memory_without_a_domain_is_off_the_coast_of_the_nearest_one(memory_id: str) -> None:
    x, y = member_place(memory_id, np.array([0.1, 0.4, 0.2]), None, TWO, None)
    assert 3.0 < np.hypot(x - 10.0, y) < 3.0 * 1.4


def test_the_most_typical_member_is_nearer_to_the_centre_than_the_least() -> None:
    places = [member_place("a", np.array([own, 0.2, 0.2]), 0, TWO, (0.3, 0.8)) for own in (0.8, 0.3)]
    assert np.hypot(*places[0]) < np.hypot(*places[1])


def test_members_lie_towards_the_islands_that_they_resemble() -> None:
    towards = [member_place(f"{n}", np.array([0.4, 0.7, 0.1]), 0, TWO, (0.3, 0.8))[0] for n in range(200)]
    away = [member_place(f"{n}", np.array([0.4, 0.1, 0.7]), 0, TWO, (0.3, 0.8))[0] for n in range(200)]
    assert np.mean(towards) > np.mean(away)


def test_memories_without_scores_and_stores_without_islands_have_a_place() -> None:
    empty = Islands(centres=np.zeros((0, 2)), radii=np.zeros(0))
    assert member_place("a", np.array([]), None, empty, None) == (0.0, 0.0)
    x, y = member_place("a", np.array([np.nan, np.nan, np.nan]), None, TWO, None)
    assert np.isfinite([x, y]).all()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 40])
def test_without_domains_every_memory_is_on_the_one_island(count: int) -> None:
    places = plane(centroids(count) if count else np.zeros((0, 16)))
    assert places.shape == (count, 2)
    assert np.linalg.norm(places, axis=1).max(initial=0.0) <= np.sqrt(max(count, 1))
