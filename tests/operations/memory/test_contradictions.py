"""`contradictions` on every store: pairs that cannot both hold, through the public tools."""

import re
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.engine.context import Call
from vestige.engine.memory.contradictions import COMPARED
from vestige.operations.memory.contradictions import Contradictions, render_contradictions
from vestige.operations.registry.groups import registry
from vestige.operations.shared.text import unmarked

FILLING = (
    "The cafeteria serves soup on rainy days.",
    "Bo keeps a canoe behind the boathouse.",
    "Release notes are written by the product team.",
    "The cat of the neighbours sleeps on our porch.",
)


def plant(world: World, older: str, newer: str, **facts: Any) -> tuple[str, str]:
    one = world.remember(older, force_create=True, **facts)
    world.clock.advance(days=1)
    return one, world.remember(newer, force_create=True, **facts)


def pairs(answer: dict[str, Any]) -> set[frozenset[str]]:
    return {frozenset((one["stronger"]["id"], one["weaker"]["id"])) for one in answer["contradictions"]}


def test_planted_contradictions_are_found_among_ordinary_memories(world: World) -> None:
    for text in FILLING:
        world.remember(text)
    polarity = plant(world, "The audit log is enabled in staging.", "The audit log is disabled in staging.")
    value = plant(world, "The retry limit of the uploader is 5.", "The retry limit of the uploader is 8.")

    answer = world.call("contradictions")

    assert pairs(answer) == {frozenset(polarity), frozenset(value)}
    assert (answer["total"], answer["shown"], answer["scope"]) == (2, 2, "/")
    assert answer["memoriesAnalyzed"] == len(FILLING) + 4
    assert answer["pairsChecked"] >= 2
    newest = answer["contradictions"][0]
    assert (newest["kind"], newest["newer"]) == ("value", value[1])
    assert newest["detail"]
    assert newest["stronger"]["id"] == value[1]
    assert f"set_validity id={value[0]}" in newest["settle"]


def test_a_topic_narrows_it_down(world: World) -> None:
    plant(world, "The audit log is enabled in staging.", "The audit log is disabled in staging.")
    value = plant(world, "The retry limit of the uploader is 5.", "The retry limit of the uploader is 8.")
    for text in FILLING:
        world.remember(text)

    answer = world.call("contradictions", topic="retry limit of the uploader", limit=1)

    assert pairs(answer) == {frozenset(value)}
    assert answer["topic"] == "retry limit of the uploader"


def test_pages_of_contradictions_follow_each_other_and_name_the_total(world: World) -> None:
    for number in range(3):
        name = ("uploader", "mailer", "crawler")[number]
        plant(world, f"The retry limit of the {name} is 5.", f"The retry limit of the {name} is 8.")
    whole = world.call("contradictions")

    parts = [world.call("contradictions", limit=2, offset=offset) for offset in (0, 2, 4)]

    assert [part["shown"] for part in parts] == [2, 1, 0]
    assert [(part["offset"], part["total"]) for part in parts] == [(0, 3), (2, 3), (4, 3)]
    assert [one for part in parts for one in part["contradictions"]] == whole["contradictions"]


def test_what_is_settled_is_not_listed_any_more(world: World) -> None:
    old, _ = plant(world, "The audit log is enabled in staging.", "The audit log is disabled in staging.")
    assert world.call("contradictions")["total"] == 1

    world.call("memory", action="set_validity", id=old, valid_until="2026-03-01")
    world.clock.advance(days=3)

    assert world.call("contradictions")["total"] == 0
    assert world.call("contradictions", as_of="2026-03-01T12:00:00Z")["total"] == 1


def test_what_the_gate_superseded_is_no_contradiction(world: World) -> None:
    world.remember("Harbour runs on PostgreSQL 14 today.")
    world.clock.advance(days=1)
    world.remember("Harbour runs on PostgreSQL 16 today.")

    assert world.call("contradictions")["total"] == 0


def test_the_better_supported_side_is_the_stronger_one(world: World) -> None:
    old, new = plant(world, "The audit log is enabled in staging.", "The audit log is disabled in staging.")
    world.call("memory", action="promote", id=old)
    world.call("memory", action="demote", id=new)

    [clash] = world.call("contradictions")["contradictions"]

    assert (clash["stronger"]["id"], clash["weaker"]["id"], clash["newer"]) == (old, new, new)
    assert f"demote id={new}" in clash["settle"]


def test_a_scope_is_compared_with_those_above_and_below_it_and_not_beside_it(world: World) -> None:
    world.remember("The audit log is kept for a year.", scope="/project", force_create=True)
    world.remember("The audit log is not kept for a year.", scope="/project/a", force_create=True)
    world.remember("The audit log is enabled in staging.", scope="/project/a", force_create=True)
    world.remember("The audit log is disabled in staging.", scope="/project/b", force_create=True)

    assert world.call("contradictions", scope="/project/a")["total"] == 0
    assert world.call("contradictions", scope="/project/a")["scope"] == "/project/a"
    assert world.call("contradictions")["total"] == 1
    assert world.call("contradictions")["contradictions"][0]["weaker"]["scope"].startswith("/project")


def test_things_that_can_both_be_true_are_not_listed(world: World) -> None:
    for text in (
        "Ada likes tea.",
        "Ada likes coffee.",
        "Server alpha has 16 GB of memory.",
        "Server beta has 32 GB of memory.",
        "The harbour team meets on Monday.",
        "The lagoon team meets on Friday.",
    ):
        world.remember(text, force_create=True)

    assert world.call("contradictions")["contradictions"] == []


def test_asked_again_only_what_changed_makes_it_compare_again(world: World) -> None:
    plant(world, "The build server is in Oslo.", "The build server is not in Oslo but in Bergen.")
    COMPARED.clear()  # other tests of this process compared the same texts
    steps: list[str | None] = []
    call = Call(engine=world.app.engine, progress=lambda at, of, what: steps.append(what))
    ask = registry.operations["contradictions"].call
    first = ask(call, {})
    assert steps
    steps.clear()
    world.clock.advance(days=30)
    again = ask(call, {})
    assert steps == []
    assert pairs(again) == pairs(first) != set()
    newer, _ = plant(world, "The gate code has four digits.", "The gate code does not have four digits.")
    third = ask(call, {})
    assert steps
    assert third["total"] == 2
    assert any(newer in pair for pair in pairs(third))


def test_the_limit_bounds_what_is_shown_and_not_what_is_counted(world: World) -> None:
    for name in ("uploader", "mailer", "indexer"):
        plant(world, f"The retry limit of the {name} is 5.", f"The retry limit of the {name} is 8.")

    answer = world.call("contradictions", limit=2)

    assert (answer["total"], answer["shown"], len(answer["contradictions"])) == (3, 2, 2)


def test_it_works_without_a_model_and_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock, provider="off") as world:
        planted = plant(
            world, "The audit log is enabled in staging.", "The audit log is disabled in staging."
        )
        before = world.call("contradictions")
    with open_world(tmp_path / "data", clock=clock, provider="off") as world:
        after = world.call("contradictions")
        about = world.call("contradictions", topic="audit log")

    assert pairs(before) == {frozenset(planted)}
    assert after == before
    assert pairs(about) == pairs(before)


def test_a_text_too_long_for_a_statement_is_left_out_and_counted(world: World) -> None:
    world.remember("The audit log is enabled in staging. " + "It is long. " * 300, force_create=True)

    answer = world.call("contradictions")

    assert (answer["memoriesAnalyzed"], answer["leftOut"]) == (0, 1)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"limit": 0}, "limit"),
        ({"topic": " "}, "blank"),
        ({"scope": "/nowhere"}, "/nowhere"),
        ({"subject": "tea"}, "subject"),
    ],
)
def test_bad_input_is_refused_clearly(world: World, arguments: dict[str, Any], said: str) -> None:
    world.remember("Tea is served at four.")

    assert said in world.refused("contradictions", **arguments)["message"]


def test_a_person_reads_both_sides_and_what_to_do(world: World) -> None:
    plant(
        world, "The audit log is enabled in staging.", "The audit log is disabled in staging.", source="wiki"
    )

    text = render_contradictions(Contradictions.model_validate(world.call("contradictions")))

    assert "“The audit log is enabled in staging.”" in text
    assert "wiki" in text
    assert "`vestige memory set-validity " in unmarked(text)
    assert "set_validity" not in text
    assert not re.search(r"[0-9a-f]{8}-[0-9a-f]{4}-7", text), "ids are short for a person"
    assert "1 of 1 contradiction in /." in text
