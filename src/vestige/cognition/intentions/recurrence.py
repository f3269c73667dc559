"""Recurrence rules: the exact moments at which a recurring intention is triggered.

A clock time is one of a time zone: 09:00 in New York is 14:00 UTC in winter and 13:00 UTC in summer, while
09:00+02:00, a fixed offset, is 07:00 UTC all year. A time that a change of the clock skips comes an hour
later (02:30 at 03:30); one that occurs twice comes the first time only.
"""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import count

from vestige.core.lazy_dataclass import dataclass
from vestige.core.timezone import at_clock

DAYS_PER_WEEK = 7
LAST = -1
"""The last day of a month."""
CALENDAR_MONTHS = 4800  # After 400 years the calendar repeats: a rule without a moment by then has none.


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Every N minutes from the start."""

    minutes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Daily:
    """Every N days."""

    every: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Weekly:
    """On some days (Monday is 0) of every N weeks."""

    every: int = 1
    weekdays: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Monthly:
    """On a day (LAST is the last) of every N months, or of only some; months without it are skipped."""

    every: int = 1
    day: int
    months: tuple[int, ...] = ()


Pattern = Interval | Daily | Weekly | Monthly


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurrence:
    """A rule. It has no moment before `start`, nor from `until` on; steps of several days, weeks or months
    are counted from the start (`beginning` sets it). `at` is the clock time in minutes, in `zone`; an
    interval uses neither."""

    pattern: Pattern
    start: datetime
    until: datetime | None = None
    at: int = 0
    zone: tzinfo = UTC


def beginning(rule: Recurrence, after: datetime) -> Recurrence | None:
    """The rule with its first time after a moment as its start; None when it never occurs. Every other
    Monday begins with the next Monday, whatever this week is."""
    if isinstance(rule.pattern, Interval):
        return None if next_after(rule, after) is None else rule
    first = next_after(replace(rule, pattern=replace(rule.pattern, every=1)), after)
    return None if first is None else replace(rule, start=first)


def next_after(rule: Recurrence, moment: datetime) -> datetime | None:
    """The first moment of the rule strictly after a moment, or None."""
    try:
        found = _next(rule, moment)
    except (OverflowError, ValueError):  # beyond the last year of the calendar
        return None
    return None if found is None or (rule.until is not None and found >= rule.until) else found


def passed(rule: Recurrence, after: datetime, upto: datetime) -> tuple[int, datetime | None]:
    """How often the rule occurred after one moment, up to and including another, and when last."""
    if isinstance(rule.pattern, Interval):
        return _steps(rule, rule.pattern, after, upto)
    times, latest = 0, None
    found = next_after(rule, after)
    while found is not None and found <= upto:
        times, latest = times + 1, found
        found = next_after(rule, found)
    return times, latest


def _steps(
    rule: Recurrence, pattern: Interval, after: datetime, upto: datetime
) -> tuple[int, datetime | None]:
    """The number of intervals, computed: a year has half a million minutes."""
    step = timedelta(minutes=pattern.minutes)
    last = (upto if rule.until is None else min(upto, rule.until - timedelta.resolution)) - rule.start
    begun = after - rule.start
    first = begun // step + 1 if begun >= timedelta(0) else 0
    times = last // step - first + 1
    return (times, rule.start + last // step * step) if times > 0 else (0, None)


def _next(rule: Recurrence, moment: datetime) -> datetime | None:
    if isinstance(rule.pattern, Interval):
        step = timedelta(minutes=rule.pattern.minutes)
        return rule.start if moment < rule.start else rule.start + ((moment - rule.start) // step + 1) * step
    anchor = rule.start.astimezone(rule.zone).date()
    first = max(anchor, moment.astimezone(rule.zone).date())
    for day in _days(rule.pattern, anchor, first):
        found = at_clock(day, rule.at, rule.zone)
        if found > moment and found >= rule.start:
            return found
    return None


def _days(pattern: Daily | Weekly | Monthly, anchor: date, first: date) -> Iterator[date]:
    """The days of a pattern from `first` on; its steps count from `anchor`, which is not later."""
    match pattern:
        case Daily():
            steps = -((anchor - first).days // pattern.every)
            for step in count(steps):
                yield anchor + timedelta(days=step * pattern.every)
        case Weekly():
            monday = anchor - timedelta(days=anchor.weekday())
            weeks = (first - monday).days // DAYS_PER_WEEK
            for step in count(weeks // pattern.every):
                for weekday in sorted(pattern.weekdays):
                    day = monday + timedelta(days=DAYS_PER_WEEK * step * pattern.every + weekday)
                    if day >= first:
                        yield day
        case Monthly():
            yield from _month_days(pattern, anchor, first)


def _month_days(pattern: Monthly, anchor: date, first: date) -> Iterator[date]:
    origin = 12 * anchor.year + anchor.month - 1
    steps = (12 * first.year + first.month - 1 - origin) // pattern.every
    for step in range(steps, steps + CALENDAR_MONTHS + 1):
        year, month = divmod(origin + step * pattern.every, 12)
        if pattern.months and month + 1 not in pattern.months:
            continue
        day = _day_of(year, month + 1, pattern.day)
        if day is not None and day >= first:
            yield day


def _day_of(year: int, month: int, day: int) -> date | None:
    """A day of a month, or None where the month has no such day; ValueError beyond the last year."""
    begin = date(year, month, 1)
    length = (date(year + month // 12, month % 12 + 1, 1) - begin).days
    if day == LAST:
        return begin + timedelta(days=length - 1)
    return begin + timedelta(days=day - 1) if day <= length else None
