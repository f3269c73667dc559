"""Times in words are read in the zone of the person who says them, and are exact in UTC."""

from datetime import UTC, datetime

import pytest

from testbed.failures import each
from vestige.cognition.intentions.parse import understand
from vestige.cognition.intentions.parse_time import stated_period
from vestige.cognition.intentions.recurrence import Daily, Recurrence, next_after
from vestige.cognition.intentions.serialise import form_of, trigger_of
from vestige.cognition.intentions.triggers import Recurring, Time
from vestige.core.timezone import zone_of

# 20:00 on Sunday in New York, 10:00 on Monday in Tokyo, 06:30 on Monday in Kolkata.
NOW = datetime(2026, 3, 2, 1, 0, tzinfo=UTC)


@each(
    ("zone", "words", "utc"),
    [
        ("America/New_York", "tomorrow at 10", "03-02 15:00"),
        ("Asia/Tokyo", "tomorrow at 10", "03-03 01:00"),
        ("Asia/Kolkata", "tomorrow at 10", "03-03 04:30"),
        ("America/New_York", "at 5pm", "03-02 22:00"),
        ("Asia/Tokyo", "at 5pm", "03-02 08:00"),
        ("Asia/Kolkata", "at 5pm", "03-02 11:30"),
        ("America/New_York", "on monday", "03-02 14:00"),
        ("Asia/Tokyo", "on monday", "03-09 00:00"),
        ("Asia/Tokyo", "at 5pm UTC", "03-02 17:00"),
        ("Asia/Tokyo", "at 17:00+02:00", "03-02 15:00"),
        ("Asia/Tokyo", "at 10:00 Europe/Berlin", "03-02 09:00"),
        ("Asia/Tokyo", "on 2026-03-05 18:00", "03-05 09:00"),
        ("America/New_York", "in 2 hours", "03-02 03:00"),
        # The clocks go forward on 8 March: nine o'clock stays nine o'clock, and 24 hours are 24 hours.
        ("America/New_York", "next sunday at 9", "03-08 13:00"),
        ("America/New_York", "in 10 days", "03-12 01:00"),
        ("America/New_York", "on 8 March at 2:30", "03-08 07:30"),
    ],
)
def test_a_reminder_is_set_for_the_clock_on_the_wall(zone: str, words: str, utc: str) -> None:
    read = understand(f"remind me to call Bob {words}", NOW.astimezone(zone_of(zone)))

    assert isinstance(read.trigger, Time)
    assert read.trigger.at.tzinfo is UTC
    assert f"{read.trigger.at:%m-%d %H:%M}" == utc


@each(
    ("zone", "words", "utc"),
    [
        ("America/New_York", "before Friday", "03-06 05:00"),
        ("Asia/Tokyo", "before Friday", "03-05 15:00"),
        ("Asia/Kolkata", "by friday", "03-06 18:30"),
        ("America/New_York", "by the end of the week", "03-02 05:00"),
        ("Asia/Tokyo", "today", "03-02 15:00"),
    ],
)
def test_a_deadline_ends_with_the_day_of_the_person(zone: str, words: str, utc: str) -> None:
    read = understand(f"send the report {words}", NOW.astimezone(zone_of(zone)))

    assert read.deadline is not None
    assert f"{read.deadline:%m-%d %H:%M}" == utc


def test_a_rule_keeps_its_clock_time_when_daylight_saving_begins_and_ends() -> None:
    read = understand("stand up every sunday at 9:00", NOW.astimezone(zone_of("America/New_York")))

    assert isinstance(read.trigger, Recurring)
    rule, times = read.trigger.rule, []
    for after in (datetime(2026, 3, 2, tzinfo=UTC), datetime(2026, 10, 26, tzinfo=UTC)):
        found = next_after(rule, after)
        assert found is not None
        times.append(f"{found:%m-%d %H:%M}")
    assert times == ["03-08 13:00", "11-01 14:00"]


def test_a_rule_comes_once_on_the_days_on_which_the_clocks_change() -> None:
    rule = Recurrence(pattern=Daily(), start=NOW, at=150, zone=zone_of("America/New_York"))
    moment, times = datetime(2026, 3, 7, tzinfo=UTC), []
    for _ in range(3):
        found = next_after(rule, moment)
        assert found is not None
        moment = found
        times.append(f"{found.astimezone(rule.zone):%m-%d %H:%M}")
    assert times == ["03-07 02:30", "03-08 03:30", "03-09 02:30"]

    twice = Recurrence(pattern=Daily(), start=NOW, at=90, zone=rule.zone)
    first = next_after(twice, datetime(2026, 11, 1, 4, tzinfo=UTC))
    assert first == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)
    assert next_after(twice, first) == datetime(2026, 11, 2, 6, 30, tzinfo=UTC)


def test_a_stored_rule_keeps_its_zone_and_has_an_offset_for_programs_that_do_not_know_it() -> None:
    rule = Recurrence(pattern=Daily(), start=NOW, at=540, zone=zone_of("America/New_York"))
    form = form_of(Recurring(rule=rule))
    assert (form["at"], form["timezone"]) == ("09:00-05:00", "America/New_York")
    assert trigger_of(form) == Recurring(rule=rule)

    lost = trigger_of({**form, "timezone": "Atlantis/Capital"})
    assert isinstance(lost, Recurring)
    assert lost.rule.zone == zone_of("-05:00")


@each(
    ("words", "coming", "start", "end"),
    [
        ("now", False, "03-02 01:00", "03-02 01:00"),
        ("today", False, "03-01 15:00", "03-02 15:00"),
        ("yesterday", False, "02-28 15:00", "03-01 15:00"),
        ("yesterday at 10", False, "03-01 01:00", "03-01 01:00"),
        ("2 hours ago", False, "03-01 23:00", "03-01 23:00"),
        ("3 days ago", False, "02-27 01:00", "02-27 01:00"),
        ("a month ago", False, "02-02 01:00", "02-02 01:00"),
        ("last week", False, "02-22 15:00", "03-01 15:00"),
        ("friday", False, "02-26 15:00", "02-27 15:00"),
        ("friday", True, "03-05 15:00", "03-06 15:00"),
        ("on friday at 9", True, "03-06 00:00", "03-06 00:00"),
        ("5pm", True, "03-02 08:00", "03-02 08:00"),
        ("tomorrow at 10", True, "03-03 01:00", "03-03 01:00"),
        ("tomorrow at 10", False, "03-03 01:00", "03-03 01:00"),
        ("in 2 hours", True, "03-02 03:00", "03-02 03:00"),
        ("March 2025", False, "02-28 15:00", "03-31 15:00"),
    ],
)
def test_a_time_in_words_is_a_moment_or_days_of_the_zone(
    words: str, coming: bool, start: str, end: str
) -> None:
    found = stated_period(words, NOW.astimezone(zone_of("Asia/Tokyo")), coming=coming)

    assert found is not None
    assert (f"{found.start:%m-%d %H:%M}", f"{found.end:%m-%d %H:%M}") == (start, end)
    assert found.start.tzinfo is found.end.tzinfo is UTC


@pytest.mark.parametrize("words", ["", "tea", "25:00", "on 31 June", "soon", "the day after", "5 apples ago"])
def test_other_words_are_not_a_time(words: str) -> None:
    assert stated_period(words, NOW, coming=False) is None
