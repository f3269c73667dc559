"""The tool `intention`: what it answers is true, and what was set can be changed back or deleted."""

from datetime import timedelta
from typing import Any

import pytest

from testbed.world import World
from vestige.engine import intentions

LONG_AGO = "2026-02-01T09:00:00Z"


def intend(world: World, description: str, **arguments: Any) -> dict[str, Any]:
    return world.call("intention", action="set", description=description, **arguments)


def update(world: World, name: str, **arguments: Any) -> dict[str, Any]:
    changed: dict[str, Any] = world.call("intention", action="update", id=name, **arguments)["intention"]
    return changed


def listed(world: World, which: str = "open") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.call("intention", action="list", filter_status=which)["intentions"]
    return found


@pytest.mark.parametrize("words", ["at 7.30", "on 31.12.2026", "on the first monday of every month"])
def test_words_for_when_that_were_not_understood_are_named_with_a_way_out(world: World, words: str) -> None:
    made = intend(world, f"Remind me to call Bob {words}")

    assert made["understood"] == "No trigger: it is never due by itself. Priority normal."
    assert made["intention"]["when"] == "not by itself"
    assert words in made["warning"]
    assert "trigger" in made["warning"]
    assert '{"at": "2026-03-02T09:00"}' in made["warning"]


def test_a_time_that_has_passed_is_named_too(world: World) -> None:
    assert "In the past: “on 8 May 2020”" in intend(world, "Call Bob on 8 May 2020")["warning"]
    assert "In the past: “yesterday at 9”" in intend(world, "call mum yesterday at 9")["warning"]


def test_without_words_for_when_there_is_nothing_to_warn_of(world: World) -> None:
    made = intend(world, "Read the paper.")

    assert made["understood"] == "No trigger: it is never due by itself. Priority normal."
    assert "warning" not in made
    assert "warning" not in intend(world, "Call Bob tomorrow at 9")
    assert "warning" not in intend(world, "Call Bob at 7.30", trigger={"type": "manual"})


def test_a_deadline_alone_brings_it_up_ahead_of_it(world: World) -> None:
    made = intend(world, "Send the report by friday")

    assert made["understood"] == (
        "Due at 2026-03-06 09:00 UTC, ahead of its deadline; deadline 2026-03-07 00:00 UTC. Priority normal."
    )
    assert made["triggerAt"] == "2026-03-06T09:00:00Z"
    assert made["intention"]["when"] == "at 2026-03-06 09:00 UTC, ahead of its deadline"


def test_a_deadline_beside_a_context_reminds_as_well_and_beside_a_time_it_does_not(world: World) -> None:
    beside_context = intend(world, "Index.", trigger={"file_pattern": "*.sql"}, deadline="2026-03-05")
    beside_time = intend(world, "Call.", trigger={"at": "2026-03-03T12:00:00Z"}, deadline="2026-03-05")

    assert beside_context["triggerAt"] == "2026-03-05T09:00:00Z"
    assert "or at 2026-03-05 09:00 UTC, ahead of its deadline" in beside_context["understood"]
    assert beside_time["triggerAt"] == "2026-03-03T12:00:00Z"
    assert "ahead" not in beside_time["understood"]


def test_a_deadline_that_has_passed_already_is_overdue_at_once(world: World) -> None:
    made = intend(world, "Send the report.", deadline="2026-02-20")

    assert made["understood"].startswith("Due when it is overdue; deadline 2026-02-21 00:00 UTC.")
    (one,) = world.call("intention", action="check")["triggered"]
    assert one["isOverdue"]


@pytest.mark.parametrize("words", ["in 9999 weeks", f"when the {'very ' * 70}long tests pass", "in 1 second"])
def test_whatever_was_understood_can_be_shown(world: World, words: str) -> None:
    made = intend(world, f"Remind me to call Bob {words}")

    assert [one["id"] for one in listed(world)] == [made["intentionId"]]


def test_what_is_deleted_is_gone(world: World) -> None:
    name = intend(world, "Call Bob.")["intentionId"]
    answer = world.call("intention", action="delete", id=name)

    assert (answer["action"], answer["success"], answer["intentionId"]) == ("delete", True, name)
    assert listed(world, "all") == []
    for action in ({"action": "delete"}, {"action": "update", "status": "resume"}):
        assert world.refused("intention", id=name, **action)["code"] == "not_found"


def test_what_ended_is_opened_again_only_where_there_is_room(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intentions, "MOST", 2)
    first = intend(world, "First.")["intentionId"]
    update(world, first, status="complete")
    second = intend(world, "Second.")["intentionId"]
    intend(world, "Third.")

    error = world.refused("intention", action="update", id=first, status="resume")
    assert error["details"] == {"scope": "/", "limit": 2}
    update(world, second, status="cancel")
    assert update(world, first, status="resume")["status"] == "active"


def test_a_deadline_can_be_taken_back_and_what_it_brought_up_with_it(world: World) -> None:
    name = intend(world, "Send the report.", deadline="2026-03-01T10:00:00Z")["intentionId"]
    world.clock.now += timedelta(hours=2)
    assert world.call("intention", action="check")["totalTriggered"] == 1
    one = update(world, name, clear_deadline=True)

    assert (one["status"], one["isOverdue"], one["priorityName"]) == ("active", False, "normal")
    assert "deadline" not in one
    assert world.call("intention", action="check")["totalTriggered"] == 0


def test_taking_back_a_deadline_keeps_what_came_up_otherwise(world: World) -> None:
    name = intend(world, "Call.", trigger={"in_minutes": 5}, deadline="2026-03-05")["intentionId"]
    world.clock.now += timedelta(hours=2)
    assert world.call("intention", action="check")["totalTriggered"] == 1

    assert update(world, name, clear_deadline=True)["status"] == "triggered"


def test_a_deadline_is_not_set_and_taken_back_at_once(world: World) -> None:
    name = intend(world, "Call.")["intentionId"]
    error = world.refused("intention", action="update", id=name, deadline="2026-03-05", clear_deadline=True)

    assert "clear_deadline" in error["message"]
    assert error["hint"]


def test_what_the_clock_brought_up_is_listed_as_due_before_anybody_checks(world: World) -> None:
    intend(world, "Call Bob.", trigger={"at": LONG_AGO})
    intend(world, "Later.", trigger={"in_minutes": 5})

    assert [(one["description"], one["status"]) for one in listed(world)] == [
        ("Call Bob.", "due"),
        ("Later.", "active"),
    ]
    assert [one["description"] for one in listed(world, "active")] == ["Call Bob.", "Later."]
    world.call("intention", action="check")
    assert [one["status"] for one in listed(world)] == ["triggered", "active"]
