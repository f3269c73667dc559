"""Synaptic tagging and capture, as seen through the tools after a restart."""

from testbed.world import World
from tests.system.mechanisms.conftest import Living

FLASHBULB = "URGENT: the production database was wiped, a disaster, every customer is furious!!!"
SHOCK = "The bakery burned down; we were shocked."
"""A flashbulb, and no more important than many things."""


def retention(world: World, memory_id: str) -> float:
    return float(world.get(memory_id)["retentionStrength"])


def around(living: Living, scope: str) -> tuple[str, str]:
    """A memory, one that is promoted an hour later, and one after a restart; the first and the last."""
    world = living.world
    before = world.remember("The staging cluster lives in Frankfurt.", scope=scope)
    living.clock.advance(hours=1)
    flagged = world.remember("Ada prefers TypeScript for new services.", scope=scope)
    world.call("memory", action="promote", id=flagged)
    world = living.restart()
    living.clock.advance(hours=0.5)
    after = world.remember("Herons are counted in April.", scope=scope)
    return before, after


def test_what_was_learned_around_a_promoted_memory_lasts_longer(living: Living) -> None:
    alone = living.world.remember("The ledger holds forty pages.", scope="/elsewhere")
    before, after = around(living, "/project/here")
    world = living.restart()
    living.clock.advance(days=30)

    assert retention(world, before) > retention(world, alone) + 0.005
    assert retention(world, after) > retention(world, alone) + 0.005
    events = world.call("memory", action="history", id=before)["events"]
    assert [one["details"]["evidence"] for one in events if one["kind"] == "memory.remarked"] == ["captured"]


def test_a_flashbulb_captures_what_was_learned_before_it(living: Living) -> None:
    world = living.world
    before = world.remember("The lighthouse keeper signs the ledger.")
    alone = world.remember("The ledger holds forty pages.", scope="/elsewhere")
    living.clock.advance(hours=2)
    world.remember(FLASHBULB)
    world = living.restart()
    living.clock.advance(days=30)

    assert retention(world, before) > retention(world, alone) + 0.005


def test_without_the_mechanism_nothing_is_captured(living: Living) -> None:
    world = living.restart(mechanisms__capture=False)
    before = world.remember("The staging cluster lives in Frankfurt.")
    alone = world.remember("The ledger holds forty pages.", scope="/elsewhere")
    flagged = world.remember("Ada prefers TypeScript for new services.")
    world.call("memory", action="promote", id=flagged)
    world.remember(FLASHBULB)
    world = living.restart(mechanisms__capture=False)
    living.clock.advance(days=30)

    assert retention(world, before) == retention(world, alone)


def test_without_the_mechanism_of_emotion_a_feeling_alone_captures_nothing(living: Living) -> None:
    gained = []
    for emotion in (True, False):
        world = living.restart(mechanisms__emotion=emotion)
        scope = f"/emotion/{emotion}".lower()
        before = world.remember("The lighthouse keeper signs the ledger.", scope=scope)
        living.clock.advance(hours=2)
        world.remember(SHOCK, scope=scope)
        world = living.restart(mechanisms__emotion=emotion)
        events = world.call("memory", action="history", id=before)["events"]
        gained.append([one["details"]["details"] for one in events if one["kind"] == "memory.remarked"])

    assert gained == [[{"event": "emotional_content"}], []]
