"""What an answer is made of, on every store: duplicates folded, rivals marked, what links bring in, how sure
it is, what fits a budget, and where each hit comes from."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from testbed.world import World, open_world
from vestige.cognition.text.form import estimate_tokens
from vestige.core.models import EVERYTHING, Access, Edge
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import Link, Revise

CROWD = 120
"""More memories than an arm of a balanced search finds (100)."""


def search(world: World, query: str, **arguments: Any) -> dict[str, Any]:
    """An answer that leaves no trace and shows everything, unless said otherwise."""
    return world.call("search", **({"query": query, "record": False, "min_confidence": 0} | arguments))


def ids(answer: dict[str, Any]) -> list[str]:
    return [hit["id"] for hit in answer["results"]]


def link(world: World, source: str, target: str, kind: str = "semantic", weight: float = 1.0) -> None:
    edge = Edge(source_id=source, target_id=target, kind=kind, weight=weight, created_at=world.clock.now)
    world.app.engine.store.commit([Link(edge=edge)], access=EVERYTHING)


def remember_all(world: World, texts: Sequence[str], **shared: Any) -> list[str]:
    items = [{"content": text, "force_create": True, **shared} for text in texts]
    return [one["nodeId"] for one in world.call("smart_ingest", items=items)["results"]]


def suppress(world: World, memory_id: str, times: int) -> None:
    store = world.app.engine.store
    [record] = store.get_many([memory_id], access=EVERYTHING)
    memory = replace(record.memory, suppression_count=times, revision=record.memory.revision + 1)
    store.commit([Revise(memory=memory, reason="suppressed")], access=EVERYTHING)


# -- duplicates ----------------------------------------------------------------------------------


def test_what_says_the_same_is_shown_once_with_the_ids_of_the_others(world: World) -> None:
    same = remember_all(world, ["Lunch is at noon.", "lunch is at NOON", "Lunch  is at noon"])
    other = world.remember("Lunch was cold.")

    answer = search(world, "lunch noon", limit=2)

    first = answer["results"][0]
    assert (answer["total"], ids(answer)[1]) == (2, other)
    assert {first["id"], *first["duplicateIds"]} == set(same)
    assert first["duplicates"] == 2
    assert "duplicates" not in answer["results"][1]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Retry when latency < timeout", "Retry when latency > timeout"),
        ("The account balance is -500", "The account balance is 500"),
    ],
)
def test_what_differs_in_a_sign_is_not_the_same(world: World, one: str, other: str) -> None:
    remember_all(world, [one, other])
    assert len(search(world, one)["results"]) == 2


def test_parts_of_a_source_are_not_folded(world: World) -> None:
    for position in range(3):
        world.remember("Yes I agree", source="talk.txt", position=position, force_create=True)
    assert len(search(world, "yes agree")["results"]) == 3


def test_turns_of_a_thread_are_never_folded(world: World) -> None:
    said = [world.remember("Lunch at noon", thread="talk", position=n) for n in range(3)]

    answer = search(world, "lunch noon")

    assert sorted(ids(answer)) == sorted(said)
    assert all("duplicates" not in hit for hit in answer["results"])


def test_duplicates_make_room_for_other_memories(world: World) -> None:
    remember_all(world, ["Lunch is at noon."] * 8)
    others = remember_all(world, ["Lunch was cold.", "Lunch is paid by Ada."])

    answer = search(world, "lunch at noon", limit=3)

    assert answer["results"][0]["duplicates"] == 7
    assert set(ids(answer)[1:]) == set(others)


# -- rivals --------------------------------------------------------------------------------------

ALWAYS = "Deploys of the harbour service to production are always allowed on a Friday afternoon in summer."
NEVER = "Deploys of the harbour service to production are never allowed on a Friday afternoon in summer."
OTHERS = (
    "Deploys of the harbour service take ten minutes.",
    "The harbour service sends its logs to Porto.",
    "A Friday afternoon is a good time for cake.",
    "Production is watched from Lisbon in summer.",
    "The service desk is open on Friday.",
    "Harbour deploys are announced in the channel.",
)


def test_contradicting_hits_stand_side_by_side_and_name_each_other(world: World) -> None:
    allowed, forbidden = remember_all(world, [ALWAYS, NEVER])
    remember_all(world, OTHERS)
    link(world, forbidden, allowed, "contradicts")

    answer = search(world, "Are harbour deploys to production allowed on Friday afternoon?")

    marks = {hit["id"]: hit.get("contradicts") for hit in answer["results"]}
    assert set(ids(answer)[:2]) == {allowed, forbidden}
    assert marks.pop(allowed) == [forbidden]
    assert marks.pop(forbidden) == [allowed]
    assert set(marks.values()) == {None}


def test_a_marked_contradiction_is_named_even_if_it_is_not_among_the_results(world: World) -> None:
    allowed, forbidden = remember_all(world, [ALWAYS, "Cake is forbidden."])
    link(world, forbidden, allowed, "contradicts")
    [hit] = search(world, ALWAYS, limit=1)["results"]
    assert hit["contradicts"] == [forbidden]

    world.call("memory", action="set_validity", id=forbidden, valid_until="2026-03-01T00:00:00Z")

    assert "contradicts" not in search(world, ALWAYS, limit=1)["results"][0]


def test_what_was_superseded_stands_right_behind_its_successor(world: World) -> None:
    old = world.remember(NEVER)
    world.clock.advance(days=1)
    new, *_ = remember_all(world, [ALWAYS, *OTHERS])
    link(world, new, old, "supersedes")

    # The question is worded like the old memory, and still the new one leads.
    assert ids(search(world, NEVER, include_expired=True))[:2] == [new, old]


def test_in_a_chain_of_corrections_the_newest_leads(world: World) -> None:
    first, second, third = remember_all(
        world, ["Rent costs 900 euros a month.", "Rent is 950 euros.", "The rent was raised to 990."]
    )
    link(world, second, first, "supersedes")
    link(world, third, second, "supersedes")

    assert ids(search(world, "rent costs 900 euros a month")) == [third, second, first]


def test_contradictions_are_marked_wherever_they_rank(world: World) -> None:
    remember_all(world, ["The oven is broken."] * 6 + [f"The oven is broken, part {n}." for n in range(6)])
    one, other = remember_all(world, ["Oven and tea.", "Oven and coffee."])
    link(world, one, other, "contradicts")

    marked = {hit["id"]: hit.get("contradicts") for hit in search(world, "oven is broken")["results"]}

    assert marked[one] == [other]
    assert marked[other] == [one]


# -- what links bring in -------------------------------------------------------------------------


@pytest.fixture
def crowd(world: World) -> World:
    """So many memories about an oven that no arm finds anything else."""
    remember_all(world, [f"oven repair number {n}" for n in range(CROWD)])
    return world


def associated(answer: dict[str, Any]) -> dict[str, Any]:
    return {hit["id"]: hit["association"] for hit in answer["results"] if "association" in hit}


def test_a_linked_memory_that_no_arm_finds_joins_and_says_through_which_link(crowd: World) -> None:
    oven = crowd.remember("The broken oven", force_create=True)
    linked = crowd.remember("Zygmunt")
    assert linked not in ids(search(crowd, "broken oven", limit=100))

    link(crowd, oven, linked, "fixed_by", weight=0.9)
    answer = search(crowd, "broken oven", explain=True)

    assert associated(answer) == {linked: {"via": oven, "type": "fixed_by", "activation": 0.63}}
    joined = answer["results"][ids(answer).index(linked)]
    assert joined["matchType"] == "Association"
    assert joined["combinedScore"] == pytest.approx(0.63 * answer["results"][0]["combinedScore"], rel=0.01)
    assert joined["explain"]["signals"] == joined["explain"]["stages"] == []


def test_so_many_join_and_so_far_as_the_mode_allows(crowd: World) -> None:
    oven = crowd.remember("The broken oven", force_create=True)
    linked = [crowd.remember(name) for name in ("Zygmunt", "Quentin", "Xaver")]
    behind = crowd.remember("Yvonne")
    for strength, memory_id in zip((0.9, 1.0, 0.8), linked, strict=True):
        link(crowd, oven, memory_id, weight=strength)
    link(crowd, linked[1], behind)

    def joined(mode: str) -> set[str]:
        return set(associated(search(crowd, "broken oven", retrieval_mode=mode, limit=20)))

    assert joined("precise") == set()
    assert joined("balanced") == {linked[0], linked[1]}  # the two strongest
    # An exhaustive search finds 300 by itself, so all that is here: they are brought in all the same.
    assert joined("exhaustive") == {*linked, behind}


def test_an_exhaustive_search_follows_two_links_in_a_row(world: World) -> None:
    remember_all(world, [f"oven repair number {n}" for n in range(310)])
    oven = world.remember("The broken oven", force_create=True)
    near, far, further = (world.remember(name) for name in ("Zygmunt", "Yvonne", "Xaver"))
    link(world, oven, near)
    link(world, far, near, "knows")
    link(world, far, further)

    answer = search(world, "broken oven", retrieval_mode="exhaustive")

    assert set(associated(answer)) == {near, far}
    assert associated(answer)[far] == {"via": near, "type": "knows", "activation": 0.49}


def test_nothing_joins_that_the_filter_keeps_out(world: World) -> None:
    here: dict[str, Any] = {"scope": "/home", "tags": ["house"]}
    remember_all(world, [f"oven repair number {n}" for n in range(CROWD)], **here)
    oven = world.remember("The broken oven", force_create=True, **here)
    kept_out = [
        world.remember("Zygmunt", scope="/work", tags=["house"]),
        world.remember("Quentin", scope="/home"),
        world.remember("Xaver", valid_until="2026-01-31", **here),
        world.remember("Walburga", node_type="person", **here),
    ]
    world.clock.advance(days=2)
    kept_out.append(world.remember("Ulrike", **here))  # not known on the next day
    world.clock.advance(days=-1)
    shown = world.remember("Yvonne", **here)
    for memory_id in (*kept_out, shown):
        link(world, oven, memory_id, weight=0.9 if memory_id == shown else 1.0)

    where = {"scope": "/home", "tags": "house", "include_types": "fact", "known_at": "2026-03-02T12:00:00Z"}
    answer = search(world, "broken oven", **where)

    assert set(associated(answer)) == {shown}
    assert not set(ids(answer)) & set(kept_out)


def test_nothing_joins_from_outside_the_callers_access(crowd: World) -> None:
    oven = crowd.remember("The broken oven", scope="/public", force_create=True)
    linked = crowd.remember("Zygmunt", scope="/private")
    link(crowd, oven, linked)
    asked = {"query": "broken oven", "min_confidence": 0, "record": False}

    def joined(access: Access) -> set[str]:
        answer = registry.operations["search"].call(Call(engine=crowd.app.engine, access=access), asked)
        assert oven in ids(answer)
        return set(ids(answer)) & {linked}

    assert joined(EVERYTHING) == {linked}
    assert joined(Access(scopes=("/public",))) == set()


def test_links_still_lead_there_after_a_restart(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        remember_all(world, [f"oven repair number {n}" for n in range(CROWD)])
        oven = world.remember("The broken oven", force_create=True)
        linked = world.remember("Zygmunt")
        link(world, oven, linked)
        clock, before = world.clock, search(world, "broken oven")
    with open_world(tmp_path, clock=clock) as world:
        after = search(world, "broken oven")
    assert set(associated(after)) == {linked}
    assert after == before


def test_a_link_to_the_best_lifts_a_hit_among_equals(world: World) -> None:
    best, first, second = remember_all(
        world, ["oven repair finished today", "garden oven painted", "painted garden oven"]
    )
    assert ids(search(world, "oven repair finished today")) == [best, first, second]

    link(world, best, second)

    assert ids(search(world, "oven repair finished today")) == [best, second, first]


# -- how sure ------------------------------------------------------------------------------------


def test_an_answer_that_is_not_sure_enough_is_none_and_shows_the_best_there_was(world: World) -> None:
    oven = world.remember("The broken oven is repaired by Zygmunt.")

    answer = search(world, "quantum gravity", min_confidence=0.5, explain=True)

    assert (answer["abstained"], answer["total"], answer["results"]) == (True, 0, [])
    assert answer["confidence"] < 0.5
    assert [hit["id"] for hit in answer["rejected"]] == [oven]
    assert answer["rejected"][0]["explain"]["signals"]
    assert "0.50" in answer["note"]
    assert "`all`" in answer["note"]


def test_what_was_rejected_was_not_shown(world: World) -> None:
    oven = world.remember("The broken oven is repaired by Zygmunt.")

    assert search(world, "quantum gravity", min_confidence=0.5, record=True)["abstained"]

    assert world.get(oven)["timesRetrieved"] == 0


def test_a_sure_answer_is_given_with_its_confidence(world: World) -> None:
    world.remember("The broken oven is repaired by Zygmunt.")

    answer = search(world, "The broken oven is repaired by Zygmunt.", min_confidence=0.9)

    assert not answer["abstained"]
    assert 0.9 <= answer["confidence"] <= 1
    assert "rejected" not in answer
    assert "note" not in answer


@pytest.mark.parametrize(
    ("provider", "query", "refusing"),
    [
        ("off", "oven repair", set()),
        ("off", "7 quantum gravity field", {"precise"}),
        ("off", "oven quantum", {"precise", "balanced"}),
        ("hashing", "oven repair number", set()),
    ],
)
def test_precise_refuses_more_than_balanced_and_exhaustive_refuses_nothing(
    tmp_path: Path, provider: str, query: str, refusing: set[str]
) -> None:
    with open_world(tmp_path, provider=provider) as world:
        remember_all(world, [f"oven repair number {n}" for n in range(40)])
        answers = {
            mode: world.call("search", query=query, retrieval_mode=mode)
            for mode in ("precise", "balanced", "exhaustive")
        }

    assert {mode for mode, answer in answers.items() if answer["abstained"]} == refusing
    assert {mode for mode, answer in answers.items() if not answer["results"]} == refusing
    assert {mode for mode, answer in answers.items() if "rejected" in answer} == refusing
    assert all(answer["retrievalMode"] == mode for mode, answer in answers.items())


def test_a_precise_search_leaves_out_what_is_far_from_the_best(world: World) -> None:
    remember_all(world, ["The blue oven bakes bread.", "The shed has a blue door.", "Bread is sold at noon."])
    balanced = search(world, "which blue oven bakes bread")
    precise = search(world, "which blue oven bakes bread", retrieval_mode="precise")
    assert len(balanced["results"]) == 3
    assert [hit["content"] for hit in precise["results"]] == ["The blue oven bakes bread."]


@pytest.mark.parametrize("mode", ["precise", "balanced", "exhaustive"])
def test_an_empty_store_answers_with_nothing_and_no_confidence(world: World, mode: str) -> None:
    answer = world.call("search", query="anything before last week", retrieval_mode=mode, token_budget=500)

    assert (answer["results"], answer["total"], answer["confidence"]) == ([], 0, 0.0)
    assert answer["abstained"] is False
    assert "rejected" not in answer


# -- budget --------------------------------------------------------------------------------------


def tokens(answer: dict[str, Any]) -> int:
    return estimate_tokens(orjson.dumps(answer).decode("utf-8"))


@pytest.fixture
def varied(world: World) -> World:
    """Memories of very different lengths that all match, the longest best."""
    remember_all(world, [f"oven repair {'oven ' * (40 - n)}{n}" for n in range(30)])
    return world


@pytest.mark.parametrize("budget", [100, 101, 150, 333, 999, 1000, 1001, 2500, 10_000, 100_000])
def test_the_tokens_used_are_those_of_the_answer_and_fit_the_budget(varied: World, budget: int) -> None:
    answer = search(varied, "oven repair", token_budget=budget, limit=30)

    assert answer["tokensUsed"] == tokens(answer) <= answer["tokenBudget"] == budget
    assert answer["total"] == len(answer["results"])


def test_what_did_not_fit_is_named_and_smaller_hits_behind_it_still_come(world: World) -> None:
    large = world.remember("oven repair today " + "with much ado " * 400)
    small = remember_all(world, ["oven repair today", "some oven, some repair"])
    everything = ids(search(world, "repair with much ado"))
    assert everything == [large, *small]

    tight = search(world, "repair with much ado", token_budget=700)

    assert tight["expandable"] == [large]
    assert ids(tight) == small


def test_what_the_budget_left_out_was_not_shown(varied: World) -> None:
    answer = search(varied, "oven repair", token_budget=500, record=True)
    varied.app.settle()

    assert answer["results"]
    assert answer["expandable"]
    for memory_id in answer["expandable"]:
        assert varied.get(memory_id)["timesRetrieved"] == 0
    for hit in answer["results"]:
        assert varied.get(hit["id"])["timesRetrieved"] == 1


@pytest.mark.parametrize("query", ["漢" * 500, '"\\ oven' * 90, "oven " * 300])
@pytest.mark.parametrize("least", [0.0, 1.0])
def test_neither_a_long_query_nor_what_was_rejected_breaks_the_budget(
    world: World, query: str, least: float
) -> None:
    long = world.remember("A long story. " * 2_000)

    answer = search(world, query, token_budget=180, min_confidence=least)

    assert answer["tokensUsed"] == tokens(answer) <= 180
    assert answer["abstained"] is bool(least)
    shown = [hit["id"] for hit in (*answer["results"], *answer.get("rejected", ()))]
    assert shown == [long] or answer["leftOut"] == 1


# -- provenance ----------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["brief", "summary", "full"])
def test_every_hit_says_where_it_comes_from(world: World, level: str) -> None:
    told = world.remember(
        "The broken oven", source="chat.log", author="ada", occurred_at="2026-02-01T10:00:00Z"
    )
    plain = world.remember("An oven")

    hits = {hit["id"]: hit["provenance"] for hit in search(world, "oven", detail_level=level)["results"]}

    assert hits[told].pop("trust") > hits[plain].pop("trust") > 0.4
    origin = {"source": "chat.log", "author": "ada", "at": "2026-02-01T10:00:00Z"}
    assert hits == {told: origin, plain: {"at": "2026-03-01T09:00:00Z"}}


def test_trust_rises_with_praise_and_falls_with_blame(world: World) -> None:
    praised, blamed, plain = remember_all(world, ["the oven is hot", "the oven is big", "the oven is old"])
    world.call("memory", action="promote", id=praised)
    world.call("memory", action="demote", id=blamed)

    hits = search(world, "oven")["results"]

    trust = {hit["id"]: hit["provenance"]["trust"] for hit in hits}
    assert 1 > trust[praised] > trust[plain] > trust[blamed] > 0


def test_a_suppressed_memory_does_not_come_back_through_a_link(crowd: World) -> None:
    oven = crowd.remember("The broken oven", force_create=True)
    linked = crowd.remember("Zygmunt")
    link(crowd, oven, linked, "fixed_by")
    before = {hit["id"]: hit["combinedScore"] for hit in search(crowd, "broken oven")["results"]}
    suppress(crowd, linked, times=3)
    assert linked not in ids(search(crowd, "broken oven", limit=100))
    found = search(crowd, "broken oven", limit=100, include_suppressed=True)["results"]
    after = {hit["id"]: hit["combinedScore"] for hit in found}

    assert after.get(linked, 0) < 0.6 * before[linked]
