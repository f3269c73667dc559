"""Kinds of questions: a table of examples, and that any text has a kind."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.query.analyse import QuestionKind, kind_of


@each(
    "question",
    [
        "What books has Melanie read?",
        "In which countries did they meet?",
        "Which outdoor games does she like?",
        "Where has Maria made friends?",
        "What has he tried so far?",
        "How many children does she have?",
        "What do Jon and Gina both like?",
        "What do they have in common?",
        "  what people were at the party?",
        "Which people were there when it might have rained?",
    ],
)
def test_these_questions_want_a_list(question: str) -> None:
    assert kind_of(question) is QuestionKind.LIST


@pytest.mark.parametrize(
    "question",
    [
        "Would she enjoy a classical concert?",
        "What might Melanie ascribe it to?",
        "Is Oscar her pet?",
        "Did they get married?",
        "What would he say when asked?",
        "should we deploy today",
    ],
)
def test_these_questions_want_a_judgement(question: str) -> None:
    assert kind_of(question) is QuestionKind.INFERENCE


@pytest.mark.parametrize(
    "question",
    [
        "When did she move?",
        "when was the release",
        "How long has she had her dog?",
        "What year was it?",
        "What time does the shop open?",
        "When did Melanie go camping in July?",
    ],
)
def test_these_questions_want_a_time(question: str) -> None:
    assert kind_of(question) is QuestionKind.WHEN


@each(
    "question",
    [
        "",
        "Where did Caroline move from?",
        "What is her dog's name?",
        "What kind of cars does she drive?",
        "What types of books has she read?",
        "What did she buy?",
        "What was this about?",
        "How does Gina describe the studio that Jon has opened?",
        "What books has she read in 2023?",
        "Did they meet in May?",
        "Would she come on May 12?",
        "whenever",
        "postgres connection pool",
    ],
)
def test_other_texts_are_of_no_such_kind(question: str) -> None:
    assert kind_of(question) is QuestionKind.OTHER


@settings(deadline=None)
@given(
    st.text()
    | st.lists(st.sampled_from("what which how has have things both would in 2023 is".split())).map(" ".join)
)
def test_every_text_has_a_kind(text: str) -> None:
    assert kind_of(text) in QuestionKind


@each("unit", ["what ", "what has ", "what things ", "has ", "a", "s", " ", "what a's "])
def test_a_long_query_of_one_thing_has_a_kind(unit: str) -> None:
    assert kind_of("what " + (unit * 10_000)[:10_000]) in QuestionKind
