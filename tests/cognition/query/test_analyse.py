"""Understanding a query: the parts put together, and that any text is understood somehow."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vestige.cognition.query.analyse import MAX_LITERALS, QuestionKind, analyse, content_words
from vestige.cognition.text.analyser import query_terms, query_words
from vestige.cognition.text.form import name_hash

LAW = settings(deadline=None, max_examples=300)
words = st.sampled_from(
    ["would", "may", "May", "the", "Zoë", "a_b", '"x y"', "yes", "東京", "東", "3.11", "\0", "dep*"]
)
texts = st.text() | st.lists(words | st.text(max_size=4), max_size=10).map(" ".join)


def modal_words(text: str) -> list[str]:
    telling = {word.start for word in content_words(text)}
    return [text[word.start : word.end] for word in query_words(text) if word.start not in telling]


def test_a_question_is_taken_apart() -> None:
    asked = analyse('Would Caroline likely enjoy "The Four Seasons"?')
    assert asked.terms == ("carolin", "like", "enjoi", "four", "season")
    assert modal_words(asked.text) == ["Would", "likely"]
    assert asked.literals == ("The Four Seasons",)
    assert asked.kind is QuestionKind.INFERENCE
    assert not asked.concrete
    assert name_hash("Caroline") in asked.names
    assert name_hash("Melanie") not in asked.names


@pytest.mark.parametrize(
    "query",
    [
        "get_user_name",
        " getUserName() ",
        '"deploy on friday"',
        "`git stash`?",
        "0192f0c1-7b1e-7000-8000-0123456789ab",
        "src/vestige/app.py:12",
        "https://example.com/x",
        "E1234.",
        "VESTIGE_HOME",
    ],
)
def test_a_query_that_is_one_literal_is_concrete(query: str) -> None:
    assert analyse(query).concrete


@pytest.mark.parametrize(
    "query",
    [
        "",
        "?",
        "deploy",
        "YouTube",
        "iPhone",
        "where is store.py",
        "store.py scan.py",
        "python 3.11.4",
        "東京 get_x",
    ],
)
def test_a_query_with_anything_else_in_it_is_not_concrete(query: str) -> None:
    assert not analyse(query).concrete


@pytest.mark.parametrize(
    ("query", "identifying"),
    [("ticket 48213", True), ('"The Four Seasons" in main.py', True), ('"The Four Seasons"', False),
     ("YouTube", False), ("tea", False)],
)  # fmt: skip
def test_an_id_identifies_and_a_quoted_title_or_a_word_of_prose_does_not(
    query: str, identifying: bool
) -> None:
    assert analyse(query).identifying is identifying


def test_literals_are_distinct_whatever_their_case_and_not_too_many() -> None:
    assert analyse("ERR_FOO err_foo Err_Foo ERR_BAR").literals == ("ERR_FOO", "ERR_BAR")
    many = " ".join(f"name_{number}" for number in range(100))
    assert analyse(many).literals == tuple(f"name_{number}" for number in range(MAX_LITERALS))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What might she cook?", ["might"]),
        ("What happened in May?", []),
        ("What may happen in spring?", ["may"]),
        ("May we deploy?", ["May"]),
        ("may", []),
        ("would you?", []),
        ("Describe the person", []),
        ("Describe the person next door", ["Describe", "person"]),
    ],
)
def test_modal_words_carry_no_weight_unless_nothing_else_is_said(query: str, expected: list[str]) -> None:
    assert modal_words(query) == expected


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("What is Caroline's dog called?", "Caroline"),
        ("what did caroline say", "Caroline Smith"),
        ("ask Zoe", "Zoë"),
        ("where did O’Brien live", "O'Brien"),
        ("Jean-Luc, who is he?", "Jean-Luc Picard"),
        ("Did Bob.", "bob"),
        ("Will", "Will"),
    ],
)
def test_a_query_names_a_speaker_however_it_is_written(query: str, name: str) -> None:
    assert name_hash(name) in analyse(query).names


def test_a_side_of_every_talk_is_nobodys_name() -> None:
    assert not analyse("user assistant System").names


@LAW
@given(texts)
def test_any_text_is_understood(text: str) -> None:
    asked = analyse(text)
    assert list(asked.terms) == query_terms(text)
    assert bool(content_words(text)) == bool(query_words(text))
    assert len(asked.literals) <= MAX_LITERALS
    assert not asked.concrete or len(asked.literals) == 1


@pytest.mark.parametrize("unit", ["x ", "a.", "'", "é", "東", "a* ", "may ", "-", "\0", "Aa"])
def test_a_long_query_of_one_thing_is_understood(unit: str) -> None:
    assert len(analyse((unit * 10_000)[:10_000]).text) == 10_000
