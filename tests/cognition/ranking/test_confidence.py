"""How sure an answer is: between 0 and 1, surer the better the best hits match."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cognition.ranking.pools import pool
from vestige.cognition.query.analyse import analyse
from vestige.cognition.ranking.confidence import (
    FEW,
    KIN,
    LEAST_READ_MATCH,
    LITERAL,
    NO_ID,
    NO_LITERAL,
    NOTHING_CONCRETE,
    TALK_MATCH,
    TALK_SHARE,
    WORTH_A_LOOK,
    HitEvidence,
    capped_confidence,
    confidence,
    confidence_when_read,
    lowered_confidence,
    related,
)
from vestige.cognition.ranking.maxsim import Matched
from vestige.cognition.text.form import Form

shares = st.floats(0, 1)
ASKED = analyse("when does the oven open")
LITERALLY = analyse('who wrote "Becoming Nicole"')
BY_ID = analyse("where is ERR_FOO_12 raised")
CONCRETE = analyse("ERR_FOO_12")


def matched(*context: float) -> Matched:
    return Matched(own=np.zeros(len(context)), context=np.array(context))


def by_tokens(context: float, covered: float, cosine: float, memories: int = 1_000) -> float:
    here = pool(1, covered=[covered], cosine=[cosine], memories=memories)
    return confidence(ASKED, here, matched(context), [0])


def by_vectors(covered: float, cosine: float, memories: int = 1_000) -> float:
    return confidence(ASKED, pool(1, covered=[covered], cosine=[cosine], memories=memories), None, [0])


def by_words(covered: float, memories: int = 1_000) -> float:
    return confidence(ASKED, pool(1, covered=[covered], memories=memories), None, [0])


def test_where_nothing_was_found_nothing_is_sure() -> None:
    assert confidence(ASKED, pool(0), None, []) == 0.0


@given(shares, shares, st.floats(-1, 1), st.integers(0, 10**7))
def test_it_lies_between_zero_and_one(context: float, covered: float, cosine: float, memories: int) -> None:
    sure = (
        by_tokens(context, covered, cosine, memories),
        by_vectors(covered, cosine, memories),
        by_words(covered, memories),
    )
    assert all(0 <= one <= 1 for one in sure)


@given(shares, shares, shares, shares)
def test_a_better_match_is_never_less_sure(one: float, other: float, covered: float, cosine: float) -> None:
    low, high = sorted((one, other))
    assert by_tokens(low, covered, cosine) <= by_tokens(high, covered, cosine)
    assert by_tokens(covered, low, cosine) <= by_tokens(covered, high, cosine)
    assert by_tokens(covered, cosine, low) <= by_tokens(covered, cosine, high)
    assert by_vectors(low, cosine) <= by_vectors(high, cosine)
    assert by_words(low) <= by_words(high)


@pytest.mark.parametrize("memories", [1, 1_000, 1_000_000])
def test_a_perfect_match_is_sure_and_no_match_at_all_is_not(memories: int) -> None:
    assert min(by_tokens(1, 1, 1, memories), by_vectors(1, 1, memories), by_words(1, memories)) > 0.9
    assert max(by_tokens(0, 0, 0, memories), by_vectors(0, 0, memories)) < 0.01
    assert by_words(0, memories) < 0.2


@given(st.integers(0, 10**7), st.integers(0, 10**7))
def test_the_same_match_says_more_in_a_small_store_until_stores_are_large(one: int, other: int) -> None:
    small, large = sorted((one, other))
    assert by_words(0.5, small) >= by_words(0.5, large)
    assert by_words(0.5, 10**4) == by_words(0.5, 10**6)


def test_what_must_occur_as_it_is_makes_the_first_hit_sure() -> None:
    here = pool(2, literals=[1, 0])
    assert confidence(LITERALLY, here, None, [0, 1]) == LITERAL
    assert confidence(LITERALLY, here, None, [1, 0]) < LITERAL


def test_what_must_occur_as_it_is_and_occurs_nowhere_leaves_less_or_nothing() -> None:
    here = pool(1, covered=[1.0], cosine=[0.9])
    plain = confidence(ASKED, here, None, [0])

    assert confidence(LITERALLY, here, None, [0]) == pytest.approx(NO_LITERAL * plain)
    assert confidence(BY_ID, here, None, [0]) == pytest.approx(NO_ID * plain)
    assert confidence(CONCRETE, here, None, [0]) == NOTHING_CONCRETE


def test_the_more_of_what_must_occur_is_held_the_surer_the_answer() -> None:
    both = analyse("is ERR_FOO_12 raised in main.py")
    sure = [
        confidence(both, pool(2, covered=[1.0, 1.0], cosine=[0.9, 0.9], literals=held), None, [0, 1])
        for held in ([0, 0], [0, 1], [1, 1], [1, 2], [2, 1])
    ]

    assert sure == sorted(sure)
    assert sure[0] < 0.25 < sure[1] < 0.7
    assert sure[-1] >= LITERAL


def test_the_share_of_the_query_is_looked_for_among_the_first_few_hits_only() -> None:
    covered = [0.0] * FEW + [1.0]
    here = pool(len(covered), covered=covered)
    last = len(covered) - 1

    assert confidence(ASKED, here, None, list(range(len(covered)))) == by_words(0.0, memories=100)
    assert confidence(ASKED, here, None, [last, *range(last)]) == by_words(1.0, memories=100)


def test_a_candidate_without_vectors_does_not_hide_how_well_the_others_match() -> None:
    alone = pool(1, cosine=[0.6])
    beside = pool(2, cosine=[np.nan, 0.6])

    assert confidence(ASKED, beside, matched(np.nan, 0.5), [0, 1]) == confidence(
        ASKED, alone, matched(0.5), [0]
    )
    assert confidence(ASKED, beside, None, [0, 1]) == confidence(ASKED, alone, None, [0])


@given(shares)
def test_what_is_named_and_told_of_nowhere_leaves_a_fifth_and_always_something_to_look_at(
    sure: float,
) -> None:
    asked = analyse("which database does Lighthouse use")
    left = lowered_confidence(sure, asked, ["Lighthouse"])

    assert (
        left
        <= sure
        == lowered_confidence(sure, asked, ["another"])
        == lowered_confidence(sure, ASKED, ["Lighthouse"])
    )
    assert left == max(NO_ID * sure, min(sure, WORTH_A_LOOK))


# -- what has to do with the query ---------------------------------------------------------------


def evidence(**known: Any) -> HitEvidence:
    """A note that shares nothing with the query and is not near to it."""
    nothing = {
        "form": int(Form.NOTE), "odds": None, "share": 0.5, "match": 1.0, "cosine": 0.0, "context": 0.1,
        "near": -4.0, "has_vector": True, "covered": 0.0, "kin": 0.1, "holds_literal": False, "lacks": False,
        "holds_all": False,
    }  # fmt: skip
    return HitEvidence(**nothing | known)


BEST = evidence(near=6.0, covered=0.8, odds=4.0)


def test_the_best_hit_always_has_to_do_with_the_query() -> None:
    assert related([evidence(), evidence()], 4) == [True, False]
    assert related([], 4) == []


@pytest.mark.parametrize(
    "kept",
    [
        {"holds_literal": True},
        {"covered": 0.1},
        {"near": 3.0},
        {"odds": 0.5},
        {"kin": KIN},
        {"near": None},  # a vector of a model whose cosines mean something else
    ],
)
def test_a_literal_a_word_a_near_meaning_or_likeness_to_the_best_keeps_a_hit(kept: dict[str, Any]) -> None:
    assert related([BEST, evidence(**kept)], 4) == [True, True]


def test_one_word_of_a_long_query_keeps_a_hit() -> None:
    some = evidence(covered=0.06)

    assert related([BEST, some], 4) == [True, False]
    assert related([BEST, some], 14) == [True, True]


def test_beside_a_certain_answer_a_hit_must_be_nearer() -> None:
    near = evidence(near=0.5)

    assert related([BEST, near], 4) == [True, False]
    assert related([evidence(near=6.0, odds=0.0), near], 4) == [True, True]


def test_a_part_of_a_conversation_needs_a_share_of_the_best_score_or_a_match() -> None:
    turn = int(Form.TURN)
    weak = evidence(form=turn, share=TALK_SHARE - 0.1, context=TALK_MATCH - 0.1)
    fair = evidence(form=turn, share=TALK_SHARE, context=0.0)
    matching = evidence(form=turn, share=0.1, context=TALK_MATCH)

    assert related([BEST, weak, fair, matching], 4) == [True, False, True, True]


def test_without_a_model_only_words_count() -> None:
    by_words = {"near": None, "has_vector": False}
    few, none = evidence(**by_words, covered=0.2), evidence(**by_words, covered=0.01)

    assert related([few, few, none], 4) == [True, True, False]
    assert capped_confidence(0.9, [few], question=True) > 0.03
    assert capped_confidence(0.9, [none], question=True) < 0.03


@pytest.mark.parametrize("question", [True, False])
def test_an_answer_about_something_else_is_not_sure(question: bool) -> None:
    other = evidence(odds=-1.0)

    assert capped_confidence(0.9, [other], question=question) < 0.25
    assert capped_confidence(0.9, [evidence()], question=question) < 0.03
    assert capped_confidence(0.9, [BEST], question=question) > 0.5


@pytest.mark.parametrize(
    "known", [{"holds_all": True}, {"holds_literal": True}, {"form": int(Form.TURN)}, {"near": None}]
)
def test_what_the_cap_cannot_judge_keeps_its_confidence(known: dict[str, Any]) -> None:
    assert capped_confidence(0.9, [evidence(**known)], question=True) == 0.9


@given(st.floats(0, 1), st.floats(-6, 6), st.floats(0, 1), st.booleans())
def test_the_cap_never_raises_confidence_and_falls_with_nearness(
    sure: float, near: float, covered: float, question: bool
) -> None:
    here = capped_confidence(sure, [evidence(near=near, covered=covered)], question=question)
    nearer = capped_confidence(sure, [evidence(near=near + 1, covered=covered)], question=question)

    assert here <= nearer <= sure


def test_a_note_that_matches_far_less_than_the_best_does_not_raise_the_confidence() -> None:
    best, far = evidence(odds=-3.0, lacks=True), evidence(odds=-0.5, match=LEAST_READ_MATCH - 0.1)

    assert confidence_when_read([best, far]) == confidence_when_read([best])
    assert confidence_when_read([best, replace(far, match=LEAST_READ_MATCH)]) == confidence_when_read([far])
