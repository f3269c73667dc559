"""States: active, dormant, silent, unavailable, and a log of how a memory came from one into another."""

from typing import Any

from testbed.world import World
from tests.system.mechanisms.conftest import Living

FACT = "The ferry leaves from pier nine."


def state(world: World, memory_id: str) -> str:
    return str(world.call("memory", action="state", id=memory_id)["state"])


def transitions(world: World, memory_id: str) -> list[tuple[str, str, str]]:
    """What the history tells of states: from, to, and why (the evidence, where evidence did it)."""
    told: list[tuple[str, str, str]] = []
    for event in world.call("memory", action="history", id=memory_id)["events"]:
        details: dict[str, Any] = event["details"]
        if event["kind"] == "memory.state":
            told.append((details["from"], details["to"], details["reason"]))
        elif "state" in details:
            told.append((*details["state"], details["evidence"]))
    return told


def test_fading_into_another_state_is_noticed_in_sleep_and_told_after_a_restart(living: Living) -> None:
    memory_id = living.world.remember(FACT)
    assert state(living.world, memory_id) == "active"
    for days, expected in ((2, "dormant"), (200, "silent")):
        living.clock.advance(days=days)
        world = living.restart()
        world.call("consolidate")
        world.call("consolidate")  # a second look has nothing to add
        assert state(world, memory_id) == expected
    assert transitions(living.restart(), memory_id) == [
        ("active", "dormant", "time_decay"),
        ("dormant", "silent", "time_decay"),
    ]


def test_a_review_brings_a_silent_memory_back_and_the_log_says_so(living: Living) -> None:
    memory_id = living.world.remember(FACT)
    living.clock.advance(days=202)
    living.world.call("consolidate")
    living.world.call("mark_reviewed", id=memory_id, rating=3)
    world = living.restart()
    assert state(world, memory_id) == "active"
    assert transitions(world, memory_id)[-1] == ("silent", "active", "good")


def test_all_four_states_are_reached(living: Living) -> None:
    memory_id = living.world.remember(FACT)
    seen = [state(living.world, memory_id)]
    for _ in range(3):
        living.world.call("memory", action="demote", id=memory_id)
        seen.append(state(living.restart(), memory_id))
    assert seen == ["active", "dormant", "silent", "unavailable"]
    assert [one[:2] for one in transitions(living.world, memory_id)] == [
        ("active", "dormant"),
        ("dormant", "silent"),
        ("silent", "unavailable"),
    ]


def test_a_pinned_memory_is_looked_at_and_not_changed(living: Living) -> None:
    memory_id = living.world.remember(FACT)
    living.world.call("memory", action="pin", id=memory_id)
    living.clock.advance(days=60)
    before = living.world.get(memory_id)
    living.world.call("consolidate")
    after = living.restart().get(memory_id)
    assert after == before
    assert transitions(living.world, memory_id) == [("active", "dormant", "time_decay")]
