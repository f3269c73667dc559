"""The directory of places: kept up with what is written, by whomever, as if it were read anew."""

import subprocess
import sys
import threading
from dataclasses import fields, replace
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from tests.store.support import sqlite_files
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    Dice,
    a_memory,
    a_turn,
    add,
    add_with,
    axis,
    embedded,
    forget,
    generated_turn,
    held,
    hits,
    revise,
    some_tokens,
)
from tests.store.support.sqlite_files import every_text, open_at, query
from vestige.cognition.ranking.bm25 import Collection
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.changes import Add
from vestige.store.contract.search import Probe
from vestige.store.sql.search import vectors
from vestige.store.sql.search.threads import Directory
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
PROBE = Probe(vector=axis(0), signature=SIGNATURE, per_arm=99)
WRITER = """
import sys
from dataclasses import replace
from pathlib import Path
from tests.store.support.generators import a_turn, add, forget, held, revise
from tests.store.support.sqlite_files import open_at
store = open_at(Path(sys.argv[1]))
add(store, a_turn("after", "cobalt", 3))
forget(store, "gone")
revise(store, replace(held(store, "m1").memory, content="nickel", revision=2))
store.close()
"""


def words(store: SqliteStore, *terms: str) -> list[str]:
    return hits(store.lexical(terms, ANYTHING, access=EVERYTHING, limit=99))


def read(store: SqliteStore, directory: Directory) -> Collection:
    with store._connections.reading() as db:
        directory.catch_up(db)
    return directory.collection()


def assert_same_collection(one: Collection, other: Collection) -> None:
    """Equal in all but the numbers threads go by, and the room kept for them."""
    size = max(len(one.lengths), len(other.lengths))
    for name in ("lengths", "before", "after"):
        mine, theirs = (np.full(size, -1), np.full(size, -1))
        mine[: len(one.lengths)] = getattr(one, name)
        theirs[: len(other.lengths)] = getattr(other, name)
        assert mine.tolist() == theirs.tolist(), name
    for field in fields(Collection):
        if field.type is int:
            assert getattr(one, field.name) == getattr(other, field.name), field.name
    assert threads_of(one) == threads_of(other)


def threads_of(collection: Collection) -> set[tuple[frozenset[int], int]]:
    """Every thread's members with their length."""
    members: dict[int, set[int]] = {}
    for key, thread in enumerate(collection.threads.tolist()):
        if thread >= 0:
            members.setdefault(thread, set()).add(key)
    return {(frozenset(keys), int(collection.thread_lengths[one])) for one, keys in members.items()}


def test_any_life_leaves_the_directory_as_if_read_anew(store: SqliteStore) -> None:
    dice, kept_up, living, ids = Dice(11), Directory(), 0, count()
    revisions: dict[str, int] = {}
    for _ in range(60):
        for _ in range(int(dice.rng.integers(1, 4))):
            names = list(revisions)
            kind = dice.one(("add", "add", "revise", "forget")) if len(names) > 3 else "add"
            if kind == "add":
                name = f"m{next(ids)}"
                add(store, generated_turn(dice, name))
                revisions[name] = 1
            elif kind == "revise":
                name = dice.one(names)
                revisions[name] += 1
                changed = replace(
                    generated_turn(dice, name),
                    revision=revisions[name],
                    suppression_count=int(dice.often(0.2)),
                )
                revise(store, changed)
            else:
                name = dice.one(names)
                forget(store, name)
                del revisions[name]
        seen = read(store, kept_up)
        assert_same_collection(seen, read(store, Directory()))
        living = seen.memories
        assert living == len(revisions)
    assert living > 20
    assert len(threads_of(seen)) > 5


def test_reading_everything_at_once_and_one_by_one_is_the_same(store: SqliteStore) -> None:
    dice, one_by_one = Dice(12), Directory()
    for number in range(100):
        add(store, generated_turn(dice, f"m{number}"))
        seen = read(store, one_by_one)
    assert_same_collection(seen, read(store, Directory()))


def test_a_sibling_sees_words_that_come_move_and_go(path: Path, store: SqliteStore) -> None:
    sibling = open_at(path)
    add(store, a_turn("m1", "zinc", 1))
    assert words(sibling, "zinc") == ["m1"]
    add(store, a_turn("m2", "iron", 2))
    assert words(sibling, "zinc") == ["m1", "m2"]
    revise(store, replace(held(store, "m2").memory, thread="other", revision=2))
    assert words(sibling, "zinc") == ["m1"]
    forget(store, "m1")
    assert words(sibling, "zinc") == []
    assert words(sibling, "iron") == ["m2"]
    sibling.rebuild_words()
    assert words(store, "iron") == ["m2"]
    sibling.close()


@pytest.mark.slow
def test_another_process_is_seen_at_the_next_search(path: Path, store: SqliteStore) -> None:
    add(store, a_turn("m1", "zinc", 1), a_turn("m2", "iron", 2), a_turn("gone", "basalt", 5))
    assert words(store, "basalt") == ["gone", "m2"]
    subprocess.run(
        [sys.executable, "-c", WRITER, str(path)],
        cwd=PROJECT,
        env={"PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"},
        check=True,
        timeout=PATIENCE_SECONDS,
    )
    assert words(store, "basalt") == []
    assert set(words(store, "cobalt")) == {"after", "m2"}
    assert set(words(store, "nickel")) == {"m1", "m2"}
    assert words(store, "zinc") == []


def test_a_search_is_of_the_moment_its_transaction_began(path: Path, store: SqliteStore) -> None:
    add(store, a_turn("m1", "zinc", 1))
    directory = Directory()
    with store._connections.reading() as db:
        directory.catch_up(db)
        add(store, a_turn("m2", "iron", 2))
        directory.catch_up(db)
        assert directory.memories == 1
    with store._connections.reading() as db:
        directory.catch_up(db)
    assert directory.memories == 2


def test_threads_that_search_while_another_writes_see_whole_moments(store: SqliteStore) -> None:
    """A turn and its answer are written together: no search may see one without the other beside it."""
    torn: list[object] = []
    done = threading.Event()

    def search() -> None:
        probe = replace(PROBE, terms=("zinc",), per_arm=1_000)
        while not done.is_set():
            pool = store.gather(probe, access=EVERYTHING)
            if len(pool.ids) % 2 or pool.memories != len(pool.ids) or not pool.window.all():
                torn.append(pool)

    searching = [threading.Thread(target=search) for _ in range(3)]
    for thread in searching:
        thread.start()
    for number in range(40):
        turns = [a_turn(f"m{number}-{at}", ("zinc", "iron")[at], at, thread=f"t{number}") for at in (0, 1)]
        store.commit(
            [Add(memory=turn, embedded=embedded(turn, axis(0))) for turn in turns], access=EVERYTHING
        )
    done.set()
    for thread in searching:
        thread.join()
    assert torn == []
    assert len(store.gather(PROBE, access=EVERYTHING).ids) == 80


def test_what_does_not_touch_words_or_place_writes_no_place(path: Path, store: SqliteStore) -> None:
    memory = a_turn("m1", "zinc", 1)
    add(store, memory)
    (before,) = query(path, "SELECT seq FROM places")
    revise(store, replace(memory, pinned=True, metadata={"n": 1}, node_type="event", revision=2))
    assert query(path, "SELECT seq FROM places") == [before]
    revise(store, replace(memory, author="Ada", revision=3))
    assert query(path, "SELECT seq FROM places") != [before]


def test_a_change_of_the_day_changes_the_words(store: SqliteStore) -> None:
    memory = a_memory("m1", "zinc")
    add(store, memory, a_memory("m2", "iron"))
    assert words(store, "februari") == []
    revise(store, replace(memory, occurred_at=T0 - DAY, revision=2))
    assert words(store, "februari") == ["m1"]


def test_the_place_of_a_forgotten_memory_says_nothing(path: Path, store: SqliteStore) -> None:
    add(store, replace(a_turn("m1", "Bob: zinc?", 1), source="paper", author="Bob"))
    forget(store, "m1")
    columns = "key, thread, source, position, length, form, flags, speaker"
    assert query(path, f"SELECT {columns} FROM places") == [(1, None, None, None, -1, 0, 0, 0)]
    assert not any("zinc" in text for text in every_text(path))


def test_a_place_without_its_memory_is_buried_by_a_rebuild(path: Path, store: SqliteStore) -> None:
    add(store, a_turn("m1", "zinc", 1))
    with store._connections.writing() as db:
        db.execute("INSERT INTO places VALUES (50, 77, 5, NULL, NULL, 9, 0, 0, 0, 0)")
    assert store.rebuild_words() == 1
    assert query(path, "SELECT key, length FROM places ORDER BY key") == [(1, 1), (77, -1)]
    assert words(store, "zinc") == ["m1"]


# -- token bits ------------------------------------------------------------------------------------


def bits(store: SqliteStore) -> list[list[int]]:
    sketch = store.gather(PROBE, access=EVERYTHING).sketch
    return [] if sketch is None else sketch.bits.tolist()


def test_a_sibling_sees_new_tokens_in_place_of_old_ones(path: Path, store: SqliteStore) -> None:
    sibling = open_at(path)
    memory = a_memory("m1")
    store.commit(
        [Add(memory=memory, embedded=embedded(memory, axis(0), tokens=[some_tokens(1)]))], access=EVERYTHING
    )
    assert bits(sibling) == bits(store) == [[1]]
    for given, seen in (([some_tokens(2, 3)], [[2], [3]]), ([], []), ([some_tokens(4)], [[4]])):
        store.put_vectors({"m1": embedded(memory, axis(0), tokens=given)})
        assert bits(sibling) == bits(store) == seen
    forget(store, "m1")
    assert bits(sibling) == []
    assert query(path, "SELECT count(*) FROM token_bits") == [(0,)]
    sibling.close()


def test_the_cache_starts_over_when_it_is_full(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "MOST_BYTES", 3)
    for number in range(4):
        memory = a_memory(f"m{number}", "zinc" if number % 2 else "iron")
        given = embedded(memory, axis(number), tokens=[some_tokens(number)])
        store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)
    for _ in range(2):
        for number in range(4):
            near = replace(PROBE, vector=axis(number), least_cosine=0.5)
            sketch = store.gather(near, access=EVERYTHING).sketch
            assert sketch is not None
            assert sketch.bits.tolist() == [[number]]
            assert store._kept.tokens.size <= 3
    assert sorted(bits(store)) == [[0], [1], [2], [3]]


def test_memories_embedded_without_tokens_are_looked_for_again(store: SqliteStore) -> None:
    memory = a_memory("m1")
    add_with(store, memory, axis(0))
    assert bits(store) == []
    store.put_vectors({"m1": embedded(memory, axis(0), tokens=[some_tokens(9)])})
    assert bits(store) == [[9]]
