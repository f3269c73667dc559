"""Questions about the past, through the tools and on every store: what was valid then comes first."""

from datetime import timedelta
from typing import Any

import pytest

from testbed.failures import each
from testbed.world import START, World
from vestige.core.models import EVERYTHING
from vestige.engine.context import Call
from vestige.operations.memory.search_view import Found
from vestige.operations.registry.groups import registry
from vestige.operations.shared.text import unmarked

LENA, OMAR, PRIYA = (
    "The CTO is Lena.",
    "The CTO is Omar, no longer Lena.",
    "The CTO is Priya, no longer Omar.",
)  # from 1 March, 30 April and 29 June 2026


@pytest.fixture
def team(world: World) -> World:
    """A store that knows three CTOs, one after the other; it is 28 August 2026."""
    for fact in (LENA, OMAR, PRIYA):
        world.remember(fact)
        world.clock.advance(days=60)
    assert world.clock.now == START + timedelta(days=180)
    return world


def ask(world: World, query: str, **arguments: Any) -> dict[str, Any]:
    return world.call("search", **({"query": query, "record": False, "min_confidence": 0} | arguments))


@each(
    ("query", "first"),
    [
        ("Who was the CTO in March?", LENA),
        ("Who was the CTO in May 2026?", OMAR),
        ("Who was the CTO on 5 July?", PRIYA),
        ("Who was the CTO in spring?", OMAR),
        ("Who was CTO last year?", LENA),
        ("Who was the CTO until June?", OMAR),
        ("Who was the CTO before Omar?", LENA),
        ("Who was the CTO before Priya?", OMAR),
        ("Before Priya took over, who was the CTO?", OMAR),
        ("Who was originally the CTO?", LENA),
        ("Who used to be the CTO?", OMAR),
        ("Who was the former CTO?", OMAR),
        ("Who did we have as CTO back then?", OMAR),
    ],
)
def test_what_was_valid_at_the_time_asked_about_comes_first(team: World, query: str, first: str) -> None:
    answer = ask(team, query)

    assert answer["results"][0]["content"] == first
    assert {one["content"] for one in answer["results"]} == {LENA, OMAR, PRIYA}
    assert "from the question" in answer["note"]


@each("query", ["Who is the CTO?", "CTO", "Who do we have as CTO now?", "Who was the CTO again?"])
def test_a_question_about_now_finds_what_is_valid_now(team: World, query: str) -> None:
    answer = ask(team, query)

    assert [one["content"] for one in answer["results"]] == [PRIYA]
    assert "note" not in answer


def test_what_has_ended_is_marked_with_its_end(team: World) -> None:
    first, *_ = ask(team, "Who was the CTO in March?")["results"]

    assert (first["ended"], first["validUntil"][:10]) == (True, "2026-04-30")
    assert "supersededBy" in first
    brief = ask(team, "Who was the CTO in March?", detail_level="brief")["results"]
    assert [one.get("ended") for one in brief] == [True, True, None]


def test_a_person_reads_how_the_time_was_understood_and_what_has_ended(team: World) -> None:
    operation = registry.operations["search"]
    answer = operation.answer(
        Call(engine=team.app.engine, access=EVERYTHING), {"query": "Who was the CTO in March?"}
    )
    assert isinstance(answer, Found)
    text = unmarked(operation.render(answer))

    assert "as of March 2026, from the question" in text
    assert "ended 2026-04-30" in "".join(text.splitlines()[1:3])


@each(
    ("given", "found"),
    [
        ({"as_of": "2026-05-15"}, [OMAR]),
        ({"as_of": "2026-08-01"}, [PRIYA]),
        ({"known_at": "2026-03-15"}, [LENA]),
        ({"include_expired": True}, [LENA, OMAR, PRIYA]),
    ],
)
def test_a_time_given_by_the_caller_wins_over_the_words(
    team: World, given: dict[str, Any], found: list[str]
) -> None:
    answer = ask(team, "Who was the CTO in March?", **given)

    assert sorted(one["content"] for one in answer["results"]) == sorted(found)


def test_a_note_that_says_when_it_was_so_answers_for_that_time(world: World) -> None:
    jenkins, buildkite = "Our builds were on Jenkins until 2023.", "Our builds are done on Buildkite."
    world.remember(jenkins)
    world.remember(buildkite)

    assert world.find("Where were our builds in 2022?")[0] == jenkins
    assert world.find("Where are our builds?")[0] == buildkite


def test_a_note_from_before_the_time_asked_about_goes_before_a_later_one(world: World) -> None:
    tuesday, friday = (f"Deploys of Harbour are done on {day}." for day in ("Tuesday", "Friday"))
    world.remember(tuesday, force_create=True)
    world.clock.advance(days=120)
    world.remember(friday, force_create=True)
    world.clock.advance(days=60)

    assert world.find("When were deploys of Harbour done in April?")[0] == tuesday


def test_what_came_next_is_not_the_answer_to_what_came_before(world: World) -> None:
    world.remember("Jonah has piano lessons with Frau Brandl.", force_create=True)
    world.clock.advance(days=60)
    world.remember("Jonah has piano lessons with Herr Tanaka at school.", force_create=True)

    found = world.find("Who gave Jonah piano lessons before Herr Tanaka?")

    assert found[0] == "Jonah has piano lessons with Frau Brandl."


def test_a_plan_is_behind_what_is_so_now_until_it_begins(world: World) -> None:
    now, plan = "The rent of the flat is 1090 EUR.", "From January 2027 the rent of the flat is 1170 EUR."
    world.remember(now)
    world.clock.advance(days=1)
    world.remember(plan)

    assert world.find("What is the rent of the flat?") == [now, plan]
    world.clock.advance(days=365)
    assert world.find("What is the rent of the flat?") == [plan, now]
