"""Times of the future in English: `in 2 hours`, `tomorrow at 9`, `every monday at 10:00`, `by friday`.

The user's zone is not known: clock times are UTC unless an offset is told. A day without a clock time means
nine o'clock, and a time without a date the next one to come.
"""

import re
from datetime import UTC, date, datetime, time, timedelta

from vestige.cognition.date_periods import WEEKDAY_NUMBERS, counted, moved
from vestige.cognition.dates import COUNT, expressions
from vestige.cognition.periods import Period, days
from vestige.cognition.prospective_recurrence import (
    DAYS_PER_WEEK,
    LAST,
    Daily,
    Interval,
    Monthly,
    Pattern,
    Recurrence,
    Weekly,
    beginning,
)
from vestige.cognition.prospective_triggers import Recurring, Time

MORNING = 9 * 60
"""The minute of the day that is meant where none is told."""
_PARTS_OF_DAY = {"morning": MORNING, "afternoon": 15 * 60, "evening": 18 * 60, "night": 20 * 60}
_SAFE_DAY = 28
"""The last day that every month has."""

_MINUTES = {"minute": 1, "min": 1, "hour": 60, "hr": 60, "day": 24 * 60, "week": 7 * 24 * 60}
_IN = re.compile(
    rf"(?:in|after)\s+(?:{COUNT}\s+|(?P<half>half\s+an\s+))(?P<unit>min(?:ute)?|h(?:ou)?r|day|week|month|year)s?"
    r"(?:\s+from\s+now)?",
    re.IGNORECASE,
)
_CLOCK = re.compile(
    r"(?P<at>(?:at\s+|@\s*)?)"
    r"(?:(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-5][0-9]))?\s*(?P<half>[ap]\.?m\b\.?)?|(?P<word>noon|midnight))"
    r"(?:\s*o'?clock)?(?:\s*(?P<zone>utc|gmt|z|[+-][0-9]{2}:?[0-9]{2}))?",
    re.IGNORECASE,
)


def moment_in(phrase: str, now: datetime) -> Time | None:
    """The moment that a whole phrase names, if it is to come."""
    found = _IN.fullmatch(phrase)
    try:
        time = _later(found, now) if found else _dated(phrase, now)
    except (ValueError, OverflowError):  # the calendar has no such time
        return None
    return time if time is not None and time.at > now else None


def deadline_in(phrase: str, now: datetime) -> datetime | None:
    """When something must be done, told by a whole phrase: `by friday`, `before 5 pm`, `today`."""
    found = re.fullmatch(r"(?:by|before|until|due(?:\s+by|\s+on)?)\s+(?P<rest>.+)", phrase, re.IGNORECASE)
    rest = found["rest"] if found else phrase
    if found is None and rest.casefold() not in ("today", "this week", "this month"):
        return None
    clocked = moment_in(rest, now) if _clock_split(rest)[1] or _iso(rest) else None
    if clocked is not None:
        return clocked.at
    day = _period(rest, now) or _period(f"in {rest}", now)
    before = found is not None and phrase.casefold().startswith("before")
    end = None if day is None else day.start if before else day.end
    return end if end is not None and end > now else None


def clock_in(phrase: str) -> tuple[int, int] | None:
    """The minute of the day of a clock time, and how many minutes its clock is ahead of UTC."""
    found = _CLOCK.fullmatch(phrase.strip())
    if found is None:
        return None
    hour, minute = int(found["hour"] or (12 if found["word"] else 0)), int(found["minute"] or 0)
    if found["word"]:
        hour = 0 if found["word"].casefold() == "midnight" else 12
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"][0] in "pP" else 0)
    offset = _offset(found["zone"] or "")
    return None if hour > 23 or offset is None else (60 * hour + minute, offset)


def _offset(zone: str) -> int | None:
    if zone[:1] not in ("+", "-"):
        return 0
    ahead = 60 * int(zone[1:3]) + int(zone[-2:])
    return None if ahead >= 24 * 60 or int(zone[-2:]) >= 60 else -ahead if zone[0] == "-" else ahead


def _later(found: re.Match[str], now: datetime) -> Time:
    count = 0.5 if found["half"] else counted(found)[0]
    unit = {"min": "minute", "hr": "hour"}.get(found["unit"].casefold(), found["unit"].casefold())
    if unit not in _MINUTES:
        day = moved(now.date(), unit, int(count))
        return Time(at=datetime.combine(day, now.timetz()))
    minutes = count * _MINUTES[unit]
    return Time(at=now + timedelta(minutes=minutes), minutes=minutes)


def _iso(phrase: str) -> datetime | None:
    plain = re.sub(r"^(?:on|at)\s+", "", phrase.strip(), flags=re.IGNORECASE)
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]", plain):
        return None
    try:
        told = datetime.fromisoformat(plain)
        return told.replace(tzinfo=UTC) if told.tzinfo is None else told.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _dated(phrase: str, now: datetime) -> Time | None:
    """A day with or without a clock time, or a clock time alone."""
    told = _iso(phrase) or _on_day(phrase, now)
    return None if told is None else Time(at=told)


def _on_day(phrase: str, now: datetime) -> datetime | None:
    rest, clock = _clock_split(phrase)
    if not rest:
        return None if clock is None else _next_clock(clock, now)
    period = _period(rest, now)
    if period is None or (clock is None and rest.casefold() == "today"):
        return None
    at, offset = clock or (_part_of_day(rest), 0)
    told = _on(period.start.date(), at, offset)
    named = _bare_weekday(rest) is not None
    return told + timedelta(days=DAYS_PER_WEEK) if named and told <= now else told


def _clock_split(phrase: str) -> tuple[str, tuple[int, int] | None]:
    """A phrase without the clock time it begins or ends with, and that time.

    A bare number is a clock time only after `at`.
    """
    words = phrase.split()
    for size in range(min(4, len(words)), 0, -1):
        for part, rest in ((words[-size:], words[:-size]), (words[:size], words[size:])):
            said = " ".join(part)
            clock = clock_in(said)
            if clock is not None and not re.fullmatch(r"[0-9]+", said):
                return " ".join(rest), clock
    return phrase, None


def _next_clock(clock: tuple[int, int], now: datetime) -> datetime:
    at, offset = clock
    today = (now + timedelta(minutes=offset)).date()
    told = _on(today, at, offset)
    return told if told > now else told + timedelta(days=1)


def _on(day: date, at: int, offset: int) -> datetime:
    return datetime.combine(day, time(*divmod(at, 60)), UTC) - timedelta(minutes=offset)


def _part_of_day(words: str) -> int:
    said = words.casefold().replace("tonight", "night").split()
    return next((minute for part, minute in _PARTS_OF_DAY.items() if part in said), MORNING)


_WITHOUT = re.compile(r"^(?:on|in|at)\s+(?:the\s+)?|\s+(?:morning|afternoon|evening|night)$", re.IGNORECASE)
"""What is said around a day and does not change which one it is."""


def _bare_weekday(phrase: str) -> int | None:
    return WEEKDAY_NUMBERS.get(_WITHOUT.sub("", phrase.strip()).casefold())


def _period(phrase: str, now: datetime) -> Period | None:
    """The days that a phrase names; those without a year are the next to come, today among them."""
    weekday = _bare_weekday(phrase)
    if weekday is not None:
        return days(now.date() + timedelta(days=(weekday - now.weekday()) % DAYS_PER_WEEK))
    plain = _WITHOUT.sub("", phrase.strip())
    plain = "today" if plain.casefold() == "this" else plain
    found = expressions(plain)
    if len(found) != 1 or (found[0].start, found[0].end) != (0, len(plain)):
        return None
    if found[0].loose and not phrase.casefold().startswith("in "):
        return None  # a bare month may be the rest of a date that the calendar has not: `on 31 June`
    try:
        return found[0].read(now, moved(now.date(), "year", 1) - timedelta(days=1))
    except (ValueError, OverflowError):
        return None


# -- rules ---------------------------------------------------------------------------------------

_SHORT_DAYS = {name[:3]: number for name, number in WEEKDAY_NUMBERS.items()} | {
    "tues": 1,
    "thurs": 3,
}
_DAY_NAME = rf"(?:(?:{'|'.join(WEEKDAY_NUMBERS)})s?|{'|'.join(sorted(_SHORT_DAYS, key=len, reverse=True))})\b"
_PLURAL_DAY = rf"(?:{'|'.join(WEEKDAY_NUMBERS)})s"
_DAY_NAMES = rf"(?P<days>{_DAY_NAME}(?:(?:\s*,\s*|\s+and\s+|\s*,\s*and\s+){_DAY_NAME})*|weekdays?|weekends?)"
_NTH = r"(?:the\s+)?(?:(?P<nth>[0-9]{1,2})(?:st|nd|rd|th)?|(?P<last>last\s+day))"
_EVERY = rf"(?:every|each)\s+(?:(?:{COUNT}|(?P<other>other|second))\s+)?"
_RULES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_EVERY}(?P<unit>min(?:ute)?|h(?:ou)?r)s?|(?P<word>hourly)",
        rf"{_EVERY}(?P<unit>day)s?|(?P<word>daily)|(?:every|each)\s+(?P<part>{'|'.join(_PARTS_OF_DAY)})",
        rf"(?:{_EVERY}(?P<unit>week)s?|(?P<word>weekly))(?:\s+on\s+{_DAY_NAMES})?",
        rf"(?:every|each)\s+(?P<other>other\s+|second\s+)?{_DAY_NAMES}"
        rf"|(?:on\s+)?(?P<on>{_PLURAL_DAY}(?:(?:\s*,\s*|\s+and\s+){_PLURAL_DAY})*|weekdays)",
        rf"(?:{_EVERY}(?P<unit>month)s?|(?P<word>monthly))(?:\s+on\s+{_NTH}(?:\s+of\s+the\s+month)?)?",
        rf"(?:on\s+)?{_NTH}\s+(?:day\s+)?of\s+(?:every|each|the)\s+month|every\s+(?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)",
    )
)
_UNTIL = re.compile(r"\s+until\s+(?P<until>.+)$", re.IGNORECASE)


def rule_in(phrase: str, now: datetime) -> Recurring | None:
    """The rule that a whole phrase tells."""
    ending = _UNTIL.search(phrase)
    until = deadline_in(f"by {ending['until']}", now) if ending else None
    if ending is not None and until is None:
        return None
    rest, clock = _clock_split(phrase[: ending.start()] if ending else phrase)
    for form in _RULES:
        found = form.fullmatch(rest.strip())
        if found is not None:
            return _rule(found.groupdict(), found, clock, until, now)
    return None


def _rule(
    told: dict[str, str | None],
    found: re.Match[str],
    clock: tuple[int, int] | None,
    until: datetime | None,
    now: datetime,
) -> Recurring | None:
    pattern = _pattern(told, found, now)
    if pattern is None or (isinstance(pattern, Interval) and clock is not None):
        return None
    usual = (
        0
        if isinstance(pattern, Interval)
        else _PARTS_OF_DAY.get((told.get("part") or "").casefold(), MORNING)
    )
    at, offset = clock or (usual, 0)
    rule = Recurrence(pattern=pattern, start=now, until=until, at=at, offset=offset)
    begun = beginning(rule, now)
    return None if begun is None else Recurring(rule=begun)


def _pattern(told: dict[str, str | None], found: re.Match[str], now: datetime) -> Pattern | None:
    every = 2 if told.get("other") else counted(found)[0] if told.get("count") else 1
    unit = (told.get("unit") or told.get("word") or "").casefold()
    if every < 1:
        return None
    if unit[:1] == "h":
        return Interval(minutes=60 * every)
    if unit[:3] == "min":
        return Interval(minutes=every)
    if unit in ("day", "daily") or told.get("part"):
        return Daily(every=every)
    if unit in ("week", "weekly") or told.get("days") or told.get("on"):
        weekdays = _weekdays(told.get("days") or told.get("on"), now)
        return Weekly(every=every, weekdays=weekdays) if weekdays else None
    return _monthly(told, every, now)


def _monthly(told: dict[str, str | None], every: int, now: datetime) -> Monthly | None:
    number = told.get("nth") or told.get("day")
    if told.get("last"):
        return Monthly(every=every, day=LAST)
    if number is None:
        # Said on the 31st, `every month` means every month.
        return Monthly(every=every, day=now.day if now.day <= _SAFE_DAY else LAST)
    return Monthly(every=every, day=int(number)) if 1 <= int(number) <= 31 else None


def _weekdays(names: str | None, now: datetime) -> tuple[int, ...]:
    """The numbers of some weekdays; today's when none is named, and none for a word that is no weekday."""
    if names is None:
        return (now.weekday(),)
    plain = names.casefold().rstrip("s")
    if plain in ("weekday", "weekend"):
        return tuple(range(5)) if plain == "weekday" else (5, 6)
    numbers = [weekday_number(name) for name in re.split(r"\s*,\s*(?:and\s+)?|\s+and\s+", names)]
    found = sorted({number for number in numbers if number is not None})
    return tuple(found) if None not in numbers else ()


def weekday_number(name: str) -> int | None:
    """Monday is 0; `mon`, `monday` and `mondays` are all the same."""
    plain = name.strip().casefold()
    return WEEKDAY_NUMBERS.get(plain.removesuffix("s"), _SHORT_DAYS.get(plain))
