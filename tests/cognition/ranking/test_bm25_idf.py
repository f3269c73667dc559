"""How rare a word is among memories."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.ranking.bm25 import BACKGROUND, LEAST, idf, mass

counts = st.integers(0, 10**7)


@given(counts, counts, counts)
def test_the_more_memories_have_a_word_the_less_it_weighs(one: int, other: int, more: int) -> None:
    few, many = sorted((one, other))
    assert idf(few, many + more) >= idf(many, many + more) >= LEAST


@given(counts, counts, counts)
def test_the_more_memories_lack_a_word_the_more_it_weighs(frequency: int, one: int, other: int) -> None:
    few, many = sorted((one, other))
    assert idf(frequency, frequency + few) <= idf(frequency, frequency + many)


def test_among_few_memories_rarity_means_little() -> None:
    # A word that the only memory has still weighs; without a background it would weigh nothing.
    assert idf(1, 1) == pytest.approx(log((BACKGROUND + 0.5) / 1.5))
    assert idf(1, 1) > 0.75 * idf(0, 1)
    assert idf(1_000_000, 1_000_000) == LEAST


def test_terms_weigh_together_what_they_weigh_apart_and_unknown_ones_most() -> None:
    known = {"oven": 40, "the": 90}

    assert mass(["oven", "the"], known, 100) == pytest.approx(idf(40, 100) + idf(90, 100))
    assert mass(["zebra"], known, 100) == idf(0, 100) > idf(40, 100)
    assert mass([], known, 100) == 0
