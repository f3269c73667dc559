"""Searching in PostgreSQL: three statements, side by side, by an index where vectors are many."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from tests.store.support.foreign_edit import check_that_outdated_vectors_do_not_count
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    a_turn,
    add,
    axis,
    between,
    embedded,
    hits,
    revise,
    rows,
    some_tokens,
)
from tests.store.support.postgres_stores import open_at, put, query
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.contract.changes import Add
from vestige.store.contract.search import Probe
from vestige.store.inmemory import InMemoryStore
from vestige.store.postgres.search import words
from vestige.store.postgres.search.cache import MemoryIds, Shelf
from vestige.store.postgres.search.changes_since import ChangesSince, Past
from vestige.store.postgres.search.statement import Passing
from vestige.store.postgres.server import values as arrays
from vestige.store.postgres.store import PostgresStore
from vestige.store.sql.search import vectors
from vestige.store.sql.search.pool import NO_KEYS

pytestmark = pytest.mark.slow


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    opened = open_at(postgres_url)
    yield opened
    opened._hnsw.close()
    opened.close()


def test_vectors_of_an_earlier_text_do_not_count_and_are_made_again(
    postgres_url: str, store: PostgresStore
) -> None:
    edit = "UPDATE memories SET text_hash = 'other' WHERE id = 'old'"
    check_that_outdated_vectors_do_not_count(store, lambda: query(postgres_url, edit))
    assert [one.id for one in store.unembedded(SIGNATURE, limit=9)] == ["old"]


# -- statements ------------------------------------------------------------------------------------

PROBES = {
    "nothing": Probe(per_arm=5),
    "words": Probe(terms=("zinc", "cobalt", "absent", "co*", "z*"), per_arm=5),
    "ties that cross the limit": Probe(terms=("zinc",), vector=axis(0), signature=SIGNATURE, per_arm=1),
    "meaning": Probe(vector=axis(0), signature=SIGNATURE, per_arm=5),
    "literals": Probe(literals=("zinc and cobalt", "m3", "ERR_42"), per_arm=2),
    "a limited filter": Probe(
        terms=("zinc",),
        vector=axis(0),
        signature=SIGNATURE,
        where=Filter(valid_at=T0, scope="/project", tags_any=("red",)),
        per_arm=5,
    ),
    "everything": Probe(
        terms=("zinc", "co*"),
        date_terms=("zinc",),
        literals=("zinc and cobalt",),
        vector=between(0, 1, 0.5),
        signature=SIGNATURE,
        where=Filter(valid_at=T0),
        per_arm=5,
    ),
}


@pytest.mark.parametrize("name", PROBES)
def test_a_search_takes_three_statements_at_most(
    store: PostgresStore, statements: list[str], name: str
) -> None:
    for number in range(12):
        memory = replace(a_turn(f"m{number}", "zinc and cobalt", number), scope="/project", tags=("red",))
        given = embedded(memory, axis(0), axis(1), tokens=[some_tokens(number)])
        store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)
    for _ in range(2):  # with all to learn, and with nothing new
        statements.clear()
        pool = store.gather(PROBES[name], access=EVERYTHING)
        assert len(statements) <= 3, statements
        assert bool(pool.ids) == (name != "nothing")


def test_a_word_counts_as_often_as_a_text_has_it(store: PostgresStore) -> None:
    other = InMemoryStore(node="other")
    for one in (store, other):
        add(one, a_memory("often", "zinc " * 70_000), a_memory("once", "zinc and cobalt"), a_memory("never"))
    found, expected = (
        one.lexical(["zinc", "cob*"], ANYTHING, access=EVERYTHING, limit=10, postings=None)
        for one in (store, other)
    )
    assert [one.memory_id for one in found] == [one.memory_id for one in expected]
    assert [one.own for one in found] == pytest.approx([one.own for one in expected])


def test_a_filter_that_looks_back_or_weighs_retention_takes_two_more_at_most(
    store: PostgresStore, statements: list[str]
) -> None:
    add(store, *(a_memory(f"m{number}") for number in range(5)))
    revise(store, replace(a_memory("m1", "nickel"), revision=2, updated_at=T0 + 2 * DAY))
    for where in (Filter(known_at=T0 + DAY), Filter(min_retention=0.1, now=T0)):
        statements.clear()
        assert store.gather(Probe(terms=("zinc",), where=where, per_arm=9), access=EVERYTHING).ids
        assert len(statements) <= 5, statements


# -- side by side ----------------------------------------------------------------------------------


def news(keys: range, seq: int) -> ChangesSince:
    """News of memories that stand alone, of three terms each."""
    rows = [[key, 0, 0, 0, 3, 0, 1, key] for key in keys]
    return ChangesSince(
        past=Past(where="here", seq=seq),
        changed=np.array(rows, dtype=np.int64).reshape(-1, 8),
        ids=[f"m{key}" for key in keys],
        space=None,
        common={},
        passing=Passing(keys=None, left_out=NO_KEYS),
        readable=Passing(keys=None, left_out=NO_KEYS),
    )


def test_a_search_keeps_the_directory_of_its_moment_while_another_sees_more() -> None:
    shelf = Shelf()
    with shelf.caught_up(lambda since: news(range(1, 3), since + 2)) as (earlier, _):
        with shelf.caught_up(lambda since: news(range(3, 6), since + 3)) as (later, _):
            assert (earlier.directory.memories, later.directory.memories) == (2, 5)
        with shelf.caught_up(lambda since: news(range(0), since)) as (last, _):
            assert last is later, "nothing new, nothing copied"
        assert (earlier.directory.memories, earlier.directory.seq, later.directory.seq) == (2, 2, 5)
    with shelf.caught_up(lambda since: news(range(6, 7), since + 1)) as (alone, _):
        assert alone is later, "who reads alone needs no copy"
        assert alone.directory.memories == 6


def test_names_are_held_whatever_their_length_and_letters() -> None:
    names = MemoryIds()
    names.take(np.array([1, 5]), ["a", "é" * 40])
    names.take(np.array([2_000]), ["z" * 100])
    names.take(np.array([1]), [None])  # it is gone, and who still reads it knows it
    assert names.of([5, 1, 2_000]) == {5: "é" * 40, 1: "a", 2_000: "z" * 100}


@pytest.mark.parametrize("values", [[], [7], [0, -5, 2**62]])
def test_arrays_come_back_as_they_were_sent(store: PostgresStore, values: list[int]) -> None:
    with store._connections.reading() as db:
        sent, table, real = db.execute(
            "SELECT array_send(a), array_send((SELECT array_agg(ARRAY[x, x::int]) FROM unnest(a[:1]) x)),"
            " array_send(a::float8[]) FROM (SELECT ?::bigint[] AS a) s",
            (arrays.sent_keys(np.array(values, dtype=np.int64)),),
        ).fetchone()
    assert arrays.integers(sent).tolist() == values
    assert arrays.integers(table).tolist() == 2 * values[:1]
    assert arrays.floats(real).tolist() == [float(one) for one in values]


# -- bounds ----------------------------------------------------------------------------------------


def holding(store: PostgresStore, literal: str) -> dict[str, int]:
    """What the literal arm finds, with how many literals each holds."""
    pool = store.gather(Probe(literals=(literal,), per_arm=99), access=EVERYTHING)
    return dict(zip(pool.ids, pool.literals.tolist(), strict=True))


def test_texts_are_read_for_a_literal_up_to_a_bound_short_ones_first(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "see ERR_42 " + "and much more " * 500
    add(store, a_memory("long", long), a_memory("longer", 2 * long))
    add(store, *(a_memory(f"short{number}", "see ERR_42") for number in range(3)))
    assert len(holding(store, "ERR_42")) == 5
    monkeypatch.setattr(words, "READ_BYTES", 3 * len(long))
    assert holding(store, "ERR_42") == {"long": 1, "short0": 1, "short1": 1, "short2": 1}
    monkeypatch.setattr(words, "READ_BYTES", 200)
    assert holding(store, "ERR_42") == {"short0": 1, "short1": 1, "short2": 1}


def test_a_literal_whose_words_are_everywhere_is_looked_for_nowhere(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, *(a_memory(f"m{number}", "the build") for number in range(5)))
    add(store, replace(a_memory("named", "zinc"), source="the build"))
    assert len(holding(store, "the build")) == 6
    monkeypatch.setattr(words, "EVERYWHERE", 5)
    assert holding(store, "the build") == {"named": 1}, "its source is still looked up"


def test_no_more_token_bits_are_read_than_a_sketch_holds_and_more_when_it_holds_more(
    store: PostgresStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "MOST_BYTES", 2 * 10)
    monkeypatch.setattr("vestige.core.candidates.MOST_TOKENS", 16)
    monkeypatch.setattr("vestige.core.candidates.LEAST_TOKENS", 1)
    of_each = [[10 * number + at for at in range(10)] for number in range(4)]
    for number in range(4):
        memory = a_memory(f"m{number}")
        given = embedded(memory, axis(number), tokens=[some_tokens(*of_each[number])])
        store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)
    cache = store._shelf._edition.tokens
    for asked, kept in (((0,), 10), ((0, 1, 2), 5), ((1,), 10), ((0, 3), 8), ((3,), 10)):
        vector = sum((axis(number) for number in asked), start=0 * axis(0))
        probe = Probe(vector=vector, signature=SIGNATURE, least_cosine=0.5, per_arm=99)
        sketch = store.gather(probe, access=EVERYTHING).sketch
        assert sketch is not None
        assert sketch.bits.tolist() == [[bits] for number in asked for bits in of_each[number][:kept]], asked
        assert sum(cache.counts.values()) <= cache.size <= max(2, len(asked)) * 10
        assert len(cache.counts) <= max(2, len(asked))


# -- damage ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [2, 3])
def test_a_memory_without_a_place_stops_no_search_and_no_write_and_can_be_mended(
    store: PostgresStore, postgres_url: str, key: int
) -> None:
    memories = [replace(a_memory(f"m{number}", "zinc"), scope="/project") for number in range(1, 4)]
    add(store, *memories)
    query(postgres_url, f"DELETE FROM places WHERE key = {key}")
    with closing(open_at(postgres_url)) as damaged:
        probe = Probe(terms=("zinc",), where=Filter(scope="/project"), per_arm=5)
        others = {"m1", "m2", "m3"} - {f"m{key}"}
        assert set(damaged.gather(probe, access=EVERYTHING).ids) == others
        add(damaged, replace(a_memory("m4", "zinc"), scope="/project"))
        assert set(damaged.gather(probe, access=EVERYTHING).ids) == others | {"m4"}
        (trouble,) = damaged.examine(T0.replace(year=2030))
        damaged.repair(trouble.repair or "", T0)
        assert set(damaged.gather(probe, access=EVERYTHING).ids) == {"m1", "m2", "m3", "m4"}


# -- the nearest -----------------------------------------------------------------------------------


def test_the_nearest_are_found_behind_a_memory_of_many_pieces_and_many_that_tie(store: PostgresStore) -> None:
    book = a_memory("book")
    store.commit([Add(memory=book, embedded=embedded(book, *[axis(0)] * 100))], access=EVERYTHING)
    tied = put(store, np.array([between(0, 1, 0.5)] * 80))
    put(store, rows(axis(1)), first=80)
    (found,) = store.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=3)
    assert hits(found) == ["book", *tied[:2]], "ties by id"
    (every,) = store.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=2**63)
    assert len(every) == 82
    assert store.nearest(rows(axis(0), axis(1)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=0) == [[], []]
