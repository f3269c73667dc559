"""Ways between memories are found over links, and the graph around one can be drawn."""

from typing import Any

from testbed.world import World
from tests.system.mechanisms.conftest import Living

ROW = ("The deploy failed.", "The certificate had expired.", "Nobody owns the renewal script.")


def row(world: World) -> list[str]:
    """Three memories, each caused by the next."""
    ids = [world.remember(text, force_create=True) for text in ROW]
    world.call("memory", action="link", id=ids[1], target=ids[0], type="causal", weight=0.9)
    world.call("memory", action="link", id=ids[2], target=ids[1], type="causal", weight=0.4)
    return ids


def explore(world: World, action: str, ids: list[str]) -> dict[str, Any]:
    return world.call("explore_connections", action=action, **{"from": ids[0], "to": ids[2]})


def test_the_way_between_two_memories_is_found_after_a_restart(living: Living) -> None:
    ids = row(living.world)

    world = living.restart()

    answer = explore(world, "chain", ids)
    assert (answer["paths"][0]["path"], answer["confidence"]) == (ids, 0.324)
    [bridge] = explore(world, "bridges", ids)["bridges"]
    assert bridge["memory"]["preview"] == ROW[1]


def test_no_way_leads_through_what_was_suppressed(living: Living) -> None:
    ids = row(living.world)
    living.world.call("suppress", id=ids[1])

    assert explore(living.restart(), "chain", ids)["pathsFound"] == 0
    living.world.call("suppress", id=ids[1], reverse=True)
    assert explore(living.restart(), "chain", ids)["pathsFound"] == 1


def test_the_graph_is_drawn_the_same_after_a_restart(living: Living) -> None:
    ids = row(living.world)
    before = living.world.call("memory_graph", center_id=ids[1], format="svg")

    assert living.restart().call("memory_graph", center_id=ids[1], format="svg") == before
    assert len(before["nodes"]) == 3
