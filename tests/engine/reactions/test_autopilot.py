"""The autopilot: who reacts to what, and when nobody does."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World, open_world
from vestige.app.app import open_server
from vestige.core.events import Event, MemoryCreated, SearchPerformed
from vestige.engine.context import Call
from vestige.engine.reactions.autopilot import CHORES, Autopilot, Chore
from vestige.engine.reactions.table import all_reactions, on
from vestige.store.inmemory import InMemoryStore


@contextmanager
def piloted(autopilot: Autopilot) -> Iterator[Autopilot]:
    try:
        yield autopilot
    finally:
        assert autopilot.close(PATIENCE_SECONDS)


def test_each_reaction_hears_its_own_events_and_no_others(world: World) -> None:
    heard: list[tuple[str, Event]] = []

    def on_created(_call: Call, happening: MemoryCreated) -> None:
        heard.append(("created", happening))

    def on_search(_call: Call, happening: SearchPerformed) -> None:
        heard.append(("search", happening))

    reactions = [on(MemoryCreated, on_created), on(SearchPerformed, on_search)]
    with piloted(Autopilot(world.app.engine, reactions=reactions)) as autopilot:
        memory_id = world.remember("Ada prefers tea.")
        world.call("search", query="tea")
        world.call("memory", action="promote", id=memory_id)
        assert heard == []
        autopilot.settle()
        assert [name for name, _ in heard] == ["created", "search"]
        assert reactions[0].name == "test_autopilot.on_created"


def test_a_reaction_that_fails_disturbs_neither_the_caller_nor_the_others(world: World) -> None:
    done: list[str] = []

    def on_created(_call: Call, _happening: MemoryCreated) -> None:
        raise ValueError

    def after(_call: Call, happening: MemoryCreated) -> None:
        done.append(happening.id)

    reactions = [on(MemoryCreated, on_created), on(MemoryCreated, after)]
    with piloted(Autopilot(world.app.engine, reactions=reactions)) as autopilot:
        memory_id = world.remember("Ada prefers tea.")
        autopilot.settle()
        assert done == [memory_id]
        assert autopilot.status().failed == 1
        assert autopilot.status().last_error == "test_autopilot.on_created: ValueError"


def test_in_the_background_nobody_has_to_ask_for_a_reaction(world: World) -> None:
    done = threading.Event()

    def on_created(_call: Call, _happening: MemoryCreated) -> None:
        done.set()

    with piloted(Autopilot(world.app.engine, reactions=[on(MemoryCreated, on_created)])) as autopilot:
        autopilot.start()
        world.remember("Ada prefers tea.")
        assert done.wait(PATIENCE_SECONDS)
        assert autopilot.status().running
    assert not autopilot.status().running


def test_what_waits_at_the_end_is_worked_off_as_long_as_that_is_quick(world: World) -> None:
    done: list[str] = []

    def on_created(_call: Call, happening: MemoryCreated) -> None:
        done.append(happening.id)
        world.clock.advance(hours=1)

    autopilot = Autopilot(world.app.engine, reactions=[on(MemoryCreated, on_created)])
    first = world.remember("Ada prefers tea.")
    world.remember("Bob prefers coffee.")
    assert autopilot.close(PATIENCE_SECONDS)
    assert done == [first]
    assert autopilot.status().waiting == 1


def test_nothing_is_heard_after_the_end(world: World) -> None:
    autopilot = Autopilot(world.app.engine)
    assert autopilot.close(PATIENCE_SECONDS)
    world.remember("Ada prefers tea.")
    assert autopilot.status().waiting == 0


class Sealed(InMemoryStore):
    """A store on read-only media."""

    @property
    def read_only(self) -> bool:
        return True


def test_where_nothing_can_be_written_nothing_reacts(world: World) -> None:
    autopilot = Autopilot(replace(world.app.engine, store=Sealed(node="sealed")))
    with piloted(autopilot):
        world.remember("Ada prefers tea.")
        autopilot.start()
        assert not autopilot.enabled
        assert (autopilot.status().waiting, autopilot.status().running) == (0, False)


def test_with_nothing_to_do_there_is_no_thread(tmp_path: Path) -> None:
    off: dict[str, Any] = {"mechanisms.autopilot": False}
    with open_world(tmp_path / "data", **off) as world:
        world.app.autopilot.start()
        world.app.autopilot.tick()
        assert (world.app.autopilot.status().running, world.app.autopilot.status().handled) == (False, 0)


def test_a_chore_is_told_when_somebody_last_asked_for_something(world: World) -> None:
    told: list[datetime] = []

    def rest(_call: Call, last_activity: datetime) -> None:
        told.append(last_activity)

    with piloted(Autopilot(world.app.engine, chores=[Chore(name="rest", run=rest)])) as autopilot:
        world.clock.advance(hours=1)
        autopilot.touch()
        active = world.clock.now
        world.clock.advance(hours=2)
        autopilot.tick()
    assert told == [active]


def test_of_two_processes_one_leads_and_both_react(tmp_path: Path) -> None:
    done: list[str] = []

    def pilot(world: World, name: str) -> Autopilot:
        def on_created(_call: Call, _happening: MemoryCreated) -> None:
            done.append(f"{name} reacted")

        def rest(_call: Call, _last_activity: datetime) -> None:
            done.append(f"{name} rested")

        reactions, chores = [on(MemoryCreated, on_created)], [Chore(name="rest", run=rest)]
        return Autopilot(world.app.engine, reactions=reactions, chores=chores)

    with open_world(tmp_path) as here, open_world(tmp_path) as there:
        with piloted(pilot(here, "one")) as one, piloted(pilot(there, "other")) as other:
            here.remember("Ada prefers tea.")
            there.remember("Bob prefers coffee.")
            for autopilot in (one, other):
                autopilot.settle()
                autopilot.tick()
            assert done == ["one reacted", "one rested", "other reacted"]
            assert (one.status().leader, other.status().leader) == (True, False)
        here.app.engine.store.close()
        there.app.autopilot.tick()
        assert there.call("system_status")["autopilot"]["leader"]


def test_a_server_works_in_the_background_until_it_is_closed(tmp_path: Path) -> None:
    with open_server({"data_dir": str(tmp_path), "embeddings.provider": "hashing"}) as app:
        assert app.autopilot.status().running
    assert not app.autopilot.status().running


def test_the_mechanisms_that_should_react_do(world: World) -> None:
    told = {
        (event.__name__, reaction.name)
        for reaction in all_reactions()
        for event in (reaction.event if isinstance(reaction.event, tuple) else (reaction.event,))
    }
    assert {
        ("MemoryCreated", "capture.on_learned"),
        ("MemoryPromoted", "capture.on_learned"),
        ("MemoryPromoted", "link.on_promoted"),
        ("SearchPerformed", "searches.on_searches"),
        ("MemorySuppressed", "suppress.on_suppressed"),
    } <= told
    assert [chore.name for chore in CHORES] == ["intentions.poll", "suppression.sweep", "backup", "sleep"]
    world.remember("Ada prefers tea.")
    world.app.autopilot.tick()
    world.app.settle()
    assert world.app.autopilot.status().failed == 0


def test_a_large_batch_of_memories_waits_as_a_few_reactions(world: World) -> None:
    items = [{"content": f"Locker {number} is in hall {number % 7}."} for number in range(300)]

    world.call("smart_ingest", items=items)

    status = world.app.autopilot.status()
    assert (status.dropped, status.waiting <= 12) == (0, True)
    world.app.settle()
    assert world.app.autopilot.status().failed == 0
