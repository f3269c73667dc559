"""Expressions of time in English, and the period each stands for.

What could mean something else (`may`, `march`, `June`, `2000`) stands for a time only where the words around
it say so: `in May`, `8 May`, `May 2023`.
"""

import enum
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial

from vestige.cognition import date_periods
from vestige.cognition.date_periods import COUNTS, MONTH_NUMBERS, WEEKDAY_NUMBERS
from vestige.cognition.periods import SEASONS, Period

Reader = Callable[[re.Match[str], datetime, date], Period]


class Basis(enum.StrEnum):
    """What an expression is read against: the calendar, the calendar without a year (which is a guess: the
    latest one that fits), or now."""

    CALENDAR = "calendar"
    GUESSED_YEAR = "guessed year"
    NOW = "now"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """The characters `start`..`end` of a text, which name a period.

    `loose` ones do so only when another leads to them, as in `between March and May`. `read` takes now and
    the latest day on which a time without a year may begin; it raises ValueError or OverflowError when the
    calendar has no such time.
    """

    start: int
    end: int
    basis: Basis
    loose: bool
    read: Callable[[datetime, date], Period]


def expressions(text: str) -> list[Expression]:
    """The expressions of time in a text, from left to right; of those that overlap the longest."""
    found = [
        Expression(
            start=match.start(),
            end=match.end(),
            basis=_basis(form.read, match.groupdict()),
            loose=not form.firm(match),
            read=partial(form.read, match),
        )
        for form in _FORMS
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
    yearless = read in (date_periods.month, date_periods.day, date_periods.quarter)
    return Basis.GUESSED_YEAR if yearless and not groups.get("which") else Basis.NOW


# -- words ---------------------------------------------------------------------------------------

COUNT = rf"(?P<count>[0-9]{{1,4}}|{'|'.join(COUNTS)})"
_UNIT = r"(?P<unit>minute|hour|day|week|month|quarter|year)s?\b"
_MONTH = rf"(?P<month>{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})\b\.?(?!['’]s\b)"
_WEEKDAY = rf"(?P<weekday>{'|'.join(WEEKDAY_NUMBERS)})\b"
_SEASON = rf"(?P<season>{'|'.join(SEASONS)})\b"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})(?![\w%]|[.,/:-][0-9])"
_DAY = r"(?P<day>[0-9]{1,2})(?P<ordinal>st|[nr]d|th)?"
# `The last week of May` is no week before now.
_NOT_OF = r"(?!\s+of\b)"


# -- what is meant -------------------------------------------------------------------------------

_VERBS = frozenset({"may", "march"})
_NAMES = frozenset({"jan", "april", "may", "june", "august"})
_INTRODUCE = frozenset("in on during since before after by until till from between through".split())
_NEAR_CHARS = 40
_PREVIOUS = re.compile(r"([A-Za-z]+)\s+(?:(?:the|early|mid|late|year)[\s-]+)*$", re.IGNORECASE)
_CLAUSE_END = re.compile(r"\s*(?:[?.!,;:)\n]|$)")
# `in 2000 rows` counts; `in 2023 was` does not.
_COUNTED = re.compile(
    r"\s+(?!(?:was|is|has|does|his|this|as|us|across|vs|ours|yours|hers|its|always|perhaps)\b)"
    r"(?:[a-z]{2,}s|people|ms|kb|mb|gb|km|px|percent)\b"
)
_VERSIONED = frozenset({"version", "revision", "protocol", "spec", "api", "mcp"})
_IS_VERSION = re.compile(rf"\s+(?:{'|'.join(sorted(_VERSIONED))})\b", re.IGNORECASE)


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
    """`The next week` follows what was told before."""
    follows = match["which"].casefold() in ("next", "previous")
    return not (follows and match.string[max(0, match.start() - 4) : match.start()].casefold() == "the ")


def _is_no_version(match: re.Match[str]) -> bool:
    return _previous(match) not in _VERSIONED and not _IS_VERSION.match(match.string, match.end())


# -- forms ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Form:
    pattern: re.Pattern[str]
    read: Reader
    firm: Callable[[re.Match[str]], bool]


def _form(pattern: str, read: Reader, firm: Callable[[re.Match[str]], bool] = _always) -> _Form:
    return _Form(pattern=re.compile(rf"(?<![\w.@/-]){pattern}", re.IGNORECASE), read=read, firm=firm)


_WHICH = r"(?P<which>last|past|previous|this|current|next|coming)\s+"
_OF_YEAR = rf"(?:,?\s+(?:of\s+)?{_YEAR})?"
_FIRST_DAY = r"(?:(?P<first>[0-9]{1,2})(?:st|[nr]d|th)?\s*(?:-|–|to|and)\s*)?"

_FORMS = (
    # today, tonight, this morning; not today's date
    _form(
        r"(?:today|tonight|this\s+(?:morning|afternoon|evening))\b(?!['’]s\s+(?:date|day|world))",
        date_periods.today,
    ),
    # yesterday, the day before yesterday, tomorrow
    _form(
        r"(?P<far>(?:the\s+)?day\s+(?:before|after)\s+)?(?P<near>yesterday|tomorrow)\b", date_periods.near_day
    ),
    _form(r"last\s+night\b", date_periods.last_night),
    # 3 days ago, a couple of weeks ago
    _form(rf"{COUNT}\s+{_UNIT}\s+ago\b", date_periods.ago),
    # the last 7 days, past two weeks, next three months
    _form(
        rf"(?:the\s+)?(?P<which>last|past|previous|next)\s+{COUNT}\s+{_UNIT}{_NOT_OF}", date_periods.rolling
    ),
    # the past week, the last year: up to now
    _form(
        rf"(?:the\s+|this\s+)?(?P<count>)(?P<which>past)\s+(?P<unit>hour|day|week|month|quarter|year)\b{_NOT_OF}",
        date_periods.rolling,
    ),
    _form(
        rf"the\s+(?P<count>)(?P<which>last)\s+(?P<unit>hour|week|month|quarter|year)\b{_NOT_OF}",
        date_periods.rolling,
    ),
    # last week, this month, next quarter, past weekend
    _form(
        rf"{_WHICH}(?P<unit>week|weekend|month|quarter|year)\b{_NOT_OF}", date_periods.calendar, _is_no_story
    ),
    # last Monday, since Monday; not on Monday mornings
    _form(
        rf"(?:{_WHICH})?{_WEEKDAY}(?!\s+(?:morning|afternoon|evening|night)s)",
        date_periods.weekday,
        _weekday_is_meant,
    ),
    # last summer, the summer of 2023; not Spring Boot
    _form(
        rf"{_WHICH}(?P<year>){_SEASON}(?!\s+(?:boot|framework)\b){_NOT_OF}",
        date_periods.named_season,
        _is_no_story,
    ),
    _form(rf"(?P<which>){_SEASON}(?:\s+of)?,?\s+{_YEAR}", date_periods.named_season),
    # in March, March 2023, last March
    _form(rf"(?:{_WHICH})?{_MONTH}{_OF_YEAR}", date_periods.month, _month_is_meant),
    # 8 May, 8th of May 2023, 8-12 May
    _form(rf"{_FIRST_DAY}{_DAY}\s+(?:of\s+)?{_MONTH}{_OF_YEAR}", date_periods.day, _day_is_meant),
    # May 8; May 8th, 2023; May 8-12
    _form(
        rf"{_MONTH}\s+{_FIRST_DAY}{_DAY}(?![\w%:]|[.,/–-][0-9]){_OF_YEAR}", date_periods.day, _day_is_meant
    ),
    # 2026-03-01
    _form(
        r"(?P<year>[0-9]{4})(?P<joint>[-/])(?P<number>[0-9]{2})(?P=joint)(?P<day>[0-9]{2})"
        r"(?:T[0-9]{2}:[0-9]{2}[0-9:.]{0,16}Z?)?(?![\w/-]|\.\w)",
        date_periods.iso_day,
        _is_no_version,
    ),
    # Q3 2025, 2025 Q3, in Q3
    _form(
        rf"(?:Q(?P<quarter>[1-4])\b{_OF_YEAR}|(?P<early>(?:19|20)[0-9]{{2}})[\s-]?Q(?P<other>[1-4])\b)",
        date_periods.quarter,
        _quarter_is_meant,
    ),
    # in 2023
    _form(_YEAR, date_periods.year, _year_is_meant),
)
