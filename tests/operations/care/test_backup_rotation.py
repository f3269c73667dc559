"""Backups that take turns: the oldest goes when the new one is checked, and nothing else ever does."""

from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, open_world
from vestige.core.errors import StoreCorrupt
from vestige.core.events import BackupCompleted

KEEP_ONE: dict[str, Any] = {"backup.keep": 1}
KEEP_TWO: dict[str, Any] = {"backup.keep": 2}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_the_oldest_backup_that_takes_turns_goes_for_the_new_one(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "backups"
    with open_world(tmp_path / "data", **KEEP_TWO) as world:
        world.remember("Ada prefers tea.")
        answers = []
        for _ in range(4):
            answers.append(world.call("backup", rotate=True))
            world.clock.advance(hours=1)
    assert [len(answer["removed"]) for answer in answers] == [0, 0, 1, 1]
    assert names(folder) == [
        "vestige-auto-000003-20260301-110000.db",
        "vestige-auto-000004-20260301-120000.db",
    ]


def test_no_other_file_is_ever_removed(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "backups"
    folder.mkdir(parents=True)
    others = [
        "vestige-20260101-000000.db",
        "vestige-replaced-20260101-000000.db",
        "vestige-auto-1-20260101-000000.db",
        "vestige-auto-000001-20269999-000000.db",
        "vestige-auto-000001-20260101-000000.db.keep",
        "my-vestige-auto-000001-20260101-000000.db",
        "notes.txt",
    ]
    for name in others:
        (folder / name).write_text("precious", encoding="utf-8")
    (tmp_path / "elsewhere.db").write_text("precious", encoding="utf-8")
    (folder / "vestige-auto-000001-20260101-000000.db").symlink_to(tmp_path / "elsewhere.db")
    with open_world(tmp_path / "data", **KEEP_ONE) as world:
        for _ in range(3):
            world.call("backup", rotate=True)
    assert {*others, "vestige-auto-000001-20260101-000000.db"} < {*names(folder)}
    assert len(names(folder)) == len(others) + 2
    assert (tmp_path / "elsewhere.db").read_text(encoding="utf-8") == "precious"


def test_a_clock_that_was_set_back_costs_no_newer_backup(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "backups"
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock, **KEEP_TWO) as world:
        world.call("backup", rotate=True)
        world.call("backup", rotate=True)
        clock.advance(days=-365)
        made = Path(world.call("backup", rotate=True)["path"])
    assert names(folder) == ["vestige-auto-000002-20260301-090000.db", made.name]
    assert made.name == "vestige-auto-000003-20250301-090000.db"


def test_a_backup_that_fails_its_check_removes_none(tmp_path: Path) -> None:
    folder, database = tmp_path / "data" / "backups", tmp_path / "data" / "vestige.db"
    with open_world(tmp_path / "data", **KEEP_ONE) as world:
        for number in range(40):
            world.remember(f"Note {number}: " + "granite " * 200)
        world.call("backup", rotate=True)
    kept = names(folder)
    size = database.stat().st_size
    with database.open("r+b") as file:
        file.seek(size // 2)
        file.write(b"\xaa" * (size // 3))
    with open_world(tmp_path / "data", **KEEP_ONE) as world:
        assert world.refused("backup", rotate=True)["code"] == StoreCorrupt.code
    assert names(folder) == kept


@pytest.mark.parametrize("also", [{"path": "mine.db"}, {"snapshot": True}])
def test_a_backup_that_takes_turns_has_no_other_name_or_form(tmp_path: Path, also: dict[str, object]) -> None:
    with open_world(tmp_path / "data") as world:
        assert world.refused("backup", rotate=True, **also)["code"] == "invalid_input"
    assert not (tmp_path / "data" / "backups").exists()


def test_a_disk_without_room_is_found_out_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_world(tmp_path / "data") as world:
        world.remember("Ada prefers tea.")
        monkeypatch.setattr("shutil.disk_usage", lambda _path: (10**9, 10**9, 5_000))
        error = world.refused("backup")
    assert error["code"] == "store_full"
    assert "5,000 bytes free" in error["message"]
    assert names(tmp_path / "data" / "backups") == []


def test_the_status_tells_when_the_last_backup_was_made_wherever_it_went(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        assert "lastBackup" not in world.call("system_status")
        world.call("backup", path="mine.db")
        world.clock.advance(days=2)
        assert world.call("system_status")["lastBackup"] == "2026-03-01T09:00:00Z"


def test_a_store_worth_something_without_a_backup_for_a_week_is_pointed_out(tmp_path: Path) -> None:
    def advised() -> bool:
        return any("vestige backup" in line for line in world.call("system_status")["recommendations"])

    with open_world(tmp_path / "data") as world:
        world.call("smart_ingest", items=[{"content": f"Fact number {n}."} for n in range(5)])
        assert not advised()
        for batch in range(1, 6):
            facts = [f"Fact number {20 * batch + n}." for n in range(20)]
            world.call("smart_ingest", items=[{"content": fact, "force_create": True} for fact in facts])
        assert world.call("system_status")["totalMemories"] > 100
        assert advised()
        world.call("backup")
        assert not advised()
        world.clock.advance(days=8)
        assert advised()


def test_a_backup_is_told_to_who_listens(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        world.remember("Ada prefers tea.")
        world.call("backup", rotate=True)
        world.call("backup", path="mine.db")
        told = [one for one in world.heard if isinstance(one, BackupCompleted)]
    assert [(one.file, one.rotated) for one in told] == [
        ("vestige-auto-000001-20260301-090000.db", True),
        ("mine.db", False),
    ]
    assert all(one.size_bytes > 0 for one in told)
