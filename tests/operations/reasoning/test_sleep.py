"""`dream`, `consolidate` and `insights`, on every store."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.caller import Invocation
from vestige.core.documents import Document
from vestige.core.errors import Cancelled, Conflict
from vestige.core.events import (
    ConnectionDiscovered,
    ConsolidationCompleted,
    ConsolidationStarted,
    DreamCompleted,
    DreamProgress,
    DreamStarted,
    Event,
)
from vestige.core.models import EVERYTHING, Access, Edge
from vestige.engine.context import Call
from vestige.engine.reactions import capture, reconsolidation
from vestige.operations.registry.groups import registry
from vestige.store.contract.changes import Link, Put

VIOLIN = (
    "Ada plays the violin in the city orchestra.",
    "The violin orchestra of Ada rehearses in the city.",
    "Ada bought new strings for the violin of the orchestra.",
)
OTHERS = ("Grace maintains the parser.", "Deploys happen on Friday.", "The cat sleeps on the sofa.")


def told(world: World, **fields: Any) -> list[str]:
    """Three memories about one thing, on three days, and three others; the ids of the three."""
    ids = []
    for text in VIOLIN:
        ids.append(world.remember(text, **fields))
        world.clock.advance(days=2)
    for text in OTHERS:
        world.remember(text)
    # What they have been linked by when they were told is not what is looked at here.
    world.app.settle()
    return ids


def links_of(world: World, memory_id: str) -> list[dict[str, Any]]:
    answer = world.call("explore_connections", action="associations", limit=50, **{"from": memory_id})
    found: list[dict[str, Any]] = answer["associations"]
    return found


def everything(world: World) -> list[Any]:
    """All that could be changed: the log, and the strength of every memory."""
    nodes = world.call("memory", action="list", detail_level="full", limit=100)["results"]
    return [world.call("memory_changelog", limit=100)["changes"], nodes]


def test_a_dream_links_what_belongs_together_and_says_so(world: World) -> None:
    ids = told(world)

    dreamt = world.call("dream")

    assert (dreamt["status"], dreamt["memoriesReplayed"], dreamt["scope"]) == ("dreamed", 6, "/")
    ends = [{one["source"], one["target"]} for one in dreamt["connections"]]
    assert len(ends) == dreamt["connectionsPersisted"] > 0
    assert all(both <= set(ids) for both in ends)
    (insight,) = dreamt["insights"]
    assert insight["insight_type"] == "RecurringPattern"
    assert insight["source_memories"] == ids
    assert all(f"[{name}]" in insight["insight"] for name in ids)
    assert all(0 < insight[name] <= 1 for name in ("confidence", "novelty_score"))


def test_a_dream_changes_no_text_and_leaves_pinned_memories_as_strong_as_they_were(world: World) -> None:
    ids = told(world)
    world.call("memory", action="pin", id=ids[0])
    before = {name: world.get(name) for name in ids}

    dreamt = world.call("dream")

    after = {name: world.get(name) for name in ids}
    assert [one["content"] for one in after.values()] == [one["content"] for one in before.values()]
    assert [one["revision"] for one in after.values()] == [one["revision"] for one in before.values()]
    assert after[ids[0]]["stability"] == before[ids[0]]["stability"]
    assert after[ids[1]]["stability"] > before[ids[1]]["stability"]
    assert dreamt["stats"]["memoriesStrengthened"] == 5
    assert any(ids[0] in (one["source"], one["target"]) for one in dreamt["connections"])


def test_dreaming_again_on_the_same_day_makes_nothing_stronger_and_says_nothing_twice(world: World) -> None:
    ids = told(world)
    world.call("dream")
    stability = world.get(ids[0])["stability"]

    again = world.call("dream")

    assert again["insights"] == []
    assert again["connectionsPersisted"] == again["stats"]["memoriesStrengthened"] == 0
    assert world.get(ids[0])["stability"] == stability
    world.clock.advance(days=1)
    assert world.call("dream")["stats"]["memoriesStrengthened"] == 6


def test_links_that_are_replayed_together_get_heavier(world: World) -> None:
    told(world)
    first = world.call("dream")["connections"][0]
    world.clock.advance(days=2)

    again = world.call("dream")

    assert again["stats"]["connectionsReinforced"] >= 1
    linked = links_of(world, first["source"])
    weight = next(one["weight"] for one in linked if one["memory"]["id"] == first["target"])
    assert weight == pytest.approx(first["weight"] + 0.05, abs=1e-3)


def test_a_dream_prunes_the_learned_links_that_are_too_weak_and_no_others(world: World) -> None:
    ids = told(world)
    now = world.clock.now
    edges = [
        Edge(source_id=ids[0], target_id=ids[1], kind=kind, weight=weight, created_at=now)
        for kind, weight in (("temporal", 0.04), ("complementary", 0.3), ("causal", 0.04))
    ]
    world.app.engine.store.commit([Link(edge=edge) for edge in edges], access=EVERYTHING)

    dreamt = world.call("dream")

    assert dreamt["stats"]["connectionsPruned"] == 1
    left = {one["type"] for one in links_of(world, ids[0]) if one["memory"]["id"] == ids[1]}
    assert {"complementary", "causal"} <= left
    assert "temporal" not in left


def test_what_mattered_is_replayed_before_what_is_merely_new(world: World) -> None:
    wanted = world.remember("The vault code is kept by Inga.")
    for number in range(30):
        world.remember(f"Note {number} about topic {number * 7}.", force_create=True)
        world.clock.advance(hours=1)
    world.call("memory", action="promote", id=wanted)
    before = world.get(wanted)["storageStrength"]

    dreamt = world.call("dream", memory_count=5)

    assert dreamt["memoriesReplayed"] == 5
    assert dreamt["wakingTagsProcessed"] >= 1
    assert world.get(wanted)["storageStrength"] == pytest.approx(before + 0.05)


def test_nothing_suppressed_superseded_or_of_another_project_is_replayed_or_linked(world: World) -> None:
    ids = told(world, scope="/project/a")
    world.call("suppress", id=ids[0])
    world.call("memory", action="set_validity", id=ids[1], valid_until="2026-03-02")
    for text in VIOLIN:
        world.remember(text, scope="/project/b", force_create=True)

    dreamt = world.call("dream")

    linked = {end for one in dreamt["connections"] for end in (one["source"], one["target"])}
    assert linked
    assert linked.isdisjoint(ids)  # of the three, the last is only like what is in another project
    assert all(set(ids).isdisjoint(one["source_memories"]) for one in dreamt["insights"])


def test_a_dream_in_a_project_links_to_what_holds_there_from_above_and_to_no_other_project(
    world: World,
) -> None:
    above = world.remember(VIOLIN[0], scope="/user")
    here = world.remember(VIOLIN[1], scope="/project/a")
    there = world.remember(VIOLIN[2], scope="/project/b")
    for text in OTHERS:
        world.remember(text, scope="/project/a")

    linked = world.call("dream", scope="/")["connections"]

    pairs = [{one["source"], one["target"]} for one in linked]
    assert {above, here} in pairs
    assert {above, there} in pairs
    assert {here, there} not in pairs


def test_without_a_model_a_dream_goes_by_words(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        ids = told(world, tags=["music", "ada"])

        dreamt = world.call("dream", min_similarity=0.4)

        assert dreamt["stats"]["byWords"] is True
        assert {one["type"] for one in dreamt["connections"]} == {"shared_concepts"}
        assert {end for one in dreamt["connections"] for end in (one["source"], one["target"])} <= set(ids)


def test_no_links_are_made_when_none_are_wanted(world: World) -> None:
    told(world)
    assert world.call("dream", links_per_memory=0)["connectionsPersisted"] == 0


def test_contradictions_are_noticed(world: World) -> None:
    told(world)
    old = world.remember("The office door opens at 8 every morning.")
    new = world.remember("The office door opens at 9 every morning.", force_create=True)

    insights = world.call("dream")["insights"]

    (clash,) = [one for one in insights if one["insight_type"] == "Contradiction"]
    assert set(clash["source_memories"]) == {old, new}


def test_a_dream_on_few_memories_is_refused_and_changes_nothing(world: World) -> None:
    for text in VIOLIN:
        world.remember(text)
    before = everything(world)

    error = world.refused("dream")

    assert (error["code"], error["details"]["memories"]) == ("invalid_input", 3)
    assert "5" in error["message"]
    assert everything(world) == before
    assert world.refused("dream", scope="/project/none")["code"] == "not_found"


@pytest.mark.parametrize(
    "arguments",
    [
        {"memory_count": 4},
        {"memory_count": 501},
        {"min_similarity": 1.5},
        {"links_per_memory": -1},
        {"memories": 10},
    ],
)
def test_impossible_arguments_are_refused(world: World, arguments: dict[str, Any]) -> None:
    told(world)
    before = everything(world)
    assert world.refused("dream", **arguments)["code"] in ("invalid_input", "unknown_argument")
    assert everything(world) == before


def test_a_dream_reports_how_far_it_is(world: World) -> None:
    told(world)
    world.heard.clear()

    dreamt = world.call("dream")

    assert isinstance(world.heard[0], DreamStarted)
    phases = [one.phase for one in world.heard if isinstance(one, DreamProgress)]
    assert phases == ["replay", "cross-reference", "insight", "commit"]
    found = [one for one in world.heard if isinstance(one, ConnectionDiscovered)]
    assert len(found) == dreamt["connectionsPersisted"]
    (done,) = [one for one in world.heard if isinstance(one, DreamCompleted)]
    assert (done.memories_replayed, done.connections_found) == (6, len(found))


def test_what_changes_while_it_dreams_is_left_out(world: World) -> None:
    ids = told(world)

    def meddle(happening: Event) -> None:
        if isinstance(happening, DreamProgress) and happening.phase == "commit":
            world.call("memory", action="delete", id=ids[0])
            world.call("memory", action="edit", id=ids[1], content="Something else altogether.")

    with world.app.engine.events.listening(meddle):
        dreamt = world.call("dream")

    assert dreamt["insights"] == []
    assert dreamt["connections"] == []
    assert dreamt["stats"]["memoriesStrengthened"] == 4


def test_a_cancelled_dream_keeps_nothing_and_lets_the_next_one_run(world: World) -> None:
    told(world)
    before = everything(world)

    def stop(happening: Event) -> None:
        stopped.append(isinstance(happening, DreamProgress))

    stopped: list[bool] = []
    call = Call(engine=world.app.engine, cancelled=lambda: any(stopped))
    with world.app.engine.events.listening(stop), pytest.raises(Cancelled):
        registry.operations["dream"].call(call, {})

    assert everything(world) == before
    assert world.call("dream")["status"] == "dreamed"


@pytest.mark.parametrize(("tool", "begun"), [("dream", DreamStarted), ("consolidate", ConsolidationStarted)])
def test_only_one_runs_at_a_time_in_any_process(tmp_path: Path, tool: str, begun: type[Event]) -> None:
    clock = HandClock()
    errors: list[dict[str, Any]] = []
    with open_world(tmp_path, clock=clock) as world, open_world(tmp_path, clock=clock) as other:
        told(world)

        def try_too(happening: Event) -> None:
            if isinstance(happening, begun):
                errors.append(other.refused(tool))

        with world.app.engine.events.listening(try_too):
            world.call(tool)

        (error,) = errors
        assert error["code"] == "conflict"
        assert error["details"]["since"] == clock.now.isoformat()
        other.call(tool)


def test_a_run_that_was_killed_holds_the_next_one_up_for_ten_minutes_only(world: World) -> None:
    told(world)
    now = world.clock.now
    until = now.replace(minute=10).isoformat()
    left = Document(
        kind="running",
        id="consolidation",
        created_at=now,
        updated_at=now,
        body={"holds": [{"id": "killed", "scopes": None, "since": now.isoformat(), "until": until}]},
    )
    world.app.engine.store.commit([Put(document=left, logged=False)], access=EVERYTHING)
    before = everything(world)

    error = world.refused("consolidate")

    assert (error["code"], error["details"]["until"]) == ("conflict", until)
    assert everything(world) == before
    world.clock.advance(hours=0.2)
    assert world.call("consolidate")["nodesProcessed"] == 6


def test_a_run_that_takes_long_but_gets_on_keeps_the_next_one_waiting(world: World) -> None:
    told(world)
    errors: list[dict[str, Any]] = []

    def drag_on(happening: Event) -> None:
        if isinstance(happening, DreamProgress):  # four phases of one step
            world.clock.advance(hours=0.1)
        if isinstance(happening, DreamCompleted):
            errors.append(world.refused("consolidate"))

    # Work of no time that anybody has to rest for.
    engine = replace(world.app.engine, monotonic=lambda: 0.0)
    with world.app.engine.events.listening(drag_on):
        done = registry.operations["consolidate"].call(Call(engine=engine), {})

    assert done["dream"]["memoriesReplayed"] == 6
    (error,) = errors
    assert error["code"] == "conflict"
    assert "has been running since" in error["message"]


def test_a_run_that_did_not_get_on_for_long_is_told_that_another_has_begun(world: World) -> None:
    told(world)
    others: list[dict[str, Any]] = []

    def hang(happening: Event) -> None:
        if isinstance(happening, DreamProgress) and happening.phase == "insight" and not others:
            world.clock.advance(hours=0.2)
            others.append({})  # the other one dreams too
            others.append(world.call("dream"))

    engine = replace(world.app.engine, monotonic=lambda: 0.0)
    with world.app.engine.events.listening(hang), pytest.raises(Conflict) as caught:
        registry.operations["dream"].call(Call(engine=engine), {})

    assert "another one has begun" in caught.value.message
    assert others[1]["status"] == "dreamed"
    assert len(world.call("insights", action="runs", kind="dream")["runs"]) == 1


def test_consolidation_drops_what_was_kept_for_a_window_that_has_closed(world: World) -> None:
    store, cites = world.app.engine.store, (world.remember("The deploy went wrong."),)
    for name, days in (("old", 0), ("young", 29.5)):
        world.clock.advance(days=days)
        now = world.clock.now
        moments = dict.fromkeys(("at", "until", "labile_until"), now.isoformat())
        body = {**moments, "event": "user_flag", "captured": {}}
        kept = [
            Document(kind=kind, id=name, body=body, cites=cites, created_at=now, updated_at=now)
            for kind in (capture.KIND, reconsolidation.KIND)
        ]
        store.commit([Put(document=one, logged=False) for one in kept], access=EVERYTHING)
    world.clock.advance(days=0.9)

    (step,) = [one for one in world.call("consolidate")["steps"] if one["step"] == "windows"]

    assert step["count"] == 2
    for kind in (capture.KIND, reconsolidation.KIND):
        assert [one.id for one in store.documents(kind, access=EVERYTHING, limit=9)] == ["young"]


def test_consolidation_counts_what_it_does_and_destroys_nothing(world: World) -> None:
    told(world)
    world.clock.advance(days=200)
    texts = sorted(one["content"] for one in world.call("memory", action="list", limit=100)["results"])
    world.heard.clear()

    done = world.call("consolidate")

    assert done["nodesProcessed"] == 6
    assert done["decayApplied"] == 6  # all have become dormant
    assert (done["nodesPruned"], done["duplicatesMerged"], done["w20Optimized"]) == (0, 0, False)
    assert done["dream"]["memoriesReplayed"] == 6
    steps = {one["step"]: one for one in done["steps"]}
    assert (steps["states"]["count"], steps["dream"]["count"]) == (6, 6)
    assert steps["embeddings"]["count"] == 0
    after = sorted(one["content"] for one in world.call("memory", action="list", limit=100)["results"])
    assert after == texts
    assert isinstance(world.heard[0], ConsolidationStarted)
    (told_of,) = [one for one in world.heard if isinstance(one, ConsolidationCompleted)]
    assert (told_of.nodes_processed, told_of.decay_applied) == (6, 6)
    again = world.call("consolidate")
    assert again["decayApplied"] == 0
    assert "dream" not in again


def test_consolidation_embeds_what_was_told_without_a_model(tmp_path: Path) -> None:
    with open_world(tmp_path, provider="off") as world:
        told(world)
        steps = {one["step"]: one for one in world.call("consolidate")["steps"]}
        assert "no embedding model" in steps["embeddings"]["note"]
    with open_world(tmp_path) as world:
        assert world.call("consolidate")["embeddingsGenerated"] == 6


def test_duplicates_are_counted_and_left_alone(world: World) -> None:
    told(world)
    world.remember(VIOLIN[0] + " ", force_create=True)
    assert world.call("consolidate")["duplicatesFound"] == 2
    assert world.call("system_status")["totalMemories"] == 7


def test_an_empty_store_consolidates_without_a_dream(world: World) -> None:
    done = world.call("consolidate")
    assert done["nodesProcessed"] == 0
    assert "dream" not in done


def test_an_access_limited_to_domains_is_refused(world: World) -> None:
    told(world)
    call = Call(engine=world.app.engine, access=Access(domains=("music",)))
    for name in ("dream", "consolidate"):
        with pytest.raises(Exception, match="limited to domains"):
            registry.operations[name].call(call, {})


def test_a_limited_access_dreams_and_consolidates_what_it_reaches(world: World) -> None:
    told(world)
    for text in (*VIOLIN, *OTHERS):
        world.remember(text, scope="/project/a", force_create=True)
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)), scope="/project/a")

    done = registry.operations["consolidate"].call(call, {})

    assert done["nodesProcessed"] == 6
    assert done["dream"]["scope"] == "/project/a"
    runs = registry.operations["insights.runs"].call(call, {})["runs"]
    assert [one["scope"] for one in runs] == ["/project/a", "/project/a"]
    elsewhere = Call(engine=world.app.engine, access=Access(scopes=("/project/b",)), scope="/project/b")
    assert registry.operations["insights.runs"].call(elsewhere, {})["runs"] == []


def test_a_limited_caller_may_ask_for_more_than_it_reaches(world: World) -> None:
    told(world)
    for text in (*VIOLIN, *OTHERS):
        world.remember(text, scope="/project/a", force_create=True)
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    dreamt = registry.operations["dream"].call(call, {"scope": "/"})

    assert (dreamt["scope"], dreamt["memoriesReplayed"]) == ("/project/a", 6)


def test_a_memory_is_linked_to_no_more_than_a_dozen_by_dreams(world: World) -> None:
    hub = world.remember("The harbour database is backed up every night.", force_create=True)
    for number in range(20):
        world.remember(f"The harbour database is backed up every night {number}.", force_create=True)
    for _ in range(6):
        world.call("dream", links_per_memory=10)
        world.clock.advance(days=1)

    kinds = {"shared_concepts", "temporal", "semantic", "complementary"}
    made = [one for one in links_of(world, hub) if one["type"] in kinds]
    assert 0 < len(made) <= 12


def test_a_consolidation_tells_how_far_it_is_on_one_scale_to_its_end(world: World) -> None:
    for number in range(8):
        world.remember(f"The heron number {number} stands in pond {number}.", tags=["birds"])
    told: list[tuple[float, float | None]] = []

    world.app.call_tool(
        Invocation(name="consolidate", progress=lambda done, total, what: told.append((done, total)))
    )

    totals = {total for _, total in told}
    assert len(totals) == 1
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]
