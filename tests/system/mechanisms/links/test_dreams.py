"""A dream leaves links and insights that are there after a restart, and that other tools see."""

from typing import Any

from testbed.world import World
from tests.system.mechanisms.conftest import Living

CROWD = 120
"""More memories than an arm of a balanced search finds (100)."""
QUERY = "broken oven door"
OVEN = "Zygmunt Kowalski, opera tenor of Cracow Street, Warsaw: broken oven door."
TENOR = "Zygmunt Kowalski is an opera tenor of Cracow Street, Warsaw."


def associated(world: World) -> dict[str, Any]:
    """What a search finds through a link only, with the link."""
    answer = world.call("search", query=QUERY, record=False, min_confidence=0)
    return {hit["content"]: hit["association"] for hit in answer["results"] if "association" in hit}


def kitchen(world: World) -> tuple[str, str]:
    """A crowd about ovens, and two memories about a man; only one of them says "oven"."""
    for start in range(0, CROWD, 20):
        texts = [f"oven repair number {number}" for number in range(start, start + 20)]
        world.call("smart_ingest", items=[{"content": text, "force_create": True} for text in texts])
    world.clock.advance(days=1)
    oven = world.remember(OVEN, force_create=True)
    world.clock.advance(days=40)
    return oven, world.remember(TENOR, force_create=True)


def test_a_search_finds_through_a_link_made_in_a_dream_what_is_nothing_like_the_query(living: Living) -> None:
    oven, tenor = kitchen(living.world)
    assert TENOR not in associated(living.world)

    made = living.world.call("dream", memory_count=5)["connections"]

    assert (tenor, oven) in [(one["source"], one["target"]) for one in made]
    world = living.restart()
    assert associated(world)[TENOR]["via"] == oven
    linked = world.call("explore_connections", action="associations", **{"from": oven})["associations"]
    assert tenor in [one["memory"]["id"] for one in linked]
    assert TENOR not in associated(living.restart(mechanisms__spreading=False))


def test_insights_and_the_strength_of_what_was_replayed_survive_a_restart(living: Living) -> None:
    world = living.world
    ids = []
    for text in (OVEN, TENOR, "Zygmunt of Cracow Street sings as a tenor on Sundays."):
        ids.append(world.remember(text, force_create=True))
        world.clock.advance(days=2)
    for text in ("Grace maintains the parser.", "Deploys happen on Friday."):
        world.remember(text)
    before = world.get(ids[0])
    made = world.call("dream")

    world = living.restart()

    assert world.call("insights", action="list")["insights"] == made["insights"]
    assert made["insights"][0]["source_memories"] == ids
    assert world.get(ids[0])["storageStrength"] > before["storageStrength"]
    assert world.get(ids[0])["stability"] > before["stability"]
    answer = world.call("deep_reference", query="Where does the tenor Zygmunt live?")
    assert [one["id"] for one in answer["relatedInsights"]] == [made["insights"][0]["id"]]
    changes = [one["change"] for one in world.call("memory_changelog", limit=50)["changes"]]
    assert "dreamed" in changes
