"""An agent may back the store up, but not choose where on the disk."""

from pathlib import Path

import pytest

from tests.world import open_world


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
        assert "backups/" in error["hint"]
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
