"""What a query's words find in texts that no index holds, and two pools made one."""

from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from tests.cognition.ranking.pools import pool, traits
from vestige.cognition.query.analyse import analyse
from vestige.cognition.ranking.earlier_wordings import Words, find_words, joined
from vestige.cognition.ranking.maxsim import Matched
from vestige.core.candidates import TermStatistics
from vestige.core.models import Memory

AT = datetime(2026, 3, 1, tzinfo=UTC)


def read(query: str, *texts: str, **frequencies: int) -> Words:
    asked = analyse(query)
    memories = [
        Memory(id=f"m{at}", content=text, created_at=AT, updated_at=AT) for at, text in enumerate(texts)
    ]
    common = TermStatistics(
        frequencies={term: frequencies.get(term, 0) for term in asked.terms}, memories=100, words=1_000
    )
    return find_words(asked, memories, common, replace(pool(0), frequencies=frequencies))


def test_rarer_more_and_denser_words_score_higher() -> None:
    rare, common, twice, diluted, nothing = read(
        "zinc iron", "zinc ore", "iron ore", "zinc zinc", "zinc ore " + "mud " * 20, "mud", zinc=1, iron=60
    ).own.tolist()
    assert twice > rare > diluted > common > nothing == 0


def test_the_share_of_the_query_is_weighed_by_how_rare_its_words_are() -> None:
    both, rare, common, none = read(
        "zinc iron", "zinc iron", "zinc", "iron", "mud", zinc=1, iron=60
    ).covered.tolist()
    assert both == pytest.approx(1.0)
    assert rare + common == pytest.approx(1.0)
    assert rare > common > none == 0


def test_prefixes_dates_and_literals_are_found() -> None:
    words = read('zanz* 2026 "the Harbour"', "Zanzibar in 2026", "the harbour", "mud")
    assert (words.own > 0).tolist() == [True, True, False]
    assert (words.dated > 0).tolist() == [True, False, False]
    assert words.literals.tolist() == [0, 1, 0]
    assert words.best(2).tolist() == [1, 0]
    assert words.at(words.best(1)).literals.tolist() == [1]


def test_a_query_without_words_finds_nothing() -> None:
    words = read("…", "zinc")
    assert (words.own.tolist(), words.dated.tolist(), words.covered.tolist()) == ([0.0], [0.0], [0.0])
    assert read("zinc").own.tolist() == []


def test_two_pools_are_one_in_the_order_of_ids() -> None:
    one = replace(pool(2, own=[1.0, 3.0], about=traits(2, created=[1.0, 3.0])), ids=("a", "c"))
    two = replace(pool(1, own=[2.0], literals=[5], about=traits(1, created=[2.0]), memories=7), ids=("b",))
    matched = Matched(own=np.array([0.2]), context=np.array([0.3]))
    both, marks = joined(one, None, two, matched)
    assert both.ids == ("a", "b", "c")
    assert (both.own.tolist(), both.traits.created.tolist()) == ([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (both.literals.tolist(), both.memories) == ([0, 5, 0], one.memories)
    assert marks is not None
    assert np.isnan(marks.own).tolist() == [True, False, True]
    assert joined(one, None, two, None)[1] is None
