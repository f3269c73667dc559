"""Sentences: what is to be done and when is understood, or left alone."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from testbed.failures import each
from vestige.cognition.intentions.intention import Priority
from vestige.cognition.intentions.parse import understand
from vestige.cognition.intentions.parse_time import Clock, clock_in
from vestige.cognition.intentions.serialise import form_of

NOW = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)  # a Sunday


def at(moment: str) -> dict[str, Any]:
    return {"type": "time", "at": f"2026-{moment}:00+00:00"}


def weekly(*days: str, clock: str, first: str, interval: int = 1) -> dict[str, Any]:
    start = f"2026-{first}:00+00:00"
    return {
        "type": "recurring",
        "every": "week",
        "interval": interval,
        "days": list(days),
        "at": clock,
        "start": start,
    }


@each(
    ("text", "to_do", "trigger"),
    [
        ("remind me to call Bob tomorrow at 9", "call Bob", at("03-02T09:00")),
        ("Remind me tomorrow at 9 to call Bob", "call Bob", at("03-02T09:00")),
        ("tomorrow at 9: call Bob", "call Bob", at("03-02T09:00")),
        ("Call Bob on friday", "Call Bob", at("03-06T09:00")),
        ("Call Bob on Sunday at 10:00", "Call Bob", at("03-01T10:00")),
        ("Call Bob next monday at 3pm", "Call Bob", at("03-02T15:00")),
        ("Call Bob at 8", "Call Bob", at("03-02T08:00")),
        ("Call Bob at noon", "Call Bob", at("03-01T12:00")),
        ("Call Bob tonight", "Call Bob", at("03-01T20:00")),
        ("Call Bob on May 8 at 17:30", "Call Bob", at("05-08T17:30")),
        ("Call Bob on 2026-04-01", "Call Bob", at("04-01T09:00")),
        ("Call Bob at 2026-04-01T10:00+02:00", "Call Bob", at("04-01T08:00")),
        ("Ship it at 16:30 +02:00", "Ship it", at("03-01T14:30")),
        ("remind me about the demo in a month", "the demo", at("04-01T09:00")),
        ("remind me about the demo in June", "the demo", at("06-01T09:00")),
        ("I need to buy milk tomorrow", "buy milk", at("03-02T09:00")),
        (
            "remind me to rotate the keys every monday at 10:00",
            "rotate the keys",
            weekly("monday", clock="10:00+00:00", first="03-02T10:00"),
        ),
        (
            "Every other Monday at 9am remind me to rotate the keys",
            "rotate the keys",
            weekly("monday", clock="09:00+00:00", first="03-02T09:00", interval=2),
        ),
        (
            "Review PRs on tuesdays and fridays at 9:30",
            "Review PRs",
            weekly("tuesday", "friday", clock="09:30+00:00", first="03-03T09:30"),
        ),
        (
            "don't forget to update the changelog when I work on auth.py",
            "update the changelog",
            {"type": "context", "file_pattern": "auth.py"},
        ),
        (
            "remind me to check the indexes when I open .sql files",
            "check the indexes",
            {"type": "context", "file_pattern": "*.sql"},
        ),
        (
            "When I'm working on the payments project, remind me to bump the SDK",
            "bump the SDK",
            {"type": "context", "codebase": "payments"},
        ),
        (
            "remind me to ask about refunds when we talk about billing",
            "ask about refunds",
            {"type": "context", "topic": "billing"},
        ),
        (
            "I should check migrations when I edit db/*.sql in codebase shop",
            "check migrations",
            {"type": "context", "codebase": "shop", "file_pattern": "db/*.sql"},
        ),
        (
            "remind me to write notes when the deploy finishes",
            "write notes",
            {"type": "event", "condition": "the deploy finishes"},
        ),
        (
            "remind me to add a test when I work on the login flow",
            "add a test",
            {"type": "context", "topic": "login flow"},
        ),
        ("remind me tomorrow", "remind me tomorrow", at("03-02T09:00")),
    ],
)
def test_words_that_say_when_are_understood(text: str, to_do: str, trigger: dict[str, Any]) -> None:
    understood = understand(text, NOW)

    assert (understood.description, form_of(understood.trigger)) == (to_do, trigger)


@pytest.mark.parametrize(
    ("phrase", "minutes"),
    [("in 2 hours", 120), ("in half an hour", 30), ("in a week", 10_080), ("in 90 mins", 90)],
)
def test_a_while_from_now_is_a_duration(phrase: str, minutes: float) -> None:
    form = form_of(understand(f"call Bob {phrase}", NOW).trigger)

    assert (form["type"], form["in_minutes"]) == ("duration", minutes)


@each(
    ("phrase", "rule"),
    [
        ("every 30 minutes", {"every": "minute", "interval": 30}),
        ("hourly", {"every": "hour", "interval": 1}),
        ("daily at 7:15", {"every": "day", "at": "07:15+00:00"}),
        ("every evening", {"every": "day", "at": "18:00+00:00"}),
        ("every 3 days at 8am", {"every": "day", "interval": 3}),
        ("every weekday at 9", {"days": ["monday", "tuesday", "wednesday", "thursday", "friday"]}),
        ("each week on tuesday at 09:00+02:00", {"days": ["tuesday"], "at": "09:00+02:00"}),
        ("weekly", {"every": "week", "days": ["sunday"]}),
        ("on the 15th of every month", {"every": "month", "day": 15}),
        ("every month on the last day", {"every": "month", "day": -1}),
        ("every month", {"every": "month", "day": 1}),
        ("every 45 minutes until friday", {"every": "minute", "until": "2026-03-07T00:00:00+00:00"}),
    ],
)
def test_rules_are_understood(phrase: str, rule: dict[str, Any]) -> None:
    form = form_of(understand(f"stretch {phrase}", NOW).trigger)

    assert form["type"] == "recurring"
    assert rule.items() <= form.items()


@each(
    "text",
    [
        "Check what happens when the cache is full",
        "Fix the critical path tests",
        "Move to the office in Berlin",
        "Discuss the 2026 budget",
        "Read chapter 3 on the train",
        "Look at issue 12 at length",
        "Explain why the job runs every time",
        "Find out what happened yesterday",
        "Call Bob on 8 May 2020",
        "Plan for in 9999 years",
        "Call Bob at 2026-13-40T10:00",
        "Call Bob on 31 June",
        "Stretch every day until it helps",
        "Stretch every 0 days",
        "When I open *.sql, it crashes",
        "When in doubt, ask Eve",
        "Fix the crash when I open large.pdf",
        "Call Bob on the 32nd",
        "tomorrow",
        "",
        "x" * 600 + " tomorrow",
    ],
)
def test_what_says_nothing_of_when_is_left_as_it_is(text: str) -> None:
    understood = understand(text, NOW)

    assert form_of(understood.trigger) == {"type": "manual"}
    assert (understood.description, understood.priority, understood.deadline) == (text, None, None)


@pytest.mark.parametrize(
    ("text", "deadline"),
    [
        ("Finish the report by friday", "03-07T00:00"),
        ("Finish the report before friday", "03-06T00:00"),
        ("Finish the report by tomorrow at 9", "03-02T09:00"),
        ("Finish the report today", "03-02T00:00"),
        ("Finish the report by 2026-04-01", "04-02T00:00"),
        ("Finish the report by May", "06-01T00:00"),
        ("Finish the report due on the 12th", "03-13T00:00"),
        ("Finish the report by the 12th of the month", "03-13T00:00"),
        ("Finish the report before the 12th", "03-12T00:00"),
        ("Finish the report no later than 5 pm", "03-01T17:00"),
        ("Finish the report not later than friday at 17:00", "03-06T17:00"),
        ("Finish the report by friday at the latest", "03-07T00:00"),
        ("Finish the report within 3 days", "03-04T09:00"),
        ("Finish the report before the end of the month", "04-01T00:00"),
        ("Finish the report by the end of next week", "03-09T00:00"),
        ("Finish the report, deadline friday", "03-07T00:00"),
        ("Finish the report is due friday", "03-07T00:00"),
        ("Before friday, Finish the report", "03-06T00:00"),
    ],
)
def test_a_day_by_which_it_must_be_done_is_a_deadline(text: str, deadline: str) -> None:
    understood = understand(text, NOW)

    assert understood.description == "Finish the report"
    assert understood.deadline == datetime.fromisoformat(f"2026-{deadline}:00+00:00")


@pytest.mark.parametrize(
    ("text", "priority", "to_do"),
    [
        ("URGENT: fix login", Priority.HIGH, "fix login"),
        ("fix login asap", Priority.HIGH, "fix login"),
        ("Fix login (critical)", Priority.CRITICAL, "Fix login"),
        ("fix login tomorrow, it's urgent!", Priority.HIGH, "fix login"),
        ("Fix login (not urgent)", Priority.LOW, "Fix login"),
        ("low priority: fix login", Priority.LOW, "fix login"),
        ("urgent", None, "urgent"),
    ],
)
def test_a_label_tells_how_urgent_it_is(text: str, priority: Priority | None, to_do: str) -> None:
    understood = understand(text, NOW)

    assert (understood.priority, understood.description) == (priority, to_do)


@each(
    ("text", "clock"),
    [
        ("09:00", (540, None)),
        ("9 pm", (1260, None)),
        ("12am", (0, None)),
        ("noon", (720, None)),
        ("23:59Z", (1439, UTC)),
        ("07:30-05:30", (450, timezone(-timedelta(hours=5, minutes=30)))),
        ("9:00 Asia/Tokyo", (540, ZoneInfo("Asia/Tokyo"))),
        ("9:00 Asia/Atlantis", None),
        ("24:00", None),
        ("13pm", None),
        ("09:60", None),
        ("09:00+24:00", None),
        ("nine", None),
    ],
)
def test_a_clock_time_is_read_exactly_or_not_at_all(text: str, clock: Clock | None) -> None:
    assert clock_in(text) == clock


words = st.sampled_from(
    "remind me to in at on every monday tomorrow 9 10:00 2 hours when I open a.py by friday asap until the "
    "31st of month next week may +99:99 0 minutes 99 other and , : urgent 2026-13-40 25:00".split()
)


@given(text=st.lists(words, max_size=12).map(" ".join) | st.text(max_size=80))
def test_no_words_whatever_make_it_fail_or_lose_what_is_to_be_done(text: str) -> None:
    understood = understand(text, NOW)

    assert bool(understood.description) == bool(text.strip())


@pytest.mark.parametrize(
    ("text", "to_do", "context"),
    [
        ("When I open *.sql, run the migrations", "run the migrations", {"file_pattern": "*.sql"}),
        ("Run the migrations when I open *.sql", "Run the migrations", {"file_pattern": "*.sql"}),
        ("whenever I work on auth.py, check the tokens", "check the tokens", {"file_pattern": "auth.py"}),
        ("When we talk about billing, mention the refund", "mention the refund", {"topic": "billing"}),
        ("once I'm back in the shop repo, drop the branch", "drop the branch", {"codebase": "shop"}),
    ],
)
def test_a_context_before_a_task_needs_no_remind_me(text: str, to_do: str, context: dict[str, str]) -> None:
    understood = understand(text, NOW)

    assert understood.description == to_do
    assert form_of(understood.trigger) == {"type": "context", **context}


@each(
    ("text", "to_do", "moment"),
    [
        ("in 2 hours check oven", "check oven", "03-01T11:00"),
        ("remind me in 20 minutes take the cake out", "take the cake out", "03-01T09:20"),
        ("in half an hour call Bob", "call Bob", "03-01T09:30"),
        ("in an hour and a half check the oven", "check the oven", "03-01T10:30"),
        ("check the oven in 1h30", "check the oven", "03-01T10:30"),
        ("in an hour's time call Bo", "call Bo", "03-01T10:00"),
        ("2 hours from now check the oven", "check the oven", "03-01T11:00"),
        ("tomorrow at 9 call mum", "call mum", "03-02T09:00"),
        ("call mum tomorrow 9", "call mum", "03-02T09:00"),
        ("tmrw call mum", "call mum", "03-02T09:00"),
        ("call mum day after tomorrow", "call mum", "03-03T09:00"),
        ("At 10 call Bob", "call Bob", "03-01T10:00"),
        ("at midnight restart the server", "restart the server", "03-02T00:00"),
        ("call mum at nine pm", "call mum", "03-01T21:00"),
        ("at half past nine call mum", "call mum", "03-01T09:30"),
        ("call mum at quarter to ten", "call mum", "03-01T09:45"),
        ("at ten to eleven call mum", "call mum", "03-01T10:50"),
        ("call mum at 9 in the evening", "call mum", "03-01T21:00"),
        ("call mum in the morning", "call mum", "03-02T09:00"),
        ("call mum today at 6", "call mum", "03-01T18:00"),
        ("on friday pay the rent", "pay the rent", "03-06T09:00"),
        ("friday pay the rent", "pay the rent", "03-06T09:00"),
        ("Tues 3pm dentist", "dentist", "03-03T15:00"),
        ("next friday 10am dentist", "dentist", "03-06T10:00"),
        ("in two days at 9 call mum", "call mum", "03-03T09:00"),
        ("in a week review the PR", "review the PR", "03-08T09:00"),
        ("on 3 December renew the passport", "renew the passport", "12-03T09:00"),
        ("the 5th pay the rent", "pay the rent", "03-05T09:00"),
        ("set a reminder for 5pm to call Ana", "call Ana", "03-01T17:00"),
        ("reminder: call Ana at 5pm", "call Ana", "03-01T17:00"),
        ("remind me of the dentist tomorrow at 3pm", "the dentist", "03-02T15:00"),
        ("remind me at noon that the oven is on", "the oven is on", "03-01T12:00"),
        ("ping me in 10 min about the build", "the build", "03-01T09:10"),
        ("at 6pm I must leave", "I must leave", "03-01T18:00"),
        ("tomorrow is Bo's birthday", "tomorrow is Bo's birthday", "03-02T09:00"),
        ("fix what broke yesterday tomorrow at 9", "fix what broke yesterday", "03-02T09:00"),
    ],
)
def test_a_time_is_understood_in_the_order_in_which_people_say_it(text: str, to_do: str, moment: str) -> None:
    read = understand(text, NOW)

    assert (read.description, form_of(read.trigger)["at"]) == (to_do, at(moment)["at"])


@each(
    ("text", "to_do", "rule"),
    [
        ("every day at 8 take the pills", "take the pills", {"every": "day", "at": "08:00+00:00"}),
        ("daily at 8 take the pills", "take the pills", {"every": "day", "at": "08:00+00:00"}),
        ("every 2 days water the plants", "water the plants", {"every": "day", "interval": 2}),
        ("weekdays at 9 stand-up", "stand-up", {"every": "week", "at": "09:00+00:00"}),
        ("pay the rent on the first of every month", "pay the rent", {"every": "month", "day": 1}),
    ],
)
def test_a_rule_may_come_before_what_is_to_be_done(text: str, to_do: str, rule: dict[str, Any]) -> None:
    read = understand(text, NOW)

    assert read.description == to_do
    assert rule.items() <= form_of(read.trigger).items()


@each(
    ("text", "to_do", "deadline"),
    [
        ("end of the day: push the branch", "push the branch", datetime(2026, 3, 2, tzinfo=UTC)),
        ("push the branch eod", "push the branch", datetime(2026, 3, 2, tzinfo=UTC)),
        ("later today push the branch", "push the branch", datetime(2026, 3, 2, tzinfo=UTC)),
        ("at the end of the month invoice clients", "invoice clients", datetime(2026, 4, 1, tzinfo=UTC)),
        ("by tomorrow finish the slides", "finish the slides", datetime(2026, 3, 3, tzinfo=UTC)),
    ],
)
def test_a_deadline_may_come_before_what_is_to_be_done(text: str, to_do: str, deadline: datetime) -> None:
    read = understand(text, NOW)

    assert (read.description, read.deadline) == (to_do, deadline)


@each(
    "text",
    [
        "Friday deploys are forbidden",
        "monday is a holiday",
        "daily backups go to the vault",
        "in 2 places fix the typo",
        "in production check the logs",
        "at one point fix the docs",
        "every test must pass",
        "two eggs for breakfast",
        "may need a new laptop",
    ],
)
def test_what_only_begins_like_a_time_is_the_task(text: str) -> None:
    read = understand(text, NOW)

    assert (read.description, form_of(read.trigger)["type"]) == (text, "manual")


@each(
    ("text", "over"),
    [
        ("call mum yesterday at 9", "yesterday at 9"),
        ("call mum yesterday", "yesterday"),
        ("call mum last friday at 9", "last friday at 9"),
        ("call mum 2 hours ago", "2 hours ago"),
        ("call mum today at 8am", "today at 8am"),
        ("meet Bo on 2025-01-01 at 10:00", "on 2025-01-01 at 10:00"),
    ],
)
def test_a_time_that_is_over_is_named_and_never_becomes_one_to_come(text: str, over: str) -> None:
    read = understand(text, NOW)

    assert (read.description, form_of(read.trigger)["type"], read.unread) == (text, "manual", over)
