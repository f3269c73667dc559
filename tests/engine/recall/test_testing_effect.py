"""The trace of a search: written by the worker where one runs, and by the search itself where none does."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World, open_world
from vestige.core.models import EVERYTHING
from vestige.engine.reactions.autopilot import MOST_LATER

TEXT = "The parser is written in Zig."


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with open_world(tmp_path) as opened:
        yield opened


def wait_for(gate: threading.Event) -> None:
    assert gate.wait(PATIENCE_SECONDS)


def times_shown(world: World, memory_id: str) -> int:
    (record,) = world.app.engine.store.get_many([memory_id], access=EVERYTHING)
    return record.strength.times_retrieved


def test_an_answer_does_not_wait_for_the_trace_that_the_worker_writes(world: World) -> None:
    memory_id, gate = world.remember(TEXT), threading.Event()
    world.app.autopilot.start()
    world.app.settle()
    assert world.app.engine.later("wait", lambda: wait_for(gate))
    assert world.find("parser Zig") == [TEXT]
    assert times_shown(world, memory_id) == 0
    gate.set()
    world.app.settle()
    assert times_shown(world, memory_id) == 1


def test_two_searches_before_the_first_trace_leave_one(world: World) -> None:
    memory_id, gate = world.remember(TEXT), threading.Event()
    world.app.autopilot.start()
    world.app.settle()
    assert world.app.engine.later("wait", lambda: wait_for(gate))
    for _ in range(2):
        assert world.find("parser Zig") == [TEXT]
    gate.set()
    world.app.settle()
    assert times_shown(world, memory_id) == 1


def test_a_memory_that_is_deleted_before_its_trace_takes_no_other_with_it(world: World) -> None:
    gone, kept = world.remember(TEXT), world.remember("The parser of the other project is written in Rust.")
    gate = threading.Event()
    world.app.autopilot.start()
    world.app.settle()
    assert world.app.engine.later("wait", lambda: wait_for(gate))
    assert len(world.find("parser written")) == 2
    world.call("memory", action="delete", id=gone)
    gate.set()
    world.app.settle()
    assert times_shown(world, kept) == 1
    assert world.app.engine.background().failed == 0


def test_when_very_much_waits_a_search_writes_its_trace_itself(world: World) -> None:
    memory_id, gate, begun = world.remember(TEXT), threading.Event(), threading.Event()
    world.app.autopilot.start()
    world.app.settle()

    def hold() -> None:
        begun.set()
        wait_for(gate)

    assert world.app.engine.later("wait", hold)
    wait_for(begun)
    while world.app.engine.later("nothing", lambda: None):
        assert world.app.engine.background().waiting <= MOST_LATER
    assert world.find("parser Zig") == [TEXT]
    assert times_shown(world, memory_id) == 1
    gate.set()
    world.app.settle()
    assert (times_shown(world, memory_id), world.app.engine.background().dropped) == (1, 0)


@pytest.mark.parametrize("worker", [True, False])
def test_a_search_that_is_not_recorded_leaves_no_trace(worker: bool, world: World) -> None:
    memory_id = world.remember(TEXT)
    if worker:
        world.app.autopilot.start()
    assert world.find("parser Zig", record=False) == [TEXT]
    world.app.settle()
    assert times_shown(world, memory_id) == 0


def test_without_a_worker_the_trace_is_there_with_the_answer(world: World) -> None:
    memory_id = world.remember(TEXT)
    assert world.find("parser Zig") == [TEXT]
    assert times_shown(world, memory_id) == 1
