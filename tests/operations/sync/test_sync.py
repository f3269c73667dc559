"""`sync`: installations that meet in a folder end up knowing the same, whatever each of them did before."""

import gzip
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from testbed.world import HandClock, World, open_world
from vestige.core.errors import InvalidInput, VestigeError
from vestige.core.models import EVERYTHING
from vestige.operations.registry.groups import registry
from vestige.store.merge.histories import EntityHistory

KEY = "ghp_" + "a8Kx93mPq0ZvT2rYw7LdNc51sBfUeJhGi4Xo"  # made up


class Machine(HandClock):
    """A machine's own clock and ids."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._prefix = f"0189{number:04x}"

    def new_id(self) -> str:
        return self._prefix + super().new_id()[8:]


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[World, World]]:
    with ExitStack() as running:
        laptop, desktop = (
            running.enter_context(open_world(tmp_path / name, clock=Machine(number)))
            for number, name in enumerate(("laptop", "desktop"), 1)
        )
        yield laptop, desktop


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "shared"


def sync(world: World, folder: Path) -> dict[str, Any]:
    """Meet the others, as the local user does it."""
    world.clock.advance(hours=1)
    return world.app.run(registry.operations["sync"], {"folder": str(folder)}, lambda *_: None).wire()


def whole(world: World) -> list[EntityHistory]:
    """Everything canonical that the store tells."""
    return [life for batch in world.app.engine.store.histories(access=EVERYTHING) for life in batch]


def round_of(machines: tuple[World, World], folder: Path) -> None:
    for world in (*machines, machines[0]):
        sync(world, folder)


def test_two_machines_know_the_same_after_meeting_in_a_folder(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    laptop.remember("The staging server listens on port 8443.")
    desktop.remember("Ada reviews every change to the parser.")

    first = sync(laptop, folder)
    assert (first["met"], first["written"], first["memories"]) == ([], True, 1)
    (met,) = sync(desktop, folder)["met"]
    assert (met["state"], met["added"]) == ("new", 1)
    (met,) = sync(laptop, folder)["met"]
    assert (met["state"], met["added"]) == ("new", 1)

    assert whole(laptop) == whole(desktop)
    assert laptop.find("who reviews the parser?")[0] == "Ada reviews every change to the parser."
    assert desktop.find("staging server port")[0] == "The staging server listens on port 8443."


def test_meeting_again_without_news_changes_nothing(machines: tuple[World, World], folder: Path) -> None:
    machines[0].remember("The staging server listens on port 8443.")
    round_of(machines, folder)
    files = {path.name: path.read_bytes() for path in folder.iterdir()}

    for world in machines:
        done = sync(world, folder)
        assert [met["state"] for met in done["met"]] == ["known"]
        assert not done["written"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == files


def test_edits_of_different_fields_both_hold_and_of_the_same_the_later(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    memory_id = laptop.remember("The deploy script is deploy.sh.", tags=["ops"])
    round_of(machines, folder)

    laptop.call("memory", action="edit", id=memory_id, content="The deploy script is release.sh.")
    desktop.clock.advance(hours=2)
    desktop.call("memory", action="tag", id=memory_id, add=["scripts"])
    round_of(machines, folder)
    for world in machines:
        node = world.get(memory_id)
        assert node["content"] == "The deploy script is release.sh."
        assert sorted(node["tags"]) == ["ops", "scripts"]

    desktop.call("memory", action="edit", id=memory_id, content="The deploy script is ship.sh.")
    laptop.clock.advance(days=1)
    laptop.call("memory", action="edit", id=memory_id, content="The deploy script is launch.sh.")
    round_of(machines, folder)
    for world in machines:
        assert world.get(memory_id)["content"] == "The deploy script is launch.sh."
        history = world.call("memory", action="history", id=memory_id)["revisions"]
        assert "The deploy script is ship.sh." in [revision["content"] for revision in history]
    assert whole(laptop) == whole(desktop)


def test_a_memory_that_one_machine_moved_is_there_on_the_other(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    memory_id = laptop.remember("The deploy script is deploy.sh.", scope="/project/a")
    round_of(machines, folder)
    laptop.clock.advance(hours=1)
    laptop.call("memory", action="move", id=memory_id, to="/project/b")
    round_of(machines, folder)
    assert desktop.get(memory_id)["scope"] == "/project/b"
    assert desktop.call("memory", action="list", scope="/project/a")["total"] == 0
    assert whole(laptop) == whole(desktop)


def test_what_one_machine_purges_is_gone_on_the_other_and_from_its_file(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    memory_id = laptop.remember("Bruno's number is in the blue notebook.")
    round_of(machines, folder)
    desktop.clock.advance(days=1)
    desktop.call("memory", action="edit", id=memory_id, content="Bruno's number is in the red notebook.")
    laptop.call("memory", action="purge", id=memory_id, confirm=True)
    round_of(machines, folder)

    for world in machines:
        assert world.refused("memory", action="get", id=memory_id)["code"] == "not_found"
        assert world.find("Bruno's notebook") == []
    for path in folder.glob("*.gz"):
        assert b"notebook" not in gzip.decompress(path.read_bytes())


def test_reviews_on_both_machines_all_count_once(machines: tuple[World, World], folder: Path) -> None:
    laptop, desktop = machines
    memory_id = laptop.remember("The certificate is renewed by cron.")
    round_of(machines, folder)
    for days, world in ((2, laptop), (2.5, desktop)):
        world.clock.advance(days=days)
        world.call("memory", action="promote", id=memory_id)
    round_of(machines, folder)
    round_of(machines, folder)

    states = [
        world.app.engine.store.get_many([memory_id], access=EVERYTHING)[0].strength for world in machines
    ]
    assert states[0] == states[1]
    assert states[0].reps == 2
    for world in machines:
        rebuilt = world.app.run(registry.operations["rebuild"], {"strengths": True}, lambda *_: None).wire()
        assert rebuilt["drifted"] == 0


def test_a_file_that_is_not_whole_is_named_and_taken_the_next_time(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    laptop.remember("The staging server listens on port 8443.")
    sync(laptop, folder)
    (path,) = folder.glob("*.gz")
    complete = path.read_bytes()

    path.write_bytes(complete[: len(complete) // 2])
    (met,) = sync(desktop, folder)["met"]
    assert met["state"] == "unusable"
    assert met["reason"]
    assert desktop.find("staging server") == []

    path.write_bytes(complete)
    (met,) = sync(desktop, folder)["met"]
    assert (met["state"], met["added"]) == ("new", 1)


def test_an_unusable_file_of_our_own_name_is_named_and_written_anew(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, _ = machines
    laptop.remember("The staging server listens on port 8443.")
    assert sync(laptop, folder)["met"] == []
    (path,) = folder.glob("*.gz")
    complete = path.read_bytes()

    path.write_bytes(complete[: len(complete) // 2])
    (met,) = sync(laptop, folder)["met"]
    assert (met["file"], met["state"], bool(met["reason"])) == (path.name, "unusable", True)
    assert path.read_bytes() == complete
    assert sync(laptop, folder)["met"] == []


def test_what_was_met_survives_a_restart(machines: tuple[World, World], folder: Path, tmp_path: Path) -> None:
    laptop, desktop = machines
    laptop.remember("The staging server listens on port 8443.")
    sync(laptop, folder)
    sync(desktop, folder)
    desktop.app.close()
    with open_world(tmp_path / "desktop", clock=desktop.clock) as again:
        assert [met["state"] for met in sync(again, folder)["met"]] == ["known"]
        assert again.find("staging server port") == ["The staging server listens on port 8443."]


def test_a_folder_that_cannot_be_used_is_a_clear_error(machines: tuple[World, World], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder", encoding="utf-8")
    for place, said in (("file", "is not a folder"), ("no/such/folder", "There is no folder")):
        with pytest.raises(InvalidInput, match=said) as caught:
            sync(machines[0], tmp_path / place)
        assert caught.value.hint


def test_only_one_process_syncs_at_a_time(machines: tuple[World, World], folder: Path) -> None:
    with machines[0].app.engine.store.alone("sync"), pytest.raises(VestigeError, match="sync"):
        sync(machines[0], folder)


def test_a_file_that_cannot_be_read_is_named_and_the_others_are_met(
    machines: tuple[World, World], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laptop, desktop = machines
    laptop.remember("The staging server listens on port 8443.")
    sync(laptop, folder)
    shut = folder / "0-shut.vestige.jsonl.gz"
    shut.write_bytes(b"whatever")
    opened = Path.open

    def refusing(path: Path, mode: str = "r") -> BinaryIO:
        if path == shut:
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, "rb")

    with monkeypatch.context() as patched:  # a mode of the file would not keep root out
        patched.setattr(Path, "open", refusing)
        met = {one["file"]: one for one in sync(desktop, folder)["met"]}

    assert met[shut.name]["state"] == "unusable"
    assert "Permission denied" in met[shut.name]["reason"]
    assert [one["added"] for one in met.values()] == [0, 1]


def test_a_file_whose_name_is_not_text_is_named_and_the_others_are_met(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    laptop.remember("The staging server listens on port 8443.")
    sync(laptop, folder)
    try:
        (folder / os.fsdecode(b"0-\xff.vestige.jsonl.gz")).write_bytes(b"whatever")
    except OSError:
        pytest.skip("this file system takes only names that are text")

    met = sync(desktop, folder)["met"]

    assert [(one["state"], one["added"]) for one in met] == [("unusable", 0), ("new", 1)]


def restored(data_dir: Path, copy: Path) -> None:
    """Put an earlier copy of the database in its place, as `restore` does."""
    for path in data_dir.glob("vestige.db*"):
        if path.is_file():
            path.unlink()
    shutil.copy(copy, data_dir / "vestige.db")


def texts(folder: Path) -> bytes:
    return b"".join(gzip.decompress(path.read_bytes()) for path in folder.glob("*.gz"))


def test_what_is_purged_after_a_restore_is_in_no_file_of_ours(tmp_path: Path, folder: Path) -> None:
    data, clock = tmp_path / "data", Machine(1)
    with open_world(data, clock=clock) as world:
        memory_id = world.remember("Bruno's number is in the blue notebook.")
        sync(world, folder)
        former = world.app.engine.store.node
        world.app.engine.store.backup(tmp_path / "copy.db")
        world.remember("The parser was rewritten in May.")
        sync(world, folder)
    restored(data, tmp_path / "copy.db")

    with open_world(data, clock=clock) as world:
        assert world.app.engine.store.node != former
        world.call("memory", action="purge", id=memory_id, confirm=True)
        done = sync(world, folder)

        assert done["removed"] == [f"{former}.vestige.jsonl.gz"]
        assert [path.name for path in folder.glob("*.gz")] == [done["file"]]
        assert b"notebook" not in texts(folder)
        assert b"rewritten in May" in texts(folder), "what only the old file held has come in"
        assert sync(world, folder)["removed"] == []


def test_a_former_file_of_ours_that_is_not_whole_stays(tmp_path: Path, folder: Path) -> None:
    data, clock = tmp_path / "data", Machine(1)
    with open_world(data, clock=clock) as world:
        world.remember("Ada prefers tea.")
        sync(world, folder)
        world.app.engine.store.backup(tmp_path / "copy.db")
    (former,) = folder.glob("*.gz")
    former.write_bytes(former.read_bytes()[:100])
    restored(data, tmp_path / "copy.db")

    with open_world(data, clock=clock) as world:
        assert sync(world, folder)["removed"] == []
        assert former.exists()


def test_a_copy_of_a_store_leaves_the_file_of_one_that_still_lives_alone(
    machines: tuple[World, World], folder: Path, tmp_path: Path
) -> None:
    laptop, _ = machines
    laptop.remember("Ada prefers tea.")
    own = folder / sync(laptop, folder)["file"]
    laptop.app.engine.store.backup(tmp_path / "copy.db")
    (tmp_path / "copy").mkdir()
    shutil.copy(tmp_path / "copy.db", tmp_path / "copy" / "vestige.db")

    with open_world(tmp_path / "copy", clock=Machine(3)) as copy:
        sync(copy, folder)
        sync(laptop, folder)
        assert own.exists()
        assert sync(copy, folder)["removed"] == [], "it came back, so somebody writes it"
        assert own.exists()


def test_secrets_that_others_left_are_named_without_their_text(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    held = laptop.remember(f"The bot pushes with {KEY}.", secrets="allow")
    sync(laptop, folder)

    done = sync(desktop, folder)

    assert done["secrets"]["records"] == 1
    assert done["secrets"]["first"] == [{"entity": "memory", "id": held, "secrets": ["GitHub token"]}]
    assert KEY not in str(done)
    assert "secrets" not in sync(desktop, folder)


def test_the_peers_of_a_store_are_listed_with_the_last_sync(
    machines: tuple[World, World], folder: Path
) -> None:
    laptop, desktop = machines
    assert laptop.call("installation", action="peers") == {"action": "peers", "total": 0, "peers": []}
    laptop.remember("The ferry leaves at nine.")
    round_of(machines, folder)
    heard = laptop.clock.now

    listed = laptop.call("installation", action="peers")

    [peer] = listed["peers"]
    assert (peer["node"], listed["total"]) == (desktop.app.engine.store.node, 1)
    assert (listed["folder"], listed["at"]) == (str(folder), f"{heard:%Y-%m-%dT%H:%M:%SZ}")
    assert "refused" not in peer


def test_a_peer_whose_file_was_refused_says_why(machines: tuple[World, World], folder: Path) -> None:
    laptop, desktop = machines
    round_of(machines, folder)
    [theirs] = folder.glob(f"{desktop.app.engine.store.node}*")
    theirs.write_bytes(gzip.compress(b"no line of an export\n"))
    sync(laptop, folder)

    [peer] = laptop.call("installation", action="peers")["peers"]

    assert peer["node"] == desktop.app.engine.store.node
    assert peer["refused"]
