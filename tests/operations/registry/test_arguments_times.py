"""Times of people: every operation reads and prints them in the caller's zone; fields stay UTC."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from testbed.failures import each
from testbed.world import HandClock, World, open_world
from vestige.core.caller import LOCAL_USER, Invocation
from vestige.core.timezone import zone_of
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry

NOW = datetime(2026, 3, 2, 1, 0, tzinfo=UTC)
"""20:00 on Sunday in New York, 10:00 on Monday in Tokyo, 06:30 on Monday in Kolkata."""


def at_night(folder: Path, zone: str) -> Any:
    return open_world(folder, clock=HandClock(NOW), timezone=zone)


def shown(world: World, operation: str, **arguments: Any) -> str:
    """What the command line prints."""
    found = registry.operations[operation]
    answer = world.app.run(found, arguments, lambda *_: None)
    return found.render(answer)


@each(
    ("zone", "at", "words"),
    [
        ("America/New_York", "2026-03-02T15:00:00Z", "Due at 2026-03-02 10:00 EST."),
        ("Asia/Tokyo", "2026-03-03T01:00:00Z", "Due at 2026-03-03 10:00 JST."),
        ("Asia/Kolkata", "2026-03-03T04:30:00Z", "Due at 2026-03-03 10:00 IST."),
    ],
)
def test_tomorrow_at_ten_is_ten_on_the_wall(tmp_path_factory: Any, zone: str, at: str, words: str) -> None:
    with at_night(tmp_path_factory.mktemp("zone"), zone) as world:
        made = world.call("intention", action="set", description="Remind me to call Bob tomorrow at 10")

    assert made["triggerAt"] == at
    assert made["understood"].startswith(words)


def test_a_call_may_state_another_zone_than_that_of_the_machine(tmp_path: Path) -> None:
    with at_night(tmp_path, "America/New_York") as world:
        made = world.call(
            "intention", action="set", description="Stand up every monday at 9:00", timezone="asia/tokyo"
        )
        assert made["triggerAt"] == "2026-03-09T00:00:00Z"
        assert made["understood"].startswith(
            "Due every Monday at 09:00 Asia/Tokyo, next 2026-03-09 09:00 JST."
        )
        assert made["intention"]["trigger"]["timezone"] == "Asia/Tokyo"
        assert made["intention"]["trigger"]["at"] == "09:00"

        here = world.call("intention", action="list")["intentions"][0]
        assert here["when"] == "every Monday at 09:00 Asia/Tokyo"
        assert here["nextAt"] == "2026-03-09T00:00:00Z"


def test_a_wrong_zone_is_refused_with_the_nearest(tmp_path: Path) -> None:
    with at_night(tmp_path, "UTC") as world:
        error = world.refused("memory_timeline", timezone="Europe/Berln")
    assert error["hint"] == "Did you mean Europe/Berlin?"
    assert error["details"]["argument"] == "timezone"


def test_a_trigger_may_have_a_zone_or_an_offset_but_not_two(tmp_path: Path) -> None:
    rule = {"every": "day", "at": "09:00", "timezone": "Asia/Tokyo"}
    with at_night(tmp_path, "America/New_York") as world:
        made = world.call("intention", action="set", description="Stretch", trigger=rule)
        assert made["triggerAt"] == "2026-03-03T00:00:00Z"
        again = world.call(
            "intention", action="set", description="Again", trigger=made["intention"]["trigger"]
        )
        assert again["triggerAt"] == made["triggerAt"]
        error = world.refused(
            "intention", action="set", description="No", trigger={**rule, "at": "09:00+01:00"}
        )
        assert "offset" in error["message"]


def test_a_deadline_reminds_in_the_morning_of_the_person(tmp_path: Path) -> None:
    with at_night(tmp_path, "America/New_York") as world:
        made = world.call("intention", action="set", description="Send the report by friday")
        assert made["deadline"] == "2026-03-07T05:00:00Z"
        assert made["triggerAt"] == "2026-03-06T14:00:00Z"
        assert "2026-03-06 09:00 EST, ahead of its deadline" in made["understood"]


def test_a_snooze_ends_when_the_person_says(tmp_path: Path) -> None:
    with at_night(tmp_path, "Asia/Kolkata") as world:
        made = world.call("intention", action="set", description="Call Bob in 5 minutes")
        world.clock.advance(hours=1)
        update = {"action": "update", "id": made["intentionId"], "status": "snooze"}
        rested = world.call("intention", **update, snooze_until="tomorrow at 10")
        assert rested["intention"]["snoozedUntil"] == "2026-03-03T04:30:00Z"


def test_times_in_words_and_dates_are_read_in_the_zone_of_the_caller(tmp_path: Path) -> None:
    with at_night(tmp_path, "Asia/Tokyo") as world:
        old = world.remember(
            "The office is in Osaka.", valid_from="2026-02-01", valid_until="yesterday", force_create=True
        )
        assert world.get(old)["validFrom"] == "2026-01-31T15:00:00Z"
        assert world.get(old)["validUntil"] == "2026-03-01T15:00:00Z"
        new = world.remember("The office is in Kyoto.", valid_from="today", force_create=True)
        assert world.get(new)["validFrom"] == "2026-03-01T15:00:00Z"
        assert world.find("office", as_of="yesterday") == ["The office is in Osaka."]
        assert world.find("office", as_of="2026-03-02") == ["The office is in Kyoto."]


def test_what_a_text_says_about_its_end_ends_with_the_day_of_the_person(tmp_path: Path) -> None:
    with at_night(tmp_path, "America/New_York") as world:
        stored = world.call("smart_ingest", content="The lift is out of order until Friday.")
        assert stored["validUntil"] == "2026-03-07T05:00:00Z"
        text = shown(world, "memory.get", id=stored["nodeId"])
        assert "2026-03-07 00:00 EST" in text


def test_a_question_about_yesterday_is_about_the_yesterday_of_the_person(tmp_path: Path) -> None:
    with at_night(tmp_path, "America/New_York") as world:
        time = world.call("search", query="What did we deploy yesterday?")["time"]
        assert (time["since"], time["before"]) == ("2026-02-28T05:00:00Z", "2026-03-01T05:00:00Z")


def test_the_timeline_has_the_days_of_the_person(tmp_path: Path) -> None:
    with at_night(tmp_path, "America/New_York") as world:
        world.remember("Harbour runs on PostgreSQL 14.")
        found = world.call("memory_timeline")
        assert ([day["date"] for day in found["days"]], found["timezone"]) == (
            ["2026-03-01"],
            "America/New_York",
        )
        assert found["days"][0]["memories"][0]["createdAt"] == "2026-03-02T01:00:00Z"
        assert [day["date"] for day in world.call("memory_timeline", timezone="UTC")["days"]] == [
            "2026-03-02"
        ]
        assert "Days in America/New_York." in shown(world, "memory_timeline")


def test_what_people_see_is_labelled_with_the_zone(tmp_path: Path) -> None:
    with at_night(tmp_path, "Asia/Kolkata") as world:
        memory = world.remember("Harbour runs on PostgreSQL 14.")
        world.call("keys", action="create", label="laptop", expires="2026-04-01")
        for operation, arguments in (
            ("memory.list", {}),
            ("memory.history", {"id": memory}),
            ("memory_changelog", {}),
            ("search", {"query": "Harbour"}),
            ("system_status", {}),
        ):
            assert "2026-03-02 06:30 IST" in shown(world, operation, **arguments), operation
        assert "2026-04-02 00:00 IST" in shown(world, "keys.list")
        assert "2026-03-02 10:00 JST" in shown(world, "memory.list", timezone="Asia/Tokyo")


@pytest.mark.parametrize(
    ("settings", "caller_zone", "found"),
    [
        ({}, None, "UTC"),
        ({"timezone": "Asia/Tokyo"}, None, "Asia/Tokyo"),
        ({}, "Asia/Kolkata", "Asia/Kolkata"),
    ],
)
def test_a_network_client_gets_its_own_zone_that_of_the_settings_or_utc(
    tmp_path: Path, settings: dict[str, Any], caller_zone: str | None, found: str
) -> None:
    zone = zone_of(caller_zone) if caller_zone else None
    caller = type(LOCAL_USER)(name="client", permissions=LOCAL_USER.permissions, zone=zone)
    with open_world(tmp_path, **settings) as world:
        answer = world.app.call_tool(Invocation(name="memory_timeline", caller=caller))
    assert answer["timezone"] == found


def test_words_of_time_are_checked_without_a_clock() -> None:
    operation = registry.operations["search"]
    operation.parse({"query": "tea", "as_of": "yesterday"})
    now = NOW.astimezone(zone_of("Asia/Tokyo"))
    parsed = operation.parse({"query": "tea", "as_of": "2 hours ago"}, now=now)
    assert parsed.model_dump()["as_of"] == NOW - timedelta(hours=2)


def test_a_call_without_a_zone_is_in_utc(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        call = Call(engine=world.app.engine)
        assert call.local_now() == world.clock.now
        assert call.local_now().tzinfo is UTC


def test_a_time_zone_of_null_is_that_of_the_caller(tmp_path: Path) -> None:
    with at_night(tmp_path, "Asia/Tokyo") as world:
        for name in ("intention.set", "memory_timeline", "smart_ingest"):
            operation = registry.operations[name]
            answer = world.app.run(operation, {**operation.example, "timezone": None}, lambda *_: None)
            assert operation.render(answer)
        trigger = {"type": "recurring", "every": "day", "timezone": None}
        assert "JST" in shown(world, "intention.set", description="Water the plants", trigger=trigger)


def test_a_session_and_an_answer_have_the_days_of_the_person(tmp_path: Path) -> None:
    with at_night(tmp_path, "America/New_York") as world:
        world.remember("Harbour runs on PostgreSQL 14.")
        session = shown(world, "session_context", queries=["Harbour runs on PostgreSQL"])
        answer = shown(world, "deep_reference", query="Harbour runs on PostgreSQL")

    assert "(Mar 01, 2026) Harbour runs" in session
    assert "2026-03-01" in answer
    assert "2026-03-02" not in answer


@each(
    ("written", "at"),
    [
        ("2025-04-01", "2025-04-01T04:00:00Z"),
        ("2025-04-01T09:30:00", "2025-04-01T13:30:00Z"),
        ("2025-04-01T09:30:00Z", "2025-04-01T09:30:00Z"),
    ],
)
def test_a_date_in_a_note_is_a_day_of_the_person_who_imports_it(
    tmp_path_factory: Any, written: str, at: str
) -> None:
    folder = tmp_path_factory.mktemp("notes")
    (folder / "vault").mkdir()
    (folder / "vault" / "hives.md").write_text(f"---\ncreated: {written}\n---\nThe hives need care.\n")
    with at_night(folder / "data", "America/New_York") as world:
        call = Call(engine=world.app.engine, local=True, zone=zone_of("America/New_York"))
        registry.operations["import"].call(call, {"path": str(folder / "vault")})
        (note,) = world.call("memory", action="list")["results"]

    assert note["createdAt"] == at
