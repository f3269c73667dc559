"""Decay: what fades ranks lower, and what was put down stays down."""

import pytest

from testbed.world import World
from tests.system.mechanisms.conftest import Living

LADDER = "Ladder, torch and kettle are kept in the shed."
KETTLE = "Kettle, torch and ladder are kept in the shed."
"""The same words, so that nothing but their strength tells them apart; the first is first among equals."""


def remember_both(world: World) -> tuple[str, str]:
    return world.remember(LADDER, force_create=True), world.remember(KETTLE, force_create=True)


def found(world: World) -> list[str]:
    return world.find("What is kept in the shed?", record=False)


def test_of_two_equal_memories_the_one_that_has_faded_less_comes_first_after_a_restart(
    living: Living,
) -> None:
    _, kettle = remember_both(living.world)
    living.clock.advance(days=3)
    living.world.call("mark_reviewed", id=kettle, rating=3)
    living.clock.advance(days=100)

    assert found(living.restart()) == [KETTLE, LADDER]
    assert found(living.restart(mechanisms__decay=False)) == [LADDER, KETTLE]


def test_a_memory_nobody_needs_fades_on_the_published_curve(living: Living) -> None:
    memory_id = living.world.remember(LADDER)
    for days, chance in ((1, 0.9468), (6, 0.8083), (23, 0.6675), (60, 0.5678), (275, 0.4589)):
        living.clock.advance(days=days)
        assert living.restart().get(memory_id)["retrievalStrength"] == pytest.approx(chance, abs=1e-4)


def test_neither_sleep_nor_time_undoes_a_demotion_or_a_suppression(living: Living) -> None:
    """In the reference both stamped the time of last access, from which the next decay began anew."""
    untouched = living.world.remember("The bakery closes at six.")
    demoted = living.world.remember("The library has a red roof.")
    suppressed = living.world.remember("Otto's number ends in 44.")
    living.clock.advance(days=10)
    living.world.call("memory", action="demote", id=demoted)
    living.world.call("suppress", id=suppressed)
    for _ in range(3):
        living.clock.advance(days=1)
        world = living.restart()
        world.call("consolidate")
        reach = [world.get(one)["accessibility"] for one in (untouched, demoted, suppressed)]
        assert reach[1] < 0.8 * reach[0]
        assert reach[2] < 0.9 * reach[0]
