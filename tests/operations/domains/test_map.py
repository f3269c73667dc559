"""`domains map`: where memories are drawn, and that they stay there."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.caller import Caller, Invocation
from vestige.core.errors import Forbidden
from vestige.core.models import Access

TEXTS = [
    f"The {animal} of the {place} sleeps {number} hours"
    for number, animal in enumerate(("owl", "fox", "badger"))
    for place in ("forest", "meadow", "river", "hill")
]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings: dict[str, Any] = {"storage.backend": "memory"}
    with open_world(tmp_path, **settings) as opened:
        for text in TEXTS:
            opened.remember(text, force_create=True)
        yield opened


def places(world: World) -> dict[str, tuple[float, float]]:
    return {one["id"]: (one["x"], one["y"]) for one in world.call("domains", action="map")["nodes"]}


def test_without_domains_there_is_one_island_with_every_memory(world: World) -> None:
    answer = world.call("domains", action="map")
    assert [one["label"] for one in answer["islands"]] == ["All memories"]
    assert len(answer["nodes"]) == answer["total"] == len(TEXTS)


def test_with_domains_a_place_stays_when_memories_come(world: World) -> None:
    world.call("domains", action="discover", min_cluster_size=3, force=True)
    before = places(world)
    islands = {one["domain"] for one in world.call("domains", action="map")["islands"]}
    assert islands == {one["id"] for one in world.call("domains", action="list")["domains"]}
    world.remember("The heron of the river sleeps 9 hours", force_create=True)
    after = places(world)
    assert {one: after[one] for one in before} == before


def test_the_strongest_memories_are_drawn_and_suppressed_ones_are_not(world: World) -> None:
    first, second = list(places(world))[:2]
    world.call("suppress", id=first)
    for _ in range(4):
        world.call("memory", action="demote", id=second)
    answer = world.call("domains", action="map", limit=len(TEXTS) - 2)
    shown = {one["id"] for one in answer["nodes"]}
    assert answer["total"] == len(TEXTS) - 1
    assert not shown & {first, second}


def test_a_key_of_some_scopes_gets_no_map(world: World) -> None:
    caller = Caller(name="a", permissions=frozenset({"read"}), access=Access(scopes=("/project",)))
    with pytest.raises(Forbidden):
        world.app.call_operation(Invocation(name="domains.map", arguments={}, caller=caller, request_id="t"))
