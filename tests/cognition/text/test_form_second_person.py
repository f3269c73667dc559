"""Asking a talk as one would ask its speakers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.text.form import in_second_person, name_hash

CAROLINE = frozenset({name_hash("Caroline")})


@pytest.mark.parametrize(
    ("asked", "spoken"),
    [
        ("What did Caroline paint?", "What did you paint?"),
        ("What is Caroline's dog called?", "What is your dog called?"),
        ("What is Caroline’s dog called?", "What is your dog called?"),
        ("What did CAROLINE do with her dog?", "What did you do with your dog?"),
        ("Caroline, and Caroline again.", "you, and you again."),
        ("Where does Caroline-Anne live?", "Where does Caroline-Anne live?"),
    ],
)
def test_a_speakers_name_becomes_you_and_what_is_theirs_your(asked: str, spoken: str) -> None:
    assert in_second_person(asked, CAROLINE) == spoken


def test_two_speakers_are_both_addressed() -> None:
    both = CAROLINE | {name_hash("José")}
    assert in_second_person("Did Jose meet Caroline's mother?", both) == "Did you meet your mother?"


def test_a_question_that_names_no_speaker_stays_as_it_was_put() -> None:
    asked = "What did Melanie tell her sister about his dog?"
    assert in_second_person(asked, CAROLINE) == asked
    assert in_second_person(asked, frozenset()) == asked


def test_a_name_inside_another_word_is_no_name() -> None:
    assert in_second_person("Are Carolines rare in Carolinea?", CAROLINE) == (
        "Are Carolines rare in Carolinea?"
    )


@given(st.text())
def test_any_text_is_left_alone_where_nobody_speaks(text: str) -> None:
    assert in_second_person(text, frozenset()) == text


@pytest.mark.parametrize(
    ("unit", "spoken"), [("'", "'"), ("a'", "a'"), ("-_", "-_"), ("Caroline's ", "your ")]
)
def test_a_long_question_is_put_as_well(unit: str, spoken: str) -> None:
    assert in_second_person(unit * 10_000, CAROLINE) == spoken * 10_000
