"""Context memory, as seen through the tools after a restart."""

from typing import Any

from testbed.world import World
from tests.system.mechanisms.conftest import Living


def learned(living: Living, here: dict[str, Any]) -> tuple[str, str]:
    """Two memories that every arm finds equal, the second one learned in this context; then a restart."""
    other = living.world.remember("oven repair finished", force_create=True, session_id="s1", tags=["roof"])
    fits = living.world.remember("finished oven repair", force_create=True, **here)
    living.restart()
    return other, fits


def order(world: World, **context: Any) -> list[str]:
    answer = world.call("search", query="oven repair finished", min_confidence=0, record=False, **context)
    return [hit["id"] for hit in answer["results"]]


def test_what_was_learned_in_a_context_like_the_present_one_ranks_higher(living: Living) -> None:
    other, fits = learned(living, {"session_id": "s2", "tags": ["kitchen"]})

    assert order(living.world) == [other, fits]
    assert order(living.world, context_session="s2") == [fits, other]
    assert order(living.world, context_topics=["Kitchen"]) == [fits, other]
    assert order(living.world, context_session="s1", context_topics=["roof"]) == [other, fits]


def test_without_the_mechanism_the_context_changes_nothing(living: Living) -> None:
    other, fits = learned(living, {"session_id": "s2", "tags": ["kitchen"]})
    world = living.restart(mechanisms__context=False)

    assert order(world, context_session="s2", context_topics=["kitchen"]) == [other, fits]
    answer = world.call("search", query="oven repair", context_session="s2", min_confidence=0)
    assert "contextReinstatement" not in answer


def test_the_context_of_the_best_result_comes_back_with_it(living: Living) -> None:
    _, fits = learned(living, {"session_id": "s2", "tags": ["kitchen"]})
    beside = living.world.remember("The plumber left his ladder.", session_id="s2")
    living.world.remember("The roof was painted.", session_id="s1")
    world = living.restart()

    answer = world.call("search", query="oven repair finished", context_session="s2", min_confidence=0)
    assert answer["contextReinstatement"] == {
        "memoryId": fits,
        "temporalHint": "Sunday morning, 2026-03-01 (UTC)",
        "topicalHint": "kitchen",
        "sessionHint": "session s2",
        "relatedMemories": [beside],
    }
