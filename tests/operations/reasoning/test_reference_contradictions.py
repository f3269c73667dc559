"""Contradictions that are marked or stated: `search`, `contradictions` and `deep_reference` know the same."""

from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world

YARN = "Packages of the harbour site are installed with yarn."
PNPM = "Bo switched the build of the site over to pnpm."
FILLING = (
    "The cafeteria serves soup on rainy days.",
    "Bo keeps a canoe behind the boathouse.",
    "Release notes are written by the product team.",
)
Pairs = set[frozenset[str]]


def refer(world: World, query: str, **arguments: Any) -> dict[str, Any]:
    return world.call("deep_reference", query=query, record=False, **arguments)


def mark(world: World, one: str, other: str) -> None:
    world.call("memory", action="link", id=one, target=other, type="contradicts")


def listed(answer: dict[str, Any]) -> Pairs:
    return {frozenset((one["stronger"]["id"], one["weaker"]["id"])) for one in answer["contradictions"]}


def searched(world: World, query: str) -> Pairs:
    hits = world.call("search", query=query, record=False, limit=20)["results"]
    return {frozenset((hit["id"], other)) for hit in hits for other in hit.get("contradicts", ())}


def three_tools(world: World, query: str) -> tuple[Pairs, Pairs, Pairs]:
    return (
        searched(world, query),
        listed(refer(world, query)),
        listed(world.call("contradictions", topic=query)),
    )


def test_a_contradiction_marked_by_hand_is_shown_with_both_texts_and_leaves_it_open(world: World) -> None:
    yarn = world.remember(YARN, source="wiki")
    pnpm = world.remember(PNPM)
    asked = "What are packages of the harbour site installed with?"
    before = refer(world, asked)
    mark(world, pnpm, yarn)

    answer = refer(world, asked)

    assert before["contradictions"] == []
    [clash] = answer["contradictions"]
    assert {clash["stronger"]["preview"], clash["weaker"]["preview"]} == {YARN, PNPM}
    assert (clash["kind"], clash["newer"]) == ("marked", pnpm)
    assert answer["status"] == "contradictions_found"
    assert answer["confidence"] < min(0.7, before["confidence"])
    assert "CONTRADICTION (marked: marked as contradicting)" in answer["reasoning"]


def test_a_contradiction_that_the_gate_marked_leaves_it_open(world: World) -> None:
    pinned = world.remember("The cache is enabled for the search service.", pinned=True)
    later = world.remember("The cache is disabled for the search service.")

    answer = refer(world, "Is the cache enabled for the search service?")

    assert listed(answer) == {frozenset((pinned, later))}
    assert (answer["status"], answer["recommended"]["memory_id"]) == ("contradictions_found", pinned)
    assert answer["confidence"] < 0.7


def test_a_marked_memory_counts_although_no_search_finds_it(world: World) -> None:
    berth = world.remember("The mooring number of the boathouse is 4711.")
    other = world.remember("Quay berths were swapped last night.")
    for number in range(30):
        world.remember(f"The mooring of boathouse {number} is number {number + 50}.", force_create=True)
    mark(world, other, berth)

    answer = refer(world, "Is the mooring number of the boathouse 4711?", depth=5)

    assert frozenset((berth, other)) in listed(answer)
    assert answer["recommended"]["memory_id"] == berth
    assert answer["status"] == "contradictions_found"
    assert frozenset((berth, other)) in searched(world, "mooring number of the boathouse 4711")
    assert frozenset((berth, other)) in listed(world.call("contradictions", topic="mooring number 4711"))


def test_three_tools_know_the_same_pairs_also_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    asked = "harbour audit log and packages of the harbour site"
    with open_world(tmp_path / "data", clock=clock) as world:
        for text in FILLING:
            world.remember(text)
        on = world.remember("The harbour audit log is enabled.", force_create=True)
        clock.advance(days=1)
        off = world.remember("The harbour audit log is disabled.", force_create=True)
        gate = world.remember("The harbour site has 3 replicas.", pinned=True)
        clock.advance(days=1)
        gated = world.remember("The harbour site has 5 replicas.")
        yarn, pnpm = world.remember(YARN), world.remember(PNPM)
        mark(world, yarn, pnpm)
        before = three_tools(world, asked)
    with open_world(tmp_path / "data", clock=clock) as world:
        after = three_tools(world, asked)
        everywhere = listed(world.call("contradictions"))

    expected = {frozenset((on, off)), frozenset((gate, gated)), frozenset((yarn, pnpm))}
    assert before == (expected, expected, expected)
    assert after == before
    assert everywhere == expected


def test_short_statements_that_share_little_are_known_to_all_three(world: World) -> None:
    yarn = world.remember("We use yarn 1.", force_create=True)
    world.clock.advance(days=1)
    pnpm = world.remember("We use yarn 4.", force_create=True)

    assert three_tools(world, "Which yarn do we use?") == ({frozenset((yarn, pnpm))},) * 3


def test_a_mark_ends_with_the_text_it_was_about_and_not_with_a_new_label(world: World) -> None:
    yarn, pnpm = world.remember(YARN), world.remember(PNPM)
    mark(world, yarn, pnpm)
    asked = "What are packages of the harbour site installed with?"
    world.clock.advance(days=1)

    world.call("memory", action="tag", id=yarn, add=["build"])
    assert three_tools(world, asked) == ({frozenset((yarn, pnpm))},) * 3

    world.call(
        "memory", action="edit", id=yarn, content="Packages of the harbour site are installed with pnpm."
    )
    assert three_tools(world, asked) == (set(), set(), set())


def test_a_mark_that_was_cut_or_whose_memory_ended_counts_no_more(world: World) -> None:
    yarn, pnpm, third = world.remember(YARN), world.remember(PNPM), world.remember("Lunch is at noon.")
    mark(world, yarn, pnpm)
    mark(world, yarn, third)
    asked = "What are packages of the harbour site installed with?"

    world.call("memory", action="unlink", id=yarn, target=pnpm, type="contradicts")
    world.call("memory", action="set_validity", id=third, valid_until="2026-03-01T08:00:00Z")

    assert three_tools(world, asked) == (set(), set(), set())
    assert refer(world, asked)["status"] != "contradictions_found"


def test_a_later_correction_in_words_settles_a_marked_contradiction(world: World) -> None:
    old = world.remember("The standup meeting is at 9:30 in room two.", force_create=True)
    world.clock.advance(days=1)
    new = world.remember("Correction: the standup meeting is at 10:15 in room two.", force_create=True)
    mark(world, new, old)

    answer = refer(world, "When is the standup meeting?")

    assert answer["recommended"]["memory_id"] == new
    assert [one["id"] for one in answer["superseded"]] == [old]
    assert answer["contradictions"] == []
    assert answer["confirmedBy"] == [f"it corrects [{old}]"]


def test_a_clear_margin_of_trust_settles_a_contradiction_and_is_named(world: World) -> None:
    kept = world.remember("The switch is enabled in the panel.", pinned=True)
    other = world.remember("The switch is disabled in the panel.", force_create=True)
    for _ in range(3):
        world.call("memory", action="useful", id=kept)
        world.call("memory", action="demote", id=other)

    answer = refer(world, "Is the switch enabled in the panel?")

    [clash] = answer["contradictions"]
    assert clash["settledBy"] == "trust"
    assert answer["status"] != "contradictions_found"
    assert "it is trusted clearly more than what contradicts it" in answer["confirmedBy"]
    [told] = world.call("contradictions")["contradictions"]
    assert told["settledBy"] == "trust"


@pytest.mark.parametrize("pinned", [False, True])
def test_more_than_nine_tenths_needs_evidence_that_is_named(world: World, pinned: bool) -> None:
    text = "The deploy token of the harbour service is called HARBOUR_DEPLOY_TOKEN."
    world.remember(text, pinned=pinned)

    answer = refer(world, "“HARBOUR_DEPLOY_TOKEN” harbour service")

    assert answer["status"] == "resolved"
    assert answer["confidence"] < 1
    if pinned:
        assert answer["confirmedBy"] == ["it is pinned"]
    else:
        assert "confirmedBy" not in answer
        assert answer["confidence"] <= 0.9
        assert "CONFIRMED BY: nothing beside the search." in answer["reasoning"]


def test_of_two_marked_memories_the_one_that_fits_the_question_is_answered(world: World) -> None:
    paid = world.remember("The rate limit for paid accounts is 500 requests a minute.", force_create=True)
    free = world.remember(
        "The rate limit for free accounts is 100 requests a minute.", force_create=True, pinned=True
    )
    world.call("memory", action="useful", id=free)
    world.call("memory", action="demote", id=paid)
    mark(world, paid, free)

    about_paid = refer(world, "What is the rate limit for paid accounts?")
    about_free = refer(world, "What is the rate limit for free accounts?")

    assert about_paid["recommended"]["memory_id"] == paid
    assert about_free["recommended"]["memory_id"] == free
    [clash] = about_paid["contradictions"]
    assert (clash["stronger"]["id"], clash["weaker"]["id"]) == (
        free,
        paid,
    )  # trust alone would answer with it
    assert listed(about_free) == {frozenset((paid, free))}


def test_contradictions_of_others_stay_hidden(world: World) -> None:
    mine = world.remember(YARN, scope="/project/a")
    theirs = world.remember(PNPM, scope="/project/b")
    mark(world, mine, theirs)
    asked = "What are packages of the harbour site installed with?"

    answer = refer(world, asked, scope="/project/a")
    found = world.call("search", query=asked, scope="/project/a")["results"]
    listing = world.call("contradictions", scope="/project/a")

    assert theirs not in str((answer, found, listing))
