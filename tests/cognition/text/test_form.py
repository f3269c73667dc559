"""The form of a memory: what its text and place say about how to rank it."""

from datetime import UTC, datetime

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from testbed.failures import each
from vestige.cognition.text.form import SHORT_WORDS, Form, asked, features, name_hash, speaker_and_words
from vestige.core.models import Memory

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG = "word " * (SHORT_WORDS + 1)


def memory(
    content: str,
    *,
    thread: str | None = None,
    source: str | None = None,
    position: int | None = None,
    author: str | None = None,
) -> Memory:
    return Memory(
        id="m",
        content=content,
        created_at=NOON,
        updated_at=NOON,
        thread=thread,
        source=source,
        position=position,
        author=author,
    )


def test_a_short_text_is_a_turn_in_a_thread_and_a_note_outside() -> None:
    short = "word " * SHORT_WORDS
    assert features(memory(short, thread="t")).form is Form.TURN
    assert features(memory(short, source="chat.txt", position=3)).form is Form.TURN
    assert features(memory(short, source="chat.txt")).form is Form.NOTE
    assert features(memory(short)).form is Form.NOTE


def test_what_somebody_says_is_a_turn_as_long_as_it_is_short_or_in_a_thread() -> None:
    assert features(memory("Ann: I moved to Porto.")).form is Form.TURN
    assert features(memory("We moved.", author="ann")).form is Form.NOTE
    assert features(memory("Decision: we ship it.")).form is Form.NOTE
    assert features(memory(f"Ann: {LONG}", thread="t")).form is Form.TURN
    assert features(memory(LONG, author="ann")).form is Form.NOTE
    assert features(memory("Decision: ship it.")).form is Form.NOTE


def test_a_long_text_is_a_chunk_in_a_thread_and_a_note_outside() -> None:
    assert features(memory(LONG, thread="t")).form is Form.CHUNK
    assert features(memory(LONG, source="book.txt", position=3)).form is Form.CHUNK
    assert features(memory(LONG, source="book.txt")).form is Form.NOTE
    assert features(memory(LONG)).form is Form.NOTE


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("I'm tired", True),
        ("My dog and I", True),
        ("we’ve moved", True),
        ("In Illinois", False),
        ("Her own", False),
    ],
)
def test_the_first_person_is_heard(said: str, expected: bool) -> None:
    assert features(memory(said)).first_person is expected


@each(
    ("said", "expected"),
    [
        ("How are you?", True),
        ("How are you? \n", True),
        ("Isn't it great? [shares a photo of a dog]", True),
        ("It is great. [really?]", False),
        ("Why? I know.", False),
        ("x]?", True),
        ("x?]", False),
        ("[photo]", False),
    ],
)
def test_a_text_that_ends_in_a_question_asks(said: str, expected: bool) -> None:
    assert features(memory(said)).asks is expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [("We met last summer", True), ("On Tuesday", True), ("In 2023", True), ("It may be", False)],
)
def test_a_text_that_tells_a_time_is_timed(said: str, expected: bool) -> None:
    assert features(memory(said)).timed is expected


def test_the_speaker_is_the_author_or_the_name_before_the_colon_of_a_talk() -> None:
    assert speaker_and_words(memory("Ann Lee: hello", thread="t")) == ("Ann Lee", "hello")
    assert speaker_and_words(memory("Ann: hello", thread="t", author="ann")) == ("ann", "hello")
    assert speaker_and_words(memory("Ann: hello", author="Ann")) == ("Ann", "hello")
    assert speaker_and_words(memory("Ann: I said hello")) == ("Ann", "I said hello")
    assert speaker_and_words(memory("Note: hello")) == (None, "Note: hello")
    assert speaker_and_words(memory("at 10:30: x", thread="t")) == (None, "at 10:30: x")
    assert features(memory("hello", author="Ann Lee")).speaker == name_hash("ann")
    assert features(memory("hello")).speaker == 0


def test_the_name_before_the_colon_is_no_part_of_what_is_said() -> None:
    assert not features(memory("I: hello", thread="t")).first_person


def test_one_name_has_one_hash_however_it_is_written() -> None:
    assert name_hash("Zoë Smith") == name_hash(" ZOE") == name_hash("zoe\u0308,")
    assert name_hash("Zoe") != name_hash("Zoey")
    assert 0 < name_hash("Zoe") < 2**62
    assert name_hash("") > 0


def test_a_token_is_asked_when_its_sentence_is_a_question() -> None:
    text = "I moved. Did you? Yes"
    spans = np.array([[0, 1], [9, 12], [13, 16], [18, 21], [21, 21]], dtype=np.int32)
    assert asked(text, spans).tolist() == [False, True, True, False, False]
    assert not asked("No question.", spans[:1]).any()
    assert asked("", np.zeros((0, 2), dtype=np.int32)).shape == (0,)


@settings(deadline=None, max_examples=effort(50, nightly=1000))
@given(st.text(min_size=1).filter(lambda text: text.strip() and "\0" not in text))
def test_every_memory_has_a_form(content: str) -> None:
    assert features(memory(content, thread="t")).form in Form


@each("unit", ["[", " [", "[ ", "a: ", ".", "? ", "day", "\t "])
def test_a_long_text_of_one_thing_has_a_form(unit: str) -> None:
    assert features(memory("x" + unit * 30_000)).form in Form
