"""The tool `intention`, on every store: set, check, update, list, and what is refused."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.world import START, World, open_world
from vestige.core.events import IntentionTriggered
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

IN_SHOP: dict[str, Any] = {"memory.scope": "/project/shop"}


def intend(world: World, description: str, **arguments: Any) -> dict[str, Any]:
    return world.call("intention", action="set", description=description, **arguments)


def check(world: World, **arguments: Any) -> dict[str, Any]:
    return world.call("intention", action="check", **arguments)


def told(world: World, **context: Any) -> list[str]:
    return [one["description"] for one in check(world, context=context)["triggered"]]


def update(world: World, name: str, **arguments: Any) -> dict[str, Any]:
    return world.call("intention", action="update", id=name, **arguments)


def listed(world: World, which: str = "active") -> list[str]:
    found = world.call("intention", action="list", filter_status=which)
    return [one["description"] for one in found["intentions"]]


def resource(world: World, uri: str) -> list[str]:
    operation, arguments = registry.match_resource(uri)
    found = operation.call(Call(engine=world.app.engine), arguments)
    return [one["description"] for one in found["intentions"]]


def later(world: World, **time: float) -> None:
    world.clock.now += timedelta(**time)


def test_what_was_understood_is_told_back(world: World) -> None:
    made = intend(world, "Remind me to rotate the keys every monday at 10:00, it's urgent")

    assert made["understood"] == ("Due every Monday at 10:00 UTC, next 2026-03-02 10:00 UTC. Priority high.")
    assert (made["priority"], made["triggerAt"]) == (3, "2026-03-02T10:00:00Z")
    one = made["intention"]
    assert one["description"] == "rotate the keys"
    assert one["said"] == "Remind me to rotate the keys every monday at 10:00, it's urgent"
    assert one["trigger"]["days"] == ["monday"]


def test_without_words_for_when_it_waits_for_whoever_looks(world: World) -> None:
    made = intend(world, "Read the paper on prospective memory.")

    assert made["intention"]["trigger"] == {"type": "manual"}
    assert "said" not in made["intention"]
    assert told(world) == []
    assert [one["id"] for one in check(world)["pending"]] == [made["intentionId"]]


def test_a_trigger_that_is_given_leaves_the_words_alone(world: World) -> None:
    made = intend(world, "Ask what happened tomorrow at 9", trigger={"type": "manual"})

    assert made["intention"]["description"] == "Ask what happened tomorrow at 9"
    assert "triggerAt" not in made


@pytest.mark.parametrize(
    "trigger",
    [
        {"type": "context", "file_pattern": "*.sql", "codebase": "shop"},
        {"filePattern": "*.sql", "codebase": "SHOP"},
        {"all": [{"filePattern": "*.sql"}, {"type": "context", "codebase": "shop"}]},
    ],
)
def test_both_spellings_of_a_context_work_and_all_of_it_must_match(
    world: World, trigger: dict[str, Any]
) -> None:
    intend(world, "Check the indexes.", trigger=trigger)

    assert told(world, codebase="shop") == []
    assert told(world, file="db/init.sql", codebase="web") == []
    assert told(world, file="db/init.sql", codebase="shop") == ["Check the indexes."]


def test_who_looks_again_soon_is_told_the_same_and_later_is_reminded(world: World) -> None:
    intend(world, "Call Bob.", trigger={"in_minutes": 5})
    later(world, minutes=5)
    seen = []
    for _ in range(4):
        (one,) = check(world)["triggered"]
        seen.append((one["first"], one["reminded"], one["reminders"]))
        later(world, minutes=15)

    assert seen == [(True, True, 1), (False, False, 1), (False, True, 2), (False, False, 2)]
    assert [one.description for one in world.heard if isinstance(one, IntentionTriggered)] == ["Call Bob."]


def test_after_five_reminders_it_is_pending_and_not_lost(world: World) -> None:
    intend(world, "Call Bob.", trigger={"in_minutes": 5})
    for _ in range(5):
        later(world, minutes=30)
        assert told(world) == ["Call Bob."]
    later(world, minutes=30)

    assert told(world) == []
    (one,) = check(world)["pending"]
    assert (one["status"], one["reminders"]) == ("triggered", 5)


def test_a_limit_tells_the_most_urgent_first_and_keeps_the_others_for_the_next_time(world: World) -> None:
    for name, priority in (("a", "low"), ("b", "critical"), ("c", "high")):
        intend(world, name, priority=priority, trigger={"in_minutes": 1})
    later(world, minutes=1)

    first = check(world, limit=2)
    assert [one["description"] for one in first["triggered"]] == ["b", "c"]
    assert first["totalTriggered"] == 3
    assert {one["description"]: one["first"] for one in check(world)["triggered"]}["a"]


def test_a_deadline_makes_it_urgent_and_then_overdue(world: World) -> None:
    name = intend(world, "Send the report.", deadline="2026-03-03T09:00:00Z")["intentionId"]
    seen = []
    for hours in (0, 24, 23, 1):
        later(world, hours=hours)
        (one,) = world.call("intention", action="list", filter_status="open")["intentions"]
        seen.append((one["priorityName"], one["isOverdue"]))

    assert seen == [("normal", False), ("high", False), ("critical", False), ("critical", True)]
    assert one["escalatedFrom"] == "normal"
    assert [found["id"] for found in check(world)["triggered"]] == [name]


def test_snoozed_it_rests_and_comes_up_again(world: World) -> None:
    name = intend(world, "Call Bob.", trigger={"in_minutes": 1})["intentionId"]
    later(world, minutes=1)
    assert told(world) == ["Call Bob."]

    done = update(world, name, status="snooze", snooze_minutes=60)
    assert (done["status"], listed(world, "snoozed")) == ("snoozed", ["Call Bob."])
    later(world, minutes=59)
    assert told(world) == []
    assert check(world)["pending"] == []
    assert len(check(world, include_snoozed=True)["pending"]) == 1
    later(world, minutes=1)
    assert told(world) == ["Call Bob."]


def test_a_snooze_ends_when_it_is_resumed(world: World) -> None:
    name = intend(world, "Call Bob.", trigger={"at": "2026-03-01T09:00:00Z"})["intentionId"]
    update(world, name, status="snooze", snooze_until="2026-04-01")
    assert told(world) == []

    assert update(world, name, status="resume")["status"] == "due"
    assert told(world) == ["Call Bob."]


def test_done_it_is_shown_for_thirty_days_and_can_be_opened_again(world: World) -> None:
    name = intend(world, "Call Bob.")["intentionId"]
    assert update(world, name, status="complete")["status"] == "fulfilled"
    update(world, name, status="complete")  # told twice
    later(world, days=30)
    assert (listed(world), listed(world, "fulfilled")) == ([], ["Call Bob."])

    update(world, name, status="resume")
    assert listed(world) == ["Call Bob."]
    update(world, name, status="cancel")
    later(world, days=31)
    assert listed(world, "all") == []


def test_completing_what_recurs_waits_for_the_next_time_and_cancelling_ends_it(world: World) -> None:
    name = intend(world, "Stretch every day at 10:00")["intentionId"]
    later(world, hours=2)
    assert told(world) == ["Stretch"]
    done = update(world, name, status="complete")

    assert (done["status"], done["intention"]["nextAt"]) == ("active", "2026-03-02T10:00:00Z")
    assert told(world) == []
    later(world, days=1)
    assert told(world) == ["Stretch"]
    update(world, name, status="cancel")
    later(world, days=1)
    assert told(world) == []


def test_everything_about_it_can_be_changed(world: World) -> None:
    name = intend(world, "Call Bob tomorrow at 9")["intentionId"]

    one = update(
        world,
        name,
        description="Call Eve.",
        priority="critical",
        trigger={"codebase": "shop"},
        deadline="2026-03-05",
    )["intention"]

    assert (one["description"], one["priority"], one["deadline"]) == ("Call Eve.", 4, "2026-03-06T00:00:00Z")
    assert told(world, codebase="shop") == ["Call Eve."]


def test_an_event_that_is_told_counts_also_when_the_context_comes_later(world: World) -> None:
    parts = [{"condition": "deploy finished"}, {"codebase": "shop"}]
    intend(world, "Write the notes.", trigger={"all": parts})

    assert told(world, codebase="web", events=["The deploy has finished."]) == []
    assert told(world, codebase="web") == []
    assert told(world, codebase="shop") == ["Write the notes."]


def test_a_memory_that_tells_of_an_event_brings_it_up(world: World) -> None:
    intend(world, "Renew it.", trigger={"condition": "certificate expired"})
    world.remember("The certificate of the shop expired this morning.")
    world.app.settle()

    assert [one.description for one in world.heard if isinstance(one, IntentionTriggered)] == ["Renew it."]
    assert told(world) == ["Renew it."]


def test_intentions_belong_to_a_scope_and_hold_below_it(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_SHOP) as world:
        intend(world, "own", trigger={"in_minutes": 1})
        intend(world, "above", trigger={"in_minutes": 1}, scope="/")
        intend(world, "other", trigger={"in_minutes": 1}, scope="/project/other")
        later(world, minutes=1)

        assert sorted(told(world)) == ["above", "own"]
        assert [one["description"] for one in check(world, scope="/project/other")["triggered"]] == ["other"]


def test_the_codebase_of_the_scope_is_the_one_at_hand(tmp_path: Path) -> None:
    with open_world(tmp_path, **IN_SHOP) as world:
        intend(world, "Run the linter.", trigger={"codebase": "shop"})

        assert told(world) == ["Run the linter."]
        assert told(world, codebase="web") == []


def test_the_list_is_by_the_clock_and_the_resources_show_it(world: World) -> None:
    intend(world, "later", trigger={"in_minutes": 60})
    intend(world, "some day")
    intend(world, "sooner", trigger={"in_minutes": 5})
    later(world, minutes=5)

    assert resource(world, "memory://intentions") == ["sooner", "later", "some day"]
    assert resource(world, "memory://intentions/due") == ["sooner"]
    assert check(world)["triggered"][0]["first"], "looking at a list counts as no reminder"


def test_what_older_clients_call_goes_on_working(world: World) -> None:
    name = world.call("set_intention", description="Call Bob.", trigger={"type": "time", "inMinutes": 1})
    later(world, minutes=1)
    found = world.call("check_intentions", context={"currentTime": "2030-01-01T00:00:00Z"})

    assert [one["id"] for one in found["triggered"]] == [name["intentionId"]]
    assert world.call("snooze_intention", id=name["intentionId"])["status"] == "snoozed"
    assert world.call("complete_intention", id=name["intentionId"])["status"] == "fulfilled"
    assert world.call("list_intentions", filter_status="all")["total"] == 1


@pytest.mark.parametrize(
    ("trigger", "named"),
    [
        ({"file_patern": "*.sql"}, "file_pattern"),
        ({"type": "context", "context": {"codebase": "shop"}}, "context"),
        ({"all": [{"codebse": "shop"}, {"topic": "x"}]}, "codebase"),
        ({}, "is empty"),
        ({"type": "context"}, "codebase"),
        ({"type": "time", "codebase": "shop"}, "codebase"),
        ({"at": "2026-03-05", "codebase": "shop"}, "all"),
        ({"at": "soon"}, "2026-03-01T14:05:00Z"),
        ({"at": "2026-03-05", "in_minutes": 5}, "both"),
        ({"in_minutes": 0}, "in_minutes"),
        ({"topic": "?!"}, "topic"),
        ({"topic": " "}, "topic"),
        ({"condition": "..."}, "condition"),
        ({"codebase": "a\0b"}, "codebase"),
        ({"all": [{"topic": "x"}]}, "all"),
        ({"any": [{"topic": "x"}, {"type": "manual"}]}, "manual"),
        ({"any": [{"topic": "x"}, {"every": "day"}]}, "two intentions"),
        ({"all": [{"topic": "x"}, {"all": [{"topic": "y"}, {"all": [{"topic": "z"}] * 2}]}]}, "nested"),
        ({"any": [{"all": [{"topic": "x"}] * 11}] * 2}, "the limit is 20"),
        ({"every": "week"}, "days"),
        ({"every": "week", "days": []}, "never fires"),
        ({"every": "week", "days": ["someday"]}, "someday"),
        ({"every": "month"}, "day"),
        ({"every": "month", "day": 32}, "day"),
        ({"every": "month", "day": 30, "months": [2]}, "never fires"),
        ({"every": "month", "day": 31, "months": [4, 6]}, "never fires"),
        ({"every": "month", "day": 1, "months": []}, "never fires"),
        ({"every": "day", "until": "2026-02-01"}, "never fires"),
        ({"every": "day", "start": "2026-05-01", "until": "2026-04-01"}, "never fires"),
        ({"every": "hour", "interval": 5, "until": "2026-03-01T10:00:00Z"}, "never fires"),
        ({"every": "day", "at": "25:00"}, "clock time"),
        ({"every": "hour", "at": "09:00"}, "at"),
        ({"every": "day", "days": ["monday"]}, "days"),
        ({"every": "fortnight"}, "every"),
        ({"type": "recurring", "interval": 2}, "every"),
    ],
)
def test_a_trigger_that_cannot_be_meant_is_refused_and_nothing_is_kept(
    world: World, trigger: dict[str, Any], named: str
) -> None:
    error = world.refused("intention", action="set", description="Do it.", trigger=trigger)

    assert error["code"] in ("invalid_input", "unknown_argument")
    assert named in f"{error['message']} {error.get('hint')} {error.get('details')}"
    assert listed(world, "all") == []


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "No change is given"),
        ({"snooze_minutes": 5}, "snooze"),
        ({"status": "snooze", "snooze_minutes": 5, "snooze_until": "2027-01-01"}, "both"),
        ({"status": "snooze", "snooze_until": "2026-02-01"}, "in the past"),
        ({"status": "snooze", "snooze_minutes": 0}, "snooze_minutes"),
        ({"status": "done"}, "complete"),
        ({"description": "  "}, "blank"),
        ({"trigger": {"every": "day"}, "deadline": "2027-01-01"}, "deadline"),
        ({"priority": "huge"}, "critical"),
    ],
)
def test_a_change_that_makes_no_sense_is_refused(world: World, arguments: dict[str, Any], named: str) -> None:
    made = intend(world, "Do it.")
    error = world.refused("intention", action="update", id=made["intentionId"], **arguments)

    assert named in f"{error['message']} {error.get('hint')} {error.get('details')}"
    (after,) = world.call("intention", action="list")["intentions"]
    assert after == made["intention"]


def test_what_ended_must_be_opened_before_it_is_changed(world: World) -> None:
    name = intend(world, "Do it.")["intentionId"]
    update(world, name, status="cancel")

    for arguments in ({"status": "complete"}, {"status": "snooze"}, {"description": "Other."}):
        error = world.refused("intention", action="update", id=name, **arguments)
        assert "resume" in error["hint"]
    assert listed(world, "cancelled") == ["Do it."]


@pytest.mark.parametrize(
    ("description", "code"),
    [("", "invalid_input"), (" \n", "invalid_input"), ("a\0b", "invalid_input"), ("x" * 4001, "too_large")],
)
def test_words_that_cannot_be_kept_are_refused(world: World, description: str, code: str) -> None:
    assert world.refused("intention", action="set", description=description)["code"] == code


def test_an_unknown_intention_is_not_found(world: World) -> None:
    error = world.refused("intention", action="update", id="nowhere", status="complete")

    assert (error["code"], error["details"]) == ("not_found", {"id": "nowhere"})


def test_a_recurring_intention_takes_no_deadline(world: World) -> None:
    error = world.refused(
        "intention", action="set", description="Stretch every day at 9", deadline="2026-05-01"
    )

    assert "until" in error["hint"]


def test_times_are_in_utc_and_offsets_are_kept(world: World) -> None:
    made = intend(world, "Stand up.", trigger={"every": "daily", "at": "11:00+02:00"})

    assert made["triggerAt"] == f"{START:%Y-%m-%d}T09:00:00Z".replace("03-01", "03-02")
    assert made["intention"]["when"] == "every day at 11:00 UTC+02:00"


def test_people_get_tables(world: World) -> None:
    def shown(name: str, **arguments: Any) -> str:
        operation = registry.operations[f"intention.{name}"]
        return operation.render(operation.answer(Call(engine=world.app.engine), arguments))

    assert shown("list") == "No intentions.\n\n0 of 0 intentions in /."
    assert "No intention is due now." in shown("check")
    made = shown("set", description="Call Bob in 5 minutes")
    assert made.startswith("Call Bob\n")
    assert "2026-03-01 09:05 UTC" in made
    later(world, minutes=5)
    assert shown("check").split("\n")[2].split("  ")[0] == "Call Bob"
    assert "triggered" in shown("list")
    name = world.call("intention", action="list")["intentions"][0]["id"]
    assert "fulfilled" in shown("update", id=name, status="complete")
