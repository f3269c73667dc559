"""Where a backup goes: an agent's beside the store, the user's wherever there is a folder."""

from pathlib import Path

import pytest

from testbed.world import open_world
from vestige.core.errors import InvalidInput
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

BACKUP = registry.operations["backup"]


def test_an_agents_backup_goes_beside_the_store_and_opens_again(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        world.remember("Ada prefers tea.")
        made = world.call("backup", path="before-the-move.db")
    kept = Path(made["path"])
    assert kept == tmp_path / "data" / "backups" / "before-the-move.db"
    (tmp_path / "copy").mkdir()
    kept.rename(tmp_path / "copy" / "vestige.db")
    with open_world(tmp_path / "copy") as copy:
        assert copy.find("tea") == ["Ada prefers tea."]


@pytest.mark.parametrize("path", ["../out.db", "/tmp/out.db", "a/b.db", "~/out.db", "..", "a\0b", "a\ud800"])
def test_a_backup_elsewhere_is_refused_and_nothing_is_written(tmp_path: Path, path: str) -> None:
    with open_world(tmp_path / "data") as world:
        before = sorted(tmp_path.rglob("*.db"))
        error = world.refused("backup", path=path)
        assert error["code"] == "invalid_input"
        assert "before.db" in error["hint"]
        assert sorted(tmp_path.rglob("*.db")) == before


def test_backups_of_the_same_second_get_a_number(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        names = [Path(world.call("backup")["path"]).name for _ in range(3)]

    assert names == [
        "vestige-20260301-090000.db",
        "vestige-20260301-090000-2.db",
        "vestige-20260301-090000-3.db",
    ]


def test_a_name_that_was_given_is_never_numbered(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        world.call("backup", path="mine.db")
        assert "exists already" in world.refused("backup", path="mine.db")["message"]


@pytest.mark.parametrize("name", ["x.db", "x.tar.gz"])
def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path, name: str) -> None:
    """It is mistyped, or on a disk that is not mounted: the backup would lie where nobody looks for it."""
    with open_world(tmp_path / "data") as world:
        call = Call(engine=world.app.engine, local=True)
        with pytest.raises(InvalidInput) as refused:
            BACKUP.call(call, {"path": str(tmp_path / "usb" / "deep" / name)})

    assert str(tmp_path / "usb" / "deep") in refused.value.message
    assert refused.value.hint is not None
    assert not (tmp_path / "usb").exists()


def test_a_file_is_no_folder_for_a_backup(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with open_world(tmp_path / "data") as world, pytest.raises(InvalidInput, match="is not a folder"):
        BACKUP.call(Call(engine=world.app.engine, local=True), {"path": str(tmp_path / "file" / "x.db")})


@pytest.mark.parametrize("name", ["x.db", "x.tar.gz"])
def test_the_folder_of_backups_is_made_also_when_it_is_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / "data" / "backups" / name
    with open_world(tmp_path / "data") as world:
        BACKUP.call(Call(engine=world.app.engine, local=True), {"path": str(path)})

    assert path.is_file()


def test_a_full_disk_is_told_of_the_snapshot_that_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_world(tmp_path / "data") as world:
        world.remember("Ada prefers tea.")
        monkeypatch.setattr("shutil.disk_usage", lambda _path: (10**9, 10**9, 5_000))
        error = world.refused("backup", path="whole.tar.gz")
    assert error["code"] == "store_full"
    assert "whole.tar.gz cannot be written" in error["message"]
    assert ".partial" not in str(error)


def test_backups_are_listed_newest_first_with_size_time_and_kind(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        assert world.call("installation", action="backups")["backups"] == []
        made = []
        for arguments in ({"path": "mine.db"}, {}, {"rotate": True}, {"snapshot": True}):
            world.clock.advance(days=1)
            made.append(world.call("backup", **arguments))
        folder = tmp_path / "data" / "backups"
        (folder / ".half.partial").write_text("x")
        (folder / "notes.txt").write_text("x")
        (folder / "link.db").symlink_to(folder / "mine.db")
        mine = made.pop(0)

        listed = world.call("installation", action="backups")
        page = world.call("installation", action="backups", limit=1, offset=1)

    by_name = {one["file"]: one for one in listed["backups"]}
    dated = [one for one in listed["backups"] if one["file"] != Path(mine["path"]).name]
    assert [one["file"] for one in dated] == [Path(one["path"]).name for one in reversed(made)]
    assert [one["at"] for one in dated] == [
        "2026-03-05T09:00:00Z",
        "2026-03-04T09:00:00Z",
        "2026-03-03T09:00:00Z",
    ]
    assert [one["kind"] for one in dated] == ["snapshot", "database", "database"]
    assert [one["rotated"] for one in dated] == [False, True, False]
    assert [one["last"] for one in dated] == [True, False, False]
    assert by_name["mine.db"]["sizeBytes"] == mine["sizeBytes"]
    assert (listed["total"], listed["sizeBytes"]) == (4, sum(one["sizeBytes"] for one in by_name.values()))
    assert (page["total"], page["backups"]) == (4, listed["backups"][1:2])
