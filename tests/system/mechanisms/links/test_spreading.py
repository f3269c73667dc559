"""Links bring what no arm finds: activation spreads from the best hits."""

from typing import Any

import pytest

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


@pytest.mark.parametrize("others", [3, 60, 160], ids=["few", "some", "many"])
def test_a_link_brings_the_linked_memory_second_in_a_store_of_any_size(living: Living, others: int) -> None:
    plants = [f"The plant number {number} needs water" for number in range(others)]
    living.world.call("smart_ingest", items=[{"content": one, "force_create": True} for one in plants[:20]])
    for start in range(20, others, 20):
        items = [{"content": one, "force_create": True} for one in plants[start : start + 20]]
        living.world.call("smart_ingest", items=items)
    broken = living.world.remember("The broken oven waits for a spare part", force_create=True)
    zygmunt = living.world.remember("Call Zygmunt", force_create=True)
    living.world.call("memory", action="link", id=broken, target=zygmunt, type="causal", weight=1.0)

    answer = living.restart().call("search", query="broken oven", record=False, min_confidence=0)

    first, second, *_ = answer["results"]
    assert [first["id"], second["id"]] == [broken, zygmunt]
    assert "association" not in first
    assert second["association"] == {"via": broken, "type": "causal", "activation": 0.7}


def test_a_linked_memory_that_answers_by_itself_keeps_its_own_score(living: Living) -> None:
    broken = living.world.remember("The broken oven waits for a spare part", force_create=True)
    other = living.world.remember("The broken oven is in the kitchen", force_create=True)

    def scores() -> dict[str, float]:
        found = living.restart().call("search", query="broken oven", record=False, min_confidence=0)
        assert not any("association" in hit for hit in found["results"])
        return {hit["id"]: hit["combinedScore"] for hit in found["results"]}

    before = scores()
    living.world.call("memory", action="link", id=broken, target=other, type="causal", weight=0.5)

    assert scores() == pytest.approx(before, rel=0.05)
