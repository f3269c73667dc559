"""A process that is killed in a change of several steps leaves a store that is whole, loses no text, and can
be asked to go on."""

import os
import shutil
from pathlib import Path

import pytest

from testbed.world import World
from tests.engine.recall.sessions.transcripts import plant, world_at_home
from tests.system.faults.harness import Killer
from tests.system.faults.scenarios import LAST, SCOPE, SECOND, local, project, reopened, run
from tests.system.faults.test_kills import one_or_the_other, sound
from tests.transports.parity.domain_examples import domain_examples
from vestige.core.documents import PENDING
from vestige.core.models import EVERYTHING, Filter
from vestige.engine.domains.catalogue import documents_of
from vestige.engine.memory import bulk
from vestige.engine.project.memory.snapshot import make_snapshot

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="scenarios run in forked processes"),
]


def tagged(world: World) -> set[str]:
    found = world.app.engine.store.find(Filter(tags_any=("many",)), access=EVERYTHING, limit=99)
    return {one.memory.id for one in found}


def texts(world: World, scope: str | None = None) -> set[str]:
    found = world.app.engine.store.find(Filter(scope=scope), access=EVERYTHING, limit=99)
    return {one.memory.content for one in found}


def test_a_killed_bulk_change_can_be_completed_and_undone(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    with reopened(lived, LAST) as world:
        living = world.app.engine.store.find(Filter(), access=EVERYTHING, limit=99)
        every = {one.memory.id for one in living}
    numbers = []
    for left in killer.everywhere("changing_many", lived, tmp_path):
        sound(left)
        with reopened(left, SECOND) as world:
            runs = bulk.runs(local(world), limit=9)
            listed = [name for one in runs for part in bulk.portions_of(local(world), one)
                      for name in part.body["memories"]]  # fmt: skip
            assert sorted(listed) == sorted(tagged(world))
            numbers.append(len(listed))
        assert not killer.run("changing_many", left)
        with reopened(left, SECOND) as world:
            assert tagged(world) == every
        assert not killer.run("changing_back", left)
        with reopened(left, LAST) as world:
            assert tagged(world) == set()
        sound(left)
    assert numbers == sorted(numbers)
    assert len(set(numbers)) > 2, "it runs in portions"


def test_a_killed_undo_of_a_bulk_change_goes_on(killer: Killer, lived: Path, tmp_path: Path) -> None:
    start = tmp_path / "start"
    shutil.copytree(lived, start)
    assert not killer.run("changing_many", start)
    numbers = []
    for left in killer.everywhere("changing_back", start, tmp_path):
        sound(left)
        with reopened(left, LAST) as world:
            numbers.append(len(tagged(world)))
        assert not killer.run("changing_back", left)
        with reopened(left, LAST) as world:
            assert tagged(world) == set()
    assert numbers == sorted(numbers, reverse=True)


def test_a_killed_quarantine_has_every_text_at_least_once_and_the_next_one_ends_it(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    with reopened(lived, LAST) as world:
        before = texts(world)
    for left in killer.everywhere("quarantining", lived, tmp_path):
        sound(left)
        with reopened(left, LAST) as world:
            held = {str(one.body["content"]) for one in documents_of(world.app.engine.store, PENDING)}
            assert before <= held | texts(world)


def test_a_killed_merge_of_domains_has_happened_or_not(killer: Killer, lived: Path, tmp_path: Path) -> None:
    start = tmp_path / "start"
    shutil.copytree(lived, start)
    with reopened(start, LAST) as world:
        world.app.engine.store.commit(domain_examples(world.clock.now), access=EVERYTHING)
    one_or_the_other(killer, "accepting", start, tmp_path)


def test_a_killed_restore_of_a_project_loses_nothing_and_is_completed_by_the_next(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(lived, start)
    with reopened(start, LAST + 1, day=0) as world:
        ids = [world.remember(f"Fact {number} of the harbour.", scope=SCOPE) for number in range(6)]
        made, _ = make_snapshot(local(world), project(start))
        shutil.move(made, start / "project.jsonl")
        wanted = texts(world, SCOPE)
        for name in ids[:2]:
            world.call("memory", action="edit", id=name, content=f"Changed {name}.")
        world.call("memory", action="delete", id=ids[3])
        world.remember("Newer than the snapshot.", scope=SCOPE)
        changed = texts(world, SCOPE)
    seen = set()
    for left in killer.everywhere("restoring_project", start, tmp_path):
        sound(left)
        with reopened(left, LAST) as world:
            now = texts(world, SCOPE)
            assert now in (changed, wanted)
            seen.add(now == wanted)
        assert not killer.run("restoring_project", left)
        with reopened(left, LAST) as world:
            assert texts(world, SCOPE) == wanted
        sound(left)
    assert seen == {False, True}


def test_a_killed_run_over_sessions_reads_no_entry_twice_and_leaves_no_half_copy(
    killer: Killer, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    start.mkdir()
    with world_at_home(start):
        plant(start / "home")
    for left in killer.everywhere("reading_sessions", start, tmp_path):
        home = left / "home"
        assert home.exists()
        assert not killer.run("reading_sessions", left)
        with world_at_home(left) as world:
            listed = run(world, "sessions.list")["sessions"]
            assert sorted(one["entries"] for one in listed) == [2, 5]
            checked = run(world, "sessions.doctor", check=True)
            assert (checked["damaged"], checked["copies"], checked["unindexed"]) == ([], 2, 0)
        assert list((left / "data").rglob("*.part")) == []
