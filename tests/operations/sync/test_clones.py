"""`sync` of stores that share a node id, because a machine, volume or image was cloned: the file of each has
the name of the other's."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from testbed.fresh_databases import FreshDatabases
from testbed.world import World, on_postgres, open_world
from tests.operations.sync.test_sync import Machine, sync, whole
from tests.store.support.postgres_stores import query
from vestige.app.app import machine
from vestige.core.clock import LAST_READING
from vestige.core.models import EVERYTHING
from vestige.engine.exchange.sync import SUFFIX
from vestige.operations.care.sync import ForkView, SyncedView, render_synced
from vestige.operations.registry.groups import registry
from vestige.operations.shared.text import unmarked
from vestige.store.sqlite.file.identity import installed_at


class Clones:
    """Worlds on SQLite files that are clones of each other."""

    def __init__(self, root: Path, running: ExitStack) -> None:
        self._root, self._running, self._number = root, running, 0

    def new(self) -> World:
        self._number += 1
        return self._open(self._root / f"machine{self._number}")

    def of(self, world: World) -> World:
        """A clone of a world that is at work, as a snapshot of its disk would be."""
        source = Path(str(world.app.engine.settings.data_dir))
        self._number += 1
        target = self._root / f"machine{self._number}"
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("processes"))
        with closing(sqlite3.connect(target / "vestige.db", isolation_level=None)) as db:
            fingerprint = installed_at(target / "vestige.db", machine())  # on a clone it is the same one
            db.execute("UPDATE installation SET fingerprint = ?", (fingerprint,))
        clone = self._open(target)
        assert clone.app.engine.store.node == world.app.engine.store.node
        return clone

    def _open(self, folder: Path) -> World:
        world = self._running.enter_context(open_world(folder, clock=Machine(self._number), provider="off"))
        world.clock.advance(hours=self._number)  # of machines that were started at other times
        return world


@pytest.fixture
def clones(tmp_path: Path) -> Iterator[Clones]:
    with ExitStack() as running:
        yield Clones(tmp_path, running)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shared"


def contents(world: World) -> list[str]:
    records = world.app.engine.store.stream(access=EVERYTHING)
    return sorted(record.memory.content for batch in records for record in batch)


def assert_sound(*worlds: World) -> None:
    """They know the same, each event once, have ids of their own, and the doctor finds nothing."""
    for world in worlds:
        assert whole(world) == whole(worlds[0])
        assert doctor(world) == []
    assert len({world.app.engine.store.node for world in worlds}) == len(worlds)


def doctor(world: World, *, repair: bool = False) -> list[dict[str, Any]]:
    report = world.app.run(registry.operations["doctor"], {"repair": repair}, lambda *_: None).wire()
    return [one for one in report["findings"] if one["check"] not in ("backup", "model", "disk")]


def round_of(worlds: list[World], folder: Path) -> list[dict[str, Any]]:
    return [sync(world, folder) for world in (*worlds, *worlds)]


def test_clones_that_sync_have_all_that_both_wrote_and_say_what_happened(
    clones: Clones, folder: Path
) -> None:
    original = clones.new()
    original.remember("The staging server listens on port 8443.")
    sync(original, folder)
    clone = clones.of(original)
    shared = original.app.engine.store.node
    original.remember("Ada reviews every change to the parser.")
    clone.remember("Bruno keeps the keys of the archive.")

    assert sync(clone, folder)["forks"] == []  # nobody else has written since the clone was made
    done = sync(original, folder)
    assert done["forks"] == [{"node": shared, "successor": original.app.engine.store.node}]
    assert [(met["file"], met["added"]) for met in done["met"]] == [(f"{shared}{SUFFIX}", 1)]
    round_of([original, clone], folder)
    assert (
        contents(original)
        == contents(clone)
        == sorted(
            [
                "The staging server listens on port 8443.",
                "Ada reviews every change to the parser.",
                "Bruno keeps the keys of the archive.",
            ]
        )
    )
    assert_sound(original, clone)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        f"{world.app.engine.store.node}{SUFFIX}" for world in (original, clone)
    )


def test_clones_whose_clocks_were_repaired_give_others_what_they_know(clones: Clones, folder: Path) -> None:
    original = clones.new()
    original.remember("The staging server listens on port 8443.")
    sync(original, folder)
    clone = clones.of(original)
    original.remember("Ada reviews every change to the parser.")
    clone.remember("Bruno keeps the keys of the archive.")
    round_of([original, clone], folder)
    with closing(sqlite3.connect(Path(str(clone.app.engine.settings.data_dir)) / "vestige.db")) as db, db:
        db.execute("UPDATE events SET clock = ? + position WHERE node LIKE '%~%'", (LAST_READING - 500,))
    assert "clock" in [one["check"] for one in doctor(clone, repair=True)]

    assert doctor(clone) == []
    third = clones.new()
    sync(clone, folder)
    assert "unusable" not in [met["state"] for met in sync(third, folder)["met"]]
    assert contents(third) == contents(clone)


def test_the_report_names_the_clone_and_the_new_id() -> None:
    done = SyncedView(
        folder="/shared",
        file="two.vestige.jsonl.gz",
        met=[],
        memories=1,
        written=True,
        removed=[],
        embedded=0,
        forks=[ForkView(node="one", successor="two"), ForkView(node="three")],
    )
    own, other = [line for line in unmarked(render_synced(done)).splitlines() if line.startswith("!")]
    assert "the id of this one, one" in own
    assert own.endswith("this store is now two.")
    assert "under the id three" in other


def test_three_clones_that_sync_in_any_order_have_all(clones: Clones, folder: Path) -> None:
    first = clones.new()
    first.remember("The staging server listens on port 8443.")
    second = clones.of(first)
    sync(first, folder)
    third = clones.of(first)
    worlds = [first, second, third]
    for number, world in enumerate(worlds):
        for turn in range(number + 1):
            world.remember(f"Note {turn} of machine {number} about the winter harvest of wheat.")
    round_of([third, first, second], folder)
    round_of(worlds, folder)
    assert len(contents(first)) == 1 + 1 + 2 + 3
    assert_sound(*worlds)


def test_a_clone_that_was_made_in_the_middle_of_a_sync_has_all(
    clones: Clones, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, other = clones.new(), clones.new()
    other.remember("Bruno keeps the keys of the archive.")
    sync(other, folder)
    original.remember("The staging server listens on port 8443.")
    made: list[World] = []

    def stop_half_way(done: float, total: float | None, message: str | None = None) -> None:
        if message == "our own memories" and not made:  # the file of the other is merged, ours not written
            made.append(clones.of(original))

    original.app.run(registry.operations["sync"], {"folder": str(folder)}, stop_half_way)
    (clone,) = made
    original.remember("Ada reviews every change to the parser.")
    clone.remember("Lunch is at noon.")
    worlds = [original, clone, other]
    round_of(worlds, folder)
    sync(original, folder)
    assert len(contents(original)) == 4
    assert_sound(*worlds)


def test_an_edit_in_the_original_and_a_purge_in_the_clone_are_merged_like_those_of_any_two_stores(
    clones: Clones, folder: Path
) -> None:
    original = clones.new()
    purged = original.remember("Bruno's number is in the blue notebook.")
    kept = original.remember("The deploy script is deploy.sh.")
    sync(original, folder)
    clone = clones.of(original)
    original.call("memory", action="edit", id=purged, content="Bruno's number is in the red notebook.")
    original.call("memory", action="edit", id=kept, content="The deploy script is release.sh.")
    clone.call("memory", action="purge", id=purged, confirm=True)
    clone.call("memory", action="tag", id=kept, add=["ops"])
    round_of([original, clone], folder)
    sync(original, folder)
    for world in (original, clone):
        assert contents(world) == ["The deploy script is release.sh."]
        assert world.get(kept)["tags"] == ["ops"]
    assert_sound(original, clone)


def test_an_export_of_a_clone_is_imported_with_a_note(clones: Clones, tmp_path: Path) -> None:
    original = clones.new()
    original.remember("The staging server listens on port 8443.")
    clone = clones.of(original)
    clone.remember("Bruno keeps the keys of the archive.")
    original.remember("Ada reviews every change to the parser.")
    file = tmp_path / "clone.jsonl"
    clone.app.run(registry.operations["export"], {"path": str(file), "format": "portable"}, lambda *_: None)
    done = original.app.run(registry.operations["import"], {"path": str(file)}, lambda *_: None).wire()
    assert original.app.engine.store.node in done["note"]
    assert len(contents(original)) == 3
    assert doctor(original) == []


@pytest.mark.slow  # starts a server
def test_clones_of_a_postgres_database_have_all_that_both_wrote(
    postgres_databases: FreshDatabases, folder: Path, tmp_path: Path
) -> None:
    urls = [postgres_databases.take() for _ in range(2)]
    with ExitStack() as running:
        for url in urls:
            running.callback(postgres_databases.give_back, url)

        def at(number: int) -> World:
            return running.enter_context(
                open_world(
                    tmp_path / str(number), clock=Machine(number), provider="off", **on_postgres(urls[number])
                )
            )

        original = at(0)
        original.remember("The staging server listens on port 8443.")
        sync(original, folder)
        clone = at(1)
        sync(clone, folder)
        shared = original.app.engine.store.node
        query(urls[1], f"UPDATE public.installation SET node = '{shared}'")  # as a copy of the files has it
        clone.app.close()
        clone = at(1)
        original.remember("Ada reviews every change to the parser.")
        clone.remember("Bruno keeps the keys of the archive.")
        round_of([original, clone], folder)
        sync(original, folder)
        assert len(contents(original)) == 3
        assert_sound(original, clone)
