"""Time zones: found by name, offset or rule, and printed with the time."""

from datetime import UTC, date, datetime, timedelta

import pytest

from vestige.core.errors import InvalidInput
from vestige.core.timezone import (
    at_clock,
    current_zone,
    in_zone,
    known_zone,
    posix_zone,
    time_text,
    zone_name,
    zone_of,
)

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("name", "found", "text"),
    [
        ("UTC", "UTC", "2026-03-02 12:00 UTC"),
        ("Etc/UTC", "UTC", "2026-03-02 12:00 UTC"),
        ("America/New_York", "America/New_York", "2026-03-02 07:00 EST"),
        ("america/new york", "America/New_York", "2026-03-02 07:00 EST"),
        ("Asia/Tokyo", "Asia/Tokyo", "2026-03-02 21:00 JST"),
        ("Asia/Kolkata", "Asia/Kolkata", "2026-03-02 17:30 IST"),
        ("+05:30", "+05:30", "2026-03-02 17:30 UTC+05:30"),
        ("UTC-3", "-03:00", "2026-03-02 09:00 UTC-03:00"),
        ("America/Sao_Paulo", "America/Sao_Paulo", "2026-03-02 09:00 UTC-03:00"),
    ],
)
def test_a_zone_is_found_by_its_name_and_labels_the_times_it_prints(name: str, found: str, text: str) -> None:
    zone = zone_of(name)
    assert zone_name(zone) == found
    assert zone_of(found) == zone
    assert time_text(NOON, zone) == text


@pytest.mark.parametrize(
    "name", ["", "Mars/Olympus", "America", "../../etc/passwd", "/etc/passwd", "x" * 300]
)
def test_what_is_not_a_zone_is_refused(name: str) -> None:
    assert known_zone(name) is None
    with pytest.raises(InvalidInput) as refused:
        zone_of(name)
    assert refused.value.details == {"argument": "timezone"}


def test_a_misspelt_zone_is_answered_with_the_nearest() -> None:
    with pytest.raises(InvalidInput) as refused:
        zone_of("Europe/Berln")
    assert refused.value.hint == "Did you mean Europe/Berlin?"


def test_a_rule_of_the_variable_tz_is_a_zone_with_daylight_saving() -> None:
    zone = posix_zone("EST5EDT,M3.2.0,M11.1.0")
    assert zone is not None
    assert time_text(NOON, zone) == "2026-03-02 07:00 EST"
    assert time_text(NOON.replace(month=7), zone) == "2026-07-02 08:00 EDT"
    assert posix_zone("not a rule") is None


def test_a_clock_time_that_the_clocks_skip_is_an_hour_later_and_of_two_the_first_counts() -> None:
    new_york = zone_of("America/New_York")
    assert at_clock(date(2026, 3, 8), 150, new_york) == datetime(2026, 3, 8, 7, 30, tzinfo=UTC)  # 03:30 EDT
    assert at_clock(date(2026, 11, 1), 90, new_york) == datetime(2026, 11, 1, 5, 30, tzinfo=UTC)  # 01:30 EDT


def test_the_zone_of_a_call_ends_with_it() -> None:
    before = current_zone()
    with in_zone(zone_of("Asia/Tokyo")):
        assert time_text(NOON) == "2026-03-02 21:00 JST"
    assert current_zone() is before


def test_the_ends_of_the_calendar_are_printed_as_they_are() -> None:
    assert time_text(datetime.max.replace(tzinfo=UTC), zone_of("Asia/Tokyo")) == "9999-12-31 23:59 UTC"


def test_the_name_of_a_posix_rule_finds_the_rule_again() -> None:
    rule = "EST5EDT,M3.2.0,M11.1.0"
    zone = posix_zone(rule)
    assert zone is not None
    assert zone_name(zone) == rule
    again = known_zone(rule)
    assert again is not None
    summer, winter = datetime(2026, 7, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    hours = [moment.astimezone(again).utcoffset() for moment in (summer, winter)]
    assert hours == [timedelta(hours=-4), timedelta(hours=-5)]
