"""The table of neighbour lists in a file: kept over restarts, guarded against what does not belong there."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import numpy as np
import pytest

from tests.store.support.generators import T0, Dice, a_memory, add_with, forget
from vestige.cognition.graph.neighbour_lists import Flags, Ints, NeighbourLists, Vectors, brought_up
from vestige.core.models import EVERYTHING
from vestige.store.contract.processes import Who
from vestige.store.sql.search import neighbours as rows
from vestige.store.sqlite.store import SqliteStore


def opened(path: Path) -> SqliteStore:
    return SqliteStore.open(
        path,
        rng=Random(1),
        sleep=lambda seconds: None,
        monotonic=lambda: 0.0,
        new_id=lambda: "id",
        now=lambda: T0,
        machine="test",
        who=Who(pid=1, command="test", since=T0),
    )


def filled(path: Path, count: int) -> None:
    with closing(opened(path)) as store:
        for number in range(count):
            add_with(store, a_memory(f"m{number:03}"), Dice(number).unit())
        assert store.neighbours(access=EVERYTHING) is not None


def query(path: Path, sql: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as db, db:
        return list(db.execute(sql))


def listed(store: SqliteStore) -> list[list[int]]:
    found = store.neighbours(access=EVERYTHING)
    assert found is not None
    return [row.tolist() for row in found.lists.near]


def test_after_a_restart_nothing_is_compared_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vestige.db"
    filled(path, 30)
    with closing(opened(path)) as store:
        monkeypatch.setattr(rows, "brought_up", None)
        assert len(listed(store)) == 30


def test_one_more_memory_is_compared_once_with_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "vestige.db"
    filled(path, 60)
    asked: list[int] = []

    def watched(
        held: NeighbourLists, names: Ints, whole: Vectors, check: Callable[[], None]
    ) -> tuple[NeighbourLists, Flags]:
        asked.append(len(np.setdiff1d(names, held.names)))
        return brought_up(held, names, whole, check)

    with closing(opened(path)) as store:
        monkeypatch.setattr(rows, "brought_up", watched)
        add_with(store, a_memory("new"), Dice(99).unit())
        listed(store)
        listed(store)
    assert asked == [1]


def test_a_deleted_memory_leaves_no_row_and_no_entry(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    filled(path, 30)
    ((gone,),) = query(
        path, "SELECT v.id FROM vectors v JOIN memories m ON m.key = v.key WHERE m.id = 'm004'"
    )
    with closing(opened(path)) as store:
        forget(store, "m004")
        assert query(path, f"SELECT count(*) FROM neighbours WHERE vector_id = {gone}") == [(0,)]
        listed(store)
    for (packed,) in query(path, "SELECT near FROM neighbours"):
        assert isinstance(packed, bytes)
        assert gone not in np.frombuffer(packed, dtype=rows.ENTRY)["name"]


def test_lists_of_a_wrong_size_are_made_again(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    filled(path, 30)
    with closing(opened(path)) as store:
        before = listed(store)
    query(path, "UPDATE neighbours SET near = x'010203' WHERE vector_id % 2 = 0")
    query(path, "DELETE FROM neighbours WHERE vector_id % 3 = 0")
    with closing(opened(path)) as store:
        assert listed(store) == before


def test_work_that_is_too_much_for_one_call_is_done_in_several(tmp_path: Path) -> None:
    with closing(opened(tmp_path / "vestige.db")) as store:
        for number in range(40):
            add_with(store, a_memory(f"m{number:03}"), Dice(number).unit())
        tried = [store.neighbours(access=EVERYTHING, most_products=40 * 15) for _ in range(3)]
        in_parts = listed(store)
        assert [one is None for one in tried] == [True, True, False]
        store.rebuild_neighbours()
        assert listed(store) == in_parts
