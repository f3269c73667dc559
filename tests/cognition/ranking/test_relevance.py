"""Relevance: weights by form, and what stands in where a signal is missing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cognition.ranking.pools import pool, traits
from vestige.cognition.query.analyse import analyse
from vestige.cognition.ranking.maxsim import Matched
from vestige.cognition.ranking.relevance import SIGNALS, relevance, share_of_best
from vestige.cognition.text.form import Form, name_hash
from vestige.core.candidates import CandidatePool

ASKED = analyse("zebra crossing")
FORMS = [int(form) for form in Form]


def matched(own: list[float], context: list[float] | None = None) -> Matched:
    return Matched(own=np.array(own), context=np.array(context or own))


@pytest.mark.parametrize("form", list(Form))
def test_a_perfect_match_scores_about_one_in_every_form(form: Form) -> None:
    about = traits(1, form=[form], thread=[7])
    perfect = pool(1, about=about, own=[3.0], window=[3.0], thread=[2.0], cosine=[1.0])

    assert relevance(ASKED, perfect, matched([1.0])).scores == pytest.approx([1.0], abs=0.05)


@pytest.mark.parametrize("form", list(Form))
def test_without_token_states_and_without_vectors_a_perfect_match_still_scores_one(form: Form) -> None:
    about = traits(2, form=[form, form], thread=[7, 7])
    here = pool(2, about=about, cosine=[1.0, np.nan], own=[3.0, 3.0], window=[3.0, 3.0], thread=[2.0, 2.0])

    found = relevance(ASKED, here, None)

    assert found.scores == pytest.approx([1.0, 1.0])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10))
def test_with_words_alone_the_order_is_that_of_the_words(windows: list[float]) -> None:
    found = relevance(ASKED, pool(len(windows), window=windows), None)
    assert (np.argsort(-found.scores, kind="stable") == np.argsort(-np.array(windows), kind="stable")).all()


def test_scores_are_the_sum_of_signals_times_weights() -> None:
    about = traits(3, form=FORMS, first_person=[True, True, False], speaker=[name_hash("zebra"), 0, 0])
    here = pool(3, about=about, own=[1.0, 2.0, 0.5], window=[1.0, 2.0, 0.5], cosine=[0.1, 0.2, 0.3])

    found = relevance(ASKED, here, matched([0.2, 0.3, 0.4], [0.3, 0.3, 0.5]))

    assert found.scores == pytest.approx((found.signals * found.weights).sum(axis=1))
    assert found.signals.shape == (3, len(SIGNALS))


def test_what_is_said_by_somebody_the_query_names_and_in_the_first_person_gains_and_questions_lose() -> None:
    asked = analyse("What did Caroline paint?")
    about = traits(
        4,
        form=[Form.TURN] * 4,
        speaker=[name_hash("Caroline"), 0, 0, 0],
        first_person=[False, True, False, False],
        asks=[False, False, False, True],
    )

    caroline, me, plain, asking = relevance(asked, pool(4, about=about), matched([0.5] * 4)).scores

    assert caroline > plain
    assert me > plain > asking


def long_notes(vectors: list[list[float]], *, chars: int = 1_000, form: Form = Form.NOTE) -> CandidatePool:
    count = len(vectors)
    about = traits(count, form=[form] * count, thread=[-1 if form is Form.NOTE else 7] * count)
    return pool(count, about=about, cosine=[0.5] * count, ends=[chars] * count, vectors=vectors)


# One that is clearly best, and two as good as each other: the first like it, the second not.
BEST, LIKE, UNLIKE = [1.0, 0.0], [0.8, 0.6], [0.0, 1.0]
MATCHED = [0.9, 0.5, 0.5]


def test_of_two_notes_that_match_alike_the_one_like_the_best_is_first() -> None:
    best, like, unlike = relevance(ASKED, long_notes([BEST, LIKE, UNLIKE]), matched(MATCHED)).scores
    assert best > like > unlike


@pytest.mark.parametrize("others", [{"chars": 200}, {"form": Form.TURN}, {"form": Form.CHUNK}])
def test_being_like_the_best_counts_for_nothing_in_short_notes_and_in_talks(others: dict[str, Any]) -> None:
    _, like, unlike = relevance(ASKED, long_notes([BEST, LIKE, UNLIKE], **others), matched(MATCHED)).scores
    assert like == unlike


def test_the_longer_the_best_notes_the_more_it_counts_to_be_like_them() -> None:
    gaps = []
    for chars in (300, 400, 600, 1_200):
        here = long_notes([BEST, LIKE, UNLIKE], chars=chars)
        _, like, unlike = relevance(ASKED, here, matched(MATCHED)).scores
        gaps.append(like - unlike)
    assert 0 == gaps[0] < gaps[1] < gaps[2] == pytest.approx(gaps[3])


def test_notes_that_are_all_alike_score_as_if_they_were_not_compared() -> None:
    alike = relevance(ASKED, long_notes([BEST] * 3), matched(MATCHED)).scores
    short = relevance(ASKED, long_notes([BEST] * 3, chars=50), matched(MATCHED)).scores
    assert alike == pytest.approx(short)


def test_a_note_without_vectors_is_compared_with_nothing() -> None:
    here = replace(long_notes([BEST, LIKE, [0.0, 0.0]]), cosine=np.array([0.5, 0.5, np.nan]))
    found = relevance(ASKED, here, matched([0.9, 0.5, np.nan]))
    likeness = SIGNALS.index("likeness")
    assert found.weights[:, likeness].tolist() == [pytest.approx(0.4, abs=0.01)] * 2 + [0.0]


def test_a_note_is_not_judged_by_who_speaks() -> None:
    about = traits(2, first_person=[True, False], asks=[False, True])
    one, other = relevance(ASKED, pool(2, about=about, cosine=[0.5, 0.5]), matched([0.5, 0.5])).scores
    assert one == pytest.approx(other)


def test_holding_the_literal_beats_everything_else() -> None:
    asked = analyse('Where is "ERR_CONN_42" raised?')
    assert asked.literals
    here = pool(2, literals=[len(asked.literals), 0], window=[0.1, 1.0], cosine=[0.2, 0.6])

    holding, similar = relevance(asked, here, matched([0.3, 0.6])).scores

    assert holding > similar


def test_a_candidate_without_vectors_is_judged_by_words_beside_one_that_has_them() -> None:
    here = pool(2, cosine=[np.nan, 0.3], window=[2.0, 1.0])
    unembedded, embedded = relevance(ASKED, here, matched([np.nan, 0.3])).scores
    assert unembedded > embedded > 0


def test_shares_of_the_best_lie_between_zero_and_one() -> None:
    assert share_of_best(np.array([2.0, 1.0, -1.0])).tolist() == [1.0, 0.5, 0.0]
    assert share_of_best(np.array([0.0, -1.0])).tolist() == [0.0, 0.0]
    assert share_of_best(np.empty(0)).tolist() == []
