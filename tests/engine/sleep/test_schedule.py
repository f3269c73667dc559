"""When the memory sleeps: what is due, for whom, and how often."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.events import ConsolidationStarted, Event
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call
from vestige.engine.sleep.runs import KEPT, history_row
from vestige.engine.sleep.schedule import MANY_SAVES, due, needs, run

TEXTS = tuple(f"{word} is a word." for word in ("Apple", "Boat", "Cloud", "Door", "Engine", "Flute"))


def call_of(world: World, **fields: Any) -> Call:
    return Call(engine=world.app.engine, **fields)


def tell(world: World, **fields: Any) -> None:
    for text in TEXTS:
        world.remember(text, force_create=True, **fields)


def test_an_empty_store_needs_no_dream(world: World) -> None:
    assert needs(call_of(world)).dream is False
    assert needs(call_of(world)).consolidation is True


def test_a_dream_is_due_at_first_after_a_day_and_after_many_memories(world: World) -> None:
    tell(world)
    assert needs(call_of(world)).dream is True
    world.call("dream")
    assert needs(call_of(world)).dream is False
    world.clock.advance(hours=25)
    assert needs(call_of(world)).dream is True
    world.call("dream")
    items = [{"content": f"Number {at}", "force_create": True} for at in range(MANY_SAVES + 1)]
    for start in range(0, len(items), 20):
        world.call("smart_ingest", items=items[start : start + 20])
    assert needs(call_of(world)).dream is True


def test_a_dream_of_one_project_is_none_of_another_and_one_of_everything_is_of_both(world: World) -> None:
    for scope in ("/project/a", "/project/b"):
        tell(world, scope=scope)
    world.call("dream", scope="/project/a")

    def wanting() -> list[bool]:
        return [needs(call_of(world, scope=scope)).dream for scope in ("/", "/project/a", "/project/b")]

    assert wanting() == [True, False, True]
    world.call("dream")
    assert wanting() == [False, False, False]


def test_it_is_time_when_it_is_idle_and_the_interval_has_passed(world: World) -> None:
    tell(world)
    busy = world.clock.now
    assert due(call_of(world), busy) is False
    world.clock.advance(hours=0.5)
    assert due(call_of(world), busy) is True
    run(call_of(world))
    assert due(call_of(world), busy) is False
    world.clock.advance(hours=6)
    assert due(call_of(world), busy) is True
    assert due(call_of(world), world.clock.now) is False


@pytest.mark.parametrize(
    "use",
    [
        lambda world, memory_id: world.find("a word"),
        lambda world, memory_id: world.remember("Guitar is a word.", force_create=True),
        lambda world, memory_id: world.call("memory", action="edit", id=memory_id, content="Ape is a word."),
        lambda world, memory_id: world.call("memory", action="promote", id=memory_id),
        lambda world, memory_id: world.call("memory", action="delete", id=memory_id),
    ],
    ids=["search", "remember", "edit", "promote", "delete"],
)
def test_it_does_not_sleep_while_another_process_uses_the_memory(
    tmp_path: Path, use: Callable[[World, str], object]
) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock) as idle, open_world(tmp_path, clock=clock) as busy:
        memory_id = busy.remember("Apple is a word.")
        opened = clock.now
        # What is shown leaves a trace at most once a day: a second search is seen as a search.
        clock.advance(hours=6)
        busy.find("a word")
        busy.app.settle()
        clock.advance(hours=1)
        assert due(call_of(idle), opened) is True
        use(busy, memory_id)
        busy.app.settle()
        clock.advance(hours=0.4)
        assert due(call_of(idle), opened) is False
        clock.advance(hours=0.1)
        assert due(call_of(idle), opened) is True


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"sleep.enabled": False}, False),
        ({"sleep.idle_minutes": 120.0}, False),
        ({"sleep.idle_minutes": 0.0}, True),
    ],
)
def test_the_settings_decide(tmp_path: Path, settings: dict[str, Any], expected: bool) -> None:
    with open_world(tmp_path, **settings) as world:
        before = world.clock.now
        world.clock.advance(hours=1)
        assert due(call_of(world), before) is expected


def test_the_setting_says_how_many_memories_are_replayed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"sleep.dream_memories": 5}
    with open_world(tmp_path, **settings) as world:
        tell(world)
        run(call_of(world))
        (dreamt,) = world.call("insights", action="runs", kind="dream")["runs"]
        assert dreamt["counts"]["replayed"] == 5


def test_sleep_is_never_due_for_an_access_that_could_not_do_it(world: World) -> None:
    tell(world)
    call = call_of(world, access=Access(domains=("music",)))
    assert (needs(call).dream, needs(call).consolidation) == (False, False)


def test_two_that_want_to_sleep_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        tell(world)
        call = call_of(world)

        def run_too(happening: Event) -> None:
            if isinstance(happening, ConsolidationStarted):
                run(call)

        with world.app.engine.events.listening(run_too):
            run(call)
        assert len(world.call("insights", action="runs", kind="consolidation")["runs"]) == 1


def test_the_history_does_not_grow_for_ever(world: World) -> None:
    call = call_of(world)
    body = {"memories": 0, "steps": [], "duration_ms": 1.0}
    old = [history_row(call, "consolidation", "/", body) for _ in range(KEPT + 3)]
    world.app.engine.store.commit(old, access=EVERYTHING)

    run(call)

    left = world.app.engine.store.documents("consolidation", access=EVERYTHING, limit=1000)
    assert len(left) == KEPT + 1
