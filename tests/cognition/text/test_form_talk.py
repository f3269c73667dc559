"""What is said to somebody, and what is stated."""

import pytest

from vestige.cognition.text.form import is_spoken, is_talk


@pytest.mark.parametrize(
    "text",
    [
        "Hey Mel, what a week.",
        "Thanks, Gina. Your help means a lot.",
        "Caroline: Wow, Melanie.",
        "Great, see you there.",
        "Did you deploy it?",
        "That bowl is gorgeous! Where is it from",
    ],
)
def test_greetings_thanks_reactions_and_questions_are_talk(text: str) -> None:
    assert is_talk(text)


@pytest.mark.parametrize(
    "text",
    [
        "Great Danes need space.",
        "No, Python 3.11 is the minimum version.",
        "Sorry, the timeout is 60 seconds.",
        "Thanks to Ada the build is green.",
        "The URL is https://example.org/?page=2",
        "Never log passwords!=secrets",
    ],
)
def test_statements_and_corrections_are_not(text: str) -> None:
    assert not is_talk(text)


def test_a_speaker_is_a_name_and_no_announcement() -> None:
    assert is_spoken("Jon: I moved to Rome.", "I moved to Rome.")
    assert not is_spoken("Correction: we moved to Rome.", "we moved to Rome.")
    assert not is_spoken("Change of plan: we moved to Rome.", "we moved to Rome.")
    assert not is_spoken("I moved to Rome.", "I moved to Rome.")
