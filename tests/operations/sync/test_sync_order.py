"""What another machine did before is before, though this one heard of it later."""

from pathlib import Path
from typing import Any

from testbed.world import World
from tests.operations.sync import test_sync
from tests.operations.sync.test_sync import round_of, sync
from vestige.engine.context import Call
from vestige.engine.memory.suppress import unsuppress

machines = test_sync.machines
folder = test_sync.folder

NEW = "The staging server listens on port 9443."


def a_shared_memory(machines: tuple[World, World], folder: Path) -> str:
    memory_id = machines[0].remember("The staging server listens on port 8443.")
    round_of(machines, folder)
    return memory_id


def history(world: World, memory_id: str) -> dict[str, Any]:
    return world.call("memory", action="history", id=memory_id)


def test_what_was_done_elsewhere_before_a_suppression_is_nothing_that_happened_since(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    memory_id = a_shared_memory(machines, folder)
    desktop.call("memory", action="edit", id=memory_id, content=NEW)
    laptop.clock.advance(hours=8)
    laptop.call("suppress", id=memory_id)
    sync(desktop, folder)
    sync(laptop, folder)

    assert laptop.get(memory_id)["content"] == NEW
    done = unsuppress(Call(engine=laptop.app.engine), memory_id)
    assert (done.before.memory.suppression_count, done.after.memory.suppression_count) == (1, 0)
    assert not done.changed


def test_the_history_of_a_memory_is_told_in_the_order_in_which_it_happened(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    memory_id = a_shared_memory(machines, folder)
    desktop.call("memory", action="promote", id=memory_id)
    laptop.clock.advance(hours=8)
    laptop.call("memory", action="edit", id=memory_id, content=NEW)
    sync(desktop, folder)
    sync(laptop, folder)
    told = [history(world, memory_id)["events"] for world in (laptop, desktop)]
    assert [event["kind"] for event in told[0]][-1] == "memory.revised"
    sync(desktop, folder)
    assert history(desktop, memory_id)["events"] == told[0]
