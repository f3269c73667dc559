"""Kept masks: what the tables say, after any history, by whichever process, at a cost that does not grow."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.effort import effort
from tests.store.support import sqlite_files
from tests.store.support.generators import (
    DAY,
    T0,
    Dice,
    a_memory,
    add,
    found,
    generated_access,
    generated_filter,
    generated_memory,
    held,
    hits,
    memory_id,
    revise,
)
from tests.store.support.sqlite_files import open_at
from tests.store.support.sqlite_steps import steps
from vestige.core.models import ANYTHING, EVERYTHING, Access, Evidence, Filter
from vestige.store.contract.changes import Add, Forget, RecordEvidence, Revise
from vestige.store.sql.filters import clause
from vestige.store.sql.rows import history, memories
from vestige.store.sqlite.search import masks
from vestige.store.sqlite.search.masks import KeptMasks
from vestige.store.sqlite.search.words import next_key
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
MEMORIES = 40


def assert_true(db: sqlite3.Connection, kept: KeptMasks, where: Filter, access: Access) -> None:
    """A kept mask lets through what the tables say, among the memories that exist."""
    wanted = history.clause_at(db, where, access, worded=True)
    mask = kept.allowed(db, wanted)
    every = memories.keys(db, clause(ANYTHING, EVERYTHING))
    allowed = every if mask is None else every[mask[every]]
    assert set(allowed.tolist()) == set(memories.keys(db, wanted).tolist())


def live_on(dice: Dice, stores: tuple[SqliteStore, ...], born: int) -> int:
    """Something happens in one of the stores, as one process or the other writes it; the number of ids
    used."""
    store, access = dice.one(stores), EVERYTHING
    name = memory_id(int(dice.rng.integers(max(born, 1))))
    there = store.get_many([name], access=access)
    if dice.often(0.3) or not there:
        store.commit([Add(memory=generated_memory(dice, memory_id(born)))], access=access)
        return born + 1
    old = there[0].memory
    if dice.often(0.15):
        store.commit([Forget(memory_id=name, at=T0, reason="test")], access=access)
    elif dice.often(0.2):
        evidence = RecordEvidence(memory_id=name, evidence=Evidence.GOOD, at=T0 + DAY)
        store.commit([evidence], access=access)
    else:
        made = generated_memory(dice, name)
        new = replace(made, created_at=old.created_at, revision=old.revision + 1)
        store.commit([Revise(memory=new, reason="test")], access=access)
    return born


def change(store: SqliteStore, name: str, **fields: Any) -> None:  # fields of Memory, which checks them
    memory = held(store, name).memory
    revise(store, replace(memory, revision=memory.revision + 1, **fields))


@pytest.mark.parametrize("seed", range(effort(4, nightly=40)))
def test_masks_are_what_the_tables_say_after_any_history_of_two_processes(seed: int, path: Path) -> None:
    dice, born = Dice(seed), 0
    kept = KeptMasks()
    with closing(open_at(path)) as one, closing(open_at(path)) as other:
        asked = [(generated_filter(dice), generated_access(dice)) for _ in range(12)]
        plain = [Filter(scope=scope, valid_at=T0 + 200 * DAY) for scope in ("/", "/project", "/a")]
        asked += [(where, access) for where in plain for access in (EVERYTHING, Access(scopes=("/a",)))]
        for _ in range(MEMORIES):
            for _ in range(int(dice.rng.integers(4))):
                born = live_on(dice, (one, other), born)
            with one._connections.reading() as db:
                for where, access in asked:
                    assert_true(db, kept, where, access)


def test_a_mask_is_read_anew_when_the_journal_is_too_short(store: SqliteStore) -> None:
    kept, where = KeptMasks(), Filter(scope="/a", valid_at=T0)
    add(store, *(replace(a_memory(memory_id(n)), scope="/a") for n in range(5)))
    with store._connections.reading() as db:
        assert_true(db, kept, where, EVERYTHING)
    change(store, memory_id(1), scope="/b", valid_until=T0)
    with store._connections.writing() as db:
        db.execute("DELETE FROM changed_keys WHERE seq < (SELECT max(seq) FROM changed_keys)")
    add(store, a_memory(memory_id(9)))
    with store._connections.reading() as db:
        assert_true(db, kept, where, EVERYTHING)


def test_a_transaction_that_began_earlier_sees_its_own_moment(store: SqliteStore) -> None:
    kept, where = KeptMasks(), Filter(scope="/a", valid_at=T0 + DAY)
    add(store, replace(a_memory("one"), scope="/a"), replace(a_memory("two"), scope="/b"))
    with store._connections.reading() as earlier:
        next_key(earlier)  # its moment is fixed by its first read
        change(store, "one", scope="/b")
        change(store, "two", scope="/a", valid_until=T0)
        with store._connections.reading() as later:
            assert_true(later, kept, where, EVERYTHING)
        assert_true(earlier, kept, where, EVERYTHING)


def test_no_more_masks_are_kept_than_allowed(store: SqliteStore) -> None:
    kept = KeptMasks()
    add(store, a_memory("one"))
    with store._connections.reading() as db:
        for number in range(3 * masks.MOST_KEPT):
            kept.allowed(db, clause(Filter(scope=f"/p{number}"), EVERYTHING))
    assert len(kept._masks) == masks.MOST_KEPT


def test_a_memory_that_another_program_moves_leaves_the_mask(store: SqliteStore, path: Path) -> None:
    add(store, replace(a_memory("one"), scope="/a"), replace(a_memory("two"), scope="/a"))
    where = Filter(scope="/a")
    assert hits(store.lexical(["zinc"], where, access=EVERYTHING, limit=5)) == ["one", "two"]
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE memories SET scope = '/b' WHERE id = 'one'")
    assert hits(store.lexical(["zinc"], where, access=EVERYTHING, limit=5)) == ["two"]
    assert found(store, where) == ["two"]


def test_a_search_by_repaired_tags_sees_the_repair(store: SqliteStore, path: Path) -> None:
    add(store, replace(a_memory("one"), tags=("red",)))
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("DELETE FROM memory_tags")
    where = Filter(tags_all=("red",))
    assert hits(store.lexical(["zinc"], where, access=EVERYTHING, limit=5)) == []
    store.repair("tags", T0)
    assert hits(store.lexical(["zinc"], where, access=EVERYTHING, limit=5)) == ["one"]


# -- Cost: SQLite's steps are counted, not seconds


@pytest.mark.parametrize("access", [EVERYTHING, Access(scopes=("/a",))])
def test_a_search_in_a_project_takes_no_more_steps_among_more_memories(
    access: Access, path: Path, tmp_path: Path
) -> None:
    where = Filter(scope="/a", valid_at=T0 + DAY)
    taken = []
    for size in (50, 1000):
        with closing(open_at(tmp_path / f"{size}.db")) as store:
            every = (replace(a_memory(memory_id(n), f"note {n}"), scope="/a") for n in range(size))
            add(store, *every)
            store.lexical(["zinc"], where, access=access, limit=5)
            add(store, replace(a_memory("late"), scope="/a"))
            with store._connections.reading() as db:
                pass  # the one that the search is lent next
            with steps(db) as counted:
                answer = store.lexical(["zinc"], where, access=access, limit=5)
            assert hits(answer) == ["late"]
            taken.append(counted[0])
    assert 0 < taken[1] <= taken[0] + 20
