"""Snapshots: a process starts from a file and the changes since, with the same answers as from all rows."""

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from testbed.effort import effort
from tests.store.support import sqlite_files
from tests.store.support.compare import assert_same_pool, assert_same_stats
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    Dice,
    a_memory,
    add,
    add_with,
    axis,
    forget,
    generated_access,
    generated_turn,
    memory_id,
    remark,
)
from tests.store.support.index_files import folder_of
from tests.store.support.sqlite_files import open_at, query
from tests.store.support.sqlite_steps import steps
from vestige.core.models import EVERYTHING, Evidence, Filter
from vestige.store.contract.search import Probe
from vestige.store.sql.search.threads import Directory
from vestige.store.sqlite.search import snapshot
from vestige.store.sqlite.search.columns import MemoryColumns
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
NOW = T0 + 30 * DAY
PROBE = Probe(terms=("zinc", "cobalt", "copper"), where=Filter(), per_arm=20)


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots from a few memories on, after a few changes."""
    monkeypatch.setattr(snapshot, "FEWEST", 10)
    monkeypatch.setattr(snapshot, "OUTDATED", 5)


@pytest.fixture
def fresh(path: Path, store: SqliteStore) -> Iterator[SqliteStore]:
    """Another process, which starts from the snapshot if there is one."""
    with closing(open_at(path)) as opened:
        yield opened


def files(path: Path) -> list[Path]:
    return sorted(folder_of(path).glob("*.columns"))


def fill(store: SqliteStore, count: int = 30) -> None:
    dice = Dice(3)
    add(store, *(generated_turn(dice, memory_id(number)) for number in range(count)))


def assert_same(one: SqliteStore, other: SqliteStore) -> None:
    assert_same_stats(one, other, EVERYTHING, NOW)
    assert_same_pool(one.gather(PROBE, access=EVERYTHING), other.gather(PROBE, access=EVERYTHING))


@pytest.mark.parametrize("seed", range(effort(3, nightly=30)))
def test_a_start_from_a_snapshot_and_any_changes_answers_as_a_start_from_the_rows(
    seed: int, path: Path, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    dice = Dice(seed)
    fill(store)
    store.settle()
    assert len(files(path)) == 1
    for number in range(30, 40):
        add(store, generated_turn(dice, memory_id(number)))
        remark(store, memory_id(int(dice.rng.integers(30))), Evidence.GOOD, T0 + DAY)
    access = generated_access(dice)
    with closing(open_at(path)) as mapped, closing(open_at(path)) as rows:
        assert mapped.stats(access=access, now=NOW).memories <= 40
        assert_same(mapped, store)
        assert mapped._kept.columns.is_readable.__self__.image is not None  # type: ignore[attr-defined]  # of the snapshot
        monkeypatch.setattr(snapshot, "read", lambda db: None)
        assert_same(rows, mapped)


def test_a_start_from_a_snapshot_reads_only_what_changed(tmp_path: Path) -> None:
    taken = []
    for size in (50, 2000):
        at = tmp_path / f"{size}.db"
        with closing(open_at(at)) as store:
            add(store, *(a_memory(memory_id(number), f"note {number}") for number in range(size)))
            store.settle()
            remark(store, memory_id(1), Evidence.GOOD, T0 + DAY)
        with closing(open_at(at)) as fresh:
            with fresh._connections.reading() as db:
                pass  # the one that is lent next
            with steps(db) as counted:
                assert fresh.stats(access=EVERYTHING, now=NOW).memories == size
                fresh.gather(PROBE, access=EVERYTHING)
            taken.append(counted[0])
    assert 0 < taken[1] <= taken[0] + 20


def test_a_snapshot_is_written_again_after_enough_changes_and_the_old_one_removed(
    path: Path, store: SqliteStore
) -> None:
    fill(store)
    store.settle()
    (first,) = files(path)
    store.settle()
    assert files(path) == [first]
    add(store, *(a_memory(f"more {number}") for number in range(10)))
    store.settle()
    (second,) = files(path)
    assert second != first
    assert second.stat().st_mode & 0o777 == 0o600


def test_a_deletion_removes_the_snapshot(path: Path, store: SqliteStore, fresh: SqliteStore) -> None:
    fill(store)
    store.settle()
    assert files(path)
    forget(store, memory_id(3))
    assert not files(path)
    assert query(path, "SELECT count(*) FROM snapshots") == [(0,)]
    assert_same(fresh, store)
    store.settle()
    assert files(path)


def test_a_snapshot_made_while_a_memory_is_deleted_is_not_listed(path: Path, store: SqliteStore) -> None:
    fill(store)
    with store._connections.reading() as db:
        directory, columns = Directory(), MemoryColumns()
        snapshot.catch_up_directory(db, directory)
        snapshot.catch_up_columns(db, columns)
    forget(store, memory_id(3))
    snapshot._publish(store._connections, folder_of(path), snapshot.of(directory, columns))
    assert not files(path)
    assert query(path, "SELECT count(*) FROM snapshots") == [(0,)]


@pytest.mark.parametrize("length", [0, 10, 200, 4000])
def test_a_damaged_snapshot_is_left_aside(
    length: int, path: Path, store: SqliteStore, fresh: SqliteStore
) -> None:
    fill(store)
    store.settle()
    (file,) = files(path)
    os.truncate(file, length)
    assert_same(fresh, store)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_snapshot_with_other_bytes_in_its_arrays_is_left_aside(
    share: float, path: Path, store: SqliteStore, fresh: SqliteStore
) -> None:
    fill(store)
    store.settle()
    (file,) = files(path)
    with file.open("r+b") as opened:
        opened.seek(int(share * file.stat().st_size))
        opened.write(b"\x7f" * 64)
    assert_same(fresh, store)


def test_a_snapshot_that_is_cut_while_it_is_mapped_is_read_no_more(
    path: Path, store: SqliteStore, fresh: SqliteStore
) -> None:
    fill(store)
    store.settle()
    assert_same(fresh, store)
    (file,) = files(path)
    os.truncate(file, 0)
    remark(store, memory_id(2), Evidence.GOOD, T0 + DAY)
    assert_same(fresh, store)


def test_a_copy_of_the_database_alone_starts_from_its_rows(path: Path, store: SqliteStore) -> None:
    fill(store)
    store.settle()
    copy = path.with_name("copy.db")
    store.backup(copy)
    with closing(open_at(copy)) as other:
        assert_same(other, store)


def test_a_few_memories_have_no_snapshot(path: Path, store: SqliteStore) -> None:
    fill(store, 5)
    store.settle()
    assert not files(path)


# -- The mark of what was embedded


def test_memories_without_vectors_are_found_without_looking_at_all(store: SqliteStore) -> None:
    for number in range(40):
        add_with(store, a_memory(memory_id(number)), axis(number % 8))
    assert store.unembedded(SIGNATURE, limit=5) == []
    taken = []
    for more in (1, 40):
        with store._connections.reading() as db:
            pass
        with steps(db) as counted:
            assert store.unembedded(SIGNATURE, limit=5) == []
        taken.append(counted[0])
        for number in range(more * 100, more * 101):
            add_with(store, a_memory(memory_id(number)), axis(1))
        assert store.unembedded(SIGNATURE, limit=5) == []
    assert taken[0] < 40


def test_the_mark_misses_no_memory_that_loses_or_lacks_its_vectors(path: Path, store: SqliteStore) -> None:
    for number in range(5):
        add_with(store, a_memory(memory_id(number)), axis(number))
    assert store.unembedded(SIGNATURE, limit=9) == []
    add(store, a_memory("bare", at=T0 + DAY))
    assert [one.id for one in store.unembedded(SIGNATURE, limit=9)] == ["bare"]
    with store._connections.writing() as db:
        db.execute("DELETE FROM vectors WHERE key = 2")
    lacking = {one.id for one in store.unembedded(SIGNATURE, limit=9)}
    assert lacking == {memory_id(1), "bare"}
    with store._connections.writing() as db:
        db.execute("DELETE FROM changed_keys WHERE seq < (SELECT max(seq) FROM changed_keys)")
    assert {one.id for one in store.unembedded(SIGNATURE, limit=9)} == lacking
