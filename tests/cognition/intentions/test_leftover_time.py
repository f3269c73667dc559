"""Words that say when are read whole or not at all, and what was not read is named."""

from datetime import UTC, datetime
from typing import Any

import pytest

from testbed.failures import each
from vestige.cognition.intentions.parse import understand
from vestige.cognition.intentions.serialise import form_of

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)  # a Sunday
WEEK = ["monday", "tuesday", "wednesday", "thursday", "friday"]


def read(text: str) -> tuple[str, dict[str, Any]]:
    understood = understand(text, NOW)
    return understood.description, form_of(understood.trigger)


@each(
    ("text", "to_do", "moment"),
    [
        ("At 10:30 call Bob", "call Bob", "03-01T10:30"),
        ("Tomorrow at 10:30 call Bob", "call Bob", "03-02T10:30"),
        ("Tomorrow at 10:30: call Bob", "call Bob", "03-02T10:30"),
        ("remind me at 10:30 to call Bob", "call Bob", "03-01T10:30"),
        ("remind me at 10:00 +02:00 to call", "call", "03-02T08:00"),
        ("Tomorrow morning call Bob", "call Bob", "03-02T09:00"),
        ("Tomorrow evening at 7:15 call Bob", "call Bob", "03-02T19:15"),
        ("Call Bob tonight at 8", "Call Bob", "03-01T20:00"),
        ("Call Bob at 7 tomorrow evening", "Call Bob", "03-02T19:00"),
        ("Call Bob tomorrow morning at 7", "Call Bob", "03-02T07:00"),
        ("Tomorrow call Bob", "call Bob", "03-02T09:00"),
        ("Tomorrow: call Bob at 10:30", "call Bob", "03-02T10:30"),
        ("At 10:30 call Bob on friday", "call Bob", "03-06T10:30"),
    ],
)
def test_a_clock_time_is_not_cut_at_its_colon(text: str, to_do: str, moment: str) -> None:
    assert read(text) == (to_do, {"type": "time", "at": f"2026-{moment}:00+00:00"})


@each(
    ("text", "to_do", "rule"),
    [
        ("Every day at 8:15 take the pills", "take the pills", {"every": "day", "at": "08:15+00:00"}),
        (
            "every mon, wed and fri at 07:30 run",
            "run",
            {"days": ["monday", "wednesday", "friday"], "at": "07:30+00:00"},
        ),
        (
            "remind me every monday at 10:00 starting 2027-01-01 to x",
            "x",
            {"days": ["monday"], "at": "10:00+00:00", "start": "2027-01-04T10:00:00+00:00"},
        ),
        (
            "remind me to water plants every monday at 10:00 starting 2027-01-01",
            "water plants",
            {"days": ["monday"], "at": "10:00+00:00", "start": "2027-01-04T10:00:00+00:00"},
        ),
        (
            "stretch every 2 hours starting tomorrow at 9 until friday",
            "stretch",
            {"every": "hour", "start": "2026-03-02T09:00:00+00:00", "until": "2026-03-07T00:00:00+00:00"},
        ),
        (
            "stretch every day starting tomorrow at 10:15",
            "stretch",
            {"every": "day", "at": "10:15+00:00", "start": "2026-03-02T10:15:00+00:00"},
        ),
        (
            "remind me to water plants every year on may 5",
            "water plants",
            {"every": "month", "day": 5, "months": [5], "start": "2026-05-05T09:00:00+00:00"},
        ),
        ("remind me to pay every 5th of may at 8am", "pay", {"day": 5, "months": [5], "at": "08:00+00:00"}),
        (
            "remind me to water plants from monday to friday at 9",
            "water plants",
            {"days": WEEK, "at": "09:00+00:00"},
        ),
        ("remind me monday to friday at 8:45 to stretch", "stretch", {"days": WEEK, "at": "08:45+00:00"}),
        ("stretch friday through monday", "stretch", {"days": ["monday", "friday", "saturday", "sunday"]}),
        ("stretch every day at 10:30 starting today", "stretch", {"every": "day", "at": "10:30+00:00"}),
        ("stretch every evening at 7", "stretch", {"every": "day", "at": "19:00+00:00"}),
        ("stretch on weekends", "stretch", {"days": ["saturday", "sunday"]}),
    ],
)
def test_a_rule_is_read_with_all_that_is_said_of_it(text: str, to_do: str, rule: dict[str, Any]) -> None:
    description, form = read(text)

    assert (description, form["type"]) == (to_do, "recurring")
    assert rule.items() <= form.items()


@each(
    "words",
    [
        "on the first monday of every month",
        "tomorrow or friday",
        "starting 2027-01-01",
        "every day except on friday",
        "every monday at 10:00 starting when it helps",
        "every monday at 10:00 CET",
        "not on friday",
        "at 10:00 Europe/Atlantis",
        "between monday and friday",
        "when the tests pass at 9",
        "when the tests pass tomorrow",
        "tomorrow until friday",
        "around 5pm",
        "in the small hours of tomorrow",
    ],
)
def test_what_is_not_read_whole_is_not_read_at_all_and_named(words: str) -> None:
    understood = understand(f"remind me to water plants {words}", NOW)

    assert form_of(understood.trigger) == {"type": "manual"}
    assert (understood.description, understood.deadline) == (f"water plants {words}", None)
    assert understood.unread
    assert understood.unread in words


@pytest.mark.parametrize(
    "text",
    [
        "remind me to water plants tomorrow when I open *.py",
        "remind me to water plants when I open *.py tomorrow",
        "remind me tomorrow when I open *.py to water plants",
        "when I open *.py, remind me to water plants tomorrow",
    ],
)
def test_a_day_and_a_file_are_both_waited_for(text: str) -> None:
    assert read(text) == (
        "water plants",
        {
            "type": "all",
            "all": [
                {"type": "time", "at": "2026-03-02T00:00:00+00:00"},
                {"type": "context", "file_pattern": "*.py"},
            ],
        },
    )


def test_a_rule_and_a_file_come_up_once_each_time_the_rule_does() -> None:
    description, form = read("remind me to run the linter every day when I open *.py")

    assert (description, form["type"]) == ("run the linter", "all")
    assert [(one["type"], one.get("at")) for one in form["all"]] == [
        ("recurring", "00:00+00:00"),
        ("context", None),
    ]


def test_a_time_and_a_deadline_are_both_kept() -> None:
    understood = understand("remind me tomorrow to finish the report by friday", NOW)

    assert understood.description == "finish the report"
    assert form_of(understood.trigger) == {"type": "time", "at": "2026-03-02T09:00:00+00:00"}
    assert understood.deadline == datetime(2026, 3, 7, tzinfo=UTC)


@each(
    ("phrase", "minutes"),
    [
        ("in 1.5 hours", 90),
        ("in 2h", 120),
        ("in 30m", 30),
        ("in 1h 30m", 90),
        ("in 90 seconds", 1.5),
        ("in 2 hours and 30 minutes", 150),
        ("in 1 day, 2 hours and 5 min", 1565),
        ("in an hour and a half", 90),
        ("two hours from now", 120),
        ("half an hour from now", 30),
    ],
)
def test_a_while_is_read_however_it_is_told(phrase: str, minutes: float) -> None:
    assert read(f"call Bob {phrase}")[1]["in_minutes"] == pytest.approx(minutes)
    assert read(f"remind me {phrase} to call Bob")[1]["in_minutes"] == pytest.approx(minutes)


@each(
    ("text", "unread"),
    [
        ("call Bob at 7.30", "at 7.30"),
        ("call Bob on 31.12.2026", "on 31.12.2026"),
        ("call Bob on 12/31/2026", "on 12/31/2026"),
        ("call Bob on 8 May 2020", "on 8 May 2020"),
        ("remind me at 10:00 CET to call", "at 10:00 CET"),
        ("At 10 or so call Bob", "At 10"),
        ("in 1,5 hours call Bob", "in 1,5 hours"),
        ("Read chapter 3 on the train", None),
        ("Explain why the job runs every time", None),
        ("Look at issue 12 at length", None),
        ("Move to the office in Berlin", None),
    ],
)
def test_words_that_look_like_a_time_and_were_not_read_are_named(text: str, unread: str | None) -> None:
    understood = understand(text, NOW)

    assert form_of(understood.trigger) == {"type": "manual"}
    assert understood.unread == unread


@pytest.mark.parametrize(
    ("phrase", "deadline"),
    [("by end of day", "03-02"), ("by eod", "03-02"), ("by the end of the month", "04-01")],
)
def test_the_end_of_a_day_or_month_is_a_deadline(phrase: str, deadline: str) -> None:
    understood = understand(f"Finish the report {phrase}", NOW)

    assert understood.description == "Finish the report"
    assert understood.deadline == datetime.fromisoformat(f"2026-{deadline}T00:00:00+00:00")


@pytest.mark.parametrize(
    ("text", "to_do"),
    [
        ("Log in tomorrow", "Log in"),
        ("Log in friday at 9", "Log in"),
        ("Turn it on at 9", "Turn it on"),
        ("Explain each endpoint by friday", "Explain each endpoint"),
        ("Prepare the report of the year by friday", "Prepare the report of the year"),
    ],
)
def test_words_that_only_look_like_more_of_the_time_do_no_harm(text: str, to_do: str) -> None:
    understood = understand(text, NOW)

    assert (understood.description, understood.unread) == (to_do, None)


@pytest.mark.parametrize("name", ["shop", "the shop", "the shop repo"])
def test_where_one_is_is_a_codebase(name: str) -> None:
    assert read(f"remind me to run the linter when I'm in {name}")[1] == {
        "type": "context",
        "codebase": "shop",
    }


def test_a_file_one_is_in_is_a_file() -> None:
    assert read("remind me to test it when I am in auth.py")[1] == {
        "type": "context",
        "file_pattern": "auth.py",
    }
