"""Laws of the second judgement."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.ranking.stages import reranked
from vestige.core.candidates import Floats

Case = tuple[Floats, list[int], Floats]

SHARES = st.floats(0, 1, allow_subnormal=False)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Scores of some candidates, which of them were judged, and how; not always the best."""
    scores = draw(st.lists(st.floats(0, 2, allow_subnormal=False), max_size=12))
    order = draw(st.permutations(range(len(scores))))[: draw(st.integers(0, len(scores)))]
    judged = draw(st.lists(SHARES, min_size=len(order), max_size=len(order)))
    return np.array(scores, dtype=np.float64), list(order), np.array(judged, dtype=np.float64)


@given(cases())
def test_what_was_not_judged_keeps_its_score(case: Case) -> None:
    scores, order, judged = case
    rest = [at for at in range(len(scores)) if at not in order]
    assert reranked(scores, order, judged)[rest].tolist() == scores[rest].tolist()


@given(cases())
def test_the_judged_stand_in_the_order_of_relevance_and_judgement_in_equal_parts(case: Case) -> None:
    scores, order, judged = case
    after = reranked(scores, order, judged)
    blend = {at: (scores[at] + scores.max() * share) / 2 for at, share in zip(order, judged, strict=True)}
    for one in order:
        for other in order:
            if blend[one] > blend[other] + 1e-9:
                assert after[one] > after[other]


@given(cases())
def test_nobody_falls_behind_one_that_was_not_judged(case: Case) -> None:
    scores, order, judged = case
    after = reranked(scores, order, judged)
    assert (after >= scores).all()


@given(cases())
def test_the_worst_judged_gains_nothing_and_none_more_than_the_best_relevance(case: Case) -> None:
    scores, order, judged = case
    gains = (reranked(scores, order, judged) - scores)[order]
    if order:
        assert gains[judged.argmin()] == 0
        assert gains.max() <= scores.max() + 1e-9


@given(cases(), SHARES)
def test_judged_all_alike_nothing_changes(case: Case, share: float) -> None:
    scores, order, _ = case
    assert reranked(scores, order, np.full(len(order), share)).tolist() == scores.tolist()


@given(cases(), st.floats(0.01, 100))
def test_the_unit_of_relevance_does_not_matter(case: Case, unit: float) -> None:
    scores, order, judged = case
    np.testing.assert_allclose(
        reranked(unit * scores, order, judged), unit * reranked(scores, order, judged), rtol=1e-9, atol=1e-12
    )


def test_judgements_belong_to_the_candidates_in_the_order_given() -> None:
    scores = np.array([0.5, 0.8, 0.75, 0.7])
    after = reranked(scores, [1, 2, 3], np.array([0.25, 0.0, 1.0]))
    np.testing.assert_allclose(after, [0.5, 1.0, 0.75, 1.5])
    assert scores.tolist() == [0.5, 0.8, 0.75, 0.7]  # not changed in place


def test_equally_relevant_ones_are_told_apart_by_the_judgement() -> None:
    after = reranked(np.full(3, 0.6), [0, 1, 2], np.array([0.1, 0.9, 0.5]))
    assert np.argsort(-after).tolist() == [1, 2, 0]


def test_no_candidates_give_no_scores() -> None:
    assert reranked(np.zeros(0), [], np.zeros(0)).size == 0
