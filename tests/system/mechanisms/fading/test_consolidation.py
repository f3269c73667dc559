"""What a consolidation did is there after a restart: states, the history, and the trend."""

from testbed.world import World
from tests.system.mechanisms.conftest import Living


def days_pass(world: World, days: int, times: int) -> None:
    for _ in range(times):
        world.clock.advance(days=days)
        world.call("consolidate")


def test_consolidations_note_how_memories_fade_and_tell_the_trend(living: Living) -> None:
    world = living.world
    ids = [world.remember(text) for text in ("Ada drinks green tea.", "Deploys happen on Friday.")]
    assert world.call("memory_health")["trend"] == "insufficient_data"
    days_pass(world, days=60, times=4)

    world = living.restart()

    health = world.call("memory_health")
    assert health["trend"] == "declining"
    assert len(health["history"]) == 4
    assert health["history"][0]["avgRetention"] < health["history"][-1]["avgRetention"]
    changes = world.call("memory_changelog", limit=50)["changes"]
    moved = [(one["memoryId"], one["fromState"], one["toState"]) for one in changes if "toState" in one]
    assert set(moved) == {(one, "active", "dormant") for one in ids} | {
        (one, "dormant", "silent") for one in ids
    }
    assert sum(one["change"] == "consolidated" for one in changes) == 4


def test_the_trend_turns_when_memories_are_reviewed(living: Living) -> None:
    world = living.world
    memory_id = world.remember("Ada drinks green tea.")
    days_pass(world, days=60, times=3)
    for _ in range(2):
        world.call("mark_reviewed", id=memory_id, rating=4)
        world.call("consolidate")

    assert living.restart().call("memory_health")["trend"] == "improving"


def test_learned_links_fade_while_the_memory_sleeps(living: Living) -> None:
    world = living.world
    for text in ("Ada plays the violin in town.", "The violin that Ada plays in town is old."):
        world.remember(text, force_create=True)
    for text in ("Deploys happen on Friday.", "Grace maintains parsers.", "A cat sleeps.", "Rust is fast."):
        world.remember(text, force_create=True)
    (made,) = world.call("dream")["connections"]
    days_pass(world, days=31, times=1)

    linked = living.restart().call("explore_connections", action="associations", **{"from": made["source"]})

    (link,) = linked["associations"]
    # A month of fading and, in the dream that was due, one step of use.
    assert link["weight"] < made["weight"] + 0.05


def test_it_sleeps_by_itself_when_it_is_due_and_idle_and_not_when_switched_off(living: Living) -> None:
    living.world.remember("Ada drinks green tea.")
    living.clock.advance(hours=7)

    def slept(world: World) -> int:
        world.app.autopilot.tick()
        return len(world.call("insights", action="runs", kind="consolidation")["runs"])

    assert slept(living.restart(sleep__enabled=False)) == 0
    assert slept(living.restart()) == 0  # it has just been opened: somebody is there
    living.clock.advance(hours=1)
    assert slept(living.world) == 1
    living.clock.advance(hours=1)
    assert slept(living.world) == 1
    living.clock.advance(hours=6)
    assert slept(living.world) == 2
    assert len(living.restart().call("insights", action="runs")["runs"]) == 2
