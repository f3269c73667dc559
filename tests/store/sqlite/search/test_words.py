"""A word index that is broken inside is seen, and made from nothing; kept postings follow what is written."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.store.contract.care.test_examine import use
from tests.store.sqlite.test_checks import break_it
from tests.store.support import sqlite_files
from tests.store.support.generators import DAY, T0, a_memory, add, forget, held
from tests.store.support.sqlite_files import open_at
from vestige.core.errors import StoreCorrupt
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.changes import Revise
from vestige.store.contract.search import Probe
from vestige.store.sql.search.threads import Directory
from vestige.store.sqlite.search import words
from vestige.store.sqlite.search.words import TABLES, PostingsCache, SqliteSurfaces
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
LATER = T0 + 30 * DAY


def worded(store: SqliteStore, term: str) -> list[str]:
    """The memories that a term finds."""
    return [one.memory_id for one in store.lexical([term], ANYTHING, access=EVERYTHING, limit=5)]


UNUSABLE = {
    "its shape": "DELETE FROM words_data WHERE id = 10",
    "its version": "DELETE FROM words_config",
    "a table inside": "DROP TABLE words_idx",
    "the whole": "DROP TABLE words",
    "the list of words": "DROP TABLE words_seen",
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_word_index_that_cannot_be_opened_is_made_from_nothing(
    store: SqliteStore, path: Path, name: str
) -> None:
    use(store)
    break_it(path, UNUSABLE[name])
    assert "word index" in [one.check for one in store.examine(LATER) if one.repair == "words"]
    store.repair("words", LATER)
    assert store.examine(LATER, deep=True) == []
    assert worded(store, "zinc") == ["a"]


def test_a_word_index_made_anew_has_the_schema_that_the_migrations_give(
    store: SqliteStore, path: Path
) -> None:
    use(store)
    schema = "SELECT name, sql FROM sqlite_master WHERE name LIKE 'words%' ORDER BY name"
    before = sqlite_files.query(path, schema)
    store.repair("words", LATER)
    assert sqlite_files.query(path, schema) == before


def test_words_that_no_search_gets_to_are_seen_and_found_again(path: Path) -> None:
    with closing(open_at(path)) as store:
        # So many that the index has more than one page: the way to the first one is never lost.
        add(store, *(a_memory(f"m{one}", f"granite{one} zinc{one}") for one in range(300)))
        break_it(path, "DELETE FROM words_idx")
        assert worded(store, "zinc299") == []
        (found,) = store.examine(LATER)
        assert (found.check, found.repair) == ("word index", "words")
        assert "are not found" in found.message
        store.repair("words", LATER)
        assert store.examine(LATER) == []
        assert worded(store, "zinc299") == ["m299"]


def test_a_broken_word_index_is_seen_in_a_store_that_can_only_be_read(store: SqliteStore, path: Path) -> None:
    use(store)
    break_it(path, "DELETE FROM words_data WHERE id > 10")
    with closing(open_at(path, read_only=True)) as reader:
        assert [one.check for one in reader.examine(LATER)] == ["word index"]


def test_while_others_write_the_word_index_is_only_warned_about(store: SqliteStore, path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        (found,) = store.examine(LATER)
    assert (found.check, found.severity, found.repair) == ("word index", "warning", None)


def test_a_search_that_meets_a_broken_word_index_says_how_to_mend_it(path: Path) -> None:
    with closing(open_at(path)) as store:
        add(store, a_memory("m1", content="zinc and copper"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM words_data WHERE id > 10")
        db.commit()
    with closing(open_at(path)) as store, pytest.raises(StoreCorrupt) as caught:
        store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=5)
    assert "doctor --repair" in (caught.value.hint or "")


def test_the_word_index_outlives_any_number_of_deletions() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        for name, made_of in TABLES.items():
            db.execute(f"CREATE VIRTUAL TABLE {name} USING {made_of}")
        surfaces = SqliteSurfaces()

        def put(keys: range) -> None:
            with db:
                db.execute("BEGIN")
                db.executemany(
                    "INSERT INTO words (rowid, terms) VALUES (?, ?)",
                    [(key, f"granite zinc{key} in many common words") for key in keys],
                )

        put(range(300))  # more than a page, or the index stays flat
        for key in range(300, 1_500):  # older versions of SQLite would break at about 1,000
            put(range(key, key + 1))
            with db:
                db.execute("BEGIN")
                surfaces.delete_words(db, [key - 1])
        assert db.execute("SELECT count(*) FROM words WHERE words MATCH 'granite'").fetchone() == (300,)
        assert db.execute("SELECT count(*) FROM words_seen WHERE term GLOB 'zinc*'").fetchone() == (300,)
        db.execute("INSERT INTO words (words) VALUES ('integrity-check')")


# -- Postings that a process keeps

METALS = ("zinc", "iron", "lead", "gold")
QUERIES = (["zinc"], ["iron"], ["lead"], ["gold"], ["zinc", "iron", "gold"], ["zi*", "lead"])


def scores(store: SqliteStore, budget: int | None) -> list[object]:
    """The scores for some queries, with the frequencies that a search counts."""
    found: list[object] = []
    for terms in QUERIES:
        pool = store.gather(Probe(terms=tuple(terms), per_arm=99, postings=budget), access=EVERYTHING)
        found.append((pool.ids, pool.own.tolist(), pool.window.tolist(), dict(pool.frequencies)))
        found.append(store.lexical(terms, ANYTHING, access=EVERYTHING, limit=99, postings=budget))
    return found


def write(store: SqliteStore, rng: np.random.Generator, alive: list[str], name: str) -> None:
    """Add, change or delete a memory."""
    text = " ".join([*(metal for metal in METALS if rng.random() < 0.5), *rng.choice(METALS, 2), "x"])
    if not alive or rng.random() < 0.4:
        add(store, a_memory(name, text))
        alive.append(name)
    elif rng.random() < 0.3:
        forget(store, alive.pop(int(rng.integers(len(alive)))))
    else:
        before = held(store, alive[int(rng.integers(len(alive)))]).memory
        memory = replace(before, content=text, revision=before.revision + 1)
        store.commit([Revise(memory=memory, reason="edited")], access=EVERYTHING)


@pytest.mark.parametrize(("changed", "kept"), [(256, 1_000_000), (2, 1_000_000), (256, 6)])
@pytest.mark.parametrize("budget", [None, 4])
def test_kept_postings_give_what_is_found_without_them(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, changed: int, kept: int, budget: int | None
) -> None:
    monkeypatch.setattr(words, "MOST_CHANGED", changed)
    monkeypatch.setattr(words, "MOST_KEPT", kept)
    rng, alive = np.random.default_rng(7), list[str]()
    for number in range(40):
        write(store, rng, alive, f"m{number}")
        found, cache = scores(store, budget), store._kept.postings
        store._kept.postings = PostingsCache()
        assert found == scores(store, budget)
        store._kept.postings = cache


def test_words_that_occur_nowhere_do_not_pile_up(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MOST_KEPT", 20 * words.TERM_SIZE)
    add(store, a_memory("m1", "zinc"))
    for number in range(100):
        store.lexical([f"nowhere{number}"], ANYTHING, access=EVERYTHING, limit=5)
    assert len(store._kept.postings._held) <= 20


def test_what_another_process_writes_is_found_by_kept_postings(path: Path, store: SqliteStore) -> None:
    add(store, a_memory("a", "zinc"))
    assert worded(store, "zinc") == ["a"]
    with closing(open_at(path)) as other:
        add(other, a_memory("b", "zinc zinc"))
        assert sorted(worded(store, "zinc")) == ["a", "b"]
        forget(other, "a")
        assert worded(store, "zinc") == ["b"]


def test_a_word_that_was_searched_for_is_not_read_again(store: SqliteStore) -> None:
    add(store, *(a_memory(f"m{number}", "zinc") for number in range(3)))
    directory, cache = Directory(), PostingsCache()
    statements: list[str] = []
    with store._connections.reading() as db:
        directory.catch_up(db)
        db.set_trace_callback(statements.append)
        for _ in range(3):
            words.score(db, directory, ["zinc"], None, cache=cache)
        db.set_trace_callback(None)
    assert len([one for one in statements if "FROM words_" in one]) == 1
