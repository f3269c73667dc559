"""Columns in memory: counts and pages as the tables have them, at a cost that does not grow."""

import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.store.support import sqlite_files
from tests.store.support.compare import STRENGTH_TOLERANCE
from tests.store.support.generators import (
    DAY,
    OTHER_SIGNATURE,
    T0,
    a_memory,
    add,
    add_with,
    axis,
    change_model,
    held,
    ids,
    memory_id,
    remark,
)
from tests.store.support.sqlite_files import open_at
from tests.store.support.sqlite_steps import steps
from vestige.core.models import EVERYTHING, Access, Evidence, Filter, Order
from vestige.store.sql.filters import clause
from vestige.store.sql.rows import memories, stats
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
NOW = T0 + 30 * DAY


def assert_counts_are_true(store: SqliteStore, access: Access = EVERYTHING) -> None:
    with store._connections.reading() as db:
        counted, levels = stats.stats(db, access, NOW), stats.levels(db, access, NOW)
    assert store.stats(access=access, now=NOW) == counted
    kept = store.levels(access=access, now=NOW).retentions
    assert sorted(kept) == pytest.approx(sorted(levels.retentions), abs=STRENGTH_TOLERANCE)


def test_counts_follow_strengths_and_vectors_that_no_event_tells_of(store: SqliteStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    add(store, a_memory("b"))
    assert_counts_are_true(store)
    strength = held(store, "b").strength
    store.put_strengths({"b": replace(strength, stability=9.0, due_at=NOW + DAY)}, after=99)
    assert_counts_are_true(store)
    change_model(store, OTHER_SIGNATURE, held(store, "a").memory, held(store, "b").memory)
    assert store.stats(access=EVERYTHING, now=NOW).embedded == 2
    assert_counts_are_true(store)


def test_counts_are_read_anew_when_the_journal_is_too_short(store: SqliteStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    assert_counts_are_true(store)
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    with store._connections.writing() as db:
        db.execute("DELETE FROM changed_keys WHERE seq < (SELECT max(seq) FROM changed_keys)")
    add(store, a_memory("c"))
    assert_counts_are_true(store)


def test_counts_see_what_another_program_wrote(store: SqliteStore, path: Path) -> None:
    add(store, a_memory("a"), a_memory("b"))
    assert_counts_are_true(store)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute("UPDATE memories SET node_type = 'event', pinned = 1 WHERE id = 'a'")
    assert store.stats(access=EVERYTHING, now=NOW).by_type == {"event": 1, "fact": 1}
    assert_counts_are_true(store)


@pytest.mark.parametrize("order", memories.BY_CREATION)
@pytest.mark.parametrize("few", [0, 10_000])
def test_a_page_of_a_project_is_the_same_by_either_way(
    order: Order, few: int, store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memories, "FEW", few)
    monkeypatch.setattr(memories, "WALK", 7)
    places = ("/a", "/a/b", "/c")
    made = [
        replace(a_memory(memory_id(n), at=T0 + n % 5 * DAY), scope=places[n % 3], pinned=not n % 4)
        for n in range(60)
    ]
    add(store, *made)
    for where in (
        Filter(scope="/a"),
        Filter(scope="/a", pinned=True, valid_at=NOW),
        Filter(scope="/a", created_from=T0 + DAY, created_to=T0 + 4 * DAY),
        Filter(exclude_types=("event",)),
    ):
        with store._connections.reading() as db:
            wanted = clause(where, EVERYTHING)
            expected = memories.page(db, wanted, order, None, 9, 5)
            matching = memories.count(db, wanted)
        assert store.find(where, access=EVERYTHING, order=order, limit=9, offset=5) == expected
        assert store.count(where, access=EVERYTHING) == matching
        store.stats(access=EVERYTHING, now=NOW)  # from here on, counts use the columns
        assert store.count(where, access=EVERYTHING) == matching


LATE = T0 + 400 * DAY
DUE = Filter(scope="/a", pinned=False, due_by=LATE, now=LATE)


@pytest.mark.parametrize("page", [(9, 0), (9, 5), (200, 3), (0, 0)])
def test_a_page_by_due_date_is_the_same_by_either_way(page: tuple[int, int], store: SqliteStore) -> None:
    limit, offset = page
    made = [
        replace(
            a_memory(memory_id(n), at=T0 + n % 7 * DAY),
            scope=("/a", "/a/b", "/c")[n % 3],
            pinned=not n % 4,
            suppression_count=n % 2,
            suppressed_at=T0 + n * DAY if n % 2 else None,
        )
        for n in range(60)
    ]
    add(store, *made)
    for n in range(0, 60, 5):
        remark(store, memory_id(n), Evidence.EASY, T0 + 8 * DAY)
    kept = sorted(store.levels(access=EVERYTHING, now=LATE).retentions)
    for where in (
        Filter(),
        DUE,
        replace(DUE, due_by=T0 + 12 * DAY),
        replace(DUE, max_retention=kept[30]),
        replace(DUE, min_retention=kept[10], max_retention=kept[30], valid_at=NOW),
        replace(DUE, suppressed_by=T0 + 20 * DAY),
        replace(DUE, known_at=T0 + 3 * DAY),
        replace(DUE, created_from=T0 + DAY, archived=None),
    ):
        with store._connections.reading() as db:
            expected = memories.page(db, clause(where, EVERYTHING), Order.DUE, LATE, limit, offset)
        assert store.find(where, access=EVERYTHING, order=Order.DUE, limit=limit, offset=offset) == expected


WHERE = Filter(scope="/a", valid_at=NOW)
QUESTIONS: dict[str, Callable[[SqliteStore], object]] = {
    "stats": lambda store: store.stats(access=EVERYTHING, now=NOW),
    "stats of a key": lambda store: store.stats(access=Access(scopes=("/a",)), now=NOW),
    "levels": lambda store: store.levels(access=EVERYTHING, now=NOW),
    "count": lambda store: store.count(WHERE, access=EVERYTHING),
    "count of days": lambda store: store.count(replace(WHERE, created_from=T0), access=EVERYTHING),
    "newest": lambda store: ids(store.find(WHERE, access=EVERYTHING, limit=5)),
    "pinned": lambda store: ids(store.find(replace(WHERE, pinned=True), access=EVERYTHING, limit=5)),
    "suppressed": lambda store: store.count(replace(WHERE, suppressed_by=NOW), access=EVERYTHING),
    "due": lambda store: ids(store.find(DUE, access=EVERYTHING, order=Order.DUE, limit=5)),
    "faded": lambda store: ids(
        store.find(replace(DUE, max_retention=0.1), access=EVERYTHING, order=Order.DUE, limit=5)
    ),
    "due and suppressed": lambda store: ids(
        store.find(replace(DUE, suppressed_by=NOW), access=EVERYTHING, order=Order.DUE, limit=5)
    ),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_no_count_and_no_page_takes_more_steps_among_more_memories(question: str, tmp_path: Path) -> None:
    taken = []
    for size in (50, 3000):
        with closing(open_at(tmp_path / f"{size}.db")) as store:
            spread = [T0 + n * DAY / 86_400 for n in range(size)]
            made = [a_memory(memory_id(n), f"note {n}", at=at) for n, at in enumerate(spread)]
            add(store, *(replace(one, scope="/a") for one in made))
            store.stats(access=EVERYTHING, now=NOW)
            QUESTIONS[question](store)
            remark(store, memory_id(1), Evidence.GOOD, T0 + DAY)
            add(store, replace(a_memory("late", at=T0 + DAY), scope="/a", pinned=True))
            with store._connections.reading() as db:
                pass  # the one that is lent next
            with steps(db) as counted:
                QUESTIONS[question](store)
            taken.append(counted[0])
    assert 0 < taken[1] <= taken[0] + 600  # a page walks over a thousand rows at a time
