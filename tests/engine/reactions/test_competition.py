"""What using a memory does to those that contradict it, on every store."""

import pytest

from testbed.meanwhile import meanwhile
from testbed.world import World
from vestige.cognition.ranking.stages import INHIBITED_AT_MOST, INHIBITION

STALE = "Feature flags are stored in Redis for the web shop."
CURRENT = "Feature flags are not stored in Redis for the shop."


def pair(world: World, **arguments: object) -> tuple[str, str]:
    """Two statements that cannot both hold, the second one told later."""
    stale = world.remember(STALE, **arguments)
    world.clock.advance(hours=1)
    return stale, world.remember(CURRENT)


def promote(world: World, memory_id: str) -> None:
    world.call("memory", action="promote", id=memory_id)
    world.app.settle()


def inhibited(world: World, memory_id: str) -> int:
    """How often a memory was inhibited."""
    events = world.call("memory", action="history", id=memory_id)["events"]
    return sum(one["details"].get("evidence") == "inhibited" for one in events)


def stability(world: World, memory_id: str) -> float:
    return float(world.get(memory_id)["stability"])


def test_promoting_one_of_two_rivals_weakens_the_other(world: World) -> None:
    stale, current = pair(world)
    before = stability(world, stale)
    promote(world, current)

    assert stability(world, stale) == pytest.approx(before * (1 - INHIBITION), rel=1e-3)
    assert inhibited(world, current) == 0


def test_what_was_told_later_loses_as_well_when_the_older_one_is_right(world: World) -> None:
    stale, current = pair(world)
    promote(world, stale)

    assert (inhibited(world, stale), inhibited(world, current)) == (0, 1)


def test_a_rival_is_inhibited_once_a_day_and_so_often_at_most(world: World) -> None:
    stale, current = pair(world)
    promote(world, current)
    promote(world, current)
    assert inhibited(world, stale) == 1
    for _ in range(INHIBITED_AT_MOST + 2):
        world.clock.advance(days=1)
        promote(world, current)
    assert inhibited(world, stale) == INHIBITED_AT_MOST


def test_a_pinned_rival_is_left_alone(world: World) -> None:
    stale, current = pair(world, pinned=True)
    promote(world, current)

    assert inhibited(world, stale) == 0


def test_a_suppressed_rival_is_left_alone(world: World) -> None:
    stale, current = pair(world)
    world.call("suppress", id=stale)
    promote(world, current)
    assert inhibited(world, stale) == 0


def test_a_memory_that_does_not_hold_any_more_wins_nothing(world: World) -> None:
    stale, current = pair(world)
    world.call("memory", action="set_validity", id=stale, valid_until="2026-02-01")
    promote(world, stale)
    assert inhibited(world, current) == 0


def test_a_link_to_another_scope_makes_no_rival(world: World) -> None:
    ours = world.remember(STALE, scope="/project/a")
    theirs = world.remember(CURRENT, scope="/project/b")
    world.call("memory", action="link", id=ours, target=theirs, type="contradicts")
    promote(world, ours)

    assert inhibited(world, theirs) == 0


def test_a_contradiction_that_somebody_marked_counts_too(world: World) -> None:
    one = world.remember("The heron nests by the mill.")
    other = world.remember("Nobody has seen a bird there for years.")
    world.call("memory", action="link", id=one, target=other, type="contradicts")
    promote(world, one)

    assert inhibited(world, other) == 1


def test_a_rival_deleted_meanwhile_does_not_save_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = world.remember("The heron nests by the mill.")
    gone = world.remember("Nobody has seen a bird there for years.")
    wrong = world.remember("All the nests are in the harbour.")
    for one in (gone, wrong):
        world.call("memory", action="link", id=right, target=one, type="contradicts")
    meanwhile(monkeypatch, world, "rivalry", lambda: world.call("memory", action="delete", id=gone))
    promote(world, right)

    assert inhibited(world, wrong) == 1
    assert world.app.autopilot.status().failed == 0
