"""Expressions of time: which forms are looked for in a text."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.time import expressions

words = st.sampled_from(
    "since before after until by between from to and of the last past previous next this coming in on ago a "
    "few two 2 29 0 days weeks months years quarter weekend monday Sunday may May march dec 2023 Q4 summer "
    "night yesterday today tonight 31 2024-02-30 2023/05/08 8th februarie ſummer Mon thıs , - –".split()
)


@given(st.lists(words | st.text(max_size=3), max_size=12).map(" ".join))
@pytest.mark.parametrize("change", [str, str.upper, str.title])
def test_no_form_is_left_out_that_occurs(change: Callable[[str], str], text: str) -> None:
    written = change(text)
    occurring = [form for form in expressions._FORMS if form.pattern.search(written)]
    assert [form for form in occurring if form not in [*expressions._forms_in(written)]] == []


@pytest.mark.parametrize("text", ["What did she say about her trip?", "Deployments need approvals."])
def test_a_text_without_words_of_time_needs_few_patterns(text: str) -> None:
    assert len([*expressions._forms_in(text)]) <= 2
