"""Merging by choice on every store: planned, applied, undone; nothing is ever lost."""

from pathlib import Path
from random import Random
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.events import ConnectionDiscovered, MemoryCreated, MemoryUpdated

SHORT = "The harbour database is backed up every night."
LONG = "The harbour database is backed up every night. Backups are kept for a month."
OTHER = "Every night the harbour database is backed up."
MORE = ("Guests may help themselves.", "Keep out of sunlight.", "Bo pays at Christmas.", "")
KEPT = (
    "content",
    "tags",
    "phrasings",
    "validFrom",
    "validUntil",
    "supersededBy",
    "pinned",
    "metadata",
    "nodeType",
)


def keep(world: World, content: str, **facts: Any) -> str:
    return world.remember(content, force_create=True, **facts)


def plan(world: World, *ids: str) -> dict[str, Any]:
    return world.call("dedup", action="plan", ids=list(ids))


def merge(world: World, *ids: str) -> str:
    answer = world.call("dedup", action="apply", ids=list(ids), plan_id=plan(world, *ids)["planId"])
    return str(answer["node"]["id"])


def undo(world: World, memory_id: str, **arguments: Any) -> dict[str, Any]:
    return world.call("dedup", action="undo", id=memory_id, **arguments)


def state(world: World, *ids: str) -> list[dict[str, Any]]:
    """What of each memory must come back."""
    return [{name: node.get(name) for name in KEPT} for node in map(world.get, ids)]


def everything(world: World) -> dict[str, Any]:
    """All memories in full, and how much was logged."""
    listed = world.call("memory", action="list", limit=200, detail_level="full")["results"]
    return {node["id"]: node for node in listed}


@pytest.fixture
def three(world: World) -> tuple[str, str, str]:
    """Three wordings, a day apart, the longest in the middle."""
    short = keep(world, SHORT, tags=["db"], source="wiki")
    world.clock.advance(days=1)
    long = keep(world, LONG, tags=["backup"], source="wiki")
    world.clock.advance(days=1)
    other = keep(world, OTHER, source="wiki", author="Bo")
    world.clock.advance(days=1)
    return short, long, other


def test_a_plan_shows_what_would_be_done_and_does_nothing(world: World, three: tuple[str, str, str]) -> None:
    before = everything(world)

    planned = plan(world, *three)

    assert planned["content"] == LONG
    assert planned["phrasings"] == [OTHER]
    assert planned["tags"] == ["backup", "db"]
    assert planned["validFrom"] == "2026-03-03T09:00:00Z"
    assert [(part["id"], part["endsAt"]) for part in planned["parts"]] == [
        (one, "2026-03-03T09:00:00Z") for one in (three[1], three[0], three[2])
    ]
    assert planned["parts"][1]["source"] == "wiki"
    assert everything(world) == before
    assert plan(world, *reversed(three))["planId"] == planned["planId"]


def test_a_merge_takes_the_place_of_its_parts(world: World, three: tuple[str, str, str]) -> None:
    merged = merge(world, *three)

    node = world.get(merged)
    assert (node["content"], node["source"], node.get("author")) == (LONG, "wiki", None)
    assert node["metadata"] == {"merged_from": [three[1], three[0], three[2]]}
    for part in map(world.get, three):
        assert (part["supersededBy"], part["validUntil"]) == (merged, node["validFrom"])
    edges = world.call("memory", action="get", id=merged)["edges"]
    assert {(edge["source"], edge["target"], edge["type"]) for edge in edges} == {
        (merged, part, "merges") for part in three
    }
    assert world.find("harbour database backup") == [node["content"]]
    assert world.call("find_duplicates")["totalClusters"] == 0


def test_a_merge_writes_one_text_that_says_nothing_twice_and_is_undone_after_a_restart(
    tmp_path: Path,
) -> None:
    texts = (
        "Deploys of Harbour happen on Tuesday. Bo watches the deploys.",
        "On Tuesday deploys of Harbour happen.",
        "Bo watches the deploys from Lisbon. Cake follows each release.",
    )
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock) as world:
        ids = [keep(world, text) for text in texts]
        before = state(world, *ids)
        merged = merge(world, *ids)
        node = world.get(merged)
        sentences = node["content"].replace("\n\n", " ")
        assert sentences.count("Tuesday") == sentences.count("watches") == 1
        assert "from Lisbon" in sentences
        assert "Cake follows each release." in sentences
        assert len(node["phrasings"]) == 2
        assert world.find("Which day do deploys of Harbour happen?", limit=1) == [node["content"]]
    with open_world(tmp_path / "data", clock=clock) as world:
        undo(world, merged)
        assert state(world, *ids) == before


@pytest.mark.parametrize(
    "other",
    [
        "Harbour deploys on Tuesday except in summer.",
        "Harbour deploys on Tuesday and Thursday at 10:15.",
        "Harbour was named after a pub.",
        "Does Harbour deploy on Tuesday?",
        "Some Harbour deploys on Tuesday succeed.",
    ],
)
def test_a_sentence_that_says_something_else_stays_in_the_merged_text(world: World, other: str) -> None:
    one = keep(world, "All Harbour deploys on Tuesday succeed. Harbour deploys on Tuesday.")
    planned = plan(world, one, keep(world, other))

    assert other in planned["content"]
    assert "All Harbour deploys on Tuesday succeed." in planned["content"]


def test_what_is_marked_as_contradicting_is_not_merged_and_what_contradicts_a_part_contradicts_the_merge(
    world: World,
) -> None:
    one, two, against = keep(world, SHORT), keep(world, OTHER), keep(world, "Nobody looks after the harbour.")
    world.call("memory", action="link", id=one, target=two, type="contradicts")
    assert "marked as contradicting" in world.refused("dedup", action="plan", ids=[one, two])["message"]
    [cluster] = world.call("find_duplicates")["clusters"]
    assert cluster["suggestedAction"] == "review"
    world.call("memory", action="unlink", id=one, target=two)
    world.call("memory", action="link", id=against, target=two, type="contradicts")

    merged = merge(world, one, two)

    [clash] = world.call("contradictions")["contradictions"]
    assert {clash["stronger"]["id"], clash["weaker"]["id"]} == {merged, against}


def test_at_any_time_either_the_parts_hold_or_what_they_became(
    world: World, three: tuple[str, str, str]
) -> None:
    merged = merge(world, *three)
    world.clock.advance(days=1)

    def held(**when: Any) -> set[str]:
        listed = world.call("memory", action="list", **when)["results"]
        return {node["id"] for node in listed}

    assert held(as_of="2026-03-02T12:00:00Z") == set(three)
    assert held(as_of="2026-03-03T12:00:00Z") == {merged}
    known = world.call("search", query="harbour database backup", known_at="2026-03-03T12:00:00Z")
    assert {hit["id"] for hit in known["results"]} == set(three)


def test_an_undone_merge_leaves_everything_as_it_was(world: World, three: tuple[str, str, str]) -> None:
    before = state(world, *three)
    merged = merge(world, *three)
    world.clock.advance(days=1)

    answer = undo(world, merged)

    assert state(world, *three) == before
    assert {node["id"] for node in answer["restored"]} == set(three)
    assert answer["node"]["validUntil"] == answer["node"]["validFrom"]
    assert set(world.find("harbour database backup")) == {SHORT, LONG, OTHER}
    as_of = world.call("memory", action="list", as_of="2026-03-03T12:00:00Z")["results"]
    assert {node["id"] for node in as_of} == set(three)
    reasons = [one["endedBy"] for one in world.call("memory", action="history", id=three[0])["revisions"]]
    assert reasons == ["merged", "unmerged"]


def test_what_was_undone_can_be_merged_again_but_not_undone_twice(
    world: World, three: tuple[str, str, str]
) -> None:
    first = merge(world, *three)
    undo(world, first)
    before = everything(world)

    assert "undone already" in world.refused("dedup", action="undo", id=first)["message"]
    assert everything(world) == before
    again = merge(world, *three)
    undo(world, again)
    assert {node["validUntil"] for node in state(world, *three)} == {None}


def test_a_merge_of_a_merge_is_undone_from_the_last_on(world: World, three: tuple[str, str, str]) -> None:
    short, long, other = three
    before = state(world, *three)
    inner = merge(world, short, long)
    middle = state(world, inner)
    outer = merge(world, inner, other)
    assert world.get(outer)["metadata"] == {"merged_from": [inner, other]}
    assert world.get(outer)["content"] == LONG

    refused = world.refused("dedup", action="undo", id=inner)
    assert outer in refused["message"]
    assert outer in refused["hint"]

    undo(world, outer)
    assert state(world, inner) == middle
    undo(world, inner)
    assert state(world, *three) == before


def test_a_merge_with_its_own_part_would_be_a_circle(world: World, three: tuple[str, str, str]) -> None:
    merged = merge(world, *three)
    before = everything(world)

    error = world.refused("dedup", action="plan", ids=[merged, three[0]])

    assert f"{three[0]} was superseded" in error["message"]
    undo(world, merged)
    assert "not true now" in world.refused("dedup", action="plan", ids=[merged, three[0]])["message"]
    assert everything(world).keys() == before.keys()


def test_a_plan_that_is_out_of_date_is_refused(world: World, three: tuple[str, str, str]) -> None:
    planned = plan(world, *three)["planId"]
    world.call("memory", action="tag", id=three[0], add=["new"])
    before = everything(world)

    error = world.refused("dedup", action="apply", ids=list(three), plan_id=planned)

    assert (error["code"], "Plan" in error["hint"]) == ("conflict", True)
    assert world.refused("dedup", action="apply", ids=list(three[:2]), plan_id=planned)["code"] == "conflict"
    assert everything(world) == before


def test_applying_twice_is_refused(world: World, three: tuple[str, str, str]) -> None:
    planned = plan(world, *three)["planId"]
    world.call("dedup", action="apply", ids=list(three), plan_id=planned)

    error = world.refused("dedup", action="apply", ids=list(three), plan_id=planned)

    assert "superseded" in error["message"]


def test_a_protected_memory_is_not_merged_until_it_is_let_go(
    world: World, three: tuple[str, str, str]
) -> None:
    world.call("dedup", action="protect", id=three[0])
    assert "pinned" in world.refused("dedup", action="plan", ids=list(three))["message"]
    assert world.get(three[0])["pinned"]

    world.call("dedup", action="unprotect", id=three[0])

    assert plan(world, *three)["planId"]


def test_what_must_stay_apart_is_refused_with_the_reasons(world: World) -> None:
    one = keep(world, "The retry limit of the uploader is 5.")
    other = keep(world, "The retry limit of the uploader is 8.")
    turn = keep(world, "The retry limit of the uploader is 5.", thread="talk", position=1)
    foreign = keep(world, "The retry limit of the uploader is 5.", scope="/project/a")
    ended = keep(world, "The retry limit of the uploader is 5.", valid_until="2026-02-01")
    before = everything(world)

    for apart, said in (
        (other, "contradicts"),
        (turn, "thread"),
        (foreign, "/project/a"),
        (ended, "not true"),
    ):
        error = world.refused("dedup", action="plan", ids=[one, apart])
        assert (error["code"], said in error["message"]) == ("invalid_input", True)
        assert error["details"]["reasons"]
    assert everything(world) == before


@pytest.mark.parametrize(
    ("ids", "said"),
    [(["a"], "ids"), ([], "ids"), ([f"{n}" for n in range(21)], "ids"), (["a", "a"], "itself")],
)
def test_too_few_too_many_and_the_same_are_refused(world: World, ids: list[str], said: str) -> None:
    assert said in world.refused("dedup", action="plan", ids=ids)["message"]


def test_an_unknown_memory_is_named(world: World) -> None:
    one = keep(world, SHORT)

    assert world.refused("dedup", action="plan", ids=[one, "nobody"])["code"] == "not_found"
    assert world.refused("dedup", action="undo", id="nobody")["code"] == "not_found"
    assert "not made by merging" in world.refused("dedup", action="undo", id=one)["message"]


def test_metadata_alone_does_not_make_a_merge(world: World) -> None:
    part = keep(world, SHORT)
    posing = keep(world, LONG, metadata={"merged_from": [part]})
    before = everything(world)

    assert "not made by merging" in world.refused("dedup", action="undo", id=posing)["message"]
    assert everything(world) == before

    world.call("memory", action="delete", id=part)
    assert "not made by merging" in world.refused("dedup", action="undo", id=posing)["message"]


def test_metadata_of_that_name_in_a_part_does_not_confuse_its_merge(world: World) -> None:
    one, other = keep(world, SHORT, metadata={"merged_from": "a book"}), keep(world, LONG)
    before = state(world, one, other)

    undo(world, merge(world, one, other))

    assert state(world, one, other) == before


def test_a_merge_whose_part_has_changed_since_is_not_undone(
    world: World, three: tuple[str, str, str]
) -> None:
    merged = merge(world, *three)
    world.call("memory", action="edit", id=three[0], content="Something else.")
    before = everything(world)

    assert f"{three[0]} was changed" in world.refused("dedup", action="undo", id=merged)["message"]
    assert everything(world) == before


def test_a_merge_whose_part_was_revived_is_not_undone(world: World, three: tuple[str, str, str]) -> None:
    merged = merge(world, *three)
    world.call("memory", action="set_validity", id=three[0])

    assert "no longer belongs" in world.refused("dedup", action="undo", id=merged)["message"]


def test_a_merge_whose_part_was_deleted_is_not_undone(world: World, three: tuple[str, str, str]) -> None:
    merged = merge(world, *three)
    world.call("memory", action="delete", id=three[0])
    before = everything(world)

    assert f"{three[0]} was deleted" in world.refused("dedup", action="undo", id=merged)["message"]
    assert everything(world) == before


def test_deleting_a_merged_memory_gives_its_parts_back(world: World, three: tuple[str, str, str]) -> None:
    before = [world.get(one) for one in three]
    merged = merge(world, *three)
    deleted = world.call("memory", action="delete", id=merged)
    assert sorted(deleted["revived"]) == sorted(three)
    after = [world.get(one) for one in three]
    same = ("content", "validFrom", "validUntil", "supersededBy")
    assert [[one.get(name) for name in same] for one in after] == [
        [one.get(name) for name in same] for one in before
    ]


def test_labels_given_to_a_part_since_are_kept(world: World, three: tuple[str, str, str]) -> None:
    merged = merge(world, *three)
    world.call("memory", action="rename_tag", tag="db", to="database")

    undo(world, merged)

    assert world.get(three[0])["tags"] == ["database"]


def test_a_merged_memory_that_was_changed_is_undone_on_ones_word_only(
    world: World, three: tuple[str, str, str]
) -> None:
    merged = merge(world, *three)
    world.call("memory", action="edit", id=merged, content="Better said.")

    assert "even_changed" in world.refused("dedup", action="undo", id=merged)["hint"]
    undo(world, merged, even_changed=True)

    assert set(world.find("harbour database backup")) == {SHORT, LONG, OTHER}
    assert world.get(merged)["content"] == "Better said."


def test_a_superseded_merge_is_not_undone(world: World) -> None:
    one, other = (
        keep(world, "Harbour runs on PostgreSQL 14 today."),
        keep(world, "harbour runs on PostgreSQL 14 today"),
    )
    merged = merge(world, one, other)
    world.clock.advance(days=1)
    new = world.remember("Harbour runs on PostgreSQL 16 today.")
    assert world.get(merged)["supersededBy"] == new

    assert new in world.refused("dedup", action="undo", id=merged)["message"]


def test_the_bus_hears_of_merges_and_of_their_end(world: World, three: tuple[str, str, str]) -> None:
    world.heard.clear()
    merged = merge(world, *three)
    created, *rest = world.heard
    assert isinstance(created, MemoryCreated)
    assert created.id == merged
    assert {one.id for one in rest if isinstance(one, MemoryUpdated)} == set(three)
    assert {one.target_id for one in rest if isinstance(one, ConnectionDiscovered)} == set(three)

    world.heard.clear()
    undo(world, merged)
    assert {one.id for one in world.heard if isinstance(one, MemoryUpdated)} == {merged, *three}


def test_a_merge_is_undone_after_a_restart(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock) as world:
        ids = [keep(world, SHORT, tags=["db"]), keep(world, LONG)]
        before = state(world, *ids)
        merged = merge(world, *ids)
    with open_world(tmp_path / "data", clock=clock) as world:
        assert world.find("harbour database backup") == [LONG]
        undo(world, merged)
        assert state(world, *ids) == before


def test_without_a_model_merging_works_all_the_same(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", provider="off") as world:
        ids = [keep(world, SHORT), keep(world, LONG)]
        merged = merge(world, *ids)
        assert world.find("harbour database backup") == [LONG]
        undo(world, merged)
        assert len(world.find("harbour database backup")) == 2


@pytest.mark.parametrize("seed", range(3))
def test_any_merges_undone_in_order_give_back_the_very_same_records(world: World, seed: int) -> None:
    dice = Random(seed)
    for number in range(10):
        world.clock.advance(hours=dice.randint(0, 30))
        facts: dict[str, Any] = {
            "tags": dice.sample(("tea", "dry", "old", "new"), dice.randint(0, 3)),
            "source": f"note {number}",
        }
        if dice.random() < 0.3:
            facts["valid_from"] = "2026-01-01"
        keep(world, f"The pantry holds tea. {dice.choice(MORE)}", **facts)
    started = everything(world)
    living = list(started)
    done: list[str] = []
    history: list[tuple[list[str], list[dict[str, Any]]]] = []
    for _ in range(30):
        world.clock.advance(hours=dice.randint(0, 5))
        if done and (len(living) < 2 or dice.random() < 0.4):
            parts, before = history.pop()
            undo(world, merged := done.pop())
            assert state(world, *parts) == before
            living = [one for one in living if one != merged] + parts
        else:
            parts = dice.sample(living, dice.randint(2, min(4, len(living))))
            history.append((parts, state(world, *parts)))
            done.append(merge(world, *parts))
            living = [one for one in living if one not in parts] + [done[-1]]
    while done:
        undo(world, done.pop())

    for memory_id, node in everything(world).items():
        if memory_id in started:
            assert {name: node.get(name) for name in KEPT} == {
                name: started[memory_id].get(name) for name in KEPT
            }
        else:
            assert node["validUntil"] == node["validFrom"]
