"""What people and agents say about a memory, and how much of it counts."""

import pytest

from testbed.world import World
from vestige.engine.care.rebuild import rebuild
from vestige.engine.context import Call

FACT = "The moon base opens in May."


def vote(world: World, memory_id: str, action: str, times: int = 1) -> dict[str, float]:
    """Say so many times at once; the memory afterwards."""
    for _ in range(times):
        world.call("memory", action=action, id=memory_id)
    return world.get(memory_id)


def test_ten_promotions_at_once_are_worth_one(world: World) -> None:
    memory_id = world.remember(FACT)
    once = vote(world, memory_id, "promote")
    again = vote(world, memory_id, "promote", times=9)
    assert once["stability"] < 4
    for name in ("stability", "storageStrength", "difficulty", "retentionStrength"):
        assert again[name] == once[name]
    assert again["reps"] == 10


def test_promotions_on_different_days_add_up(world: World) -> None:
    memory_id = world.remember(FACT)
    stabilities = []
    for _ in range(3):
        world.clock.advance(days=3)
        stabilities.append(vote(world, memory_id, "promote", times=5)["stability"])
    assert stabilities == sorted(set(stabilities))


def test_promoting_what_was_demoted_the_same_day_lifts_its_level_and_no_more(world: World) -> None:
    memory_id = world.remember(FACT)
    demoted = vote(world, memory_id, "demote", times=2)
    promoted = vote(world, memory_id, "promote")
    assert promoted["retrievalStrength"] == pytest.approx(demoted["retrievalStrength"] + 0.2)
    assert promoted["stability"] == demoted["stability"]


def test_thanking_fifty_times_at_once_is_counted_and_worth_one(world: World) -> None:
    memory_id = world.remember(FACT)
    world.clock.advance(days=30)
    once = vote(world, memory_id, "useful")
    again = vote(world, memory_id, "useful", times=49)
    assert (once["timesUseful"], again["timesUseful"]) == (1, 50)
    assert once["storageStrength"] == again["storageStrength"] == 1.05
    assert once["retrievalStrength"] == again["retrievalStrength"]


def test_thanking_once_whenever_it_was_found_counts_each_time(world: World) -> None:
    memory_id = world.remember(FACT)
    for _ in range(3):
        world.clock.advance(days=2)
        assert world.find("When does the moon base open?", limit=1) == [FACT]
        world.app.settle()
        node = vote(world, memory_id, "useful")
    assert (node["timesRetrieved"], node["timesUseful"]) == (3, 3)
    assert node["storageStrength"] == pytest.approx(1 + 3 * 0.02 + 3 * 0.05)


def test_votes_in_plenty_are_what_the_log_says(world: World) -> None:
    memory_id = world.remember(FACT)
    for action in ("promote", "useful", "demote", "promote", "useful", "promote"):
        vote(world, memory_id, action, times=3)
        world.clock.advance(hours=10)
    assert rebuild(Call(engine=world.app.engine), strengths=True).drifted == 0
