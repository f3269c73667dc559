"""What a question wants, and which notes cannot hold it."""

from datetime import UTC, datetime
from typing import Any

import pytest

from vestige.cognition.query.analyse import could_answer, wanted_in
from vestige.core.models import Memory

AT = datetime(2026, 5, 3, tzinfo=UTC)
REPAIRED = "The roof was repaired."


def could_be(question: str, text: str, **known: Any) -> bool:
    return could_answer(
        wanted_in(question), Memory(id="m", content=text, created_at=AT, updated_at=AT, **known)
    )


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who repaired the roof?", REPAIRED),
        ("By whom was the roof repaired?", "The roof was repaired in May 2026 for 900 euros."),
        ("Why was the roof repaired?", REPAIRED),
        ("Why was the roof repaired?", "The roof was repaired on 3 May."),
        ("How long did the repair of the roof take?", "The roof was repaired by Kessler."),
        ("How much did the roof cost?", "The roof was repaired by Kessler."),
        ("What is our cat called?", "Our cat is called."),
        ("why is our cat called Miso", "Our cat is called Miso."),
    ],
)
def test_a_note_without_the_type_of_answer_cannot_answer(question: str, text: str) -> None:
    assert not could_be(question, text)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Who repaired the roof?", "Kessler repaired the roof."),
        ("Who repaired the roof?", "I repaired the roof myself."),
        ("Who repaired the roof?", "the neighbours repaired the roof"),
        ("Why was the roof repaired?", "The roof was repaired because it leaked."),
        ("Why do we not deploy on Fridays?", "No deploys on Fridays: nobody is there to fix them."),
        ("How long are logs kept?", "Logs are kept for 30 days."),
        ("How long are logs kept?", "Logs are kept until the audit is over."),
        ("How many cats does Ada have?", "Ada has several cats."),
        ("How much does the pass cost?", "The pass is free."),
        ("What is our cat called?", "Our cat is called Miso."),
        ("Is our cat called Miso?", "Our cat is called Miso."),
        ("When was the roof repaired?", REPAIRED),
        ("roof repair", REPAIRED),
    ],
)
def test_a_note_that_may_hold_the_answer_is_left_to_the_other_signals(question: str, text: str) -> None:
    assert could_be(question, text)


def test_an_author_a_day_and_a_tag_may_be_the_answer() -> None:
    assert could_be("Who repaired the roof?", REPAIRED, author="Kessler")
    assert could_be("How long has the roof been repaired?", REPAIRED, occurred_at=AT)
    assert could_be("Why was the roof repaired?", REPAIRED, tags=("storm",))


def test_code_and_long_texts_are_not_judged() -> None:
    assert could_be("How many elements are in a list?", "def size(items):\n    return len(items)")
    assert could_be("How long is the list?", "word " * 200)
