"""Context memory through `search`, on every store."""

from typing import Any

import pytest

from testbed.world import World

TEXT = "The oven in the bakery was repaired."


def reinstated(world: World, **arguments: Any) -> dict[str, Any]:
    asked = {"query": TEXT, "context_topics": ["oven"], "min_confidence": 0, "record": False}
    found: dict[str, Any] = world.call("search", **(asked | arguments))["contextReinstatement"]
    return found


def test_without_a_context_and_without_reasons_nothing_is_told_of_it(world: World) -> None:
    world.remember(TEXT)
    assert "contextReinstatement" not in world.call("search", query=TEXT, min_confidence=0)
    answer = world.call("search", query=TEXT, min_confidence=0, explain=True)
    assert answer["contextReinstatement"]["relatedMemories"] == []


def test_what_was_learned_beside_the_best_result_is_named_nearest_first(world: World) -> None:
    world.remember("The mill was painted long ago.")
    world.clock.advance(hours=2)
    before = world.remember("The plumber left his ladder.")
    world.clock.advance(hours=0.2)
    world.remember(TEXT)
    world.clock.advance(hours=0.1)
    after = world.remember("Bread is late today.")

    assert reinstated(world)["relatedMemories"] == [after, before]


def test_what_is_elsewhere_suppressed_or_of_another_session_is_not_named(world: World) -> None:
    world.remember(TEXT, scope="/project/a", session_id="s1")
    world.remember("The plumber left his ladder.", scope="/project/b", session_id="s1")
    world.remember("Bread is late today.", scope="/project/a", session_id="s2")
    hidden = world.remember("The cellar is flooded.", scope="/project/a", session_id="s1")
    world.call("suppress", id=hidden)

    assert reinstated(world, scope="/")["relatedMemories"] == []


def test_what_became_known_later_is_not_named_of_an_earlier_time(world: World) -> None:
    world.remember(TEXT)
    then = world.clock.now
    world.clock.advance(hours=0.1)
    world.remember("The plumber left his ladder.")

    assert reinstated(world, known_at=then.isoformat())["relatedMemories"] == []


def test_codebase_file_and_time_of_the_caller_decide_between_equals(world: World) -> None:
    day_one, day_two = "2026-02-01T09:00:00Z", "2026-02-12T21:00:00Z"
    mill = {"tags": ["codebase:mill"], "source": "src/mill.py", "occurred_at": day_one}
    shop = {"tags": ["codebase:shop"], "source": "src/oven.py", "occurred_at": day_two}
    other = world.remember("oven repair finished", force_create=True, **mill)
    fits = world.remember("finished oven repair", force_create=True, **shop)

    def order(**context: Any) -> list[str]:
        asked = {"query": "oven repair finished", "min_confidence": 0, "record": False, **context}
        return [hit["id"] for hit in world.call("search", **asked)["results"]]

    assert order(context_codebase="mill") == [other, fits]
    assert order(context_codebase="shop") == [fits, other]
    assert order(context_file="src/oven.py") == [fits, other]
    assert order(contextTime=day_one) == [other, fits]
    assert order(context_time=day_two) == [fits, other]


def test_an_answer_with_its_context_fits_its_budget(world: World) -> None:
    for number in range(8):
        world.remember(f"{TEXT} Part {number} was heavy.", force_create=True, tags=["oven"])
    answer = world.call("search", query=TEXT, context_topics=["oven"], min_confidence=0, token_budget=300)
    assert answer["tokensUsed"] <= 300
    tight = world.call("search", query=TEXT, context_topics=["oven"], min_confidence=0, token_budget=100)
    assert tight["tokensUsed"] <= 100
    assert "contextReinstatement" not in tight


@pytest.mark.parametrize(
    ("argument", "value", "code"),
    [
        ("context_time", "at some time", "invalid_input"),
        ("context_session", 7, "invalid_input"),
        ("context_codebase", "x" * 201, "too_large"),
    ],
)
def test_a_context_that_is_none_is_refused(world: World, argument: str, value: object, code: str) -> None:
    refused = world.refused("search", query=TEXT, **{argument: value})
    assert (refused["code"], refused["details"]["argument"]) == (code, argument)
