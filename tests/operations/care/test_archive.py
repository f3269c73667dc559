"""`gc` and `archive`: what may be put aside, what is refused, and the way back."""

from dataclasses import replace
from typing import Any

import pytest

from testbed.world import World
from vestige.core.events import MemoriesArchived, MemoriesRestored
from vestige.core.models import EVERYTHING, Access, Evidence, Filter
from vestige.engine.context import Call
from vestige.engine.memory import archive
from vestige.engine.memory.archive import worth_archiving
from vestige.store.contract.changes import RecordEvidence, Revise


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
    world.app.settle()

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


def test_undoing_names_what_was_told_again_meanwhile(world: World, crowd: dict[str, str]) -> None:
    run = gc(world, dry_run=False)["archiveId"]
    again = {name: world.remember(f"The {name} one.") for name in ("faded", "weak")}

    alone = world.call("archive", action="undo", id=crowd["weak"])
    rest = world.call("archive", action="undo", id=run)

    assert alone["duplicates"] == {crowd["weak"]: again["weak"]}
    assert rest["duplicates"] == {crowd["faded"]: again["faded"]}
    assert "1 of them was stored again" in rest["message"]
    assert {crowd["faded"], again["faded"]} <= living(world)


def test_a_turn_that_was_said_again_is_no_duplicate(world: World) -> None:
    turn = {"content": "Yes, please do.", "thread": "talk"}
    first = world.remember(position=1, **turn)
    for number in range(5):
        world.remember(f"Note {number}.", force_create=True)
    fade(world, first)
    world.clock.advance(days=35)
    assert gc(world, dry_run=False)["archived"] == 1
    world.remember(position=2, **turn)

    assert "duplicates" not in world.call("archive", action="undo", id=first)


def test_a_run_is_not_undone_twice_and_the_refusal_says_where_to_look(
    world: World, crowd: dict[str, str]
) -> None:
    run = gc(world, dry_run=False)["archiveId"]
    world.call("archive", action="undo", id=run)
    assert "`archive` with action `list`" in world.refused("archive", action="undo", id=run)["hint"]
    assert world.refused("archive", action="undo", id=crowd["faded"])["hint"]


@pytest.mark.parametrize("suppressed", [False, True])
def test_promoting_an_archived_memory_brings_it_back(
    world: World, crowd: dict[str, str], suppressed: bool
) -> None:
    memory_id = crowd["faded"]
    gc(world, dry_run=False)
    if suppressed:
        world.call("suppress", id=memory_id)
    before = world.app.engine.store.log(access=EVERYTHING, memory_id=memory_id)
    world.heard.clear()

    answer = world.call("memory", action="promote", id=memory_id)

    assert "restored from the archive" in answer["message"]
    assert ("no longer suppressed" in answer["message"]) == suppressed
    assert memory_id in living(world)
    (told,) = [one for one in world.heard if isinstance(one, MemoriesRestored)]
    assert told.ids == (memory_id,)
    after = world.app.engine.store.log(access=EVERYTHING, memory_id=memory_id)[len(before) :]
    assert "restored" in {event.payload.get("reason") for event in after}
    assert after[-1].payload["evidence"] == "promoted"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("memory", {"action": "edit", "content": "The other one."}),
        ("memory", {"action": "tag", "add": ["old"]}),
        ("memory", {"action": "demote"}),
        ("mark_reviewed", {"rating": 3}),
        ("suppress", {}),
    ],
)
def test_whoever_changes_an_archived_memory_is_told_so(
    world: World, crowd: dict[str, str], tool: str, arguments: dict[str, Any]
) -> None:
    gc(world, dry_run=False)
    answer = world.call(tool, id=crowd["faded"], **arguments)
    assert f"archive undo {crowd['faded']}" in answer["message"]
    assert crowd["faded"] not in living(world)


def test_runs_speak_of_one_memory_and_of_none_as_people_do(world: World) -> None:
    for number in range(4):
        world.remember(f"Note {number}.", force_create=True)
    assert "there is nothing to archive" in gc(world)["message"]
    memory_id = world.remember("The faded one.")
    fade(world, memory_id)
    world.clock.advance(days=35)

    shown, done = gc(world), gc(world, dry_run=False)

    assert "`dry_run: false`" in shown["message"]
    assert "restores it" in done["message"]


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
    elsewhere = Call(engine=world.app.engine, access=Access(scopes=("/nowhere",)), scope="/nowhere")
    assert [worth_archiving(one) for one in (here, elsewhere)] == [True, False]
    run = archive.archive(here, archive.GcQuery(scope="/elsewhere", even_most=True))
    assert run.taken == (crowd["there"],)
    assert worth_archiving(here) is False
    assert archive.archives(here, "/", limit=9)[0].id == run.archive_id


def test_what_was_shown_lately_does_not_hide_that_something_else_has_faded(world: World) -> None:
    store, ids = world.app.engine.store, list[str]()
    for at in range(archive.FEW + 1):
        ids.append(world.remember(f"Note {at} of the log.", force_create=True))

    def remark(names: list[str], evidence: Evidence) -> None:
        now = world.clock.now
        store.commit(
            [RecordEvidence(memory_id=one, evidence=evidence, at=now) for one in names], access=EVERYTHING
        )

    def needs_gc() -> bool:
        return bool(world.call("session_context")["automationTriggers"]["needsGc"])

    last = world.remember("The last one.", force_create=True)
    remark([*ids, last] * 4, Evidence.DEMOTED)
    for _ in range(30):  # the last one to be due
        world.clock.advance(days=3)
        remark([last], Evidence.EXPOSED)
    world.clock.advance(days=31)
    remark(ids, Evidence.EXPOSED)
    assert needs_gc() is True
    remark([last], Evidence.EXPOSED)
    assert needs_gc() is False


def test_the_archive_is_exported_and_rebuilt_with_the_rest(world: World, crowd: dict[str, str]) -> None:
    gc(world, dry_run=False)
    store = world.app.engine.store
    assert store.count(Filter(archived=True), access=EVERYTHING) == 4
    assert store.rebuild_words() == 10
    status = world.call("system_status")
    assert (status["totalMemories"], status["archived"]) == (6, 4)
    assert world.call("export")["memoriesExported"] == 10
