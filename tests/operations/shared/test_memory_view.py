"""Long texts: an answer shows their beginning and the piece that matched, and says that there is more."""

from typing import Any

import orjson
import pytest

from testbed.world import World
from vestige.operations.shared.memory_view import SUMMARY_CHARS

NEEDLE = "The zanzibar gateway times out after forty seconds."
FILLER = "Nothing of note happened in the office on that quiet day. " * 200
LONG = f"{FILLER}{NEEDLE} {FILLER}".strip()


def nodes(world: World, tool: str, **arguments: Any) -> list[dict[str, Any]]:
    """The memories in an answer, wherever it holds them."""
    answer = world.call(tool, **arguments)
    days = [node for day in answer.get("days", []) for node in day["memories"]]
    found: list[dict[str, Any]] = [*answer.get("results", []), *answer.get("rejected", []), *days]
    return found


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("search", {"query": "zanzibar gateway"}),
        ("search", {"query": "zanzibar gateway", "min_confidence": 1}),
        ("memory", {"action": "list"}),
        ("memory_timeline", {}),
    ],
)
def test_a_summary_shows_the_beginning_of_a_long_text_and_its_length(
    world: World, tool: str, arguments: dict[str, Any]
) -> None:
    memory_id = world.remember(LONG)

    (node,) = nodes(world, tool, **arguments)

    assert node["content"] == f"{LONG[:SUMMARY_CHARS].rstrip()}…"
    assert node["contentLength"] == len(LONG)
    (whole,) = nodes(world, tool, detail_level="full", **arguments)
    assert (whole["content"], "contentLength" in whole) == (LONG, False)
    assert world.get(memory_id)["content"] == LONG


def test_a_search_shows_the_piece_that_matched_and_says_how_to_read_all(world: World) -> None:
    world.remember(LONG)

    answer = world.call("search", query=NEEDLE)

    assert "zanzibar" not in answer["results"][0]["content"]
    assert "zanzibar" in answer["results"][0]["matchedText"]
    assert "`get` returns the whole text" in answer["note"]
    assert "note" not in world.call("search", query=NEEDLE, detail_level="full")


def test_a_text_that_is_not_too_long_is_shown_whole(world: World) -> None:
    content = ("zanzibar gateway " * SUMMARY_CHARS)[: SUMMARY_CHARS - 1] + "y"
    world.remember(content)

    answer = world.call("search", query="zanzibar gateway")

    assert answer["results"][0]["content"] == content
    assert ("contentLength" in answer["results"][0], "note" in answer) == (False, False)


def test_an_answer_does_not_grow_with_the_longest_memory(world: World) -> None:
    world.remember("zanzibar " * 100_000)

    for arguments in ({"tool": "search", "query": "zanzibar"}, {"tool": "memory", "action": "list"}):
        assert len(orjson.dumps(world.call(**arguments))) < 10_000
