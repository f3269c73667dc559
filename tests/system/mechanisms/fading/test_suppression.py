"""Suppression: a memory kept out of mind, taken back exactly, and felt by its neighbours once it is final."""

from typing import Any

from testbed.world import World
from tests.system.mechanisms.conftest import Living
from vestige.core.events import Rac1CascadeSwept

SECRET = "The wedding at Lake Garda was cancelled by Ottavio."
OTHER = "The concert at Lake Garda was moved to Sunday."
NEIGHBOUR = "Ottavio plays the cello."


def suppress(world: World, memory_id: str, **arguments: Any) -> dict[str, Any]:
    answer = world.call("suppress", id=memory_id, **arguments)
    world.app.settle()
    return answer


def first(world: World, query: str) -> str:
    return world.find(query, record=False)[0]


def strength(world: World, memory_id: str) -> dict[str, Any]:
    node = world.get(memory_id)
    return {name: node[name] for name in ("stability", "retrievalStrength", "storageStrength")}


def test_a_suppressed_memory_is_found_only_with_a_flag_and_lower_after_a_restart(living: Living) -> None:
    world = living.world
    memory_id, _ = world.remember(SECRET, tags=["lake"]), world.remember(OTHER, tags=["lake"])
    query = "Lake Garda cancelled or moved"
    assert first(world, query) == SECRET

    answer = suppress(world, memory_id)
    assert (answer["suppressionCount"], answer["priorCount"], answer["retrievalPenalty"]) == (1, 0, 0.15)
    living.clock.advance(hours=25)
    suppress(world, memory_id)
    living.clock.advance(hours=25)
    assert suppress(world, memory_id)["retrievalPenalty"] == 0.45

    world = living.restart()
    assert world.find(query) == [OTHER]
    assert world.find(query, include_suppressed=True) == [OTHER, SECRET]
    for flag, texts in ((False, {OTHER}), (True, {OTHER, SECRET})):
        listed = world.call("memory", action="list", tags=["lake"], include_suppressed=flag)["results"]
        assert {node["content"] for node in listed} == texts
        briefed = world.call("session_context", queries=[query], include_suppressed=flag)["context"]
        assert (SECRET in briefed) == flag
    nothing = world.call("search", query="wedding Ottavio", tags=["lake"], min_confidence=1)
    assert "1 suppressed memory was not searched" in nothing["note"]
    assert "wedding" not in str({**nothing, "query": ""}).casefold()
    assert world.get(memory_id)["content"] == SECRET


def test_a_suppression_is_taken_back_exactly_within_its_window_even_after_a_restart(living: Living) -> None:
    memory_id = living.world.remember(SECRET)
    living.clock.advance(days=40)
    suppress(living.world, memory_id)
    living.clock.advance(hours=25)
    before = living.world.get(memory_id)

    answer = suppress(living.world, memory_id)
    assert answer["state"] != before["state"]
    living.clock.advance(hours=23)
    world = living.restart()
    suppress(world, memory_id, reverse=True)

    after = world.get(memory_id)
    changing = {"revision", "updatedAt", "retentionStrength", "retrievalStrength", "accessibility"}
    assert {name: after[name] for name in after if name not in changing} == {
        name: before[name] for name in before if name not in changing
    }
    assert (after["suppressionCount"], after["state"]) == (1, before["state"])


def test_the_neighbours_of_a_suppressed_memory_are_weakened_once_when_it_is_final(living: Living) -> None:
    world = living.world
    seed, linked, loose = (world.remember(text) for text in (SECRET, NEIGHBOUR, OTHER))
    world.call("memory", action="link", id=seed, target=linked, weight=1.0)
    untouched = strength(world, linked)
    assert suppress(world, seed)["estimatedCascadeNeighbors"] == 1
    assert strength(world, linked)["stability"] == untouched["stability"]

    living.clock.advance(hours=25)
    world = living.restart()
    suppress(world, loose)  # somebody suppresses something else: what is final by now is seen
    assert (
        Rac1CascadeSwept(timestamp=living.clock.now, scopes=None, seeds=1, neighbors_affected=1)
        in world.heard
    )
    once = strength(world, linked)["stability"]
    assert once == round(0.7 * untouched["stability"], 4)

    living.clock.advance(hours=25)
    world = living.restart()
    suppress(world, seed)  # the first one has had its effect
    assert strength(world, linked)["stability"] == once
