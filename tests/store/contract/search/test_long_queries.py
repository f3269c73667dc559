"""A query of very many terms: the rarest are looked up, and all stores choose the same ones."""

import pytest

from tests.store.support.generators import a_memory, add, hits
from vestige.cognition.ranking.bm25 import MOST_COUNTED, MOST_PREFIXES, MOST_TERMS
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore


def word(number: int) -> str:
    """A term for each number; letters only, and nothing a stemmer would touch."""
    return "".join(chr(97 + int(digit)) for digit in f"{number:04}") + "qx"


def found(store: MemoryStore, *terms: str, postings: int | None = None) -> set[str]:
    return set(hits(store.lexical(terms, ANYTHING, access=EVERYTHING, limit=10_000, postings=postings)))


@pytest.fixture
def many(store: MemoryStore) -> MemoryStore:
    """The word of each number below 100 in a memory of its own, those of even numbers in `twice` too."""
    add(store, *(a_memory(f"m{number}", word(number)) for number in range(100)))
    add(store, a_memory("twice", " ".join(word(number) for number in range(0, 100, 2))))
    return store


@pytest.mark.parametrize("postings", [None, 10_000])
def test_the_rarest_terms_are_looked_up_and_then_those_that_come_first(
    many: MemoryStore, postings: int | None
) -> None:
    everything = [word(number) for number in range(100)]
    rare, common = range(1, 100, 2), range(0, 100, 2)
    expected = {f"m{number}" for number in (*rare, *common[: MOST_TERMS - len(rare)])} | {"twice"}
    for terms in (everything, everything[::-1]):
        assert found(many, *terms, postings=postings) == expected
    assert found(many, *everything[:MOST_TERMS]) == {f"m{number}" for number in range(MOST_TERMS)} | {"twice"}


def test_a_term_that_no_memory_has_takes_nobodys_place(many: MemoryStore) -> None:
    unknown = [word(number) for number in range(5_000, 5_000 + 2 * MOST_TERMS)]
    assert found(many, *unknown, word(1), word(3)) == {"m1", "m3"}


def test_terms_after_very_many_others_do_not_count(many: MemoryStore) -> None:
    unknown = [word(number) for number in range(5_000, 5_000 + MOST_COUNTED)]
    assert found(many, *unknown[1:], word(1), word(3)) == {"m1"}
    pool = many.gather(Probe(terms=(*unknown[1:], word(1), word(3)), per_arm=9), access=EVERYTHING)
    assert pool.frequencies == dict.fromkeys(unknown[1:], 0) | {word(1): 1}


def test_the_longest_prefixes_are_looked_up(many: MemoryStore) -> None:
    longest = [f"{word(number)[:4]}*" for number in range(1, 1 + MOST_PREFIXES)]
    assert found(many, "aa*", *longest) == {f"m{number}" for number in range(1, 1 + MOST_PREFIXES)} | {
        "twice"
    }
    assert found(many, "aa*", *longest[1:]) == {f"m{number}" for number in range(100)} | {"twice"}
    assert found(many, *longest, word(99)) >= {"m99"}, "words are counted apart"


def test_a_repeated_term_counts_once_as_a_term_and_as_often_as_it_is_given(many: MemoryStore) -> None:
    scores = many.lexical(
        [word(1)] * 9 * MOST_COUNTED + [word(3)], ANYTHING, access=EVERYTHING, limit=9, postings=None
    )
    assert [one.memory_id for one in scores] == ["m1", "m3"]
    assert scores[0].own == pytest.approx(9 * MOST_COUNTED * scores[1].own)


def test_a_window_covers_what_was_looked_up_and_what_nobody_has(many: MemoryStore) -> None:
    terms = tuple(word(number) for number in range(100))
    pool = many.gather(Probe(terms=terms, per_arm=200), access=EVERYTHING)
    assert pool.frequencies == {word(number): 1 + (number % 2 == 0) for number in range(100)}
    by_id = dict(zip(pool.ids, pool.covered.tolist(), strict=True))
    assert by_id["twice"] == pytest.approx(1 - 50 * by_id["m1"]), "it holds all that were looked up twice"
