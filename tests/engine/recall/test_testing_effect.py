"""The trace of a search: a reaction like the others, in their commit, and of the search itself where nothing
reacts."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World, open_world
from vestige.core.errors import StoreFull
from vestige.core.models import EVERYTHING, Record
from vestige.engine.reactions import autopilot, searches
from vestige.store.contract.changes import Change, RecordEvidence

TEXT = "The parser is written in Zig."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


@contextmanager
def worker_held(world: World, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A worker that runs, and that waits before the first read of its next reaction until the block ends."""
    world.app.autopilot.start()
    world.app.settle()
    gate, store = threading.Event(), world.app.engine.store
    get_many = store.get_many

    def late(memory_ids: Sequence[str], **rest: Any) -> list[Record]:  # Any: passed on as it is
        if threading.current_thread().name == "vestige-worker":
            assert gate.wait(PATIENCE_SECONDS)
        return get_many(memory_ids, **rest)

    monkeypatch.setattr(store, "get_many", late)
    try:
        yield
    finally:
        gate.set()
        world.app.settle()


def times_shown(world: World, memory_id: str) -> int:
    (record,) = world.app.engine.store.get_many([memory_id], access=EVERYTHING)
    return record.strength.times_retrieved


def test_an_answer_does_not_wait_for_the_trace_that_the_worker_writes(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = world.remember(TEXT)
    with worker_held(world, monkeypatch):
        assert world.find("parser Zig") == [TEXT]
        assert times_shown(world, memory_id) == 0
    assert times_shown(world, memory_id) == 1


def test_two_searches_before_the_first_trace_leave_one(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_id = world.remember(TEXT)
    with worker_held(world, monkeypatch):
        for _ in range(2):
            assert world.find("parser Zig") == [TEXT]
    assert times_shown(world, memory_id) == 1


def test_a_memory_that_is_deleted_before_its_trace_takes_no_other_with_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, kept = world.remember(TEXT), world.remember("The parser of the other project is written in Rust.")
    with worker_held(world, monkeypatch):
        assert len(world.find("parser written")) == 2
        world.call("memory", action="delete", id=gone)
    assert times_shown(world, kept) == 1
    assert world.app.engine.background().failed == 0


def test_when_very_much_waits_a_search_writes_its_trace_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_id = world.remember(TEXT)
    with worker_held(world, monkeypatch):
        monkeypatch.setattr(autopilot, "MOST_LATER", 0)
        assert world.find("parser Zig") == [TEXT]
        assert times_shown(world, memory_id) == 1
    assert (times_shown(world, memory_id), world.app.engine.background().dropped) == (1, 0)


@pytest.mark.parametrize("worker", [True, False])
def test_a_search_that_is_not_recorded_leaves_no_trace(worker: bool, world: World) -> None:
    memory_id = world.remember(TEXT)
    if worker:
        world.app.autopilot.start()
    assert world.find("parser Zig", record=False) == [TEXT]
    world.app.settle()
    assert times_shown(world, memory_id) == 0


def test_a_command_leaves_the_trace_when_it_ends(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        memory_id = world.remember(TEXT)
        assert world.find("parser Zig") == [TEXT]
        assert times_shown(world, memory_id) == 0
    with open_world(tmp_path) as world:
        assert times_shown(world, memory_id) == 1


def test_where_nothing_reacts_the_trace_is_there_with_the_answer(tmp_path: Path) -> None:
    off: dict[str, Any] = {"mechanisms.autopilot": False}  # Any: settings of any type
    with open_world(tmp_path, **off) as world:
        memory_id = world.remember(TEXT)
        assert world.find("parser Zig") == [TEXT]
        assert times_shown(world, memory_id) == 1


def test_a_memory_that_is_shown_on_two_days_before_the_first_trace_gets_both(world: World) -> None:
    memory_id = world.remember(TEXT)
    for _ in range(2):
        assert world.find("parser Zig") == [TEXT]
        world.clock.advance(days=1)
    world.app.settle()
    assert times_shown(world, memory_id) == 2


def test_what_follows_from_a_search_is_one_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.remember(TEXT)
    world.app.settle()
    store, commits = world.app.engine.store, list[int]()
    commit = store.commit

    def counted(changes: Sequence[Change], **rest: Any) -> object:  # Any: passed on as it is
        commits.append(len(changes))
        return commit(changes, **rest)

    monkeypatch.setattr(store, "commit", counted)
    world.find("parser Zig")
    world.app.settle()
    assert len(commits) == 1


def test_a_fault_of_one_part_takes_no_other_with_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    memory_id = world.remember(TEXT)
    world.app.settle()
    world.find("parser Zig")

    def broken(*_: object) -> None:
        raise RuntimeError("a fault of the lesson")

    monkeypatch.setattr(searches, "after_search", broken)
    world.app.settle()
    status = world.app.autopilot.status()
    assert (times_shown(world, memory_id), status.failed) == (1, 1)
    assert status.last_error == "searches.on_searches: RuntimeError"


def test_a_store_that_is_full_is_not_written_again_part_by_part(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.remember(TEXT)
    world.app.settle()
    world.find("parser Zig")
    tried: list[int] = []

    def full(changes: Sequence[Change], **_: object) -> None:
        tried.append(sum(isinstance(one, RecordEvidence) for one in changes))
        raise StoreFull()

    monkeypatch.setattr(world.app.engine.store, "commit", full)
    world.app.settle()
    assert tried == [1]
