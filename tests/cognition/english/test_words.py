"""A statement as words: kinds, keys, clauses."""

from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.english.words import words_of


def test_contractions_are_written_out() -> None:
    assert [word.text for word in words_of("I can't, it's Ada's")] == ["i", "can", "not", "it", "is", "ada"]


def test_spelling_and_inflection_do_not_count() -> None:
    left, right = words_of("My favourite colours"), words_of("my favorite color")
    assert [word.key for word in left] == [word.key for word in right]


def test_names_quantities_and_words_are_told_apart() -> None:
    kinds = {word.text: word.kind for word in words_of("The blue lamp in Rome costs 9 dollars on eu-west-1")}
    assert kinds == {
        "the": "function", "blue": "word", "lamp": "word", "in": "function", "rome": "name", "costs": "word",
        "9 dollars": "quantity", "on": "function", "eu-west-1": "name",
    }  # fmt: skip


def test_in_a_headline_capitals_make_no_names() -> None:
    assert {word.kind for word in words_of("Senate Passes Spending Bill Tuesday")} == {"word", "quantity"}


def test_clauses_and_sentences_are_counted_and_abbreviations_end_none() -> None:
    words = words_of("Mr. Novak left: he sold it. Rain fell")
    assert [(word.text, word.clause, word.sentence) for word in words if word.is_content] == [
        ("novak", 0, 0), ("left", 0, 0), ("sold", 1, 0), ("rain", 2, 1), ("fell", 2, 1),
    ]  # fmt: skip


@given(st.text(max_size=100))
def test_words_lie_in_the_text_in_order(text: str) -> None:
    words = words_of(text)
    assert all(word.start < word.end <= len(text) for word in words)
    assert [word.start for word in words] == sorted(word.start for word in words)
