"""How a text feels, read off its words and signs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.english.emotion import CALM, Feeling, affect, flashbulb_factor, is_flashbulb, lexicon


def test_a_plain_fact_is_calm_and_neutral() -> None:
    felt = affect("The server listens on port 8080.")
    assert (felt.valence, felt.arousal, felt.feeling, felt.signs) == (0.0, CALM, Feeling.NEUTRAL, ())


@pytest.mark.parametrize(
    ("text", "feeling"),
    [
        ("We are thrilled: the launch was a triumph.", Feeling.JOY),
        ("The migration destroyed the ledger; what a disaster.", Feeling.FRUSTRATION),
        ("The attacker breached the vault and I am terrified.", Feeling.FEAR),
        ("My father died on Sunday.", Feeling.SADNESS),
        ("URGENT: rotate the keys as soon as possible.", Feeling.URGENCY),
        ("I was astonished by the unexpected answer.", Feeling.SURPRISE),
        ("The log is baffling and I am confused by it.", Feeling.CONFUSION),
    ],
)
def test_each_feeling_is_recognised(text: str, feeling: Feeling) -> None:
    assert affect(text).feeling is feeling


def test_a_negation_shortly_before_turns_a_feeling_round_and_calms_it() -> None:
    plain, denied = affect("We are happy with the vendor."), affect("We are not very happy with the vendor.")
    assert plain.valence > 0 > denied.valence
    assert abs(denied.valence) < plain.valence
    assert denied.arousal < affect("We are very happy with the vendor.").arousal


@pytest.mark.parametrize("negation", ["isn't", "isn’t", "cannot be", "is never"])
def test_every_spelling_of_a_negation_counts(negation: str) -> None:
    assert affect(f"The vendor {negation} happy.").valence < 0


def test_a_negation_far_before_does_not_reach() -> None:
    assert affect("Not long after the review of the second draft Ada was happy.").valence > 0


def test_a_degree_before_a_feeling_makes_it_stronger_or_weaker() -> None:
    weaker, plain, stronger = (
        affect(f"Ada was {degree}annoyed.").arousal for degree in ("slightly ", "", "extremely ")
    )
    assert weaker < plain < stronger


@pytest.mark.parametrize(
    ("calmer", "rousing"),
    [
        ("The cluster failed.", "The cluster failed!"),
        ("The cluster failed.", "The cluster FAILED."),
        ("The cluster failed.", "The cluster failed and is still down."),
        ("The cluster failed.", "The cluster failed, and we panicked."),
    ],
)
def test_signs_of_excitement_add_to_the_words(calmer: str, rousing: str) -> None:
    assert affect(rousing).arousal > affect(calmer).arousal


def test_names_and_keywords_in_capitals_are_not_shouted() -> None:
    assert affect("SELECT id FROM users WHERE name IS NOT NULL; AWS IAM, HTTP API").arousal == CALM


def test_a_long_text_is_no_more_rousing_for_its_length() -> None:
    once = affect("The deploy failed.").arousal
    assert affect("The deploy failed. " * 50).arousal < 1.5 * once


def test_what_is_new_and_rousing_is_a_flashbulb_and_nothing_else_is() -> None:
    assert is_flashbulb(0.7, 0.6)
    assert not is_flashbulb(0.69, 1.0)
    assert not is_flashbulb(1.0, 0.59)
    assert flashbulb_factor(1.0) == pytest.approx(1.3)


def test_the_lexicon_is_within_its_bounds() -> None:
    assert 150 <= len(lexicon()) <= 400
    for word, entry in lexicon().items():
        assert word == word.lower()
        assert -1 <= entry.valence <= 1
        assert 0 < entry.arousal <= 1
        assert entry.feeling is not Feeling.NEUTRAL


@given(st.text(max_size=300) | st.lists(st.sampled_from([*lexicon(), "not", "very", "!"])).map(" ".join))
def test_every_text_has_a_valence_and_an_arousal_within_bounds(text: str) -> None:
    felt = affect(text)
    assert -1 <= felt.valence <= 1
    assert CALM <= felt.arousal <= 1
