"""A process that is killed at any point leaves a store that opens, is whole, and is as before or as after."""

import os
import shutil
from pathlib import Path

import pytest

from testbed.world import World
from tests.store.sqlite.test_migrations import old_store
from tests.store.support.canonical import Rows, assert_whole, canonical
from tests.store.support.sqlite_files import query
from tests.system.faults.harness import Killer
from tests.system.faults.scenarios import (
    LAST,
    OTHER_MODEL,
    SECOND,
    SECRET,
    acknowledged,
    events_of,
    everything_in,
    reopened,
)
from vestige.core.documents import LOCAL
from vestige.core.models import EVERYTHING
from vestige.embed.hashing import HashingEmbedder
from vestige.embed.protocol import Signature
from vestige.engine.care.doctor import doctor
from vestige.engine.context import Call
from vestige.store.contract.answers import ProfileState

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="scenarios run in forked processes"),
]


IN_USE, FORMER = ProfileState.IN_USE, ProfileState.FORMER


def database(folder: Path) -> Path:
    return folder / "data" / "vestige.db"


def sound(folder: Path) -> Rows:
    """Open the store as the next process does; what is in it, which must be whole."""
    with reopened(folder, LAST) as world:
        found = [one.trouble for one in doctor(Call(engine=world.app.engine), deep=True).findings]
        assert [one for one in found if one.severity == "broken"] == []
        held = _shared(canonical(database(folder)))
    assert_whole(database(folder))
    return held


def _shared(rows: Rows) -> Rows:
    """Without the notes that an installation keeps for itself: who is at work, when it was backed up."""
    columns, documents = rows["documents"]
    kind = columns.index("kind")
    return {**rows, "documents": (columns, [row for row in documents if row[kind] not in LOCAL | {"backup"}])}


def before_and_after(killer: Killer, scenario: str, folder: Path, scratch: Path) -> tuple[Rows, Rows]:
    """What is in the store when the scenario has not begun, and when it was not disturbed."""
    states = []
    for name, act in (("before", "opening"), ("after", scenario)):
        copied = scratch / name
        shutil.copytree(folder, copied)
        assert not killer.run(act, copied)
        states.append(sound(copied))
    return states[0], states[1]


def one_or_the_other(killer: Killer, scenario: str, folder: Path, scratch: Path) -> list[bool]:
    """Kill a scenario everywhere; for each run whether it was done. At first none is, in the end all are."""
    before, after = before_and_after(killer, scenario, folder, scratch)
    assert before != after
    done = []
    for left in killer.everywhere(scenario, folder, scratch):
        state = sound(left)
        assert state in (before, after), left.name
        done.append(state == after)
    assert done == sorted(done)
    assert (done[0], done[-1]) == (False, True)
    return done


@pytest.mark.parametrize("name", ["schema1", "schema2", "schema5"])
def test_a_killed_upgrade_is_finished_by_the_next_opening(killer: Killer, tmp_path: Path, name: str) -> None:
    start = tmp_path / "start"
    (start / "data").mkdir(parents=True)
    before = canonical(old_store(start / "data", name))
    for left in killer.everywhere("opening", start, tmp_path):
        sound(left)
        assert canonical(database(left), like=before) == before
        for kept in (left / "data" / "backups").glob("*.db"):
            assert query(kept, "PRAGMA integrity_check") == [("ok",)]
            assert query(kept, "SELECT count(*) FROM events") == [(len(before["events"][1]),)]


def test_no_acknowledged_write_is_lost(killer: Killer, lived: Path, tmp_path: Path) -> None:
    seen = set()
    for left in killer.everywhere("writing", lived, tmp_path):
        sound(left)
        held = {str(row[0]): str(row[1]) for row in query(database(left), "SELECT id, content FROM memories")}
        told = acknowledged(left)
        seen.add(len(told))
        for memory_id, content in told.items():
            assert held[memory_id].startswith(content)
    assert seen == {0, 1, 2, 3}


def test_wherever_it_is_killed_no_number_of_an_event_is_given_twice(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(lived / "data", start / "data")
    put_back = 0
    for left in killer.everywhere("putting_back", start, tmp_path):
        settled = query(database(left), "SELECT node FROM installation")
        with reopened(left, LAST + 1) as world:
            node = world.app.engine.store.node
            world.remember("The next one was here.", force_create=True)
            here = events_of(world)
        with reopened(left, LAST + 2) as world:
            assert world.app.engine.store.node == node
        told = (
            (left / "events").read_text(encoding="utf-8").splitlines() if (left / "events").exists() else []
        )
        ever = here.union(*(line.split() for line in told))
        assert len({event.rsplit(":", 1)[0] for event in ever}) == len(ever)
        put_back += len(ever) > len(here)
        if len(told) == 1:
            assert [(node,)] == settled, "it is the same installation"
    assert put_back


def test_a_killed_deletion_has_happened_or_not_and_if_it_has_nothing_is_left(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    shutil.copytree(lived / "data", start / "data")
    before, after = before_and_after(killer, "purging", start, tmp_path)
    for left in killer.everywhere("purging", start, tmp_path):
        state = sound(left)
        assert state in (before, after), left.name
        assert (SECRET.encode() in everything_in(left)) == (state == before)


@pytest.mark.parametrize("kind", ["database", "snapshot", "export"])
def test_a_killed_restore_has_put_the_copy_in_place_or_not(
    killer: Killer, lived: Path, tmp_path: Path, kind: str
) -> None:
    one_or_the_other(killer, f"restoring_{kind}", lived, tmp_path)


def test_a_killed_import_has_taken_some_and_is_completed_by_running_it_again(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    before, after = before_and_after(killer, "importing", lived, tmp_path)
    taken = []
    for left in killer.everywhere("importing", lived, tmp_path):
        state = sound(left)
        assert set(before["events"][1]) <= set(state["events"][1]) <= set(after["events"][1])
        taken.append(len(state["memories"][1]))
        assert not killer.run("importing", left)
        assert sound(left) == after
    assert taken == sorted(taken)
    assert len(set(taken)) > 2, "it went in by more than one batch"


def test_a_killed_backup_changes_nothing_and_leaves_no_half_copy(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    before, after = before_and_after(killer, "backing_up", lived, tmp_path)
    assert before == after
    copies = set()
    for left in killer.everywhere("backing_up", lived, tmp_path):
        assert sound(left) == before
        kept = list((left / "data" / "backups").glob("*.db"))
        copies.add(len(kept))
        for one in kept:
            assert query(one, "PRAGMA integrity_check") == [("ok",)]
            assert _shared(canonical(one)) == before
    assert copies == {0, 1}


def test_killed_while_vectors_are_put_into_files_every_search_is_right(
    killer: Killer, tmp_path: Path
) -> None:
    start = tmp_path / "start"
    with reopened(start, 0) as world:
        for number in range(48):
            world.remember(f"Shelf {number} holds stone number {number * 7}.", force_create=True)
    for left in killer.everywhere("publishing", start, tmp_path):
        with reopened(left, LAST) as world:
            assert world.app.engine.store.index_status().problems == {}
            for number in (0, 7, 30, 47):
                said = f"Shelf {number} holds stone number {number * 7}."
                assert world.find(said, limit=1)[0].removesuffix(" Moved.") == said
            world.app.engine.store.rebuild_index()
        sound(left)
        files = {path.name for path in (left / "data" / "vestige.db.index").glob("*")}
        assert files == {str(row[0]) for row in query(database(left), "SELECT file FROM segments")}


def test_killed_while_everything_is_embedded_anew_the_store_has_all_vectors_of_one_model(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    old, new = HashingEmbedder().signature, OTHER_MODEL.signature
    before, _ = before_and_after(killer, "embedding_anew", lived, tmp_path)
    models = []
    for left in killer.everywhere("embedding_anew", lived, tmp_path):
        assert sound(left) == before
        with reopened(left, LAST) as world:
            store = world.app.engine.store
            signature = store.signature()
            assert signature in (old, new)
            assert store.unembedded(signature, limit=99) == []
            models.append(signature == new)
            if signature == old:
                assert world.call("search", query="where is the cobalt paint")["method"] == "hybrid"
        assert not killer.run("embedding_anew", left), "it goes on where it was"
        with reopened(left, LAST) as world:
            assert models_of(world) == [(new, IN_USE, 0), (old, FORMER, 0)]
        for table in ("vectors", "token_bits"):
            assert query(database(left), f"SELECT count(DISTINCT profile) FROM {table}") == [(2,)]
    assert models == sorted(models)
    assert set(models) == {False, True}


@pytest.fixture
def gone_over(killer: Killer, lived: Path, tmp_path: Path) -> Path:
    """A store that has gone over to another model, and a memory from after that."""
    folder = tmp_path / "gone-over"
    shutil.copytree(lived, folder)
    assert not killer.run("embedding_anew", folder)
    with reopened(folder, SECOND) as world:
        world.remember("Written after the change of model.", force_create=True)
    return folder


def models_of(world: World) -> list[tuple[Signature, ProfileState, int]]:
    """The signatures of a store's vectors, with how many memories lack them."""
    store = world.app.engine.store
    return [
        (one.signature, one.state, len(store.unembedded(one.signature, limit=99))) for one in store.profiles()
    ]


def test_killed_on_the_way_back_to_the_model_before_the_store_has_one_of_the_two(
    killer: Killer, gone_over: Path, tmp_path: Path
) -> None:
    old, new = HashingEmbedder().signature, OTHER_MODEL.signature
    before, _ = before_and_after(killer, "rolling_back", gone_over, tmp_path)
    seen = []
    for left in killer.everywhere("rolling_back", gone_over, tmp_path):
        assert sound(left) == before
        with reopened(left, LAST) as world:
            seen.append(models_of(world))
        assert not killer.run("rolling_back" if seen[-1][0][0] == new else "opening", left)
        with reopened(left, LAST) as world:
            assert models_of(world) == [(old, IN_USE, 0), (new, FORMER, 1)]
            assert world.call("search", query="where is the cobalt paint")["method"] == "hybrid"
    assert [one for at, one in enumerate(seen) if one not in seen[:at]] == [
        [(new, IN_USE, 1), (old, FORMER, 1)],
        [(new, IN_USE, 1), (old, FORMER, 0)],
        [(old, IN_USE, 0), (new, FORMER, 1)],
    ]


def test_killed_while_the_vectors_of_the_model_before_are_removed_the_next_run_removes_the_rest(
    killer: Killer, gone_over: Path, tmp_path: Path
) -> None:
    new = OTHER_MODEL.signature
    before, _ = before_and_after(killer, "dropping_former", gone_over, tmp_path)
    lacking = []
    for left in killer.everywhere("dropping_former", gone_over, tmp_path):
        assert sound(left) == before
        with reopened(left, LAST) as world:
            in_use, *rest = models_of(world)
            assert in_use == (new, IN_USE, 1)
            lacking += [missing for _, _, missing in rest]
        assert not killer.run("dropping_former", left)
        with reopened(left, LAST) as world:
            assert models_of(world) == [(new, IN_USE, 1)]
        for table in ("vectors", "token_bits"):
            assert query(database(left), f"SELECT count(DISTINCT profile) FROM {table}") == [(1,)]
    assert lacking == sorted(lacking)
    assert len(set(lacking)) > 2, "they go some at a time"


def test_a_killed_sleep_loses_nothing_and_the_next_one_goes_on(
    killer: Killer, lived: Path, tmp_path: Path
) -> None:
    before, _ = before_and_after(killer, "consolidating", lived, tmp_path)
    for left in killer.everywhere("consolidating", lived, tmp_path):
        state = sound(left)
        assert set(state["events"][1]) >= set(before["events"][1])
        assert [row[0] for row in state["memories"][1]] == [row[0] for row in before["memories"][1]]
        assert not killer.run("consolidating_later", left)
        sound(left)
        with reopened(left, LAST) as world:
            assert world.app.engine.store.stats(access=EVERYTHING, now=world.clock.now).memories
