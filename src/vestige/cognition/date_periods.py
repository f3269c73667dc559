"""What period each form of a date stands for.

Each reader is given the match of one form (cognition/dates.py), now, and the latest day on which a time
without a year may begin. It raises ValueError or OverflowError when the calendar has no such time.
"""

import re
from calendar import isleap
from datetime import date, datetime, timedelta

from vestige.cognition import periods
from vestige.cognition.periods import MONTHS, WEEKDAYS, Period

COUNTS = {
    "a couple of": (2, 2), "couple of": (2, 2), "a few": (2, 5), "few": (2, 5), "several": (2, 5),
    "a": (1, 1), "an": (1, 1), "one": (1, 1), "two": (2, 2), "three": (3, 3), "four": (4, 4), "five": (5, 5),
    "six": (6, 6), "seven": (7, 7), "eight": (8, 8), "nine": (9, 9), "ten": (10, 10), "eleven": (11, 11),
    "twelve": (12, 12),
}  # fmt: skip
MONTH_NUMBERS = {
    short: number
    for number, name in enumerate(MONTHS, 1)
    for short in (name.casefold(), name[:3].casefold(), "sept" if number == 9 else name.casefold())
}
WEEKDAY_NUMBERS = {name.casefold(): number for number, name in enumerate(WEEKDAYS)}


def today(match: re.Match[str], now: datetime, latest: date) -> Period:
    """Today, or a part of it."""
    return periods.days(now.date())


def near_day(match: re.Match[str], now: datetime, latest: date) -> Period:
    """Yesterday, tomorrow, or the day beyond."""
    far = 2 if match["far"] else 1
    return periods.days(now.date() + timedelta(days=-far if match["near"].casefold() == "yesterday" else far))


def last_night(match: re.Match[str], now: datetime, latest: date) -> Period:
    """From noon to noon."""
    noon = periods.days(now.date()).start + timedelta(hours=12)
    return Period(start=noon - timedelta(days=1), end=noon)


def ago(match: re.Match[str], now: datetime, latest: date) -> Period:
    """The day, week, month or year so long ago."""
    least, most = counted(match)
    unit = match["unit"].casefold()
    if unit in ("minute", "hour"):
        # Nobody counts minutes to the minute.
        size = timedelta(**{f"{unit}s": 1})
        return Period(start=now - 1.5 * most * size, end=now - 0.5 * least * size)
    return _shifted(now.date(), unit, -most).to(_shifted(now.date(), unit, -least))


def rolling(match: re.Match[str], now: datetime, latest: date) -> Period:
    """The last three weeks: as many days, up to and with today. The next three begin today."""
    most = counted(match)[1] if match["count"] else 1
    today, unit = now.date(), match["unit"].casefold()
    if unit in ("minute", "hour"):
        if match["which"].casefold() == "next":
            raise ValueError("what comes within hours is no time to look for")
        return Period(start=now - most * timedelta(**{f"{unit}s": 1}), end=periods.days(today).end)
    if match["which"].casefold() == "next":
        return Period(start=periods.days(today).start, end=periods.days(moved(today, unit, most)).end)
    return Period(start=periods.days(moved(today, unit, -most)).start, end=periods.days(today).end)


def calendar(match: re.Match[str], now: datetime, latest: date) -> Period:
    """The last, this or the next week, weekend, month, quarter or year."""
    return _shifted(now.date(), match["unit"].casefold(), _step(match) or 0)


def weekday(match: re.Match[str], now: datetime, latest: date) -> Period:
    """Last Monday is before today, next Monday after it, this one in this week; since Monday may be today."""
    today = now.date()
    ahead = (WEEKDAY_NUMBERS[match["weekday"].casefold()] - today.weekday()) % 7
    step = _step(match)
    if step == 0:
        return periods.days(periods.week(today).start.date() + timedelta(days=(today.weekday() + ahead) % 7))
    if step == 1:
        return periods.days(today + timedelta(days=ahead or 7))
    back = ahead - 7 if ahead or step else 0
    return periods.days(today + timedelta(days=back))


def named_season(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A season by its year, or the last, this or the next one: over, at hand, to come."""
    name = match["season"].casefold()
    if match["year"]:
        return periods.season(name, int(match["year"]))
    step, near = _step(match), [periods.season(name, now.year + years) for years in (-1, 0, 1)]
    if step == 1:
        return next(one for one in near if one.start > now)
    if step == 0:
        return next(one for one in near if one.end > now or one.start.year == now.year)
    return [one for one in [periods.season(name, now.year - 2), *near] if one.end <= now][-1]


def month(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A month by its year, as last, this or next, or the latest that has begun."""
    number = MONTH_NUMBERS[match["month"].casefold()]
    if match["year"]:
        return periods.months(int(match["year"]), number)
    step = _step(match)
    if step == 0:
        return periods.months(now.year, number)
    if step == 1:
        return periods.months(now.year + (number <= now.month), number)
    if step == -1:
        return periods.months(now.year - (number >= now.month), number)
    return periods.months(latest.year - (number > latest.month), number)


def day(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A day of a month or several, in a year or in the latest that fits."""
    month, last = MONTH_NUMBERS[match["month"].casefold()], int(match["day"])
    first = int(match["first"] or last)
    if first > last:
        raise ValueError(f"{first} to {last} is no range of days")
    if match["year"]:
        return periods.days(date(int(match["year"]), month, first), last - first + 1)
    # This year and the eight before it hold a leap year, also round the end of a century.
    years = range(latest.year, latest.year - 9, -1)
    starts = (date(year, month, first) for year in years if (month, first) != (2, 29) or isleap(year))
    return periods.days(next(start for start in starts if start <= latest), last - first + 1)


def iso_day(match: re.Match[str], now: datetime, latest: date) -> Period:
    """2026-03-01."""
    return periods.days(date(int(match["year"]), int(match["number"]), int(match["day"])))


def quarter(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A quarter by its year, or the latest that has begun."""
    first = 3 * int(match["quarter"] or match["other"]) - 2
    year = match["year"] or match["early"]
    if year:
        return periods.months(int(year), first, count=3)
    return periods.months(latest.year - (first > latest.month), first, count=3)


def year(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A whole year."""
    return periods.year(int(match["year"]))


# -- steps ---------------------------------------------------------------------------------------

_STEPS = {"last": -1, "past": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1}


def _step(match: re.Match[str]) -> int | None:
    """-1 for last, 0 for this, 1 for next; None when nothing of the kind is said."""
    return _STEPS.get((match["which"] or "").casefold())


def counted(match: re.Match[str]) -> tuple[int, int]:
    """The least and the most that the count of a match means: `a few` is 2 to 5."""
    written = match["count"].casefold()
    return (int(written), int(written)) if written.isdecimal() else COUNTS[written]


def _shifted(today: date, unit: str, steps: int) -> Period:
    """The calendar's day, week, weekend, month, quarter or year that lies so many steps from today's."""
    match unit:
        case "day":
            return periods.days(today + timedelta(days=steps))
        case "week":
            return periods.week(today, steps)
        case "weekend":
            return periods.weekend(today, steps)
        case "month":
            return periods.months(today.year, today.month, steps)
        case "quarter":
            return periods.quarter(today, steps)
        case _:
            return periods.year(today.year + steps)


def moved(today: date, unit: str, steps: int) -> date:
    """The same day so many days, weeks, months, quarters or years on; the last one of a shorter month."""
    if unit in ("day", "week"):
        return today + timedelta(days=steps * (7 if unit == "week" else 1))
    month = periods.months(today.year, today.month, steps * {"month": 1, "quarter": 3, "year": 12}[unit])
    return min(month.start.date() + timedelta(days=today.day - 1), month.end.date() - timedelta(days=1))
