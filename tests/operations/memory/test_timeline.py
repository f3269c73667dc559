"""`memory_timeline` and `memory.list` stay in the caller's scope; the timeline looks back in both times."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.world import START, World, open_world

IN_A: dict[str, Any] = {"memory.scope": "/project/a"}


def told(world: World, **arguments: Any) -> list[str]:
    timeline = world.call("memory_timeline", **{"start": "2026-01-01", **arguments})
    return [memory["content"] for day in timeline["days"] for memory in day["memories"]]


def corrected(world: World) -> None:
    """A fact that is corrected on the second day, and the old one reworded on the third."""
    old = world.remember("The service runs on PostgreSQL 14.")
    world.clock.advance(days=1)
    world.remember("The service runs on PostgreSQL 16.")
    world.clock.advance(days=1)
    world.call("memory", action="edit", id=old, content="The service ran on PostgreSQL 14.")


def test_a_timeline_shows_all_or_what_was_true_then(world: World) -> None:
    corrected(world)

    assert told(world) == ["The service runs on PostgreSQL 16.", "The service ran on PostgreSQL 14."]
    assert told(world, as_of="2026-03-01T12:00:00Z") == ["The service ran on PostgreSQL 14."]
    assert told(world, as_of="2026-03-03") == ["The service runs on PostgreSQL 16."]


def test_a_timeline_shows_what_was_known_then_in_the_words_of_then(world: World) -> None:
    corrected(world)
    first_day = world.call("memory_timeline", known_at="2026-03-01T12:00:00Z")

    (memory,) = first_day["days"][0]["memories"]
    assert memory["content"] == "The service runs on PostgreSQL 14."
    assert "supersededBy" not in memory
    assert first_day["total"] == 1
    assert first_day["end"].startswith("2026-03-01T12:00")
    assert len(told(world, known_at="2026-03-02T12:00:00Z")) == 2


def test_lists_and_timelines_cover_everything_unless_a_scope_is_asked_for(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_A) as world:
        world.remember("Ours is blue.")
        world.remember("Ada is left-handed.", scope="/user/ada")
        world.remember("Theirs is red.", scope="/project/b")

        timeline, listed = world.call("memory_timeline"), world.call("memory", action="list")

        assert (timeline["scope"], listed["scope"]) == ("/", "/")
        assert sorted(told(world)) == ["Ada is left-handed.", "Ours is blue.", "Theirs is red."]
        assert (timeline["total"], listed["total"]) == (3, 3)
        assert told(world, scope="/project/b") == ["Theirs is red."]
        assert world.call("memory", action="list", scope="/project/a")["total"] == 1


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"start": "2027-01-01"}, "`start` is in the future, where there are no memories."),
        ({"start": "2026-02-02", "end": "2026-02-01T00:00:00Z"}, "`start` is not before `end`."),
        ({"start": "2026-02-02", "known_at": "2026-02-01"}, "`start` is not before `known_at`."),
        ({"node_type": ""}, "node_type"),
    ],
)
def test_a_timeline_in_which_nothing_can_lie_is_refused_for_what_was_given(
    world: World, arguments: dict[str, Any], said: str
) -> None:
    error = world.refused("memory_timeline", **arguments)

    assert (error["code"], said in error["message"]) == ("invalid_input", True)


def test_every_day_of_a_range_is_counted_also_those_whose_memories_are_not_shown(world: World) -> None:
    for day in range(5):
        for number in range(day):
            world.remember(f"Day {day} has entry {number}.", force_create=True)
        world.clock.advance(days=1)
    asked = {"start": "2026-03-01", "end": "2026-03-05", "limit": 2}

    timeline = world.call("memory_timeline", counts=True, **asked)

    counts = timeline["counts"]
    assert [(one["date"], one["days"]) for one in counts] == [(f"2026-03-0{day}", 1) for day in range(1, 6)]
    assert [one["count"] for one in counts] == [0, 1, 2, 3, 4]
    assert timeline["shown"] == 2
    assert "counts" not in world.call("memory_timeline", **asked)


@pytest.mark.parametrize(("start", "parts"), [("2025-11-02", 120), ("2025-11-01", 18), ("1926-03-01", 120)])
def test_a_long_range_is_counted_in_weeks_or_more_and_nothing_twice(
    world: World, start: str, parts: int
) -> None:
    for _ in range(20):
        world.remember(f"It is {world.clock.now}.", force_create=True)
        world.clock.advance(days=9, hours=7)
    world.clock.now = START + timedelta(days=400)

    timeline = world.call("memory_timeline", start=start, end="2026-03-01", counts=True)
    year = world.call("memory_timeline", start="2026-01-01", counts=True)

    assert len(timeline["counts"]) == parts
    assert sum(one["count"] for one in timeline["counts"]) == timeline["total"] == 1
    assert sum(one["count"] for one in year["counts"]) == year["total"] == 20


def test_days_are_counted_in_the_zone_of_the_answer_across_a_change_of_the_clock(world: World) -> None:
    """On 2026-03-29 a day in Berlin has 23 hours."""
    for hour in range(0, 72, 6):
        world.clock.now = datetime(2026, 3, 27, 23, 30, tzinfo=UTC) + timedelta(hours=hour)
        world.remember(f"It is {world.clock.now}.", force_create=True)

    timeline = world.call(
        "memory_timeline", start="2026-03-28", end="2026-03-30", counts=True, timezone="Europe/Berlin"
    )

    shown = {day["date"]: day["count"] for day in timeline["days"]}
    assert {one["date"]: one["count"] for one in timeline["counts"]} == shown
    assert sum(shown.values()) == 12
