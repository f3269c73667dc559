"""`predict`: what it says without history, what it learns from, and what it never names."""

from typing import Any

import pytest

from testbed.world import World
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call
from vestige.engine.reactions.searches import ATTENTION, PATTERN, SEARCHES, searches
from vestige.operations.registry.groups import registry

DOMAIN = "/project/harbour"


def look_up(world: World, *queries: str, **arguments: Any) -> None:
    """Search for these one after the other, and let that be learned from."""
    for query in queries:
        world.call("search", query=query, limit=1, **arguments)
        world.app.settle()
        world.clock.advance(hours=0.05)


def named(world: World, **arguments: Any) -> list[str]:
    return [one["memoryId"] for one in world.call("predict", **arguments)["predictions"]]


def pair(world: World) -> tuple[str, str]:
    """Two memories, the second of which was looked up after the first, yesterday."""
    first = world.remember("The vault opens at nine.")
    second = world.remember("Zygmunt repairs ovens.")
    look_up(world, "vault", "Zygmunt")
    world.clock.advance(days=1)
    return first, second


def test_without_history_the_newest_strong_memories_are_named_and_it_says_so(world: World) -> None:
    ids = {world.remember("The vault opens at nine."), world.remember("Zygmunt repairs ovens.")}
    answer = world.call("predict")
    assert {one["memoryId"] for one in answer["predictions"]} == ids
    assert answer["predictDegraded"].startswith("No search has been learned from yet")
    assert (answer["suggestions"], answer["speculative"], answer["topInterests"]) == ([], [], [])
    assert "predictionAccuracy" not in answer


def test_an_empty_memory_predicts_nothing(world: World) -> None:
    answer = world.call("predict")
    assert answer["predictions"] == []
    assert answer["predictionsMeasured"] == 0


def test_a_prediction_names_its_signs_with_numbers_and_where_it_comes_from(world: World) -> None:
    _, second = pair(world)
    look_up(world, "vault")
    (one,) = world.call("predict", limit=1)["predictions"]
    assert one["memoryId"] == second
    assert one["preview"] == "Zygmunt repairs ovens."
    assert (one["nodeType"], one["scope"]) == ("fact", "/")
    assert [reason.split(":")[0] for reason in one["reasons"]] == ["co_access", "habit"]
    assert all(reason.endswith(")") for reason in one["reasons"])
    assert 0.3 < one["confidence"] < 0.6


@pytest.mark.parametrize(
    "context", [{"current_topics": ["Zygmunt"]}, {"currentFile": "notes/zygmunt.md"}, {"codebase": "zygmunt"}]
)
def test_what_the_caller_is_busy_with_counts(world: World, context: dict[str, Any]) -> None:
    _, second = pair(world)
    (one,) = world.call("predict", context=context, limit=1)["predictions"]
    assert one["memoryId"] == second
    assert any(reason.startswith("context: met under") for reason in one["reasons"])


def test_what_was_found_in_this_session_is_not_foretold_again(world: World) -> None:
    first, second = pair(world)
    assert set(named(world)) == {first, second}
    look_up(world, "vault")
    assert named(world) == [second]


def test_a_search_that_leaves_no_trace_teaches_nothing(world: World) -> None:
    world.remember("The vault opens at nine.")
    look_up(world, "vault", record=False)
    assert searches(Call(engine=world.app.engine), "/") == []
    assert "predictDegraded" in world.call("predict")


def test_what_is_gone_suppressed_or_replaced_is_not_foretold(world: World) -> None:
    gone = world.remember("The vault opens at nine.")
    hidden = world.remember("Zygmunt repairs ovens.")
    ended = world.remember("Bertha sells umbrellas.")
    look_up(world, "vault", "Zygmunt", "Bertha umbrellas")
    world.clock.advance(days=1)
    assert set(named(world)) == {gone, hidden, ended}
    world.call("memory", action="delete", id=gone)
    world.call("suppress", id=hidden)
    world.call("memory", action="set_validity", id=ended, valid_until=world.clock.now.isoformat())
    world.app.settle()
    assert named(world) == []


def test_what_was_learned_of_a_memory_goes_with_it(world: World) -> None:
    first, _ = pair(world)
    store = world.app.engine.store
    world.call("memory", action="delete", id=first)
    left = [
        document
        for kind in (ATTENTION, PATTERN)
        for document in store.documents(kind, access=EVERYTHING, limit=100)
    ]
    assert left
    assert "vault" not in str([document.body["terms"] for document in left])
    assert all(first not in document.cites for document in left)


def test_words_of_queries_are_kept_without_what_is_no_word(world: World) -> None:
    world.remember("The vault opens at nine.")
    look_up(world, "What is the vault's key eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9?")
    (search,) = searches(Call(engine=world.app.engine), "/")
    assert search.terms == {"vault": "vault's", "kei": "key"}


def test_only_the_last_searches_are_remembered_and_the_same_one_again_is_one(world: World) -> None:
    for number in range(SEARCHES + 5):
        look_up(world, f"word{number}")
    look_up(world, "umbrella")
    look_up(world, "umbrella")
    kept = searches(Call(engine=world.app.engine), "/")
    assert len(kept) == SEARCHES
    assert list(kept[0].terms) == ["umbrella"]
    assert "word54" in kept[1].terms


def test_a_scope_has_its_own_habits_and_inherits_those_above(world: World) -> None:
    shared = world.remember("The vault opens at nine.")
    inside = world.remember("Zygmunt repairs the harbour.", scope=DOMAIN)
    look_up(world, "vault")
    look_up(world, "Zygmunt", scope=DOMAIN)
    world.clock.advance(days=1)
    assert named(world, scope=DOMAIN) == [inside]
    assert set(named(world, scope="/")) == {shared, inside}
    assert "predictDegraded" in world.call("predict", scope="/project/other")


def test_a_caller_sees_no_prediction_beyond_his_access(world: World) -> None:
    world.remember("The vault opens at nine.")
    inside = world.remember("Zygmunt repairs the harbour.", scope=DOMAIN)
    look_up(world, "vault", "Zygmunt")
    call = Call(engine=world.app.engine, access=Access(scopes=(DOMAIN,)), scope=DOMAIN)
    answer = registry.operations["predict"].call(call, {})
    assert {one["memoryId"] for one in answer["predictions"]} == {inside}
    nobody = Call(engine=world.app.engine, access=Access(domains=("medicine",)))
    assert registry.operations["predict"].call(nobody, {})["predictions"] == []


def test_a_promotion_makes_a_prediction_come_true(world: World) -> None:
    _, second = pair(world)
    look_up(world, "vault")
    world.call("predict", limit=1)
    world.call("memory", action="promote", id=second)
    world.app.settle()
    answer = world.call("predict", limit=1)
    assert (answer["predictionAccuracy"], answer["predictionsMeasured"]) == (1.0, 1)


def test_session_context_lists_what_is_likely_to_be_needed(world: World) -> None:
    _, second = pair(world)
    look_up(world, "vault")
    context = world.call("session_context", queries=["vault"])["context"]
    recalled, predicted = context.split("### Likely next")
    assert second not in recalled
    assert "Zygmunt repairs ovens." in predicted
    assert second in predicted


@pytest.mark.parametrize(
    "arguments",
    [{"limit": 0}, {"limit": 21}, {"context": {"file": "a.py"}}, {"context": "tea"}, {"scope": "/a/../b"}],
)
def test_bad_arguments_are_refused_and_nothing_is_kept(world: World, arguments: dict[str, Any]) -> None:
    pair(world)
    before = world.call("predict")["predictionsMeasured"]
    error = world.refused("predict", **arguments)
    assert error["code"] in ("invalid_input", "unknown_argument")
    assert error["message"]
    assert world.call("predict")["predictionsMeasured"] == before


def test_predictions_are_told_to_a_person_too(world: World) -> None:
    pair(world)
    look_up(world, "vault")
    operation = registry.operations["predict"]
    text = operation.render(operation.answer(Call(engine=world.app.engine), {}))
    assert "Zygmunt repairs ovens." in text
    assert "Likely queries: zygmunt" in text
