"""Events drive the mechanisms in the background, and what they did stays."""

from testbed.world import World
from tests.system.mechanisms.conftest import Living


def looked_up(world: World) -> str:
    """A memory that was searched for once, with nobody waiting for what that teaches."""
    memory_id = world.remember("The vault opens at nine.")
    world.call("search", query="vault")
    return memory_id


def expects(world: World) -> bool:
    """Whether a search was learned from."""
    return "predictDegraded" not in world.call("predict", context={"current_topics": ["vault"]})


def test_what_happened_is_reacted_to_at_the_latest_when_the_process_ends(living: Living) -> None:
    looked_up(living.world)
    assert not expects(living.world)

    world = living.restart()
    living.clock.advance(days=1)

    assert expects(world)


def test_with_the_autopilot_off_nothing_reacts_and_nothing_waits(living: Living) -> None:
    world = living.restart(mechanisms__autopilot=False)
    looked_up(world)
    assert world.app.autopilot.status().waiting == 0

    world = living.restart()
    living.clock.advance(days=1)

    assert not expects(world)
