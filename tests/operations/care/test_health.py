"""`memory_health`: retention against its target."""

from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world
from vestige.core.models import Access
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

HEALTH = registry.operations["memory_health"]


def test_health_tells_the_retention_of_all_memories(world: World) -> None:
    first = world.remember("Ada drinks green tea.")
    world.clock.advance(days=400)
    world.remember("The parser is written in Rust.")
    kept = [one["retentionStrength"] for one in world.call("memory", action="list")["results"]]

    health = world.call("memory_health")

    assert health["totalMemories"] == 2
    assert health["avgRetentionRaw"] == pytest.approx(sum(kept) / 2, abs=1e-3)
    assert health["avgRetention"] == f"{100 * sum(kept) / 2:.1f}%"
    assert sum(bucket["count"] for bucket in health["distribution"]) == 2
    weak = world.get(first)["retentionStrength"]
    assert (health["memoriesBelow30pct"], health["memoriesBelow50pct"]) == (int(weak < 0.3), int(weak < 0.5))
    nodes = world.call("memory", action="list", detail_level="full")["results"]
    recall = sum(node["retrievalStrength"] for node in nodes) / 2
    assert health["avgRetrievalStrength"] == pytest.approx(recall, abs=1e-3)
    assert (health["retentionTarget"], health["meetsTarget"]) == (0.8, False)


def test_a_new_memory_meets_the_target_and_a_neglected_one_does_not(world: World) -> None:
    memory_id = world.remember("Ada drinks green tea.")
    new = world.call("memory_health")
    assert (new["avgRetrievalStrength"], new["meetsTarget"]) == (1.0, True)

    world.clock.advance(days=30)
    assert world.call("memory_health")["meetsTarget"] is False

    world.call("mark_reviewed", id=memory_id, rating=3)
    assert world.call("memory_health")["meetsTarget"] is True


def test_of_an_empty_store_nothing_is_said_about_the_target(world: World) -> None:
    health = world.call("memory_health")

    assert {"meetsTarget", "avgRetrievalStrength"} & health.keys() == set()
    assert (health["totalMemories"], health["recommendation"]) == (0, "Nothing is remembered yet.")
    prose = HEALTH.render(HEALTH.answer(Call(engine=world.app.engine), {}))
    assert "met" not in prose.split()


@pytest.mark.parametrize(("target", "met"), [(0.5, True), (0.99, False)])
def test_the_target_is_a_setting(tmp_path: Path, target: float, met: bool) -> None:
    settings: dict[str, Any] = {"memory.retention_target": target}
    with open_world(tmp_path, **settings) as world:
        world.remember("Ada drinks green tea.")
        world.clock.advance(days=1)

        health = world.call("memory_health")

        assert (health["retentionTarget"], health["meetsTarget"]) == (target, met)


def test_health_counts_only_what_is_in_reach(world: World) -> None:
    world.remember("Ours is blue.", scope="/project/a")
    world.remember("Theirs is red.", scope="/project/b")
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)))

    assert HEALTH.call(call, {})["totalMemories"] == 1


def test_the_history_is_of_what_the_call_reaches(world: World) -> None:
    world.remember("Ours is blue.", scope="/project/a")
    call = Call(engine=world.app.engine, access=Access(scopes=("/project/a",)), scope="/project/a")
    world.call("consolidate")
    assert HEALTH.call(call, {})["history"] == []

    registry.operations["consolidate"].call(call, {})

    assert [one["memories"] for one in HEALTH.call(call, {})["history"]] == [1]
    assert len(world.call("memory_health")["history"]) == 1
    limited = Call(engine=world.app.engine, access=Access(domains=("music",)))
    assert HEALTH.call(limited, {})["trend"] == "insufficient_data"


def test_the_forecast_counts_what_will_have_faded_and_fallen_due(world: World) -> None:
    for number in range(4):
        world.remember(f"Fact number {number} about the harbour.", force_create=True)
    now = world.call("memory_health", forecast=True)
    assert [one["days"] for one in now["forecast"]] == [7, 30]
    assert [one["weeks"] for one in now["due"]] == [0, 1, 2, 3, 4, 5]
    assert sum(one["count"] for one in now["due"]) == 4
    world.clock.advance(days=30)
    then = world.call("memory_health", forecast=True)
    assert then["memoriesBelow30pct"] == now["forecast"][1]["below30pct"]
    assert then["due"][0] == {"weeks": 0, "count": 4}
    assert "forecast" not in world.call("memory_health")


def test_the_calendar_counts_reviews_and_what_comes_by_day(world: World) -> None:
    ids = [world.remember(f"Note {number} of the log.", force_create=True) for number in range(4)]
    world.clock.advance(days=30)
    for memory_id in ids[:2]:
        world.call("mark_reviewed", id=memory_id, rating=3)
    world.clock.advance(days=2)
    world.call("mark_reviewed", id=ids[2], rating=1)
    world.call("memory", action="promote", id=ids[3])
    days = world.call("memory_health", calendar=True)["calendar"]
    assert len(days) == 84 + 28 - 1
    today = world.clock.now.date()
    made = {one["date"]: one["reviews"] for one in days if one.get("reviews")}
    assert made == {(today - timedelta(days=2)).isoformat(): 2, today.isoformat(): 1}
    coming = [one for one in days if "due" in one]
    assert [one["date"] for one in coming[:1]] == [today.isoformat()]
    at = [datetime.fromisoformat(world.get(one)["nextReview"]) for one in ids]
    end = datetime.combine(today + timedelta(days=28), time.min, UTC)
    assert sum(one["due"] for one in coming) == sum(world.clock.now < moment <= end for moment in at)
    assert "calendar" not in world.call("memory_health")


def test_the_calendar_says_on_which_day_memories_fade(world: World) -> None:
    world.remember("Ada drinks green tea.")
    for _ in range(400):
        days = world.call("memory_health", calendar=True)["calendar"]
        fading = [one["date"] for one in days if one.get("fading")]
        if fading:
            break
        world.clock.advance(days=27)
    before = world.call("memory_health")["memoriesBelow30pct"]
    wait = datetime.fromisoformat(fading[0]).date() - world.clock.now.date()
    world.clock.advance(days=wait.days + 1)
    assert (before, world.call("memory_health")["memoriesBelow30pct"]) == (0, 1)


def test_the_status_has_the_size_of_the_store_for_those_who_see_the_installation(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.remember("Ada drinks green tea.")
        engine = world.app.engine
        files = [engine.settings.database, engine.settings.database.with_name("vestige.db-wal")]
        size = sum(one.stat().st_size for one in files if one.exists())
        assert world.call("system_status")["sizeBytes"] == size > 0
        limited = Call(engine=engine, access=Access(scopes=("/project/a",)))
        assert registry.operations["system_status"].call(limited, {}).get("sizeBytes") is None
