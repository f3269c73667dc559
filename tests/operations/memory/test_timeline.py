"""`memory_timeline` and `memory.list` stay in the caller's scope; the timeline looks back in both times."""

from pathlib import Path
from typing import Any

import pytest

from testbed.world import World, open_world

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
