"""The four signals of importance, and what they add up to."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.english.emotion import affect
from vestige.cognition.fsrs.strength import after, encode
from vestige.cognition.prediction.importance import (
    LEAST,
    UNKNOWN,
    WEIGHTS,
    Channels,
    ConsolidationPriority,
    Judgement,
    NearbyOutcome,
    attention,
    encoding_boost,
    novelty,
    outcome,
    priority,
    reward,
    seen_share,
)
from vestige.core.models import Evidence

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ROUSING = affect("URGENT: the attacker destroyed everything!")
share = st.floats(0, 1)


def judged(**values: float) -> Judgement:
    channels = Channels(**{**dict.fromkeys(WEIGHTS, UNKNOWN), **values})
    return Judgement(channels=channels, affect=ROUSING)


def after_all(*evidence: Evidence) -> NearbyOutcome:
    strength = encode(NOW)
    for at, one in enumerate(evidence, start=1):
        strength = after(strength, one, NOW + timedelta(days=at))
    return outcome("m", 0.8, strength)


def test_novelty_is_what_the_nearest_memory_leaves() -> None:
    assert novelty(0.25) == 0.75
    assert novelty(-0.1) == 1.0
    assert novelty(1.0) == LEAST
    assert novelty(None) == UNKNOWN


def test_reward_is_half_until_something_is_known() -> None:
    assert reward(()) == UNKNOWN
    assert reward([after_all()]) == UNKNOWN


def test_reward_follows_what_became_of_the_neighbours() -> None:
    liked, disliked = after_all(Evidence.PROMOTED), after_all(Evidence.DEMOTED)
    assert reward([disliked]) < UNKNOWN < reward([liked])
    assert reward([after_all(Evidence.USEFUL)]) > UNKNOWN
    assert reward([after_all(Evidence.EXPOSED)]) < UNKNOWN
    assert reward([disliked]) < reward([after_all(Evidence.EXPOSED)])


def test_a_demotion_counts_more_than_a_promotion() -> None:
    assert reward([after_all(Evidence.PROMOTED, Evidence.DEMOTED)]) < UNKNOWN


def test_a_demotion_that_was_made_good_by_a_review_counts_no_more() -> None:
    forgiven = after_all(Evidence.DEMOTED, Evidence.GOOD)
    assert forgiven.bad == 0
    assert reward([forgiven]) > UNKNOWN


def test_a_nearer_neighbour_counts_more() -> None:
    liked = after_all(Evidence.PROMOTED)
    assert reward([replace(liked, similarity=0.9)]) > reward([replace(liked, similarity=0.4)])


def test_attention_is_half_until_something_was_asked() -> None:
    assert attention({"ledger"}, (), NOW) == UNKNOWN
    assert attention({"ledger"}, ((frozenset(), NOW),), NOW) == UNKNOWN


def test_attention_rises_with_what_was_asked_and_falls_with_what_was_not() -> None:
    asked = (frozenset({"ledger", "total"}), NOW)
    none, half, whole = (attention(terms, (asked,), NOW) for terms in ({"x"}, {"total"}, {"ledger", "total"}))
    assert none < half < whole
    assert none < UNKNOWN < whole
    assert attention({"ledger", "total"}, (asked, asked), NOW) > whole


def test_attention_forgets_old_questions() -> None:
    asked = frozenset({"ledger"})
    ages = [attention({"ledger"}, ((asked, NOW - timedelta(days=age)),), NOW) for age in (0, 1, 30)]
    assert ages == sorted(ages, reverse=True)
    assert ages[-1] == pytest.approx(UNKNOWN, abs=0.01)


def test_a_question_from_the_future_counts_as_one_of_now() -> None:
    later = ((frozenset({"ledger"}), NOW + timedelta(days=400)),)
    assert attention({"ledger"}, later, NOW) == attention({"ledger"}, ((later[0][0], NOW),), NOW)


def test_the_weights_make_a_whole() -> None:
    assert sum(WEIGHTS.values()) == pytest.approx(1.0)
    everything = Channels(novelty=1, arousal=1, reward=1, attention=1)
    assert everything.composite == pytest.approx(1.0)
    assert everything.dominant == "arousal"


@pytest.mark.parametrize(
    ("composite", "expected"),
    [
        (0.81, ConsolidationPriority.CRITICAL),
        (0.8, ConsolidationPriority.HIGH),
        (0.6, ConsolidationPriority.NORMAL),
        (0.4, ConsolidationPriority.LOW),
    ],
)
def test_the_priority_has_the_thresholds_of_the_reference(
    composite: float, expected: ConsolidationPriority
) -> None:
    assert priority(composite) is expected


def test_the_encoding_boost_goes_from_below_one_to_above_it() -> None:
    assert [encoding_boost(c) for c in (0.0, 0.5, 1.0)] == pytest.approx([0.7, 1.0, 1.3])


def test_what_is_ordinary_gains_nothing_and_never_loses() -> None:
    assert judged(novelty=0.05, arousal=0.05).gain() == 0.0
    assert judged().gain() == 0.0


def test_a_flashbulb_gains_by_its_emotion_beside_its_importance() -> None:
    flash = judged(novelty=0.9, arousal=0.9)
    by_importance, by_emotion = flash.gain(emotion=False), flash.gain(importance=False)
    assert by_emotion == pytest.approx(0.27)
    assert flash.gain() == pytest.approx((1 + by_importance) * (1 + by_emotion) - 1)
    assert flash.gain(importance=False, emotion=False) == 0.0


def test_the_share_of_seen_terms_is_of_the_new_text() -> None:
    assert seen_share({"a", "b"}, {"b", "c", "d"}) == 0.5
    assert seen_share(set(), {"a"}) == 0.0


@given(share, share, share, share)
def test_the_gain_is_an_amount_that_evidence_can_have(n: float, a: float, r: float, t: float) -> None:
    one = judged(novelty=n, arousal=a, reward=r, attention=t)
    assert 0.0 <= one.gain() <= 0.69 + 1e-9
    assert 0.0 <= one.channels.composite <= 1.0 + 1e-9
