"""Thousands of memories: each arm under a filter gives what ranking everything and filtering would."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from testbed.effort import effort
from tests.store.support.compare import assert_same_pool, assert_same_ranking, assert_same_words
from tests.store.support.generators import (
    SIGNATURE,
    WORDS,
    Dice,
    embedded,
    found,
    generated_access,
    generated_filter,
    generated_memory,
    generated_turn,
    hits,
    memory_id,
    rows,
)
from vestige.cognition.query import literals as verbatim
from vestige.cognition.text.analyser import memory_terms, query_terms
from vestige.cognition.text.form import name_hash
from vestige.core.candidates import NEARBY
from vestige.core.models import ANYTHING, EVERYTHING, Access, Filter, Memory
from vestige.store.contract.changes import Add
from vestige.store.contract.search import POSTINGS_BUDGET, Probe
from vestige.store.contract.store import MemoryStore

MEMORIES = effort(2_000, nightly=10_000)
FILTERS = effort(30, nightly=100)
QUERIES = 5
VOCABULARY = 20_000

Pair = tuple[MemoryStore, MemoryStore]


def fill(stores: Sequence[MemoryStore], memories: Sequence[Memory], dice: Dice) -> None:
    added = [Add(memory=one, embedded=embedded(one, dice.unit(), dice.unit())) for one in memories]
    for at in range(0, len(added), 1_000):
        for store in stores:
            store.commit(added[at : at + 1_000], access=EVERYTHING)


@pytest.fixture(scope="module")
def filled(pair: Pair) -> Pair:
    dice = Dice(21)
    kinds = (generated_memory, generated_turn)
    fill(pair, [kinds[number % 2](dice, memory_id(number)) for number in range(MEMORIES)], dice)
    return pair


@pytest.fixture(scope="module")
def filters(filled: Pair) -> list[tuple[Filter, Access, set[str]]]:
    """Filters, each with the ids the reference lets through."""
    dice = Dice(22)
    chosen: list[tuple[Filter, Access, set[str]]] = []
    while len(chosen) < FILTERS:
        where, access = generated_filter(dice), generated_access(dice)
        passing = set(found(filled[0], where, access))
        if passing:  # one that lets nothing through proves little
            chosen.append((where, access, passing))
    return chosen


@pytest.mark.slow
def test_the_filtered_words_are_the_words_filtered(
    filled: Pair, filters: list[tuple[Filter, Access, set[str]]]
) -> None:
    reference, store = filled
    dice = Dice(23)
    queries = [[*query_terms(dice.text(5)), f"{dice.one(WORDS)[:2]}*"] for _ in range(QUERIES)]
    for number, (where, access, passing) in enumerate(filters):
        terms = queries[number % QUERIES]
        # What may not be read counts in no statistics, what is only filtered out does.
        ranked = reference.lexical(terms, ANYTHING, access=access, limit=MEMORIES, postings=None)
        expected = [one for one in ranked if one.memory_id in passing][:50]
        assert_same_words(store.lexical(terms, where, access=access, limit=50, postings=None), expected)


@pytest.mark.slow
def test_the_filtered_neighbours_are_the_neighbours_filtered(
    filled: Pair, filters: list[tuple[Filter, Access, set[str]]]
) -> None:
    reference, store = filled
    dice = Dice(24)
    queries = rows(*(dice.unit() for _ in range(QUERIES)))
    everything = reference.nearest(queries, SIGNATURE, ANYTHING, access=EVERYTHING, limit=MEMORIES)
    for number, (where, access, passing) in enumerate(filters):
        query = queries[number % QUERIES][np.newaxis]
        expected = [one for one in everything[number % QUERIES] if one.memory_id in passing][:50]
        (near,) = store.nearest(query, SIGNATURE, where, access=access, limit=50)
        assert_same_ranking(near, expected)


LITERALS = (
    ("snake_case",),
    ("path/to/file.py", "zinc cobalt"),
    ("chat", "camelCase"),
    (memory_id(7), "paper.pdf", "Straße 東京都"),
    ("unique " + memory_id(9), "iron nickel", "absent_everywhere"),
)


@pytest.mark.slow
@pytest.mark.nightly  # among fewer, no literal is common; test_congruence.py compares literals of few
def test_the_filtered_literals_are_the_literals_filtered(
    filled: Pair, filters: list[tuple[Filter, Access, set[str]]]
) -> None:
    """By looking at every memory: what is named by a literal, or has its terms or source with few others."""
    reference, store = filled
    every = [record.memory for batch in reference.stream(access=EVERYTHING) for record in batch]
    known = {memory.id: frozenset(memory_terms(memory)) for memory in every}
    bound = found_some = 0
    everything = (ANYTHING, EVERYTHING, {memory.id for memory in every})
    for number, (where, access, passing) in enumerate([*filters, *[everything] * len(LITERALS)]):
        literals, there = LITERALS[number % len(LITERALS)], [one for one in every if one.id in passing]
        expected: set[str] = set()
        for literal in literals:
            worded = {one.id for one in there if verbatim.literal_terms(literal) <= known[one.id]}
            sourced = {one.id for one in there if one.source == literal}
            looked_at = {literal}.union(
                *(group for group in (worded, sourced) if len(group) <= verbatim.COMMON)
            )
            bound += max(len(worded), len(sourced)) > verbatim.COMMON
            expected |= {
                one.id
                for one in there
                if one.id in looked_at and verbatim.count_held([literal], one, known[one.id])
            }
        held = {
            one.id: verbatim.count_held(literals, one, known[one.id]) for one in there if one.id in expected
        }
        best = sorted(held, key=lambda name: (-held[name], name))[:50]
        pool = store.gather(Probe(literals=literals, where=where, per_arm=50), access=access)
        assert pool.ids == tuple(sorted(best))
        assert pool.literals.tolist() == [held[name] for name in pool.ids]
        found_some += bool(best)
    assert found_some > FILTERS // 2
    assert bound, "a literal that is never too common shows less"


@pytest.mark.slow
def test_what_is_gathered_among_very_many_is_the_same(
    filled: Pair, filters: list[tuple[Filter, Access, set[str]]]
) -> None:
    """More memories than a neighbourhood holds: words are counted among the nearest."""
    reference, store = filled
    dice = Dice(26)
    wide = [(where, access) for where, access, passing in filters if len(passing) > NEARBY][:2]
    for where, access in ((ANYTHING, EVERYTHING), *wide, filters[0][:2]):
        probe = Probe(
            terms=tuple(query_terms(dice.text(4))),
            names=frozenset({name_hash("Ada")}),
            vector=dice.unit(),
            signature=SIGNATURE,
            where=where,
            per_arm=50,
            postings=dice.one((None, 5_000)),
        )
        first, second = reference.gather(probe, access=access), store.gather(probe, access=access)
        assert_same_pool(first, second)
    assert reference.gather(replace(probe, where=ANYTHING), access=EVERYTHING).memories == NEARBY


@pytest.mark.slow
@pytest.mark.nightly  # that a budget bounds what is read, the contract says of few memories
def test_the_postings_budget_leaves_the_first_ten_almost_as_they_are(pair: Pair) -> None:
    """Words as frequent as in a language; three rarer and two common ones in a question."""
    store, dice = pair[1], Dice(25)
    fill([store], [natural(dice, f"natural {number}") for number in range(MEMORIES)], dice)
    questions = [
        [word(rank) for rank in (*ranks(dice, 3, first=100), *dice.rng.integers(1, 20, 2))]
        for _ in range(200)
    ]
    # the second one is what the default is in a store ten times as large
    for budget, least_bound in ((POSTINGS_BUDGET, 0.0), (POSTINGS_BUDGET // 10, 0.2)):
        overlaps, bound = [], 0
        for terms in questions:
            free, tight = (
                store.lexical(terms, ANYTHING, access=EVERYTHING, limit=10, postings=postings)
                for postings in (None, budget)
            )
            bound += free != tight
            overlaps.append(len(set(hits(free)) & set(hits(tight))) / len(free))
        assert np.mean(overlaps) >= 0.95
        assert bound >= least_bound * len(questions), "a budget that never binds shows nothing"


def natural(dice: Dice, name: str) -> Memory:
    """Twenty words of a turn."""
    created = dice.moment()
    return Memory(
        id=name,
        content=" ".join(word(rank) for rank in ranks(dice, 20)),
        created_at=created,
        updated_at=created,
        thread=f"t{int(dice.rng.integers(500))}",
        position=0,
    )


def ranks(dice: Dice, count: int, first: int = 1) -> list[int]:
    """Ranks of words that occur in inverse proportion to them (Zipf)."""
    spread = dice.rng.random(count) * np.log(VOCABULARY / first)
    return [int(rank) for rank in first * np.exp(spread)]


def word(rank: int) -> str:
    """The word of a rank: letters only, and nothing a stemmer would touch."""
    return "".join(chr(97 + int(digit)) for digit in f"{rank:05}") + "qx"
