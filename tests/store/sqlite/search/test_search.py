"""What a search costs is bounded: statements, texts read, memory for token bits."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.support import sqlite_files
from tests.store.support.foreign_edit import check_that_outdated_vectors_do_not_count
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    add,
    axis,
    embedded,
    held,
    revise,
    some_tokens,
)
from tests.store.support.sqlite_files import open_at
from vestige.cognition.ranking.bm25 import MOST_COUNTED, MOST_PREFIXES, MOST_TERMS
from vestige.core.models import EVERYTHING
from vestige.store.contract.changes import Add
from vestige.store.contract.search import Probe
from vestige.store.sql.search import vectors
from vestige.store.sql.search.threads import Directory
from vestige.store.sqlite.search import words
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store


@pytest.mark.parametrize("budget", [None, 10])
def test_a_query_of_100_kb_runs_no_more_statements_than_a_long_one(
    store: SqliteStore, budget: int | None
) -> None:
    add(store, *(a_memory(f"m{number}", f"word{number} zinc") for number in range(300)))
    terms = [f"word{number}" for number in range(12_000)] + [f"pre{number}*" for number in range(2_000)]
    assert sum(map(len, terms)) > 100_000
    statements: list[str] = []
    with store._connections.reading() as db:
        directory = Directory()
        directory.catch_up(db)
        db.set_trace_callback(statements.append)
        words.score(db, directory, terms, budget)
        db.set_trace_callback(None)
    ours = [one for one in statements if "FROM words_" in one]
    assert 0 < len(ours) <= MOST_COUNTED + MOST_PREFIXES + MOST_TERMS + MOST_PREFIXES


# -- literals --------------------------------------------------------------------------------------


def holding(store: SqliteStore, literal: str) -> dict[str, int]:
    """What the literal arm finds, with how many literals each holds."""
    pool = store.gather(Probe(literals=(literal,), per_arm=99), access=EVERYTHING)
    return dict(zip(pool.ids, pool.literals.tolist(), strict=True))


def test_texts_are_read_for_a_literal_up_to_a_bound_short_ones_first(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = "see ERR_42 " + "and much more " * 500
    add(store, a_memory("long", long), a_memory("longer", 2 * long))
    add(store, *(a_memory(f"short{number}", "see ERR_42") for number in range(3)))
    assert len(holding(store, "ERR_42")) == 5
    monkeypatch.setattr(words, "READ_CHARS", 3 * len(long))
    assert holding(store, "ERR_42") == {"long": 1, "short0": 1, "short1": 1, "short2": 1}
    monkeypatch.setattr(words, "READ_CHARS", 200)
    assert holding(store, "ERR_42") == {"short0": 1, "short1": 1, "short2": 1}


def test_a_literal_whose_words_are_everywhere_is_looked_for_nowhere(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(store, *(a_memory(f"m{number}", "the build") for number in range(5)))
    add(store, replace(a_memory("named", "zinc"), source="the build"))
    assert len(holding(store, "the build")) == 6
    monkeypatch.setattr(words, "EVERYWHERE", 5)
    assert holding(store, "the build") == {"named": 1}, "its source is still looked up"


# -- token bits ------------------------------------------------------------------------------------


def sketched(store: SqliteStore, *axes: int) -> list[list[int]]:
    """The token bits of the memories that lie along these axes."""
    vector = sum((axis(number) for number in axes), start=0 * axis(0))
    probe = Probe(vector=vector, signature=SIGNATURE, least_cosine=0.5, per_arm=99)
    sketch = store.gather(probe, access=EVERYTHING).sketch
    assert sketch is not None
    return [[int(bits) for bits in token] for token in sketch.bits]


def test_token_bits_are_held_up_to_a_bound_and_read_again_when_they_are_needed(
    path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 2 * 10
    monkeypatch.setattr(vectors, "MOST_BYTES", room)
    monkeypatch.setattr("vestige.core.candidates.MOST_TOKENS", 16)
    monkeypatch.setattr("vestige.core.candidates.LEAST_TOKENS", 1)
    rows = [[10 * number + at for at in range(10)] for number in range(4)]
    for number in range(4):
        memory = a_memory(f"m{number}")
        given = embedded(memory, axis(number), tokens=[some_tokens(*rows[number])])
        store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)
    cache = store._kept.tokens
    # Alone a memory has all its tokens, in company only the first of them, and then all of them again.
    for asked, kept in (
        ((0,), 10),
        ((1,), 10),
        ((2,), 10),
        ((0, 1, 2), 5),
        ((1,), 10),
        ((0, 3), 8),
        ((3,), 10),
    ):
        expected = [[bits] for number in asked for bits in rows[number][:kept]]
        assert sketched(store, *asked) == expected, asked
        assert sum(cache.counts.values()) <= cache.size <= max(room, len(asked) * 10)
    other = open_at(path)
    assert sketched(other, 0, 1, 2) == [[bits] for number in range(3) for bits in rows[number][:5]]
    assert set(other._kept.tokens.counts.values()) == {5}, "no more is read than is used"
    other.close()


# -- Vectors of an earlier text


def edit(path: Path, statement: str) -> None:
    """As with any SQLite client."""
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(statement)


def test_vectors_of_an_earlier_text_do_not_count_and_are_made_again(path: Path, store: SqliteStore) -> None:
    statement = "UPDATE memories SET text_hash = 'other' WHERE id = 'old'"
    check_that_outdated_vectors_do_not_count(store, lambda: edit(path, statement))
    assert [one.id for one in store.unembedded(SIGNATURE, limit=9)] == ["old"]


def test_a_text_that_a_sql_client_changed_is_not_found_by_the_vectors_of_the_earlier_one(
    path: Path, store: SqliteStore
) -> None:
    statement = "UPDATE memories SET content = 'gallium' WHERE id = 'old'"
    check_that_outdated_vectors_do_not_count(store, lambda: edit(path, statement))
    assert store.unembedded(SIGNATURE, limit=9) == [], "its text may be damaged"
    assert {one.ids for one in store.examine(T0.replace(year=2030)) if one.check == "texts"} == {("old",)}
    memory = held(store, "old").memory
    revise(store, replace(memory, content="gallium.", revision=memory.revision + 1, updated_at=T0 + DAY))
    assert [one.content for one in store.unembedded(SIGNATURE, limit=9)] == ["gallium."]
    assert store.examine(T0.replace(year=2030)) == []
