"""The read path through the public tools, on every store."""

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.world import World, open_world
from vestige.errors import Cancelled

FACTS = (
    "Ada prefers TypeScript over JavaScript for new services.",
    "The staging cluster lives in Frankfurt.",
    "Grace wrote the COBOL importer in March.",
    "Backups are verified every night by opening them.",
)


@pytest.fixture
def filled(world: World) -> World:
    for text in FACTS:
        world.remember(text)
    return world


def test_the_memory_that_matches_comes_first_with_its_reasons(filled: World) -> None:
    answer = filled.call("search", query="who wrote the COBOL importer", explain=True)

    best = answer["results"][0]
    assert best["content"] == FACTS[2]
    assert best["explain"]["rank"] == 1
    stages = [stage["stage"] for stage in best["explain"]["stages"]]
    assert stages == ["relevance", "temporal", "accessibility"]
    assert best["explain"]["stages"][-1]["score"] == best["combinedScore"]
    assert best["matchType"] == "Both"
    scores = [hit["combinedScore"] for hit in answer["results"]]
    assert scores == sorted(scores, reverse=True)


def test_the_same_question_gets_the_same_answer(filled: World) -> None:
    first = filled.call("search", query="staging cluster", record=False)
    assert filled.call("search", query="staging cluster", record=False) == first


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"tags": ["a"]}, {"alpha one", "alpha two"}),
        ({"tags_all": ["a", "b"]}, {"alpha two"}),
        ({"include_types": ["event"]}, {"alpha three"}),
        ({"exclude_types": ["event"]}, {"alpha one", "alpha two"}),
        ({"scope": "/project/x"}, {"alpha two", "alpha three"}),
        ({"source": "wiki"}, {"alpha one"}),
        ({"author": "ada"}, {"alpha three"}),
        ({"thread": "t"}, {"alpha three"}),
        ({"domains": ["d"]}, {"alpha two"}),
        ({"created_from": "2026-03-02"}, {"alpha two", "alpha three"}),
        ({"created_to": "2026-03-01"}, {"alpha one"}),
        ({"as_of": "2026-02-01"}, {"alpha one", "alpha three"}),
        ({"min_retention": 0.99}, set()),
        ({"tags": ["a"], "scope": "/project"}, {"alpha two"}),
    ],
)
def test_filters_hold_for_both_arms(world: World, arguments: dict[str, Any], expected: set[str]) -> None:
    world.remember("alpha one", tags=["a"], source="wiki", force_create=True)
    world.clock.advance(days=2)
    world.remember(
        "alpha two",
        tags=["a", "b"],
        scope="/project/x",
        domains=["d"],
        valid_from="2026-03-01",
        force_create=True,
    )
    world.remember(
        "alpha three", node_type="event", scope="/project/x/y", author="ada", thread="t", force_create=True
    )

    assert set(world.find("alpha", **arguments)) == expected
    # By meaning alone as well: no term of this query is a term of the memories.
    assert set(world.find("alphas", **arguments)) <= expected


def test_limit_and_detail_level_shape_the_answer(filled: World) -> None:
    brief = filled.call("search", query="the", limit=2, detail_level="brief")
    full = filled.call("search", query="staging cluster", limit=1, detail_level="full")

    assert brief["total"] == len(brief["results"]) == 2
    assert "content" not in brief["results"][0]
    assert full["results"][0]["learningState"] == "new"
    assert full["results"][0]["hasEmbedding"] is True


def test_a_token_budget_is_kept_and_names_what_it_left_out(filled: World) -> None:
    everything = filled.call("search", query="the staging importer backups TypeScript", record=False)
    tight = filled.call(
        "search", query="the staging importer backups TypeScript", token_budget=250, record=False
    )

    assert len(json.dumps(tight, separators=(",", ":"))) <= 4 * tight["tokensUsed"] + 4
    assert tight["tokensUsed"] <= 250
    order = [hit["id"] for hit in everything["results"]]
    assert [hit["id"] for hit in tight["results"]] + tight["expandable"] == order
    assert 0 < len(tight["results"]) < len(order)


def test_being_found_leaves_a_weak_trace_once_a_day(world: World) -> None:
    memory_id = world.remember("The door code is on the blue card.")
    world.clock.advance(days=30)
    untouched = world.get(memory_id)

    world.find("door code")
    once = world.get(memory_id)
    world.find("door code")
    twice = world.get(memory_id)

    assert once["retentionStrength"] > untouched["retentionStrength"]
    assert once["timesRetrieved"] == 1
    assert twice == once
    world.clock.advance(days=1)
    world.find("door code")
    assert world.get(memory_id)["timesRetrieved"] == 2
    assert twice["reps"] == 0
    assert twice["stability"] == untouched["stability"]


def test_a_search_that_records_nothing_changes_nothing(world: World) -> None:
    memory_id = world.remember("The door code is on the blue card.")
    world.clock.advance(days=3)
    before = world.get(memory_id)

    world.find("door code", record=False)

    assert world.get(memory_id) == before


def test_a_faded_memory_ranks_below_an_equal_fresh_one(world: World) -> None:
    old = world.remember("Lunch is at noon in the hall", force_create=True)
    for _ in range(4):
        world.call("memory", action="demote", id=old)
    fresh = world.remember("Lunch is at noon in the hall", force_create=True)

    found = world.call("search", query="when is lunch")["results"]

    assert [hit["id"] for hit in found] == [fresh, old]


def test_a_long_text_is_found_by_a_sentence_in_its_middle(world: World) -> None:
    filler = " ".join(f"Paragraph {n} talks about ordinary things at some length." for n in range(120))
    needle = "The quokka migrated to Rottnest in autumn."
    memory_id = world.remember(f"{filler} {needle} {filler}")
    world.remember("Something short about animals.")

    hits = world.call("search", query="quokka Rottnest", explain=True)["results"]

    assert hits[0]["id"] == memory_id
    assert "quokka" in hits[0]["explain"]["matchedText"]


def test_a_cancelled_search_stops_and_leaves_no_trace(world: World) -> None:
    memory_id = world.remember("The door code is on the blue card.")
    cancelled = threading.Event()
    cancelled.set()

    with pytest.raises(Cancelled):
        world.app.call_tool(
            "search", {"query": "door"}, request_id="", progress=lambda *_: None, cancelled=cancelled
        )

    assert world.get(memory_id)["timesRetrieved"] == 0


def test_every_kind_of_evidence_is_replayed_from_the_log_by_rebuild(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        memory_id = world.remember("Alerts go to the on-call channel.")
        for step, action in enumerate(("promote", "demote", "useful", "promote")):
            world.clock.advance(days=step + 0.3)
            world.call("memory", action=action, id=memory_id)
            world.find("alerts channel")
        world.clock.advance(days=9)
        world.call("mark_reviewed", id=memory_id, rating=2)
        world.call("mark_reviewed", id=memory_id, rating=1)
        before = world.get(memory_id)

        from vestige.operations.all import registry

        rebuild = registry.operations["rebuild"]
        clean = world.app.run(rebuild, {}, lambda *_: None).wire()
        assert (clean["strengths"], clean["drifted"], clean["words"]) == (1, 0, 1)

        # A strength that was tampered with is put right from the log.
        import sqlite3

        with sqlite3.connect(tmp_path / "vestige.db") as outside:
            outside.execute("UPDATE strengths SET stability = 999")
        outside.close()
        assert world.get(memory_id)["stability"] == 999
        mended = world.app.run(rebuild, {"strengths": True}, lambda *_: None).wire()
        assert mended["drifted"] == 1
        assert world.get(memory_id) == before


def test_what_the_budget_left_out_was_not_shown(filled: World) -> None:
    answer = filled.call("search", query="the staging importer backups TypeScript", token_budget=250)

    for memory_id in answer["expandable"]:
        assert filled.get(memory_id)["timesRetrieved"] == 0
    assert filled.get(answer["results"][0]["id"])["timesRetrieved"] == 1
