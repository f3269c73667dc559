"""Numbers, measures and times in one normal form."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.english.quantities import _MARKS, _PATTERN, _UNITS, _may_count, quantities


def keys(text: str) -> list[str]:
    return [one.key for one in quantities(text)]


@each(
    ("left", "right"),
    [
        ("at 3 pm", "at 15:00"),
        ("at 6:40 pm", "at 18:40"),
        ("six in the evening", "6 pm"),
        ("at noon", "at 12:00"),
        ("1.5 GB", "1536 MB"),
        ("30s", "30 seconds"),
        ("two weeks", "14 days"),
        ("$9", "9 dollars"),
        ("50%", "50 percent"),
        ("40k", "40,000"),
        ("1.2 million", "1.2M"),
        ("v1.2", "1.2"),
        ("3 May 2026", "2026-05-03"),
        ("May 3", "the 3rd of May"),
        ("the third floor", "the 3rd floor"),
        ("every night", "nightly"),
        ("ten people", "10 people"),
        ("half an hour", "30 minutes"),
        ("a full hour", "60 minutes"),
        ("a quarter of an hour", "15 minutes"),
        ("two and a half hours", "2.5 hours"),
        ("half a dozen", "six"),
        ("half a million", "500,000"),
        ("half a cup", "½ cup"),
        ("three quarters of a can", "3/4 can"),
        ("one and a half cups", "1.5 cups"),
        ("a full cup", "one cup"),
        ("the whole can", "1 can"),
    ],
)
def test_two_ways_to_say_a_quantity_are_the_same(left: str, right: str) -> None:
    assert keys(left) == keys(right) != []


@pytest.mark.parametrize(
    ("left", "right"),
    [("Python 3.1", "Python 3.10"), ("9 am", "9 pm"), ("5 GB", "5 MB"), ("1,234,567", "1,234,568")],
)
def test_quantities_that_differ_are_told_apart(left: str, right: str) -> None:
    assert keys(left) != keys(right)


@pytest.mark.parametrize(
    "text",
    [
        "Flight LH400",
        "eu-west-1",
        "no one",
        "the red one",
        "I may go",
        "555-1234",
        "full time",
        "a half-life",
        "the bottle is full",
        "the whole team",
        "half of us",
        "a new half",
        "on 1/2",
        "an entire new team",
    ],
)
def test_a_number_in_a_name_and_a_word_that_only_looks_like_one_is_none(text: str) -> None:
    assert keys(text) == []


def test_a_part_of_a_year_or_game_is_no_amount() -> None:
    assert keys("the second half of the game") == ["#2"]
    assert keys("the third quarter of the year") == ["#3"]
    assert keys("the third of May") == ["#3", "5-"]


@given(st.text(max_size=80))
def test_quantities_lie_in_the_text_in_order_and_apart(text: str) -> None:
    found = list(quantities(text))
    assert all(one.start < one.end <= len(text) for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))


PARTS = sorted(
    {*_MARKS, *_UNITS, "an", "of the", "v", "vtwo", "mondays", "$", "%", ".", "-", "_", "ago", "jan"}
)


@given(st.lists(st.sampled_from(PARTS)).map(" ".join) | st.lists(st.sampled_from(PARTS)).map("".join))
def test_a_text_that_is_not_searched_states_no_quantity(text: str) -> None:
    assert _may_count(text) or not _PATTERN.search(text)


def test_an_ordinary_question_is_not_searched_for_quantities() -> None:
    assert not _may_count("What did she say about her trip to the mountains?")
    assert _may_count("How many people were there in May?")
