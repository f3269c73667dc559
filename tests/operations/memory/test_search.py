"""What `search` says about its answer, on every store: what occurs nowhere, which filters were on, what time
was understood, what was left of a hit to fit a budget; and what a person reads of it."""

from typing import Any

import orjson
import pytest

from testbed.world import World
from vestige.cognition.text.form import estimate_tokens
from vestige.core.models import EVERYTHING, Access
from vestige.engine.context import Call
from vestige.operations.memory.search_view import Found, render_found
from vestige.operations.registry.groups import registry
from vestige.operations.shared.text import unmarked

OPERATION = registry.operations["search"]


def ask(world: World, query: str, **arguments: Any) -> dict[str, Any]:
    """An answer that leaves no trace and shows everything, unless said otherwise."""
    return world.call("search", **({"query": query, "record": False, "min_confidence": 0} | arguments))


def read(world: World, query: str, access: Access = EVERYTHING, **arguments: Any) -> str:
    """What a person reads of an answer."""
    call = Call(engine=world.app.engine, access=access)
    answer = OPERATION.answer(call, {"query": query, "record": False, "min_confidence": 0} | arguments)
    assert isinstance(answer, Found)
    return unmarked(OPERATION.render(answer))


# -- what occurs nowhere -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("held", "query", "missing"),
    [
        ("ticket 48312 is about the printer", "what is ticket 48213 about", ["48213"]),
        ("e1243 means the disk is full", "what does e1234 mean", ["e1234"]),
        ("JIRA-124 is closed, room 123 is open", "is JIRA-123 closed", ["JIRA-123"]),
        ("v2.3.2 drops Python 3.9", "what does v2.3.1 drop", ["2.3.1"]),
        ("commit 59b00e2 broke the build", "did 59b00e3 break the build", ["59b00e3"]),
        ("the book is called Becoming Nicole", 'who wrote "Becoming Michelle"', ["Becoming Michelle"]),
        ("ticket 48312 of billing_api", "ticket 48213 of billing_api", ["48213"]),
    ],
)
def test_what_must_occur_as_it_is_and_occurs_nowhere_is_named(
    world: World, held: str, query: str, missing: list[str]
) -> None:
    world.remember(held)

    answer = ask(world, query)

    assert answer["missing"] == missing
    assert answer["results"][0]["content"] == held
    assert f'"{missing[0]}" occurs in no memory' in read(world, query)


@pytest.mark.parametrize(
    ("held", "query"),
    [
        ("ticket 48213 is about the printer", "what is ticket 48213 about"),
        ("ticket 48213 is about the printer", "#48213"),
        ("the meter shows 48,213 units", "which meter shows 48213"),
        ("version 2.3.1 drops Python 3.9", "what does v2.3.1 drop"),
        ("E1234 means the disk is full", "what does e1234 mean"),
        ("she says don't panic", "who says “don’t panic”"),
        ("she says don’t panic", 'who says "don\'t panic"'),
        ("the key is ＥＲＲ_42", "where is ERR_42"),
        ("the printer works", "does the printer work in 2026 for 5000 pages"),
    ],
)
def test_nothing_is_missing_where_everything_occurs(world: World, held: str, query: str) -> None:
    world.remember(held)

    assert "missing" not in ask(world, query)
    assert "in no memory" not in read(world, query)


def test_an_id_that_occurs_nowhere_makes_the_answer_unsure_and_a_precise_search_refuses(world: World) -> None:
    world.remember("ticket 48312 is about the broken printer")

    right, wrong = (
        ask(world, f"ticket {number} is about the broken printer") for number in ("48312", "48213")
    )

    assert right["confidence"] >= 0.95
    assert wrong["confidence"] < 0.25 * right["confidence"]
    assert world.call("search", query="ticket 48213 broken printer", retrieval_mode="precise")["abstained"]


def test_what_is_named_and_told_of_nowhere_makes_the_answer_unsure_but_silences_only_a_precise_search(
    world: World,
) -> None:
    world.remember("The harbour database runs on MySQL.")

    right, wrong = (ask(world, f"what does the {name} database run on") for name in ("Harbour", "Lighthouse"))
    precise = world.call(
        "search", query="what does the Lighthouse database run on", retrieval_mode="precise", record=False
    )

    assert "missing" not in right
    assert wrong["missing"] == ["Lighthouse"]
    assert 0.03 < wrong["confidence"] < 0.25 * right["confidence"]
    assert wrong["results"]
    assert precise["abstained"]


def test_hits_that_contradict_each_other_are_marked_though_nothing_was_linked(world: World) -> None:
    low = world.remember("The API limit is 30 requests per minute.", force_create=True)
    high = world.remember("The API limit is 60 requests per minute.", force_create=True)
    world.remember("The API limit is documented in the wiki.", force_create=True)

    marks = {hit["id"]: hit.get("contradicts") for hit in ask(world, "API limit requests")["results"]}

    assert (marks[low], marks[high]) == ([high], [low])
    assert sum(bool(mark) for mark in marks.values()) == 2


def test_ids_that_occur_in_different_memories_are_not_missing(world: World) -> None:
    world.remember("ticket 48213 is about the printer")
    world.remember("ticket 59324 is about the scanner")

    assert ask(world, "tickets 48213, 59324 and 60435")["missing"] == ["60435"]


def test_what_the_caller_cannot_reach_occurs_nowhere(world: World) -> None:
    world.remember("ticket 48213 is about the printer", scope="/private")
    world.remember("ticket 50000 is about the scanner", scope="/public")

    limited = read(world, "ticket 48213", access=Access(scopes=("/public",)))
    assert '"48213" occurs in no memory in scope /public.' in limited
    assert 'scope "/"' not in limited
    several = read(world, "ticket 48213", access=Access(scopes=("/public", "/other")))
    assert '"48213" occurs in no memory that you have access to.' in several
    assert "missing" not in ask(world, "ticket 48213")


def test_what_is_missing_in_a_scope_is_not_said_to_occur_nowhere(world: World) -> None:
    world.remember("ticket 48213 is about the printer", scope="/private")
    world.remember("ticket 50000 is about the scanner", scope="/public", tags=["it"])

    answer = ask(world, "ticket 48213", scope="/public", tags=["it"])
    assert (answer["missing"], answer["searched"]) == (["48213"], "in scope /public with tag it")
    assert 'Pass scope "/"' in answer["note"]
    shown = read(world, "ticket 48213", scope="/public")
    assert '"48213" occurs in no memory in scope /public.' in shown
    assert 'scope "/"' in shown
    assert "searched" not in ask(world, "ticket 77777")
    reasoned = world.call("deep_reference", query="ticket 48213", scope="/public")["reasoning"]
    assert "NO MEMORY IN /public MENTIONS “48213”" in reasoned


# -- the time that was understood ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "time", "line"),
    [
        (
            "which tea in July",
            {
                "words": "July",
                "since": "2025-07-01T00:00:00Z",
                "before": "2025-08-01T00:00:00Z",
                "yearGuessed": True,
            },
            '"July" is read as from 2025-07-01 00:00 UTC until 2025-08-01 00:00 UTC; the year is assumed.',
        ),
        (
            "which tea before March 2025",
            {"words": "before March 2025", "before": "2025-03-01T00:00:00Z"},
            '"before March 2025" is read as until 2025-03-01 00:00 UTC.',
        ),
        (
            "which tea since last Monday",
            {"words": "since last Monday", "since": "2026-02-23T00:00:00Z", "before": "2026-03-02T00:00:00Z"},
            '"since last Monday" is read as from 2026-02-23 00:00 UTC until 2026-03-02 00:00 UTC.',
        ),
    ],
)
def test_an_explained_answer_says_what_time_was_understood(
    world: World, query: str, time: dict[str, Any], line: str
) -> None:
    world.remember("tea")

    assert ask(world, query, explain=True)["time"] == time
    assert line in read(world, query, explain=True).splitlines()


def test_no_time_is_told_where_none_was_asked_for_or_nothing_is_explained(world: World) -> None:
    world.remember("tea")

    assert "time" not in ask(world, "which tea before we start", explain=True)
    assert "time" not in ask(world, "which tea in July")


# -- which filters were on -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "among"),
    [
        ({"scope": "/x", "tags": "y"}, "in scope /x with tag y"),
        ({"tags": ["a", "b"], "tags_all": ["c", "d"]}, "with any of the tags a, b with all of the tags c, d"),
        ({"include_types": ["person"], "domains": ["home"]}, "of type person in domain home"),
        ({"exclude_types": ["fact", "event"]}, "of none of the types fact, event"),
        ({"source": "a.log", "author": "ada", "thread": "talk"}, "from source a.log by ada in thread talk"),
        ({"created_from": "2026-03-02"}, "stored at or after 2026-03-02 00:00 UTC"),
        ({"created_to": "2026-02-01"}, "stored before 2026-02-02 00:00 UTC"),
        ({"min_retention": 0.75, "scope": "/x"}, "in scope /x with a retention of at least 0.75"),
        ({"as_of": "2020-01-01", "scope": "/x"}, "in scope /x true at 2020-01-01 00:00 UTC"),
        ({"known_at": "2021-01-01"}, "known at 2021-01-01 00:00 UTC"),
    ],
)  # fmt: skip
def test_an_empty_answer_names_the_filters_that_were_on(
    world: World, arguments: dict[str, Any], among: str
) -> None:
    world.remember("The heron stands in the pond.", scope="/home")

    answer = ask(world, "heron", **arguments)

    widen = ' Pass scope "/" to search everything.' if "scope" in arguments else ""
    assert (answer["results"], answer["note"]) == ([], f"No memory {among} matches.{widen}")
    assert answer["note"] in read(world, "heron", **arguments)


def test_an_empty_answer_says_how_many_suppressed_memories_were_not_searched(world: World) -> None:
    for text in ("The heron stands in the pond.", "The heron eats frogs."):
        memory_id = world.remember(text, force_create=True, scope="/home")
        world.call("suppress", id=memory_id)
    hidden = "2 suppressed memories were not searched: see `include_suppressed`."

    answer = ask(world, "heron", scope="/home")
    assert (answer["results"], answer["note"].endswith(hidden)) == ([], True)
    assert "pond" not in str(answer)
    assert "suppressed" not in ask(world, "heron", scope="/elsewhere")["note"]
    both = ask(world, "heron", scope="/home", include_suppressed=True)
    assert [hit["suppressionCount"] for hit in both["results"]] == [1, 1]
    assert "suppressed" in read(world, "heron", scope="/home", include_suppressed=True)


@pytest.mark.parametrize(
    ("access", "advice"),
    [
        (EVERYTHING, ' Pass scope "/" to search everything.'),
        (Access(scopes=("/x",)), ""),
        (Access(scopes=("/x/deeper",)), ""),
        (Access(scopes=("/x", "/home")), ' Pass scope "/" to search everything you have access to.'),
        (Access(domains=("birds",)), ' Pass scope "/" to search everything you have access to.'),
    ],
)
def test_an_empty_answer_advises_only_what_can_find_more(world: World, access: Access, advice: str) -> None:
    world.remember("The heron stands in the pond.", scope="/home")

    assert f"No memory in scope /x matches.{advice}\n" in read(world, "heron", access, scope="/x") + "\n"


def test_an_empty_answer_without_filters_names_none(world: World) -> None:
    assert ask(world, "heron")["note"] == "There are no memories yet."


def test_a_refused_answer_names_the_filters_that_were_on(world: World) -> None:
    world.remember("The heron stands in the pond.", scope="/home")

    assert "Only memories in scope /home were searched." in ask(
        world, "quantum gravity", scope="/home", min_confidence=1
    )["note"]  # fmt: skip
    assert "Only memories" not in ask(world, "quantum gravity", min_confidence=1)["note"]


def test_however_many_filters_there_are_their_description_is_short(world: World) -> None:
    many = [f"tag-{number}-{'x' * 100}" for number in range(100)]

    assert len(ask(world, "heron", tags=many)["note"]) < 400


@pytest.mark.parametrize("tool", [("search", {"query": "heron"}), ("memory", {"action": "list"})])
def test_a_type_cannot_be_both_included_and_excluded(world: World, tool: tuple[str, dict[str, Any]]) -> None:
    name, arguments = tool
    error = world.refused(
        name, **arguments, include_types=["fact", "person", "event"], exclude_types=["event", "fact"]
    )

    assert error["code"] == "invalid_input"
    assert "`include_types` and `exclude_types` both name fact, event" in error["message"]
    assert error["hint"] == "Name a type in one of them only."


@pytest.mark.parametrize(
    "name", ["tags", "tags_all", "include_types", "exclude_types", "domains", "source", "author", "thread"]
)
@pytest.mark.parametrize("label", ["a\ud800", "a\0", "  "])
def test_a_filter_that_no_memory_could_have_is_refused_with_its_name(
    world: World, name: str, label: str
) -> None:
    error = world.refused("search", query="heron", **{name: label})

    assert error["code"] == "invalid_input"
    assert f"`{name}`" in error["message"]
    assert error["hint"]


# -- what a person reads -------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["brief", "summary", "full"])
def test_a_hit_is_dated_by_when_it_happened_or_else_by_when_it_was_told(world: World, level: str) -> None:
    world.remember("The heron came.", occurred_at="2025-12-24T18:30:00Z")
    world.remember("The stork left.")

    happened, told = (read(world, query, limit=1, detail_level=level) for query in ("heron", "stork"))

    assert "2025-12-24 18:30" in happened
    assert "2026-03-01" not in happened
    assert "2026-03-01 09:00" in told


# -- what fits a budget --------------------------------------------------------------------------

LONG = "The heron stands in the pond. " + "It waits for a fish, and then it waits again. " * 400


def tokens(answer: dict[str, Any]) -> int:
    return estimate_tokens(orjson.dumps(answer).decode("utf-8"))


@pytest.mark.parametrize("least", [0.0, 1.0])
@pytest.mark.parametrize(
    ("content", "budget", "shortened"),
    [
        (LONG, 250, "brief"),
        (LONG, 270, "beginning"),
        (LONG, 1_000, "beginning"),
        ("The heron stands in the pond.", 350, "summary"),
        ("The heron stands in the pond.", 1_000, None),
    ],
)
def test_where_no_hit_fits_the_best_is_shown_in_less_detail(
    world: World, least: float, content: str, budget: int, shortened: str | None
) -> None:
    best = world.remember(content)
    for number in range(3):
        world.remember(f"{LONG} Then it goes home, {number}.", force_create=True)

    answer = ask(world, "The heron stands", token_budget=budget, detail_level="full", min_confidence=least)

    [hit] = answer["rejected" if least else "results"]
    assert (hit["id"], hit.get("shortened")) == (best, shortened)
    assert ("content" in hit) is (shortened != "brief")
    assert answer["tokensUsed"] == tokens(answer) <= budget
    assert answer["leftOut"] == (0 if least else 3)
    assert best not in answer.get("expandable", [])


@pytest.mark.parametrize("least", [0.0, 1.0])
@pytest.mark.parametrize("mode", ["precise", "balanced", "exhaustive"])
def test_the_smallest_budget_is_kept_and_says_how_much_was_left_out(
    world: World, least: float, mode: str
) -> None:
    for number in range(100):
        world.remember(f"heron {number}", force_create=True)

    asked: dict[str, Any] = {"limit": 100, "retrieval_mode": mode, "min_confidence": least}
    everything = ask(world, '"ERR_99" heron', **asked)
    answer = ask(world, '"ERR_99" heron', token_budget=100, **asked)

    assert answer["tokensUsed"] == tokens(answer) <= 100
    assert answer["leftOut"] == len(everything["results"] or everything["rejected"])
    text = read(world, '"ERR_99" heron', token_budget=100, **asked)
    assert f"{answer['leftOut']} more did not fit the token budget." in text


def test_a_shortened_hit_is_marked_where_a_person_reads_it_and_counts_as_shown(world: World) -> None:
    best = world.remember(LONG)

    text = read(world, "heron", token_budget=400)
    ask(world, "heron", token_budget=400, record=True)
    world.app.settle()

    assert "    The heron stands in the pond." in text
    assert "· shortened ·" in text
    assert world.get(best)["timesRetrieved"] == 1


def test_the_best_hit_is_worth_more_than_the_note(world: World) -> None:
    world.remember("The heron stands in the pond.")
    where = {"min_confidence": 1}
    tight = next(
        answer
        for budget in range(200, 400, 5)
        if (answer := ask(world, "quantum gravity", token_budget=budget, **where)).get("rejected")
    )
    assert "note" not in tight
    assert "note" in ask(world, "quantum gravity", token_budget=400, **where)


# -- scores --------------------------------------------------------------------------------------


def test_a_hit_by_a_word_that_every_memory_has_does_not_read_as_if_no_word_matched(world: World) -> None:
    world.remember("Harbour runs on PostgreSQL 16.")

    (only,) = ask(world, "Which database does Harbour use?")["results"]
    assert only["matchType"] in ("Keyword", "Both")
    assert only["keywordScore"] == 0.0001

    for text in ("Ada drinks tea.", "The parser is written in Rust.", "Bob repairs bicycles."):
        world.remember(text)
    first = ask(world, "Which database does Harbour use?")["results"][0]
    assert first["keywordScore"] > 0.1


def test_a_person_is_not_shown_a_memory_that_has_nothing_to_do_with_the_query(world: World) -> None:
    world.remember("Harbour runs on PostgreSQL 14.")
    answer = Found.model_validate(world.call("search", query="What is the capital of France?"))
    assert answer.abstained
    said = unmarked(render_found(answer))
    assert said.startswith("Nothing good enough was found")
    assert said.count("Nothing") == 1
    assert "0 memories" not in said
    assert "Harbour" not in said
