"""Links bring what no arm finds: activation spreads from the best hits."""

from typing import Any

from testbed.world import World
from tests.system.mechanisms.conftest import Living

CROWD = 120
"""More memories than an arm of a balanced search finds (100)."""


def joined(world: World) -> dict[str, Any]:
    """What came in through a link, with why."""
    answer = world.call("search", query="broken oven", record=False, min_confidence=0)
    return {hit["content"]: hit["association"] for hit in answer["results"] if "association" in hit}


def oven(world: World, **linked: Any) -> str:
    """A crowd of memories about ovens, and one that is linked to a name no query would find."""
    for start in range(0, CROWD, 20):
        texts = [f"oven repair number {number}" for number in range(start, start + 20)]
        world.call("smart_ingest", items=[{"content": text, "force_create": True} for text in texts])
    broken = world.remember("The broken oven", force_create=True)
    zygmunt = world.remember("Zygmunt", **linked)
    assert joined(world) == {}
    world.call("memory", action="link", id=broken, target=zygmunt, type="causal", weight=0.9)
    return broken


def test_a_link_brings_what_no_arm_finds_and_without_spreading_it_does_not(living: Living) -> None:
    broken = oven(living.world)

    found = joined(living.restart())

    assert found == {"Zygmunt": {"via": broken, "type": "causal", "activation": 0.63}}
    assert joined(living.restart(mechanisms__spreading=False)) == {}


def test_a_link_into_another_scope_carries_less(living: Living) -> None:
    oven(living.world, scope="/user/zygmunt")

    found = joined(living.restart())

    assert found["Zygmunt"]["activation"] == 0.504
