"""Contrast: a note about another thing of the kind that a question names, and what is no contrast."""

from datetime import UTC, datetime
from typing import Any

import pytest

from vestige.cognition.query.contrast import Contrast, contrast
from vestige.core.models import Memory

AT = datetime(2026, 11, 1, tzinfo=UTC)


def compared(question: str, text: str, **known: Any) -> Contrast | None:
    return contrast(question, Memory(id="m", content=text, created_at=AT, updated_at=AT, **known))


@pytest.mark.parametrize(
    ("question", "text", "asked", "stated"),
    [
        ("What is room 4 for?", "Room 1 is for dogs.", "4", "1"),
        ("Where is infusion pump no. 4?", "Infusion pump no. 6 is on loan.", "4", "6"),
        ("Who rents parking spot number 112?", "The spot in the garage is number 48.", "112", "48"),
        ("What was broken in app 5.13?", "App 5.12 broke the scanner.", "5.13", "5.12"),
        ("What is the rate limit of API v4?", "v3 API rate limit: 600 requests", "v4", "v3"),
        ("What does E17 on the dishwasher mean?", "Dishwasher shows E24 = filter clogged.", "e17", "e24"),
        ("What is ticket LF-287 about?", "The test is flaky, ticket LF-312.", "lf-287", "lf-312"),
        (
            "What loads the importer on Saturday?",
            "On Monday the importer is at its limit.",
            "saturday",
            "monday",
        ),
        (
            "What caused the outage on 9 February?",
            "Outage of 9 January: WAL full.",
            "9 february",
            "9 january",
        ),
        ("What came of the 2021 audit?", "After the 2023 audit we round half-even.", "2021", "2023"),
        ("Which region is the demo in?", "Staging is in eu-west-1.", "demo", "staging"),
        ("What pressure has the rear tyre?", "Front tyre: 5 bar.", "rear", "front"),
        ("When does the monthly job start?", "The nightly job starts at 02:30.", "monthly", "nightly"),
        ("conversion on UAT?", "Conversion on staging 1.9 %", "uat", "staging"),
        (
            "Who looks after the Italian customers?",
            "Gonzalo has the Spanish customers.",
            "italian",
            "spanish",
        ),
    ],
)
def test_another_number_code_day_side_or_name_in_the_place_of_the_one_asked_about_is_a_contrast(
    question: str, text: str, asked: str, stated: str
) -> None:
    assert compared(question, text) == Contrast(asked=asked, stated=stated)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("What is room 4 for?", "Room 1 is for dogs, room 4 for cats."),
        ("What does PostgreSQL 16 need?", "PostgreSQL 16.2 needs a new extension."),
        ("Who works on Tuesday?", "Greta works Monday to Wednesday."),
        ("Who covers for Ottilie on 10 August?", "Ottilie is away 3–21 August, Rashid covers for her."),
        ("What did we pay before 2020?", "Since 2023 the rent is 980 euros."),
        ("What is the new price?", "The old price was 5 euros."),
        ("Which is the oldest Android we support?", "It needs Android 9 at minimum."),
        ("How many tyres are there?", "40 mm tyres are in the cellar."),
        ("Who cannot board right now?", "The left drawer has her passport."),
        ("Where does Jana live?", "Jana lives in Bergen."),
    ],
)
def test_the_same_thing_a_longer_time_or_a_common_word_is_no_contrast(question: str, text: str) -> None:
    assert compared(question, text) is None


def test_whether_something_is_so_can_be_answered_by_another_day() -> None:
    assert compared("Can Greta come on Thursday?", "Greta works on Mondays.") is None
    assert compared("Who comes on Thursday?", "Greta comes on Mondays.") is not None


def test_another_common_word_before_the_same_noun_is_not_certain() -> None:
    found = compared("How long did the payroll database take?", "Restore drill, tariff database: 14 minutes.")

    assert found == Contrast(asked="payroll", stated="tariff", certain=False)


def test_a_certain_contrast_counts_before_one_that_is_not() -> None:
    found = compared("What runs on the payroll server 2?", "On the tariff server 1 runs Redis.")

    assert found == Contrast(asked="2", stated="1")


def test_what_a_tag_or_the_scope_of_a_note_names_is_not_absent() -> None:
    question, text = "Which region is staging in?", "Production and this one are in eu-west-1."

    assert compared(question, text) is not None
    assert compared(question, text, tags=("staging",)) is None
    assert compared(question, text, scope="/project/staging") is None


def test_a_long_text_mentions_many_things() -> None:
    text = "Room 1 is for dogs. " + "They wait there. " * 40

    assert compared("What is room 4 for?", text) is None
    assert compared("What is room 4 for? " + "Tell me. " * 40, "Room 1 is for dogs.") is None
