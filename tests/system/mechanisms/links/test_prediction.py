"""What is searched for one after the other is foretold, linked and found together."""

from typing import Any

from testbed.world import World
from tests.system.mechanisms.conftest import Living

CROWD = 120
"""More memories than an arm of a balanced search finds (100)."""
DAYS = 4
"""So often two memories must be met one after the other to be linked: .5, .6, .69, .78."""


def crowd(world: World) -> None:
    for start in range(0, CROWD, 20):
        texts = [f"backup of tape number {number}" for number in range(start, start + 20)]
        world.call("smart_ingest", items=[{"content": text, "force_create": True} for text in texts])


def routine(world: World) -> tuple[str, str]:
    """Two memories that have nothing in common, looked up one after the other every morning."""
    crowd(world)
    tape = world.remember("The backup tape of the vault", force_create=True)
    zygmunt = world.remember("Zygmunt")
    for _ in range(DAYS):
        for query in ("vault", "Zygmunt"):
            world.call("search", query=query, limit=1)
            world.app.settle()
            world.clock.advance(hours=0.1)
        world.clock.advance(days=1)
    return tape, zygmunt


def foretold(world: World) -> dict[str, Any]:
    """Look up the first of the two; what is expected then."""
    world.call("search", query="vault", limit=1)
    world.app.settle()
    return world.call("predict")


def joined(world: World) -> dict[str, str]:
    """What came in through a link, with its kind."""
    answer = world.call("search", query="vault", record=False, min_confidence=0)
    return {hit["content"]: hit["association"]["type"] for hit in answer["results"] if "association" in hit}


def test_what_was_searched_for_next_before_is_foretold_after_a_restart(living: Living) -> None:
    tape, zygmunt = routine(living.world)

    answer = foretold(living.restart())

    assert "predictDegraded" not in answer
    best = answer["suggestions"][0]
    assert best["memoryId"] == zygmunt
    assert best["confidence"] > 0.7
    assert any(reason.startswith(f"co_access: met together with {tape}") for reason in best["reasons"])
    assert answer["speculative"][0] == {
        "query": "zygmunt",
        "memoryIds": [zygmunt],
        "confidence": best["confidence"],
    }
    assert {one["topic"] for one in answer["topInterests"]} == {"vault", "zygmunt"}


def test_what_is_met_together_is_linked_and_comes_along_in_a_search_after_a_restart(living: Living) -> None:
    routine(living.world)
    assert joined(living.restart()) == {"Zygmunt": "co_access"}


def test_a_prediction_that_comes_true_within_the_hour_counts_and_one_that_does_not_too(
    living: Living,
) -> None:
    routine(living.world)
    foretold(living.restart())
    living.clock.advance(hours=0.5)
    living.world.call("search", query="Zygmunt", limit=1)
    living.world.app.settle()
    assert living.restart().call("predict")["predictionAccuracy"] == 1.0

    living.clock.advance(days=1)
    foretold(living.restart())
    living.clock.advance(hours=1.5)
    answer = foretold(living.restart())
    assert (answer["predictionAccuracy"], answer["predictionsMeasured"]) == (0.5, 2)


def test_with_prediction_off_nothing_is_learned_foretold_or_linked(living: Living) -> None:
    world = living.restart(mechanisms__prediction=False)
    routine(world)

    assert joined(living.restart()) == {}
    answer = living.world.call("predict")
    assert answer["predictDegraded"].startswith("No search has been learned from yet")
    assert answer["topInterests"] == []


def test_a_memory_that_was_suppressed_is_not_foretold(living: Living) -> None:
    _, zygmunt = routine(living.world)
    assert foretold(living.world)["suggestions"][0]["memoryId"] == zygmunt

    living.world.call("suppress", id=zygmunt)
    assert zygmunt not in [one["memoryId"] for one in foretold(living.restart())["predictions"]]
