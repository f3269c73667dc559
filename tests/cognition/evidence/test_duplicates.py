"""Which texts are alike, and which memories must not become one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vestige.cognition.evidence import duplicates
from vestige.cognition.evidence.duplicates import (
    Texts,
    apart,
    clusters,
    identical_pairs,
    merge_score,
    near_pairs,
    unfit,
)
from vestige.core.models import Memory

NOW = datetime(2026, 3, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def memory(content: str = "Ada drinks tea.", name: str = "a") -> Memory:
    return Memory(id=name, content=content, created_at=NOW, updated_at=NOW)


def at_angles(*degrees: float) -> Texts:
    """Texts whose cosines are those of the angles between them."""
    angles = np.radians(degrees)
    wholes = np.column_stack((np.cos(angles), np.sin(angles))).astype(np.float32)
    marks = [f"text {number}" for number in range(len(degrees))]
    return Texts(wholes=wholes, known=np.ones(len(degrees), dtype=np.bool_), marks=marks)


def all_near(texts: Texts, least: float) -> set[tuple[int, int]]:
    return set().union(*near_pairs(texts.wholes, range(len(texts.wholes)), least))


def test_a_chain_of_likenesses_is_no_cluster() -> None:
    # Each is 30° from the next (.87), the ends 60° apart (.5).
    texts = at_angles(0, 30, 60)

    assert clusters(texts, all_near(texts, 0.8), 0.8) == [[0, 1]]
    assert clusters(texts, all_near(texts, 0.49), 0.49) == [[0, 1, 2]]


def test_the_most_alike_are_joined_first() -> None:
    texts = at_angles(0, 30, 40)

    assert clusters(texts, all_near(texts, 0.8), 0.8) == [[1, 2]]


@given(st.lists(st.floats(0, 180), min_size=2, max_size=30), st.floats(0.5, 1))
def test_every_two_of_a_cluster_are_alike_and_nothing_is_in_two(degrees: list[float], least: float) -> None:
    texts = at_angles(*degrees)

    found = clusters(texts, all_near(texts, least), least)

    members = [one for group in found for one in group]
    assert len(members) == len(set(members))
    for group in found:
        assert 2 <= len(group) <= duplicates.MOST_MEMBERS
        assert all(
            texts.similarity(one, other) >= least - duplicates.ROUNDING for one in group for other in group
        )


def test_equal_vectors_are_alike_whatever_their_cosine_is_rounded_to() -> None:
    angles = np.linspace(0, 180, 97)
    texts = at_angles(*(angle for angle in angles for _ in range(2)))

    found = clusters(texts, all_near(texts, 1.0), 1.0)

    assert found == [[2 * at, 2 * at + 1] for at in range(len(angles))]


def test_the_same_text_is_found_without_vectors() -> None:
    texts = Texts(
        wholes=np.zeros((4, 1), dtype=np.float32),
        known=np.zeros(4, dtype=np.bool_),
        marks=["x", "y", "x", "x"],
        words=[frozenset()] * 4,
    )

    pairs = identical_pairs(texts, range(4))

    assert pairs == [(0, 2), (2, 3)]
    assert clusters(texts, pairs, 1.0) == [[0, 2, 3]]


def test_more_of_the_same_than_can_be_merged_at_once_are_several_clusters() -> None:
    count = 2 * duplicates.MOST_MEMBERS + 3
    texts = Texts(
        wholes=np.zeros((count, 1), np.float32), known=np.zeros(count, np.bool_), marks=["x"] * count
    )

    found = clusters(texts, identical_pairs(texts, range(count)), 1.0)

    assert sorted(len(group) for group in found) == [3, duplicates.MOST_MEMBERS, duplicates.MOST_MEMBERS]


def test_the_nearest_are_the_same_whatever_is_worked_out_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    wholes: NDArray[np.float32] = rng.normal(size=(60, 8)).astype(np.float32)
    wholes /= np.linalg.norm(wholes, axis=1, keepdims=True)
    whole = set().union(*near_pairs(wholes, range(60), 0.3))

    monkeypatch.setattr(duplicates, "BLOCK_COSINES", 7 * 60)
    blocks = list(near_pairs(wholes, range(60), 0.3))

    assert len(blocks) == 9
    assert set().union(*blocks) == whole
    assert all(wholes[one] @ wholes[other] >= 0.3 and one < other for one, other in whole)
    latest = set().union(*near_pairs(wholes, range(50, 60), 0.3))
    assert latest <= whole
    assert {later for _, later in latest} <= set(range(50, 60))


def test_a_single_text_has_no_neighbours() -> None:
    assert all_near(at_angles(0), 0.5) == set()


def test_how_well_two_merge_is_weighed_from_meaning_tags_and_words() -> None:
    one, other = replace(memory(), tags=("tea", "ada")), replace(memory(name="b"), tags=("tea",))
    words = frozenset({"ada", "tea"}), frozenset({"ada", "tea", "drink", "black"})

    assert merge_score(one, other, 0.9, words) == pytest.approx(0.7 * 0.9 + 0.15 * 0.5 + 0.15 * 0.5)
    assert merge_score(memory(), memory(name="b"), 1.0, (words[0], words[0])) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (replace(memory(), pinned=True), "pinned"),
        (replace(memory(), thread="talk"), "thread"),
        (replace(memory(), superseded_by="b"), "was superseded"),
        (replace(memory(), valid_until=NOW - DAY), "not true now"),
        (replace(memory(), valid_from=NOW + DAY), "not true now"),
        (replace(memory(), suppression_count=1), "suppressed"),
    ],
)
def test_what_is_unfit_for_merging_says_why(changed: Memory, said: str) -> None:
    assert said in (unfit(changed, NOW) or "")
    assert unfit(memory(), NOW) is None


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(memory(name="b"), scope="/project/a"), "/project/a"),
        (replace(memory(name="b"), valid_until=NOW + DAY), "end"),
        (replace(memory(name="b"), occurred_at=NOW - DAY), "happened"),
        (memory("Ada never drinks tea.", "b"), "contradicts"),
    ],
)
def test_what_keeps_two_memories_apart_is_said(other: Memory, said: str) -> None:
    one = replace(memory(), occurred_at=NOW)

    assert said in (apart(one, other) or "")
    assert said in (apart(other, one) or "")


def test_nothing_keeps_the_same_statement_apart() -> None:
    assert apart(memory(), memory("Ada drinks tea", "b")) is None
    assert apart(memory(), memory("Ada drinks tea in the morning.", "b")) is None
