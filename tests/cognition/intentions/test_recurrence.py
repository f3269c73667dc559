"""A rule comes up strictly after a moment, never between, and says so when it never does."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vestige.cognition.intentions.recurrence import (
    LAST,
    Daily,
    Interval,
    Monthly,
    Pattern,
    Recurrence,
    Weekly,
    beginning,
    next_after,
    passed,
)
from vestige.core.timezone import zone_of

ZONES = ("UTC", "+02:00", "-07:30", "+14:00", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")
START = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)  # a Sunday
patterns: st.SearchStrategy[Pattern] = st.one_of(
    st.builds(Interval, minutes=st.integers(1, 3000)),
    st.builds(Daily, every=st.integers(1, 9)),
    st.builds(
        Weekly,
        every=st.integers(1, 5),
        weekdays=st.sets(st.integers(0, 6), min_size=1).map(lambda s: tuple(s)),
    ),
    st.builds(Monthly, every=st.integers(1, 5), day=st.sampled_from((LAST, 1, 15, 28, 29, 30, 31))),
)
rules = st.builds(
    Recurrence,
    pattern=patterns,
    start=st.integers(-500, 500).map(lambda hours: START + timedelta(hours=hours)),
    until=st.none() | st.integers(0, 5000).map(lambda hours: START + timedelta(hours=hours)),
    at=st.integers(0, 1439),
    zone=st.sampled_from([zone_of(name) for name in ZONES]),
)
moments = st.integers(-900, 9000).map(lambda hours: START + timedelta(hours=hours))


def rule(pattern: Pattern, *, at: int = 600, zone: str = "UTC", until: datetime | None = None) -> Recurrence:
    return Recurrence(pattern=pattern, start=START, until=until, at=at, zone=zone_of(zone))


def times(one: Recurrence, many: int) -> list[str]:
    found: list[str] = []
    moment: datetime | None = START
    while moment is not None and len(found) < many:
        moment = next_after(one, moment)
        if moment is not None:
            found.append(f"{moment:%m-%d %H:%M}")
    return found


@given(one=rules, moment=moments)
def test_the_next_time_is_later_within_bounds_and_nothing_lies_between(
    one: Recurrence, moment: datetime
) -> None:
    found = next_after(one, moment)

    if found is not None:
        assert found > moment
        assert found >= one.start
        assert one.until is None or found < one.until
        assert passed(one, moment, found) == (1, found)
        assert passed(one, moment, found - timedelta.resolution) == (0, None)


@given(one=rules, moment=moments, hours=st.integers(0, 2000))
def test_what_passed_is_what_one_meets_going_from_time_to_time(
    one: Recurrence, moment: datetime, hours: int
) -> None:
    end = moment + timedelta(hours=hours)
    met: list[datetime] = []
    found = next_after(one, moment)
    while found is not None and found <= end and len(met) < 50:
        met.append(found)
        found = next_after(one, found)
    if len(met) < 50:
        assert passed(one, moment, end) == (len(met), met[-1] if met else None)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (Daily(), ["03-01 10:00", "03-02 10:00"]),
        (Daily(every=3), ["03-01 10:00", "03-04 10:00"]),
        (Weekly(weekdays=(0, 4)), ["03-02 10:00", "03-06 10:00", "03-09 10:00"]),
        (Monthly(day=31), ["03-31 10:00", "05-31 10:00", "07-31 10:00"]),
        (Monthly(day=LAST), ["03-31 10:00", "04-30 10:00"]),
        (Monthly(day=30, months=(2, 4)), ["04-30 10:00", "04-30 10:00"]),
        (Interval(minutes=90), ["03-01 10:30", "03-01 12:00"]),
    ],
)
def test_patterns_come_up_on_their_days(pattern: Pattern, expected: list[str]) -> None:
    assert times(rule(pattern), len(expected)) == expected


def test_a_clock_ahead_of_utc_moves_the_day_too() -> None:
    monday_at_one = rule(Weekly(weekdays=(0,)), at=60, zone="+02:00")

    assert times(monday_at_one, 1) == ["03-01 23:00"]


def test_every_other_monday_begins_with_the_next_one() -> None:
    begun = beginning(rule(Weekly(every=2, weekdays=(0,))), START)

    assert begun is not None
    assert times(begun, 3) == ["03-02 10:00", "03-16 10:00", "03-30 10:00"]


@pytest.mark.parametrize(
    ("pattern", "until"),
    [
        (Monthly(day=30, months=(2,)), None),
        (Monthly(day=31, months=(4, 6, 9, 11)), None),
        (Weekly(weekdays=(0,)), START + timedelta(days=1)),
        (Interval(minutes=60), START + timedelta(minutes=60)),
    ],
)
def test_a_rule_that_never_comes_up_has_no_beginning(pattern: Pattern, until: datetime | None) -> None:
    assert beginning(rule(pattern, until=until), START) is None


def test_a_leap_day_comes_up_in_leap_years_however_far() -> None:
    leap = rule(Monthly(day=29, months=(2,)))

    assert next_after(leap, START) == datetime(2028, 2, 29, 10, 0, tzinfo=UTC)
    assert next_after(leap, datetime(2096, 3, 1, tzinfo=UTC)) == datetime(2104, 2, 29, 10, 0, tzinfo=UTC)


def test_the_last_year_of_the_calendar_is_the_end() -> None:
    last = datetime(9999, 12, 31, 23, 0, tzinfo=UTC)

    assert [
        next_after(rule(pattern), last) for pattern in (Daily(), Monthly(day=1), Interval(minutes=90))
    ] == [None] * 3
