"""`known_at`: every search answers by what the store knew at that moment."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    add,
    axis,
    embedded,
    flat,
    found,
    held,
    hits,
    ids,
    remark,
    revise,
    rows,
)
from vestige.core.models import ANYTHING, EVERYTHING, Access, Evidence, Filter
from vestige.store.contract.changes import Add
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore


def known(
    store: MemoryStore, at: datetime, where: Filter = ANYTHING, access: Access = EVERYTHING
) -> list[str]:
    return found(store, replace(where, known_at=at), access)


@pytest.fixture
def revised(store: MemoryStore) -> MemoryStore:
    """`old` was a fact tagged red in /a until day 2, then a decision tagged blue in /b until day 4, and
    has been pinned since; `new` came on day 3."""
    first = replace(a_memory("old"), scope="/a", tags=("red",))
    second = replace(
        first, scope="/b", tags=("blue",), node_type="decision", updated_at=T0 + 2 * DAY, revision=2
    )
    add(store, first, a_memory("new", "iron", T0 + 3 * DAY))
    revise(store, second)
    revise(store, replace(second, pinned=True, updated_at=T0 + 4 * DAY, revision=3))
    return store


def test_what_came_later_was_not_known(revised: MemoryStore) -> None:
    assert known(revised, T0 - DAY) == []
    assert known(revised, T0) == ["old"]
    assert known(revised, T0 + 2 * DAY) == ["old"]
    assert known(revised, T0 + 3 * DAY) == ["new", "old"]


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        (Filter(tags_any=("red",)), (0, 1)),
        (Filter(tags_all=("blue",)), (2, 3, 4, 5)),
        (Filter(scope="/a"), (0, 1)),
        (Filter(scope="/b", scope_only=True), (2, 3, 4, 5)),
        (Filter(node_types=("decision",)), (2, 3, 4, 5)),
        (Filter(exclude_types=("decision",), tags_any=("red", "blue")), (0, 1)),
        (Filter(pinned=True), (4, 5)),
        (Filter(pinned=False, scope="/b"), (2, 3)),
        (Filter(created_from=T0 + DAY, tags_any=("red", "blue")), ()),
    ],
)
def test_a_memory_is_judged_by_the_revision_of_that_moment(
    revised: MemoryStore, asked: Filter, days: tuple[int, ...]
) -> None:
    assert tuple(day for day in range(6) if "old" in known(revised, T0 + day * DAY, asked)) == days


def test_validity_is_that_known_then(store: MemoryStore) -> None:
    memory = a_memory("a")
    add(store, memory)
    revise(store, replace(memory, valid_until=T0, updated_at=T0 + DAY, revision=2))
    for day, there in ((0, ["a"]), (1, [])):
        assert known(store, T0 + day * DAY, Filter(valid_at=T0)) == there


@pytest.mark.parametrize(
    ("change", "without", "within"),
    [
        (
            {"suppression_count": 1, "suppressed_at": T0 + DAY},
            Filter(include_suppressed=False),
            Filter(suppressed_by=T0 + DAY),
        ),
        ({"archived_at": T0 + DAY}, Filter(), Filter(archived=True)),
    ],
)
@pytest.mark.parametrize("content", ["zinc", "iron"])
def test_what_is_out_of_mind_now_is_so_for_every_time(
    store: MemoryStore, change: dict[str, Any], without: Filter, within: Filter, content: str
) -> None:
    memory = a_memory("a", "zinc")
    add(store, memory, *(a_memory(f"other {number}", "granite") for number in range(3)))
    revise(store, replace(memory, content=content, updated_at=T0 + DAY, revision=2, **change))

    for where, there in ((without, set()), (within, {"a"})):
        asked = replace(where, known_at=T0)
        worded = store.lexical(["zinc"], asked, access=EVERYTHING, limit=9)
        reworded = store.reworded(["zinc"], asked, access=EVERYTHING, limit=9).records
        assert {*hits(worded), *ids(reworded)} == there
        assert set(known(store, T0, where)) & {"a"} == there


def test_the_records_are_todays_and_so_is_their_strength(revised: MemoryStore) -> None:
    remark(revised, "old", Evidence.GOOD, T0 + 9 * DAY)
    (record,) = revised.find(Filter(known_at=T0), access=EVERYTHING, limit=9)
    assert record == held(revised, "old")
    due = record.strength.due_at
    assert known(revised, T0, Filter(due_by=due)) == ["old"]
    assert known(revised, T0, Filter(due_by=due - DAY)) == []
    assert known(revised, T0, Filter(min_retention=0.0, now=T0)) == ["old"]
    assert known(revised, T0, Filter(max_retention=-1.0, now=T0)) == []


def test_counting_and_streaming_look_back_too(revised: MemoryStore) -> None:
    where = Filter(known_at=T0 + DAY, tags_any=("red",))
    assert revised.count(where, access=EVERYTHING) == 1
    assert ids(flat(revised.stream(where, access=EVERYTHING, batch=1))) == ["old"]


def test_the_search_arms_look_back_too(store: MemoryStore) -> None:
    memory = replace(a_memory("a", "zinc"), tags=("red",))
    store.commit([Add(memory=memory, embedded=embedded(memory, axis(0)))], access=EVERYTHING)
    revise(store, replace(memory, tags=("blue",), updated_at=T0 + DAY, revision=2))
    for day, there in ((0, ["a"]), (1, [])):
        where = Filter(known_at=T0 + day * DAY, tags_any=("red",))
        assert hits(store.lexical(["zinc"], where, access=EVERYTHING, limit=9)) == there
        (near,) = store.nearest(rows(axis(0)), SIGNATURE, where, access=EVERYTHING, limit=9)
        assert hits(near) == there
        probe = Probe(
            terms=("zinc",), literals=("zinc",), vector=axis(0), signature=SIGNATURE, where=where, per_arm=9
        )
        assert list(store.gather(probe, access=EVERYTHING).ids) == there


def test_an_access_must_reach_a_memory_then_and_now(revised: MemoryStore) -> None:
    moved = T0 + DAY  # it was in /a then, and is in /b now
    assert known(revised, moved, access=Access(scopes=("/a",))) == []
    assert known(revised, moved, access=Access(scopes=("/b",))) == []
    assert known(revised, moved, access=Access(scopes=("/a", "/b"))) == ["old"]
    assert known(revised, T0 + 5 * DAY, access=Access(scopes=("/b",))) == ["old"]


def test_a_memory_is_known_from_its_creation_whatever_its_time_of_update(store: MemoryStore) -> None:
    imported = replace(a_memory("a"), updated_at=T0 + 5 * DAY, tags=("red",))
    add(store, imported)
    assert known(store, T0 + DAY, Filter(tags_any=("red",))) == ["a"]
    revise(store, replace(imported, updated_at=T0 + 6 * DAY, tags=("blue",), revision=2))
    assert known(store, T0 + DAY, Filter(tags_any=("red",))) == ["a"]
    assert known(store, T0 + DAY, Filter(tags_any=("blue",))) == []


def test_a_clock_that_was_set_back_leaves_the_last_revision_in_force(store: MemoryStore) -> None:
    memory = replace(a_memory("a"), updated_at=T0 + 5 * DAY, tags=("red",))
    add(store, memory)
    revise(store, replace(memory, updated_at=T0 + DAY, tags=("blue",), revision=2))
    assert known(store, T0 + 2 * DAY, Filter(tags_any=("blue",))) == ["a"]
    assert known(store, T0 + 6 * DAY, Filter(tags_any=("blue",))) == ["a"]
