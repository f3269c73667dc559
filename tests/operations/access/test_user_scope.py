"""What is about the user goes to /user, and comes up in every project."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from tests.conftest import BACKENDS, POSTGRES
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IN_A: dict[str, Any] = {"memory.scope": "/project/acme/shop@example.org"}
IN_B: dict[str, Any] = {"memory.scope": "/project/acme/crane@example.org"}


def in_project(world: World, operation: str, name: str = "a", **arguments: Any) -> dict[str, Any]:
    """The answer of an operation that is called in a project."""
    call = Call(engine=world.app.engine, scope=f"/project/{name}")
    return registry.operations[operation].call(call, arguments)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("I prefer TypeScript over JavaScript.", "I prefer"),
        ("Actually, the user prefers light mode.", "the user prefers"),
        ("My sister lives in Toronto.", "My sister"),
    ],
)
def test_what_is_about_the_user_is_stored_for_every_project(world: World, text: str, words: str) -> None:
    stored = in_project(world, "smart_ingest", content=text)
    assert (stored["scope"], stored["scopeReason"]) == ("/user", f"about the user: “{words}”")
    assert world.get(stored["nodeId"])["scope"] == "/user"
    operation = registry.operations["smart_ingest"]
    call = Call(engine=world.app.engine, scope="/project/a")
    shown = operation.render(operation.answer(call, {"content": text}))
    assert f"Scope: /user (about the user: “{words}”)" in shown


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"content": "Tabs, not spaces.", "node_type": "preference"}, "of type preference"),
        ({"content": "Short answers first.", "tags": ["style", "preference"]}, "tagged preference"),
        ({"content": "Vegetarian since 2019.", "tags": ["Identity"]}, "tagged Identity"),
        ({"content": "Coffee before stand-up.", "tags": ["habits"]}, "tagged habits"),
        ({"content": "Ada prefers tea.", "tags": ["User Preference"]}, "tagged User Preference"),
    ],
)
def test_a_type_or_a_tag_says_that_a_text_is_about_the_user(
    world: World, arguments: dict[str, Any], reason: str
) -> None:
    stored = in_project(world, "smart_ingest", **arguments)
    assert (stored["scope"], stored["scopeReason"]) == ("/user", f"about the user: {reason}")


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "We prefer squash merges.", "tags": ["preference"]},
        {"content": "Tabs in this project.", "tags": ["preference"]},
        {"content": "Tabs in src/parser.py.", "node_type": "preference"},
        {"content": "cranberry-a uses tabs.", "node_type": "preference"},
        {"content": "Tabs.", "tags": ["preference"], "author": "Bo"},
        {"content": "The parser is written in Rust."},
        {"content": "I prefer the second parser for this repository."},
        {"content": "The user is redirected to the login page."},
        {"content": "I prefer tea.", "thread": "t", "position": 1},
        {"content": "I prefer tea.", "author": "Bo"},
        {"content": "I prefer tea.", "source": "https://example.org/blog"},
        {"content": "I prefer tabs.", "node_type": "decision"},
        {"content": "I prefer tea with cranberry-a."},
    ],
)
def test_everything_else_stays_in_the_project(world: World, arguments: dict[str, Any]) -> None:
    stored = in_project(world, "smart_ingest", "cranberry-a", **arguments)
    assert (stored["scope"], stored["scopeReason"]) == ("/project/cranberry-a", "the current project")


def test_a_given_scope_wins(world: World) -> None:
    stored = in_project(world, "smart_ingest", content="I prefer tabs.", scope="/project/b")
    assert (stored["scope"], stored["scopeReason"]) == ("/project/b", "as given")


def test_outside_any_project_it_goes_to_the_user_too(world: World) -> None:
    assert world.call("smart_ingest", content="I prefer tabs.")["scope"] == "/user"
    other = world.call("smart_ingest", content="The mast is oak.")
    assert (other["scope"], other["scopeReason"]) == ("/", "no project")


def test_each_text_of_a_batch_has_its_own_scope(world: World) -> None:
    items = [{"content": "I prefer tabs."}, {"content": "The mast is oak."}]
    stored = in_project(world, "smart_ingest", items=items)
    assert [one["scope"] for one in stored["results"]] == ["/user", "/project/a"]


def test_a_caller_that_may_not_write_there_keeps_it(world: World) -> None:
    limited = Call(engine=world.app.engine, access=Access(scopes=("/project",)), scope="/project/a")
    stored = registry.operations["smart_ingest"].call(limited, {"content": "I prefer tabs."})
    assert (stored["scope"], stored["scopeReason"]) == ("/project/a", "the current project")


def test_a_correction_from_another_project_finds_the_note_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock, **IN_A) as here:
        old = here.remember("My editor is Helix.")
        assert here.get(old)["scope"] == "/user"
    clock.advance(days=1)
    with open_world(tmp_path, clock=clock, **IN_B) as there:
        again = there.call("smart_ingest", content="My editor is Helix.")
        assert (again["decision"], again["nodeId"]) == ("reinforce", old)
        new = there.call("smart_ingest", content="Correction: My editor is Zed, not Helix.")
        assert (new["decision"], new["supersededId"], new["scope"]) == ("supersede", old, "/user")
    with open_world(tmp_path, clock=clock, **IN_A) as here:
        assert here.find("Which editor do I use?", min_confidence=0) == [
            "Correction: My editor is Zed, not Helix."
        ]


@pytest.mark.parametrize("world", [*BACKENDS, POSTGRES], indirect=True)
def test_every_store_keeps_finds_ranks_and_corrects_alike(world: World) -> None:
    first = in_project(world, "smart_ingest", "a", content="The gateway is written in Go.")
    second = in_project(world, "smart_ingest", "b", content="The gateway is written in Rust.")
    old = in_project(world, "smart_ingest", "a", content="My editor is Helix.")
    world.clock.advance(days=1)
    new = in_project(world, "smart_ingest", "b", content="Correction: My editor is Zed, not Helix.")
    assert (new["decision"], new["supersededId"], new["scope"]) == ("supersede", old["nodeId"], "/user")
    for home, best in (("a", first), ("b", second)):
        asked = {"query": "How is the gateway written?", "record": False, "min_confidence": 0}
        answer = in_project(world, "search", home, **asked)
        hits = [(hit["id"], hit["scope"]) for hit in answer["results"]]
        assert hits[0] == (best["nodeId"], f"/project/{home}")
        assert {first["nodeId"], second["nodeId"]} <= {name for name, _ in hits}
        editor = in_project(world, "search", home, query="My editor", record=False)["results"][0]
        assert (editor["id"], editor["scope"]) == (new["nodeId"], "/user")


def test_a_fact_of_one_project_never_corrects_one_of_another(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock, **IN_A) as here:
        old = here.remember("The gateway listens on port 8080.")
    clock.advance(days=1)
    with open_world(tmp_path, clock=clock, **IN_B) as there:
        new = there.call("smart_ingest", content="Correction: The gateway listens on port 9090, not 8080.")
        assert new["decision"] == "create"
        assert "supersededBy" not in there.get(old)


# -- Intentions


def test_an_intention_of_the_user_comes_up_in_every_project_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock, **IN_A) as here:
        mine = here.call("intention", action="set", description="remind me to call my mother in 10 minutes")
        ours = here.call("intention", action="set", description="remind me to rotate the keys in 10 minutes")
        assert (mine["intention"]["scope"], ours["intention"]["scope"]) == ("/user", IN_A["memory.scope"])
    clock.advance(hours=1)
    with open_world(tmp_path, clock=clock, **IN_B) as there:
        due = there.call("intention", action="check")["triggered"]
        assert [one["id"] for one in due] == [mine["intentionId"]]
        assert mine["intentionId"] in there.call("session_context", queries=["mother"])["context"]
    with open_world(tmp_path, clock=clock, **IN_A) as here:
        listed = here.call("intention", action="list", filter_status="open")["intentions"]
        assert {one["id"] for one in listed} == {mine["intentionId"], ours["intentionId"]}


def test_an_intention_with_a_scope_or_a_file_keeps_its_place(world: World) -> None:
    given = in_project(world, "intention.set", description="Call my mother.", scope="/project/b")
    assert given["intention"]["scope"] == "/project/b"
    trigger = {"file_pattern": "*.sql"}
    in_file = in_project(world, "intention.set", description="Call my mother.", trigger=trigger)
    assert in_file["intention"]["scope"] == "/project/a"


def test_a_fact_about_the_user_reports_an_event_to_every_project(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path, clock=clock, **IN_A) as here:
        set_here = here.call(
            "intention", action="set", description="Offer the tea list.", trigger={"condition": "prefer tea"}
        )
        assert set_here["intention"]["scope"] == IN_A["memory.scope"]
        here.remember("I prefer tea.")
        here.app.settle()
        due = here.call("intention", action="check")["triggered"]
        assert [one["id"] for one in due] == [set_here["intentionId"]]


HABIT: dict[str, Any] = {"tags": ["habit"]}


@pytest.mark.parametrize(("first", "second"), [(HABIT, {}), ({}, HABIT)], ids=["from user", "to user"])
def test_a_correction_finds_what_was_stored_in_the_other_of_two_default_scopes(
    world: World, first: dict[str, Any], second: dict[str, Any]
) -> None:
    old = world.call("smart_ingest", content="The day starts at nine.", **first)
    new = world.call("smart_ingest", content="The day starts at ten.", **second)
    assert {old["scope"], new["scope"]} == {"/", "/user"}
    assert (new["decision"], new["rivalId"]) == ("supersede", old["nodeId"])
    assert world.find("When does the day start?", mode="broad") == ["The day starts at ten."]


def test_what_is_said_again_about_the_user_is_kept_for_the_user(world: World) -> None:
    world.call("smart_ingest", content="The day starts at nine.")
    again = world.call("smart_ingest", content="The day starts at nine.", **HABIT)
    assert (again["decision"], again["scope"]) == ("create", "/user")


@pytest.mark.parametrize("scope", ["/user/bob", "/project"])
def test_scopes_below_or_above_the_default_ones_are_left_alone(world: World, scope: str) -> None:
    world.call("smart_ingest", content="The day starts at nine.", scope=scope)
    for call in (partial(world.call, "smart_ingest"), partial(in_project, world, "smart_ingest")):
        assert call(content="The day starts at ten.", **HABIT)["decision"] != "supersede"


def test_both_texts_of_a_batch_are_compared_across_the_default_scopes(world: World) -> None:
    texts = [{"content": "The day starts at nine.", **HABIT}, {"content": "The day starts at ten."}]
    old, new = world.call("smart_ingest", items=texts)["results"]
    assert (new["decision"], new["rivalId"]) == ("supersede", old["nodeId"])


def test_what_is_about_the_user_corrects_what_the_project_has(world: World) -> None:
    old = in_project(world, "smart_ingest", content="The day starts at nine.")
    new = in_project(world, "smart_ingest", content="The day starts at ten.", **HABIT)
    assert (new["decision"], new["rivalId"]) == ("supersede", old["nodeId"])


def test_a_text_of_a_project_ends_nothing_that_is_about_the_user(world: World) -> None:
    in_project(world, "smart_ingest", content="The day starts at nine.", **HABIT)
    assert in_project(world, "smart_ingest", content="The day starts at ten.")["decision"] == "create"


def test_a_text_for_a_named_scope_is_compared_with_that_scope_only(world: World) -> None:
    world.call("smart_ingest", content="The day starts at nine.", **HABIT)
    given = world.call("smart_ingest", content="The day starts at ten.", scope="/")
    assert given["decision"] == "create"
