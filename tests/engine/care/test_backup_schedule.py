"""Backups that a server makes by itself: when one is due, by one process of many."""

import logging
from pathlib import Path
from typing import Any

import pytest

from testbed.world import HandClock, World, open_world
from vestige.engine.care.backup import rotated_backups

DAILY: dict[str, Any] = {"backup.every_hours": 24.0, "backup.keep": 3}


def numbers(world: World) -> list[int]:
    return [one.number for one in rotated_backups(world.app.engine.settings.data_dir / "backups")]


def test_a_backup_is_made_when_the_last_one_is_old_enough(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", **DAILY) as world:
        world.remember("Ada prefers tea.")
        world.app.autopilot.tick()
        assert numbers(world) == [1]
        world.clock.advance(hours=23)
        world.app.autopilot.tick()
        assert numbers(world) == [1]
        world.clock.advance(hours=1)
        world.app.autopilot.tick()
        assert numbers(world) == [1, 2]
        for _ in range(3):
            world.clock.advance(days=1)
            world.app.autopilot.tick()
        assert numbers(world) == [3, 4, 5]


def test_backups_are_made_also_where_the_mechanisms_are_switched_off(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", **(DAILY | {"mechanisms.autopilot": False})) as world:
        world.remember("Ada prefers tea.")
        world.app.autopilot.start()
        assert world.app.autopilot.status().running
        world.app.autopilot.tick()
        assert numbers(world) == [1]
        assert world.app.autopilot.status().handled == 1, "no other chore was done"


def test_no_backup_is_made_unless_it_was_asked_for(tmp_path: Path) -> None:
    with open_world(tmp_path / "data") as world:
        world.remember("Ada prefers tea.")
        world.app.autopilot.tick()
        assert numbers(world) == []


def test_an_empty_store_is_not_copied_over_good_backups(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", **DAILY) as world:
        world.remember("Ada prefers tea.")
        world.app.autopilot.tick()
    for file in (tmp_path / "data").glob("vestige.db*"):
        file.unlink()
    with open_world(tmp_path / "data", **DAILY) as world:
        for _ in range(4):
            world.clock.advance(days=1)
            world.app.autopilot.tick()
        assert numbers(world) == [1]


def test_only_one_of_two_processes_makes_the_backup(tmp_path: Path) -> None:
    with open_world(tmp_path / "data", **DAILY) as world, open_world(tmp_path / "data", **DAILY) as other:
        world.remember("Ada prefers tea.")
        with world.app.engine.store.alone("something"):
            other.app.autopilot.tick()
        assert numbers(other) == []
        assert other.app.autopilot.status().failed == 0
        other.app.autopilot.tick()
        world.app.autopilot.tick()
        assert numbers(world) == [1]


def test_a_clock_that_was_set_back_makes_a_backup_and_then_waits_again(tmp_path: Path) -> None:
    clock = HandClock()
    with open_world(tmp_path / "data", clock=clock, **DAILY) as world:
        world.remember("Ada prefers tea.")
        world.app.autopilot.tick()
        clock.advance(days=-365)
        for _ in range(3):
            world.app.autopilot.tick()
        assert numbers(world) == [1, 2]


def test_a_backup_that_fails_is_told_and_tried_again_an_hour_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with open_world(tmp_path / "data", **DAILY) as world:
        world.remember("Ada prefers tea.")
        with monkeypatch.context() as full, caplog.at_level(logging.WARNING):
            full.setattr("shutil.disk_usage", lambda _path: (10**9, 10**9, 0))
            world.app.autopilot.tick()
            world.app.autopilot.tick()
        told = [record.getMessage() for record in caplog.records if "not made" in record.getMessage()]
        assert len(told) == 1
        assert "0 bytes free" in told[0]
        world.app.autopilot.tick()
        assert numbers(world) == []
        world.clock.advance(hours=1)
        world.app.autopilot.tick()
        assert numbers(world) == [1]
