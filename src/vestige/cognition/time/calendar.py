"""The calendar: days, weeks from Monday on, months, quarters, years and seasons as periods in a time zone.

Arithmetic on the ends of a period is by the calendar: a day of 23 or 25 hours is one day. Convert them to UTC
before they are stored or compared to the hour.

Every function raises ValueError or OverflowError for dates that the calendar does not have (31 June, the year
0).
"""

from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Self

from vestige.core.lazy_dataclass import dataclass

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
# The month each begins in, north of the equator, as meteorologists count.
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}

EARLIEST = datetime.min.replace(tzinfo=UTC)
LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period of time, its end exclusive."""

    start: datetime
    end: datetime

    def to(self, other: Self) -> "Period":
        """From the earlier of the two to the end of the later."""
        return Period(start=min(self.start, other.start), end=max(self.end, other.end))

    def third(self, at: int) -> "Period":
        """Its first, middle or last third (0 to 2): whole months of a quarter or a year, else whole days.
        Less than a week is not divided."""
        first, last = self.start, self.end
        count = 12 * (last.year - first.year) + last.month - first.month
        if count and count % 3 == 0 and first.day == last.day == 1:
            return months(first.year, first.month, zone_in(first), at * count // 3, count // 3)
        size = timedelta(days=(last - first).days // 3)
        if (last - first).days < 7:
            return self
        return Period(start=first + at * size, end=last if at == 2 else first + (at + 1) * size)


def date_words(moment: datetime) -> str:
    """The day of a moment as a question names it: `Monday 8 May 2023`."""
    return f"{WEEKDAYS[moment.weekday()]} {moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def zone_in(moment: datetime) -> tzinfo:
    """The zone of a moment."""
    return moment.tzinfo or UTC


def days(first: date, zone: tzinfo, count: int = 1) -> Period:
    """A number of whole days."""
    start = datetime.combine(first, time(), zone)
    return Period(start=start, end=start + timedelta(days=count))


def week(of: date, zone: tzinfo, later: int = 0) -> Period:
    """The week of a day, or one N weeks later."""
    return days(of + timedelta(days=7 * later - of.weekday()), zone, 7)


def weekend(of: date, zone: tzinfo, later: int = 0) -> Period:
    """Saturday and Sunday of the week of a day, or of one N weeks later."""
    return days(of + timedelta(days=7 * later - of.weekday() + 5), zone, 2)


def months(year: int, month: int, zone: tzinfo, later: int = 0, count: int = 1) -> Period:
    """A month, or one N months later, and those that follow it up to the count."""
    return Period(
        start=_first_of(year, month + later, zone), end=_first_of(year, month + later + count, zone)
    )


def quarter(of: date, zone: tzinfo, later: int = 0) -> Period:
    """The quarter of a day, or one N quarters later."""
    return months(of.year, (of.month - 1) // 3 * 3 + 1, zone, 3 * later, 3)


def year(number: int, zone: tzinfo) -> Period:
    return months(number, 1, zone, count=12)


def season(name: str, starting_in: int, zone: tzinfo) -> Period:
    """A season by the year it starts in: the winter of 2025 ends in 2026."""
    return months(starting_in, SEASONS[name], zone, count=3)


def period_in_words(start: datetime, end: datetime) -> str:
    """A period in its zone, for people: `March 2026`, `2023`, `the time before 1 June 2026`."""
    last, zone = end - timedelta(microseconds=1), zone_in(end)
    if start == EARLIEST:
        return f"the time before {_day(end)}"
    if (start, end) == (_first_of(start.year, 1, zone), _first_of(start.year + 1, 1, zone)):
        return str(start.year)
    month = start.year, start.month
    if (start, end) == (_first_of(*month, zone), _first_of(start.year, start.month + 1, zone)):
        return f"{MONTHS[start.month - 1]} {start.year}"
    return _day(start) if start.date() == last.date() else f"{_day(start)} to {_day(last)}"


def _day(moment: datetime) -> str:
    return f"{moment.day} {MONTHS[moment.month - 1]} {moment.year}"


def _first_of(year: int, month: int, zone: tzinfo) -> datetime:
    """The start of a month; months before 1 and after 12 lie in other years."""
    return datetime(year + (month - 1) // 12, (month - 1) % 12 + 1, 1, tzinfo=zone)
