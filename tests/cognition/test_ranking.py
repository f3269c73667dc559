"""Fusion and the stages of recall."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from vestige.cognition.fusion import normalised, weighted
from vestige.cognition.ranking import (
    ACCESSIBILITY_WEIGHT,
    RECENCY_WEIGHT,
    Candidates,
    accessibility,
    rank,
    temporal,
)

SCORES = st.lists(st.floats(0, 100, allow_subnormal=False), min_size=1, max_size=30)


def pool(lexical: list[float], dense: list[float] | None = None, **arrays: list[float]) -> Candidates:
    size = len(lexical)
    return Candidates(
        ids=tuple(f"m{n:03}" for n in range(size)),
        lexical=np.array(lexical, dtype=np.float64),
        dense=None if dense is None else np.array(dense, dtype=np.float64),
        age_days=np.array(arrays.get("age_days", [0.0] * size)),
        accessibility=np.array(arrays.get("accessibility", [1.0] * size)),
        scores=np.array(arrays.get("scores", [0.5] * size)),
    )


@given(SCORES)
def test_normalised_scores_keep_their_order_within_zero_and_one(scores: list[float]) -> None:
    made = normalised(np.array(scores))
    assert ((made >= 0) & (made <= 1)).all()
    assert (np.argsort(-made, kind="stable") == np.argsort(-np.array(scores), kind="stable")).all() or max(
        scores
    ) == 0


def test_negative_and_absent_scores_count_nothing() -> None:
    assert normalised(np.array([-1.0, -2.0])).tolist() == [0.0, 0.0]
    assert normalised(np.array([])).size == 0
    assert weighted(np.array([2.0, 1.0]), None).tolist() == [1.0, 0.5]


def test_a_candidate_both_arms_like_best_wins() -> None:
    ranked = rank(pool([1.0, 3.0, 2.0], [0.2, 0.9, 0.1]))
    assert ranked.best(1) == [1]


def test_equal_scores_go_by_id() -> None:
    assert rank(pool([1.0, 1.0, 1.0])).best(3) == [0, 1, 2]


@given(SCORES, st.data())
def test_no_stage_moves_a_score_by_more_than_its_weight(scores: list[float], data: st.DataObject) -> None:
    size = len(scores)
    shares: NDArray[np.float64] = np.array(data.draw(st.lists(st.floats(0, 1), min_size=size, max_size=size)))
    ages = data.draw(st.lists(st.floats(-10, 5000), min_size=size, max_size=size))
    before = pool(scores, scores=scores, age_days=ages, accessibility=shares.tolist())

    aged = temporal(before).scores
    faded = accessibility(before).scores

    assert (aged >= before.scores).all()
    assert (aged <= before.scores * (1 + RECENCY_WEIGHT) + 1e-9).all()
    assert (faded <= before.scores + 1e-9).all()
    assert (faded >= before.scores * (1 - ACCESSIBILITY_WEIGHT) - 1e-9).all()


def test_every_stage_leaves_its_scores_behind_for_the_explanation() -> None:
    ranked = rank(pool([1.0, 2.0], [0.5, 0.1], age_days=[1.0, 400.0], accessibility=[0.9, 0.2]))
    assert [name for name, _ in ranked.steps] == ["relevance", "temporal", "accessibility"]
    assert (ranked.steps[-1][1] == ranked.scores).all()
