"""Numbers, measures and times in one normal form."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.english.quantities import quantities


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
    "text", ["Flight LH400", "eu-west-1", "no one", "the red one", "I may go", "555-1234"]
)
def test_a_number_in_a_name_and_a_word_that_only_looks_like_one_is_none(text: str) -> None:
    assert keys(text) == []


@given(st.text(max_size=80))
def test_quantities_lie_in_the_text_in_order_and_apart(text: str) -> None:
    found = list(quantities(text))
    assert all(one.start < one.end <= len(text) for one in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
