"""`gc` and `archive`: what may be put aside, what is refused, and the way back."""

from dataclasses import replace
from typing import Any

import pytest

from tests.world import World
from vestige.engine import archive
from vestige.engine.archive import worth_archiving
from vestige.engine.context import Call
from vestige.events import MemoriesArchived, MemoriesRestored
from vestige.models import EVERYTHING, Access, Filter
from vestige.store.changes import Revise


def fade(world: World, memory_id: str) -> None:
    for _ in range(4):
        world.call("memory", action="demote", id=memory_id)


def gc(world: World, **arguments: Any) -> dict[str, Any]:
    return world.call("gc", **arguments)


def living(world: World) -> set[str]:
    return {node["id"] for node in world.call("memory", action="list", limit=200)["results"]}


@pytest.fixture
def crowd(world: World) -> dict[str, str]:
    """Ten memories, four of them faded: one in a scope of its own, one much younger."""
    ids = {f"kept {number}": world.remember(f"Note {number} of the log.", force_create=True) for number in
           range(6)}  # fmt: skip
    for name, scope in (("faded", "/"), ("weak", "/"), ("there", "/elsewhere")):
        ids[name] = world.remember(f"The {name} one.", force_create=True, scope=scope)
    world.clock.advance(days=40)
    ids["young"] = world.remember("The young one.", force_create=True)
    for name in ("faded", "weak", "there", "young"):
        fade(world, ids[name])
    world.clock.advance(days=35)
    return ids


def test_a_run_is_a_dry_one_unless_it_is_told_otherwise(world: World, crowd: dict[str, str]) -> None:
    before = living(world)
    answer = gc(world)
    assert (answer["dryRun"], answer["candidateCount"], answer["memories"]) == (True, 4, 10)
    assert {one["id"] for one in answer["sample"]} == {crowd[n] for n in ("faded", "weak", "there", "young")}
    assert all(one["accessibility"] < 0.1 for one in answer["sample"])
    assert living(world) == before
    assert world.call("archive", action="list")["archives"] == []


def test_a_run_takes_only_what_is_asked_for(world: World, crowd: dict[str, str]) -> None:
    assert gc(world, scope="/elsewhere", even_most=True)["sample"][0]["id"] == crowd["there"]
    assert gc(world, max_age_days=50)["candidateCount"] == 3
    assert gc(world, min_retention=0)["candidateCount"] == 0

    done = gc(world, max_age_days=50, scope="/", dry_run=False)

    assert (done["archived"], done["candidateCount"]) == (3, 3)
    assert crowd["young"] in living(world)
    assert not {crowd["faded"], crowd["weak"], crowd["there"]} & living(world)
    (told,) = [one for one in world.heard if isinstance(one, MemoriesArchived)]
    assert (told.archive_id, len(told.ids)) == (done["archiveId"], 3)


def test_what_is_pinned_asked_for_or_just_suppressed_is_not_taken(
    world: World, crowd: dict[str, str]
) -> None:
    world.call("memory", action="pin", id=crowd["faded"])
    world.call("suppress", id=crowd["weak"])
    world.find("The there one.", scope="/elsewhere")  # it is shown: somebody asks for it

    assert [one["id"] for one in gc(world)["sample"]] == [crowd["young"]]


def test_suppression_counts_against_a_memory_and_its_text_is_not_shown(world: World) -> None:
    others = [world.remember(f"Note {number}.", force_create=True) for number in range(3)]
    for _ in range(6):
        world.call("suppress", id=others[0])
        world.clock.advance(days=60)

    (sample,) = gc(world, min_retention=0.15)["sample"]

    assert (sample["id"], "contentPreview" in sample) == (others[0], False)
    assert sample["accessibility"] == pytest.approx(0.2 * sample["retention"], abs=1e-3)


@pytest.mark.parametrize("least", [0.51, 1.0])
def test_an_absurd_threshold_is_refused(world: World, crowd: dict[str, str], least: float) -> None:
    before = living(world)
    for dry_run in (True, False):
        refused = world.refused("gc", min_retention=least, dry_run=dry_run)
        assert (refused["code"], refused["details"]) == ("invalid_input", {"argument": "min_retention"})
    assert living(world) == before


@pytest.mark.parametrize("given", [{"min_retention": -0.1}, {"min_retention": 1.5}, {"max_age_days": -1}])
def test_numbers_out_of_range_are_refused(world: World, given: dict[str, float]) -> None:
    assert world.refused("gc", **given)["code"] == "invalid_input"


def test_most_of_a_memory_is_not_put_aside_without_saying_so(world: World) -> None:
    ids = [world.remember(f"Note {number}.", force_create=True) for number in range(3)]
    for memory_id in ids[:2]:
        fade(world, memory_id)
    world.clock.advance(days=60)

    refused = world.refused("gc", dry_run=False)

    assert (refused["code"], refused["details"]) == ("conflict", {"candidates": 2, "memories": 3})
    assert living(world) == set(ids)
    assert gc(world, dry_run=False, even_most=True)["archived"] == 2


def test_nothing_faded_is_no_run(world: World) -> None:
    world.remember("Fresh.")
    answer = gc(world, dry_run=False)
    assert (answer["archived"], "archiveId" in answer) == (0, False)
    assert world.call("archive", action="list")["archives"] == []


def test_a_large_run_takes_the_faintest_first_and_leaves_the_rest(
    world: World, crowd: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST", 3)
    faintest = [one["id"] for one in gc(world)["sample"]][:3]
    first = gc(world, dry_run=False)
    assert (first["archived"], first["left"]) == (3, 1)
    assert world.call("archive", action="list")["archives"][0]["ids"] == faintest
    assert gc(world, dry_run=False)["archived"] == 1


def test_a_run_is_undone_whole_once(world: World, crowd: dict[str, str]) -> None:
    before = living(world)
    run = gc(world, dry_run=False)
    world.clock.advance(days=1)
    world.call("purge", id=crowd["weak"], confirm=True)
    world.call("archive", action="undo", id=crowd["young"])

    answer = world.call("archive", action="undo", id=run["archiveId"])

    assert (set(answer["restored"]), answer["missing"]) == ({crowd["faded"], crowd["there"]}, 2)
    assert living(world) == before - {crowd["weak"]}
    (shown,) = world.call("archive", action="list")["archives"]
    assert (shown["count"], shown["restoredAt"]) == (4, "2026-05-16T09:00:00Z")
    assert "undone already" in world.refused("archive", action="undo", id=run["archiveId"])["message"]
    assert [one.archive_id for one in world.heard if isinstance(one, MemoriesRestored)] == [
        "",
        run["archiveId"],
    ]


def test_undoing_a_run_leaves_alone_what_a_later_run_took(world: World, crowd: dict[str, str]) -> None:
    first = gc(world, dry_run=False, max_age_days=50)
    world.call("archive", action="undo", id=crowd["faded"])
    world.clock.advance(days=31)
    second = gc(world, dry_run=False, max_age_days=100)
    assert world.call("archive", action="list")["archives"][0]["ids"] == [crowd["faded"]]

    world.call("archive", action="undo", id=first["archiveId"])

    assert crowd["faded"] not in living(world)
    world.call("archive", action="undo", id=second["archiveId"])
    assert crowd["faded"] in living(world)


def test_what_is_in_no_archive_cannot_be_brought_back(world: World) -> None:
    memory_id = world.remember("Fresh.")
    assert "is not archived" in world.refused("archive", action="undo", id=memory_id)["message"]
    assert world.refused("archive", action="undo", id="nothing")["code"] == "not_found"


def test_telling_again_what_is_archived_is_a_new_memory(world: World, crowd: dict[str, str]) -> None:
    gc(world, dry_run=False)
    again = world.remember("The faded one.")
    assert again != crowd["faded"]
    assert world.get(crowd["faded"])["archivedAt"] == "2026-05-15T09:00:00Z"


def test_a_fact_that_is_true_again_comes_out_of_the_archive(world: World) -> None:
    old = world.remember("The service runs on PostgreSQL 14.")
    world.clock.advance(days=1)
    new = world.remember("The service runs on PostgreSQL 15.")
    memory = world.app.engine.store.get_many([old], access=EVERYTHING)[0].memory
    aside = replace(memory, archived_at=world.clock.now, revision=memory.revision + 1)
    world.app.engine.store.commit([Revise(memory=aside, reason="archived")], access=EVERYTHING)

    assert world.call("memory", action="delete", id=new)["revived"] == [old]

    assert world.find("PostgreSQL") == ["The service runs on PostgreSQL 14."]


def test_a_caller_puts_aside_only_what_is_in_reach(world: World, crowd: dict[str, str]) -> None:
    here = Call(engine=world.app.engine, access=Access(scopes=("/elsewhere",)), scope="/elsewhere")
    assert worth_archiving(here) == 1
    assert worth_archiving(Call(engine=world.app.engine)) == 4
    run = archive.archive(here, archive.GcQuery(scope="/elsewhere", even_most=True))
    assert run.taken == (crowd["there"],)
    assert archive.archives(here, "/", limit=9)[0].id == run.archive_id


def test_the_archive_is_exported_and_rebuilt_with_the_rest(world: World, crowd: dict[str, str]) -> None:
    gc(world, dry_run=False)
    store = world.app.engine.store
    assert store.count(Filter(archived=True), access=EVERYTHING) == 4
    assert store.rebuild_words() == 10
    status = world.call("system_status")
    assert (status["totalMemories"], status["archived"]) == (6, 4)
    assert world.call("export")["memoriesExported"] == 10
