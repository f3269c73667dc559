"""Times of the future in English: `in 2 hours`, `tomorrow at 9`, `every monday at 10:00`, `by friday`.

The user's zone is not known: clock times are UTC unless the phrase has an offset. A day without a clock time
means nine o'clock, and a time without a date the next one to come.
"""

import re
from datetime import UTC, date, datetime, time, timedelta

from vestige.cognition.intentions import recurrence
from vestige.cognition.intentions.recurrence import DAYS_PER_WEEK
from vestige.cognition.intentions.triggers import MORNING, Recurring, Time
from vestige.cognition.time.calendar import Period, days
from vestige.cognition.time.expressions import (
    COUNT,
    COUNTS,
    MONTH_NUMBERS,
    WEEKDAY_NUMBERS,
    counted,
    expressions,
    moved,
)

# -- Durations: `in 2 hours and 30 minutes`, `in 1.5h`, `two weeks from now`

MOST_MINUTES = 10 * 366 * 24 * 60  # The longest duration; anything longer is a date.

_MINUTES = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 24 * 60.0, "w": 7 * 24 * 60.0}
_AMOUNT = rf"(?:(?P<number>[0-9]{{1,5}}(?:\.[0-9]{{1,3}})?) ?|(?P<word>{'|'.join(COUNTS)}|half an?) )"
_PART = re.compile(
    rf"{_AMOUNT}(?P<unit>(?:s|secs?|seconds?)|(?:m|mins?|minutes?)|(?:h|hrs?|hours?)|days?|weeks?|months?|years?)\b"
    r"(?P<more> and a half\b)?",
    re.IGNORECASE,
)
_BETWEEN = re.compile(r" ?, ?(?:and )?| and | ", re.IGNORECASE)
_WHILE = re.compile(r"(?:in|after) (?P<then>.+?)(?: from now)?|(?P<from_now>.+?) from now", re.IGNORECASE)


def later(phrase: str, now: datetime) -> Time | None:
    """The moment of a whole phrase that is a duration from now."""
    found = _WHILE.fullmatch(phrase)
    parts = _parts(found["then"] or found["from_now"]) if found else []
    if not parts:
        return None
    (many, unit), *others = parts
    if unit[0] in "my" and unit[:2] in ("mo", "ye"):
        return _by_calendar(many, unit, now) if not others else None
    if any(name[:2] in ("mo", "ye") for _, name in others):
        return None
    minutes = sum(number * _MINUTES[name[0]] for number, name in parts)
    at = now + timedelta(minutes=minutes)
    if minutes > MOST_MINUTES:
        return Time(at=at)
    return Time(at=at, minutes=int(minutes) if minutes == int(minutes) else minutes)


def _by_calendar(many: float, unit: str, now: datetime) -> Time | None:
    if many != int(many):
        return None
    return Time(at=datetime.combine(moved(now.date(), unit.removesuffix("s"), int(many)), now.timetz()))


def _parts(phrase: str) -> list[tuple[float, str]]:
    """Numbers with their units; empty when there is anything else among them."""
    parts: list[tuple[float, str]] = []
    place = 0
    while found := _PART.match(phrase, place):
        many = _number(found) + (0.5 if found["more"] else 0)
        parts.append((many, found["unit"].casefold()))
        if found.end() == len(phrase):
            return parts
        between = _BETWEEN.match(phrase, found.end())
        if between is None:
            return []
        place = between.end()
    return []


def _number(found: re.Match[str]) -> float:
    if found["number"]:
        return float(found["number"])
    word = " ".join(found["word"].casefold().split())
    return 0.5 if word.startswith("half") else COUNTS[word][0]


# -- Moments: dates and times of day

_PARTS_OF_DAY = {"morning": MORNING, "afternoon": 15 * 60, "evening": 18 * 60, "night": 20 * 60}
NOON_HOUR = 12
_LATE_FROM = {"afternoon": 1, "evening": 4, "night": 6}
"""The first hour that, with this part of the day, means one after noon."""
_LATE = re.compile(rf"\b(?:to)?({'|'.join(_LATE_FROM)})\b", re.IGNORECASE)
_SAFE_DAY = 28
"""The last day that every month has."""

_CLOCK = re.compile(
    r"(?P<at>(?:at |@ ?)?)"
    r"(?:(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-5][0-9]))? ?(?P<half>[ap]\.?m\b\.?)?|(?P<word>noon|midnight))"
    r"(?: ?o'?clock)?(?: ?(?P<zone>utc|gmt|z|[+-][0-9]{2}:?[0-9]{2}))?",
    re.IGNORECASE,
)


def moment_in(phrase: str, now: datetime, *, usual: int = MORNING) -> Time | None:
    """The moment that a whole phrase names, if it is in the future; `usual` is the minute of a day without a
    clock time."""
    try:
        time = later(phrase, now) or _dated(phrase, now, usual)
    except (ValueError, OverflowError):  # the calendar has no such time
        return None
    return time if time is not None and time.at > now else None


_END_OF = re.compile(
    r"^(?:eod|(?:the )?end of (?:the |this |(?P<next>next) )?(?P<unit>day|week|month|year))$", re.IGNORECASE
)


_BY = re.compile(
    r"(?:by|(?P<before>before)|until|(?P<within>within)|deadline(?: is)?:?|"
    r"(?:(?:is|are) )?due(?: (?:by|on|at|(?P<due_before>before)))?|not? later than|"
    r"at the latest(?: (?:by|on|at))?) (?P<rest>.+?)(?: at the latest)?",
    re.IGNORECASE,
)


def _this(found: re.Match[str]) -> str:
    unit = (found["unit"] or "day").casefold()
    if unit == "day":
        return "tomorrow" if found["next"] else "today"
    return f"{'next' if found['next'] else 'this'} {unit}"


def deadline_in(phrase: str, now: datetime) -> datetime | None:
    """The deadline that a whole phrase names: `by friday`, `before 5 pm`, `no later than 12 May`, `today`."""
    found = _BY.fullmatch(phrase)
    rest = _END_OF.sub(_this, found["rest"]) if found else phrase
    if found is None and rest.casefold() not in ("today", "this week", "this month"):
        return None
    if found is not None and found["within"]:
        clocked = moment_in(f"in {rest}", now)
    else:
        clocked = moment_in(rest, now) if _clock_split(rest)[1] or _iso(rest) else None
    if clocked is not None:
        return clocked.at
    day = _period(rest, now) or _period(f"in {rest}", now)
    is_before = found is not None and bool(found["before"] or found["due_before"]) and rest == found["rest"]
    end = None if day is None else day.start if is_before else day.end
    return end if end is not None and end > now else None


def clock_in(phrase: str) -> tuple[int, int] | None:
    """The minute of the day of a clock time, and the minutes its clock is ahead of UTC."""
    found = _CLOCK.fullmatch(" ".join(phrase.split()))
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


def _iso(phrase: str) -> datetime | None:
    plain = re.sub(r"^(?:on|at) ", "", phrase.strip(), flags=re.IGNORECASE)
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]", plain):
        return None
    try:
        moment = datetime.fromisoformat(plain)
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _dated(phrase: str, now: datetime, usual: int) -> Time | None:
    """A day with or without a clock time, or a clock time alone."""
    moment = _iso(phrase) or _on_day(phrase, now, usual)
    return None if moment is None else Time(at=moment)


def _on_day(phrase: str, now: datetime, usual: int) -> datetime | None:
    rest, clock = _clock_split(phrase)
    if not rest:
        return None if clock is None else _next_clock(clock, now)
    period = _period(rest, now)
    if period is None or (clock is None and rest.casefold() == "today"):
        return None
    at, offset = _in_part(clock, rest) or (_part_of_day(rest, usual), 0)
    moment = _on(period.start.date(), at, offset)
    if moment <= now and _bare_weekday(rest) is not None:
        return moment + timedelta(days=DAYS_PER_WEEK)
    if moment <= now and _DAY_OF_MONTH.fullmatch(rest):
        return _on_day(phrase, now + timedelta(days=1), usual)
    return moment


def _clock_split(phrase: str) -> tuple[str, tuple[int, int] | None]:
    """A phrase without the clock time it begins or ends with, and that time. A bare number is a clock time
    only after `at`."""
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
    moment = _on(today, at, offset)
    return moment if moment > now else moment + timedelta(days=1)


def _on(day: date, at: int, offset: int) -> datetime:
    return datetime.combine(day, time(*divmod(at, 60)), UTC) - timedelta(minutes=offset)


def _in_part(clock: tuple[int, int] | None, words: str) -> tuple[int, int] | None:
    """A clock time in the part of the day beside it: seven in the evening is 19:00."""
    late = _LATE.search(words)
    if clock is None or late is None or not _LATE_FROM[late[1].casefold()] <= clock[0] // 60 < NOON_HOUR:
        return clock
    return clock[0] + NOON_HOUR * 60, clock[1]


def _part_of_day(words: str, usual: int) -> int:
    said = words.casefold().replace("tonight", "night").split()
    return next((minute for part, minute in _PARTS_OF_DAY.items() if part in said), usual)


_WITHOUT = re.compile(r"^(?:on|in|at) (?:the )?| (?:morning|afternoon|evening|night)$", re.IGNORECASE)
"""Words around a day that do not change it."""


_ASTRAY = re.compile(
    rf"(?:in|at) (?:this|next|{'|'.join(WEEKDAY_NUMBERS)})\b|(?:in|at|on) (?:tomorrow|today|tonight)\b",
    re.IGNORECASE,
)
"""Prepositions that do not go with a day and belong to the task: `log in tomorrow`."""


def _bare_weekday(phrase: str) -> int | None:
    return WEEKDAY_NUMBERS.get(_WITHOUT.sub("", phrase.strip()).casefold())


def _period(phrase: str, now: datetime) -> Period | None:
    """The days that a phrase names; without a year the next to come, today included."""
    if _ASTRAY.match(phrase):
        return None
    weekday = _bare_weekday(phrase)
    if weekday is not None:
        return days(now.date() + timedelta(days=(weekday - now.weekday()) % DAYS_PER_WEEK))
    numbered = _DAY_OF_MONTH.fullmatch(phrase.strip())
    if numbered is not None:
        return _next_numbered(int(numbered["day"]), now)
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


_DAY_OF_MONTH = re.compile(
    r"(?:on )?the (?P<day>[0-9]{1,2})(?:st|nd|rd|th)(?: of (?:the|this) month)?", re.IGNORECASE
)


def _next_numbered(number: int, now: datetime) -> Period | None:
    """The next day with this number in its month, today included."""
    nearest = (now.date() + timedelta(days=ahead) for ahead in range(62))
    return next((days(day) for day in nearest if day.day == number), None)


# -- Recurrence rules

_SHORT_DAYS = {name[:3]: number for name, number in WEEKDAY_NUMBERS.items()} | {"tues": 1, "thurs": 3}
_DAY_NAME = rf"(?:(?:{'|'.join(WEEKDAY_NUMBERS)})s?|{'|'.join(sorted(_SHORT_DAYS, key=len, reverse=True))})\b"
_PLURAL_DAY = rf"(?:{'|'.join(WEEKDAY_NUMBERS)})s"
_DAY_NAMES = rf"(?P<days>{_DAY_NAME}(?:(?: ?, ?| and | ?, ?and ){_DAY_NAME})*|weekdays?|weekends?)"
_NTH = r"(?:the )?(?:(?P<nth>[0-9]{1,2})(?:st|nd|rd|th)?|(?P<last>last day))"
_MONTH = rf"(?:{'|'.join(sorted(MONTH_NUMBERS, key=len, reverse=True))})\b"
_NUMBER = r"[0-9]{1,2}(?:st|nd|rd|th)?"
_DATE = rf"(?:the )?(?P<date>{_MONTH}\.? {_NUMBER}|{_NUMBER} (?:of )?{_MONTH})"
_EVERY = rf"(?:every|each) (?:(?:{COUNT}|(?P<other>other|second)) )?"
_RULES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_EVERY}(?P<unit>min(?:ute)?|h(?:ou)?r)s?|(?P<word>hourly)",
        rf"{_EVERY}(?P<unit>day)s?|(?P<word>daily)|(?:every|each) (?P<part>{'|'.join(_PARTS_OF_DAY)})",
        rf"(?:{_EVERY}(?P<unit>week)s?|(?P<word>weekly))(?: on {_DAY_NAMES})?",
        rf"(?:every|each) (?P<other>other |second )?{_DAY_NAMES}"
        rf"|(?:on )?(?P<on>{_PLURAL_DAY}(?:(?: ?, ?| and ){_PLURAL_DAY})*|weekdays|weekends)"
        rf"|(?:every day )?(?:from )?(?P<first>{_DAY_NAME})(?: (?:to|through|till) |"
        rf" ?[-–] ?)(?P<final>{_DAY_NAME})",
        rf"(?:{_EVERY}(?P<unit>month)s?|(?P<word>monthly))(?: on {_NTH}(?: of the month)?)?",
        rf"(?:on )?{_NTH} (?:day )?of (?:every|each|the) month|every (?P<day>[0-9]{{1,2}})(?:st|nd|rd|th)",
        rf"(?:(?:(?:every|each) year|yearly|annually) on|every|each) {_DATE}",
    )
)
_UNTIL = re.compile(r" until (?P<until>.+)$", re.IGNORECASE)
_FROM_NOW = re.compile(r" (?:starting|beginning) (?:today|now)$", re.IGNORECASE)
_STARTING = re.compile(r" (?:starting|beginning) (?:from )?(?P<start>.+)$", re.IGNORECASE)


def rule_in(phrase: str, now: datetime, *, usual: int = MORNING) -> Recurring | None:
    """The rule of a whole phrase; `usual` is the minute of a day without a clock time."""
    ending = _UNTIL.search(phrase)
    until = deadline_in(f"by {ending['until']}", now) if ending else None
    if ending is not None and until is None:
        return None
    phrase = _FROM_NOW.sub("", phrase[: ending.start()] if ending else phrase)
    opening = _STARTING.search(phrase)
    start = moment_in(opening["start"], now, usual=0) if opening else None
    if opening is not None and start is None:
        return None
    rest, clock = _clock_split(phrase[: opening.start()] if opening else phrase)
    for form in _RULES:
        found = form.fullmatch(rest.strip())
        if found is None:
            continue
        pattern = _pattern(found.groupdict(), found, now)
        if pattern is None or (isinstance(pattern, recurrence.Interval) and clock is not None):
            return None
        clock = _in_part(clock or (_clock_split(opening["start"])[1] if opening else None), rest)
        at, offset = clock or (_PARTS_OF_DAY.get((found.groupdict().get("part") or "").casefold(), usual), 0)
        if isinstance(pattern, recurrence.Interval):
            at, offset = 0, 0
        rule = recurrence.Recurrence(
            pattern=pattern, start=start.at if start else now, until=until, at=at, offset=offset
        )
        # A rule that begins at a stated moment may occur at that very moment.
        begun = recurrence.beginning(rule, start.at - timedelta.resolution if start else now)
        return None if begun is None else Recurring(rule=begun)
    return None


def _pattern(parts: dict[str, str | None], found: re.Match[str], now: datetime) -> recurrence.Pattern | None:
    every = 2 if parts.get("other") else counted(found)[0] if parts.get("count") else 1
    unit = (parts.get("unit") or parts.get("word") or "").casefold()
    if every < 1:
        return None
    if unit[:1] == "h":
        return recurrence.Interval(minutes=60 * every)
    if unit[:3] == "min":
        return recurrence.Interval(minutes=every)
    if unit in ("day", "daily") or parts.get("part"):
        return recurrence.Daily(every=every)
    if parts.get("first"):
        return recurrence.Weekly(weekdays=_from_to(parts["first"] or "", parts["final"] or ""))
    if unit in ("week", "weekly") or parts.get("days") or parts.get("on"):
        weekdays = _weekdays(parts.get("days") or parts.get("on"), now)
        return recurrence.Weekly(every=every, weekdays=weekdays) if weekdays else None
    return _monthly(parts, every, now)


def _monthly(parts: dict[str, str | None], every: int, now: datetime) -> recurrence.Monthly | None:
    date = parts.get("date")
    if date:
        day = int("".join(filter(str.isdigit, date)))
        name = next(word for word in re.findall(r"[a-z]+", date.casefold()) if word in MONTH_NUMBERS)
        return recurrence.Monthly(day=day, months=(MONTH_NUMBERS[name],)) if 1 <= day <= 31 else None
    number = parts.get("nth") or parts.get("day")
    if parts.get("last"):
        return recurrence.Monthly(every=every, day=recurrence.LAST)
    if number is None:
        # Said on the 31st, `every month` means every month.
        return recurrence.Monthly(every=every, day=now.day if now.day <= _SAFE_DAY else recurrence.LAST)
    return recurrence.Monthly(every=every, day=int(number)) if 1 <= int(number) <= 31 else None


def _weekdays(names: str | None, now: datetime) -> tuple[int, ...]:
    """The numbers of some weekdays; today's when none is named, and none for a word that is not a weekday."""
    if names is None:
        return (now.weekday(),)
    plain = names.casefold().rstrip("s")
    if plain in ("weekday", "weekend"):
        return tuple(range(5)) if plain == "weekday" else (5, 6)
    numbers = [weekday_number(name) for name in re.split(r" ?, ?(?:and )?| and ", names)]
    found = sorted({number for number in numbers if number is not None})
    return tuple(found) if None not in numbers else ()


def _from_to(first: str, final: str) -> tuple[int, ...]:
    """The days from one weekday to another, which may be in the next week."""
    begin, end = weekday_number(first) or 0, weekday_number(final) or 0
    return tuple(sorted((begin + day) % DAYS_PER_WEEK for day in range((end - begin) % DAYS_PER_WEEK + 1)))


def weekday_number(name: str) -> int | None:
    """Monday is 0; `mon`, `monday` and `mondays` are all the same."""
    plain = name.strip().casefold()
    return WEEKDAY_NUMBERS.get(plain.removesuffix("s"), _SHORT_DAYS.get(plain))
