"""Expressions of time in English, and the period each stands for.

Ambiguous words (`may`, `march`, `June`, `2000`) are a time only if the words around them say so: `in May`, `8
May`, `May 2023`.
"""

import enum
import re
from calendar import isleap
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, date, datetime, timedelta
from functools import partial

from vestige.cognition.time import calendar
from vestige.cognition.time.calendar import MONTHS, SEASONS, WEEKDAYS, Period, zone_in
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

# -- Readers: the period of a matched expression

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
    return calendar.days(now.date(), zone_in(now))


def near_day(match: re.Match[str], now: datetime, latest: date) -> Period:
    """Yesterday, tomorrow, or the day beyond."""
    far = 2 if match["far"] else 1
    return calendar.days(
        now.date() + timedelta(days=-far if match["near"].casefold() == "yesterday" else far), zone_in(now)
    )


def last_night(match: re.Match[str], now: datetime, latest: date) -> Period:
    """From noon to noon."""
    noon = calendar.days(now.date(), zone_in(now)).start + timedelta(hours=12)
    return Period(start=noon - timedelta(days=1), end=noon)


def ago(match: re.Match[str], now: datetime, latest: date) -> Period:
    """The day, week, month or year that long ago."""
    least, most = counted(match)
    unit = match["unit"].casefold()
    if unit in ("minute", "hour"):
        # Minutes are not meant to the minute.
        size, exact = timedelta(**{f"{unit}s": 1}), now.astimezone(UTC)
        return Period(start=exact - 1.5 * most * size, end=exact - 0.5 * least * size)
    return _shifted(now, unit, -most).to(_shifted(now, unit, -least))


def rolling(match: re.Match[str], now: datetime, latest: date) -> Period:
    """The last three weeks: as many days, up to and including today. The next three begin today."""
    most = counted(match)[1] if match["count"] else 1
    today, unit, zone = now.date(), match["unit"].casefold(), zone_in(now)
    if unit in ("minute", "hour"):
        if match["which"].casefold() == "next":
            raise ValueError("a future span of hours is not a search period")
        begun = now.astimezone(UTC) - most * timedelta(**{f"{unit}s": 1})
        return Period(start=begun, end=calendar.days(today, zone).end)
    if match["which"].casefold() == "next":
        last = calendar.days(moved(today, unit, most), zone)
        return Period(start=calendar.days(today, zone).start, end=last.end)
    first = calendar.days(moved(today, unit, -most), zone)
    return Period(start=first.start, end=calendar.days(today, zone).end)


def calendar_period(match: re.Match[str], now: datetime, latest: date) -> Period:
    """The last, this or the next week, weekend, month, quarter or year."""
    return _shifted(now, match["unit"].casefold(), _step(match) or 0)


def weekday(match: re.Match[str], now: datetime, latest: date) -> Period:
    """Last Monday is before today, next Monday after it, this one in this week; since Monday may be today."""
    today, zone = now.date(), zone_in(now)
    ahead = (WEEKDAY_NUMBERS[match["weekday"].casefold()] - today.weekday()) % 7
    step = _step(match)
    if step == 0:
        monday = today - timedelta(days=today.weekday())
        return calendar.days(monday + timedelta(days=(today.weekday() + ahead) % 7), zone)
    if step == 1:
        return calendar.days(today + timedelta(days=ahead or 7), zone)
    back = ahead - 7 if ahead or step else 0
    return calendar.days(today + timedelta(days=back), zone)


def named_season(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A season by its year, or the last, this or the next one: over, at hand, to come."""
    name, zone = match["season"].casefold(), zone_in(now)
    if match["year"]:
        return calendar.season(name, int(match["year"]), zone)
    step, near = _step(match), [calendar.season(name, now.year + years, zone) for years in (-1, 0, 1)]
    if step == 1:
        return next(one for one in near if one.start > now)
    if step == 0:
        return next(one for one in near if one.end > now or one.start.year == now.year)
    return [one for one in [calendar.season(name, now.year - 2, zone), *near] if one.end <= now][-1]


def month(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A month by its year, as last, this or next, or the latest that has begun."""
    number, zone = MONTH_NUMBERS[match["month"].casefold()], zone_in(now)
    if match["year"]:
        return calendar.months(int(match["year"]), number, zone)
    step = _step(match)
    if step == 0:
        return calendar.months(now.year, number, zone)
    if step == 1:
        return calendar.months(now.year + (number <= now.month), number, zone)
    if step == -1:
        return calendar.months(now.year - (number >= now.month), number, zone)
    return calendar.months(latest.year - (number > latest.month), number, zone)


def day(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A day of a month or several, in a year or in the latest that fits."""
    month, last = MONTH_NUMBERS[match["month"].casefold()], int(match["day"])
    first = int(match["first"] or last)
    if first > last:
        raise ValueError(f"{first} to {last} is no range of days")
    if match["year"]:
        return calendar.days(date(int(match["year"]), month, first), zone_in(now), last - first + 1)
    # This year and the eight before it hold a leap year, also round the end of a century.
    years = range(latest.year, latest.year - 9, -1)
    starts = (date(year, month, first) for year in years if (month, first) != (2, 29) or isleap(year))
    start = next(start for start in starts if start <= latest)
    return calendar.days(start, zone_in(now), last - first + 1)


def iso_day(match: re.Match[str], now: datetime, latest: date) -> Period:
    """2026-03-01."""
    return calendar.days(date(int(match["year"]), int(match["number"]), int(match["day"])), zone_in(now))


def quarter(match: re.Match[str], now: datetime, latest: date) -> Period:
    """A quarter by its year, or the latest that has begun."""
    first = 3 * int(match["quarter"] or match["other"]) - 2
    year = match["year"] or match["early"]
    if year:
        return calendar.months(int(year), first, zone_in(now), count=3)
    return calendar.months(latest.year - (first > latest.month), first, zone_in(now), count=3)


def year(match: re.Match[str], now: datetime, latest: date) -> Period:
    return calendar.year(int(match["year"]), zone_in(now))


# -- Steps of days, weeks, months and years

_STEPS = {"last": -1, "past": -1, "previous": -1, "this": 0, "current": 0, "next": 1, "coming": 1}


def _step(match: re.Match[str]) -> int | None:
    """-1 for last, 0 for this, 1 for next; None without such a word."""
    return _STEPS.get((match["which"] or "").casefold())


def counted(match: re.Match[str]) -> tuple[int, int]:
    """The least and the most that the count of a match means: `a few` is 2 to 5."""
    written = match["count"].casefold()
    return (int(written), int(written)) if written.isdecimal() else COUNTS[written]


def _shifted(now: datetime, unit: str, steps: int) -> Period:
    """The calendar's day, week, weekend, month, quarter or year N steps from today's."""
    today, zone = now.date(), zone_in(now)
    match unit:
        case "day":
            return calendar.days(today + timedelta(days=steps), zone)
        case "week":
            return calendar.week(today, zone, steps)
        case "weekend":
            return calendar.weekend(today, zone, steps)
        case "month":
            return calendar.months(today.year, today.month, zone, steps)
        case "quarter":
            return calendar.quarter(today, zone, steps)
        case _:
            return calendar.year(today.year + steps, zone)


def moved(today: date, unit: str, steps: int) -> date:
    """The same day N days, weeks, months, quarters or years on; the last day of a shorter month."""
    if unit in ("day", "week"):
        return today + timedelta(days=steps * (7 if unit == "week" else 1))
    ahead = steps * {"month": 1, "quarter": 3, "year": 12}[unit]
    month = calendar.months(today.year, today.month, UTC, ahead)
    return min(month.start.date() + timedelta(days=today.day - 1), month.end.date() - timedelta(days=1))


# -- Expressions

Reader = Callable[[re.Match[str], datetime, date], Period]


class Basis(enum.StrEnum):
    """What an expression is relative to: the calendar, the calendar without a year (a guess: the latest one
    that fits), or now."""

    CALENDAR = "calendar"
    GUESSED_YEAR = "guessed year"
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """The characters `start`..`end` of a text, which name a period.

    `loose` ones do so only if another leads to them, as in `between March and May`. `read` takes now and the
    latest day on which a time without a year may begin, and gives a period in the zone of now; it raises
    ValueError or OverflowError when the calendar has no such time.
    """

    start: int
    end: int
    basis: Basis
    loose: bool
    read: Callable[[datetime, date], Period]


def expressions(text: str) -> list[Expression]:
    """The expressions of time in a text, from left to right; of overlapping ones the longest."""
    found = [
        Expression(
            start=match.start(),
            end=match.end(),
            basis=_basis(form.read, match.groupdict()),
            loose=not form.firm(match),
            read=partial(form.read, match),
        )
        for form in _forms_in(text)
        for match in form.pattern.finditer(text)
    ]
    found.sort(key=lambda one: (one.start, -one.end))
    apart: list[Expression] = []
    for one in found:
        if not apart or one.start >= apart[-1].end:
            apart.append(one)
    return apart


def _basis(read: Reader, groups: dict[str, str | None]) -> Basis:
    if groups.get("year") or groups.get("early"):
        return Basis.CALENDAR
    yearless = read in (month, day, quarter)
    return Basis.GUESSED_YEAR if yearless and not groups.get("which") else Basis.NOW


# -- Words of numbers, weekdays and months

COUNT = rf"(?P<count>[0-9]{{1,4}}|{'|'.join(COUNTS)})"
_UNIT = r"(?P<unit>minute|hour|day|week|month|quarter|year)s?\b"
_MONTH = rf"(?P<month>{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})\b\.?(?!['’]s\b)"
_WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAY_NUMBERS)})\b"
_SEASON = rf"(?P<season>{'|'.join(SEASONS)})\b"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})(?![\w%]|[.,/:-][0-9])"
_DAY = r"(?P<day>[0-9]{1,2})(?P<ordinal>st|[nr]d|th)?"
# `The last week of May` is no week before now.
_NOT_OF = r"(?!\s+of\b)"


# -- Checks that words are meant as a time

_VERBS = frozenset({"may", "march"})
_NAMES = frozenset({"jan", "april", "may", "june", "august"})
_INTRODUCE = frozenset("in on during since before after by until till from between through".split())
_NEAR_CHARS = 40
_PREVIOUS = lazy_pattern(
    r"(?<![A-Za-z])([A-Za-z]++)\s++(?:(?:the|early|mid|late|year)[\s-]++){0,4}$", re.IGNORECASE
)
_CLAUSE_END = lazy_pattern(r"\s*(?:[?.!,;:)\n]|$)")
# `in 2000 rows` counts; `in 2023 was` does not.
_COUNTED = lazy_pattern(
    r"\s+(?!(?:was|is|has|does|his|this|as|us|across|vs|ours|yours|hers|its|always|perhaps)\b)"
    r"(?:[a-z]{2,}s|people|ms|kb|mb|gb|km|px|percent)\b"
)
_VERSIONED = frozenset({"version", "revision", "protocol", "spec", "api", "mcp"})
_IS_VERSION = lazy_pattern(rf"\s+(?:{'|'.join(sorted(_VERSIONED))})\b", re.IGNORECASE)


def _always(match: re.Match[str]) -> bool:
    return True


def _previous(match: re.Match[str]) -> str:
    """The word that leads to a match, past `the`, `early` and the like."""
    found = _PREVIOUS.search(match.string[max(0, match.start() - _NEAR_CHARS) : match.start()])
    return found[1].casefold() if found else ""


def _ends_clause(match: re.Match[str]) -> bool:
    return bool(_CLAUSE_END.match(match.string, match.end()))


def _month_is_meant(match: re.Match[str]) -> bool:
    if match["year"]:
        return True
    name = match["month"]
    if match["which"]:
        return name.casefold() not in _VERBS or name[0].isupper()
    before = _previous(match)
    if before in ("in", "during", "between"):
        return True
    return before in _INTRODUCE and (name.casefold() not in _NAMES or _ends_clause(match))


def _day_is_meant(match: re.Match[str]) -> bool:
    certain = match["year"] or match["ordinal"] or match["month"].casefold() not in _VERBS
    capital = match["month"][0].isupper() and match.start("day") < match.start("month")
    return bool(certain or capital or _previous(match) in _INTRODUCE or _ends_clause(match))


def _year_is_meant(match: re.Match[str]) -> bool:
    return _previous(match) in _INTRODUCE - {"on"} and not _COUNTED.match(match.string, match.end())


def _quarter_is_meant(match: re.Match[str]) -> bool:
    return bool(match["year"] or match["early"] or _previous(match) in _INTRODUCE)


def _weekday_is_meant(match: re.Match[str]) -> bool:
    # `on Friday` may be any Friday, and memories of one are found by its name.
    return bool(match["which"]) or _previous(match) in ("since", "between", "until", "till")


def _is_no_story(match: re.Match[str]) -> bool:
    """`The next week` continues a story."""
    follows = match["which"].casefold() in ("next", "previous")
    return not (follows and match.string[max(0, match.start() - 4) : match.start()].casefold() == "the ")


def _is_no_version(match: re.Match[str]) -> bool:
    return _previous(match) not in _VERSIONED and not _IS_VERSION.match(match.string, match.end())


# -- Patterns of expressions


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    """A form of expressions. Each contains one of the `words`, in lower case; most texts have none of them,
    and the patterns take long to compile."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]
    read: Reader
    firm: Callable[[re.Match[str]], bool]


def _form(
    words: Iterable[str], pattern: str, read: Reader, firm: Callable[[re.Match[str]], bool] = _always
) -> _Form:
    compiled = lazy_pattern(rf"{_APART}{pattern}", re.IGNORECASE)
    return _Form(words=tuple(words), pattern=compiled, read=read, firm=firm)


def _forms_in(text: str) -> Iterator[_Form]:
    """The forms that may occur in a text."""
    lowered = text.lower()
    # Outside ASCII some letters match others without regard to case, such as the long s.
    return (one for one in _FORMS if not text.isascii() or any(word in lowered for word in one.words))


# Not inside a word, a path or a number; `mid-January` is a time.
_APART = r"(?:(?<![\w.@/-])|(?<=\bmid-)|(?<=\bearly-)|(?<=\blate-))"
_WHICH_WORDS = tuple(_STEPS)
_WHICH = rf"(?P<which>{'|'.join(_WHICH_WORDS)})\s+"
_OF_YEAR = rf"(?:,?\s+(?:of\s+)?{_YEAR})?"
_FIRST_DAY = r"(?:(?P<first>[0-9]{1,2})(?:st|[nr]d|th)?\s*(?:-|–|to|and)\s*)?"

_DIGITS = "0123456789"

_FORMS = (
    # today, tonight, this morning; not today's date
    _form(
        ("today", "tonight", "this"),
        r"(?:today|tonight|this\s+(?:morning|afternoon|evening))\b(?!['’]s\s+(?:date|day|world))",
        today,
    ),
    # yesterday, the day before yesterday, tomorrow
    _form(
        ("yesterday", "tomorrow"),
        r"(?P<far>(?:the\s+)?day\s+(?:before|after)\s+)?(?P<near>yesterday|tomorrow)\b",
        near_day,
    ),
    _form(("last",), r"last\s+night\b", last_night),
    # 3 days ago, a couple of weeks ago
    _form(("ago",), rf"{COUNT}\s+{_UNIT}\s+ago\b", ago),
    # the last 7 days, past two weeks, next three months
    _form(
        _WHICH_WORDS, rf"(?:the\s+)?(?P<which>last|past|previous|next)\s+{COUNT}\s+{_UNIT}{_NOT_OF}", rolling
    ),
    # the past week, the last year: up to now
    _form(
        ("past",),
        rf"(?:the\s+|this\s+)?(?P<count>)(?P<which>past)\s+(?P<unit>hour|day|week|month|quarter|year)\b{_NOT_OF}",
        rolling,
    ),
    _form(
        ("last",),
        rf"the\s+(?P<count>)(?P<which>last)\s+(?P<unit>hour|week|month|quarter|year)\b{_NOT_OF}",
        rolling,
    ),
    # last week, this month, next quarter, past weekend
    _form(
        _WHICH_WORDS,
        rf"{_WHICH}(?P<unit>week|weekend|month|quarter|year)\b{_NOT_OF}",
        calendar_period,
        _is_no_story,
    ),
    # last Monday, since Monday; not on Monday mornings
    _form(
        WEEKDAY_NUMBERS,
        rf"(?:{_WHICH})?{_WEEKDAY}(?!\s+(?:morning|afternoon|evening|night)s)",
        weekday,
        _weekday_is_meant,
    ),
    # last summer, the summer of 2023; not Spring Boot
    _form(
        SEASONS,
        rf"{_WHICH}(?P<year>){_SEASON}(?!\s+(?:boot|framework)\b){_NOT_OF}",
        named_season,
        _is_no_story,
    ),
    _form(SEASONS, rf"(?P<which>){_SEASON}(?:\s+of)?,?\s+{_YEAR}", named_season),
    # in March, March 2023, last March
    _form(MONTH_NUMBERS, rf"(?:{_WHICH})?{_MONTH}{_OF_YEAR}", month, _month_is_meant),
    # 8 May, 8th of May 2023, 8-12 May
    _form(_DIGITS, rf"{_FIRST_DAY}{_DAY}\s+(?:of\s+)?{_MONTH}{_OF_YEAR}", day, _day_is_meant),
    # May 8; May 8th, 2023; May 8-12
    _form(_DIGITS, rf"{_MONTH}\s+{_FIRST_DAY}{_DAY}(?![\w%:]|[.,/–-][0-9]){_OF_YEAR}", day, _day_is_meant),
    # 2026-03-01
    _form(
        _DIGITS,
        r"(?P<year>[0-9]{4})(?P<joint>[-/])(?P<number>[0-9]{2})(?P=joint)(?P<day>[0-9]{2})"
        r"(?:T[0-9]{2}:[0-9]{2}[0-9:.]{0,16}Z?)?(?![\w/-]|\.\w)",
        iso_day,
        _is_no_version,
    ),
    # Q3 2025, 2025 Q3, in Q3
    _form(
        _DIGITS,
        rf"(?:Q(?P<quarter>[1-4])\b{_OF_YEAR}|(?P<early>(?:19|20)[0-9]{{2}})[\s-]?Q(?P<other>[1-4])\b)",
        quarter,
        _quarter_is_meant,
    ),
    # in 2023
    _form(_DIGITS, _YEAR, year, _year_is_meant),
)
