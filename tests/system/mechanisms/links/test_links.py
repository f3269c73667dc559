"""Links are learned, strengthened by use, faded by time and cut; what people link stays."""

from typing import Any

import pytest

from testbed.world import World
from tests.system.mechanisms.conftest import Living
from vestige.cognition.graph.kinds import HALF_LIFE_DAYS, REINFORCEMENT


def plants(world: World) -> tuple[str, str]:
    """Two memories that are linked because they are close, and a link by hand between them."""
    first = world.remember("Ada waters the office plants on Monday mornings.")
    second = world.remember("Ada waters the office plants with rain water from the roof.")
    world.call("memory", action="link", id=first, target=second, type="causal", weight=0.6)
    return first, second


def links(world: World, memory_id: str) -> dict[str, float]:
    """The weight of each kind of link that a memory has."""
    answer = world.call("explore_connections", action="associations", **{"from": memory_id})
    return {one["type"]: one["weight"] for one in answer["associations"]}


def sleep(world: World) -> dict[str, Any]:
    """Consolidate; what was said about links."""
    steps = world.call("consolidate")["steps"]
    return next(step for step in steps if step["step"] == "links")


def test_a_learned_link_grows_by_use_fades_by_time_and_is_cut_in_the_end(living: Living) -> None:
    first, second = plants(living.world)
    learned = links(living.world, first)["semantic"]

    living.world.call("memory", action="promote", id=first)
    living.world.app.settle()
    used = links(living.restart(), second)["semantic"]
    assert used == pytest.approx(learned + REINFORCEMENT)

    living.clock.advance(days=HALF_LIFE_DAYS)
    assert sleep(living.world)["count"] == 1
    assert links(living.restart(), first) == {"causal": 0.6, "semantic": pytest.approx(used / 2, abs=1e-3)}
    assert sleep(living.world)["count"] == 0  # nothing is due again so soon

    living.clock.advance(days=4 * HALF_LIFE_DAYS)
    sleep(living.world)
    assert links(living.restart(), first) == {"causal": 0.6}


def test_without_spreading_promotion_strengthens_no_link(living: Living) -> None:
    first, _ = plants(living.world)
    learned = links(living.world, first)

    world = living.restart(mechanisms__spreading=False)
    world.call("memory", action="promote", id=first)
    world.app.settle()

    assert links(living.restart(), first) == learned
