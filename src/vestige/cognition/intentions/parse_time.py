"""Times in English: `in 2 hours`, `tomorrow at 9`, `every monday at 10:00`, `by friday`, `yesterday`.

`now` has the user's zone, and clock times and days are those of that zone, unless the phrase has an offset or
names a zone (`at 9:00 Asia/Tokyo`). A day without a clock time means nine o'clock, and a time without a date
the next one to come. Results are in UTC.
"""

import re
from datetime import UTC, datetime, timedelta, tzinfo

from vestige.cognition.intentions import recurrence
from vestige.cognition.intentions.recurrence import DAYS_PER_WEEK
from vestige.cognition.intentions.triggers import MORNING, Recurring, Time
from vestige.cognition.time.calendar import WEEKDAYS, Period, days, zone_in
from vestige.cognition.time.expressions import (
    COUNT,
    COUNTS,
    MONTH_NUMBERS,
    WEEKDAY_NUMBERS,
    counted,
    expressions,
    moved,
)
from vestige.core.models import utc
from vestige.core.patterns import lazy_pattern
from vestige.core.timezone import at_clock, known_zone

# -- Durations: `in 2 hours and 30 minutes`, `in 1.5h`, `two weeks from now`

MOST_MINUTES = 10 * 366 * 24 * 60  # The longest duration; anything longer is a date.

_MINUTES = {"s": 1 / 60, "m": 1.0, "h": 60.0, "d": 24 * 60.0, "w": 7 * 24 * 60.0}
_AMOUNT = rf"(?:(?P<number>[0-9]{{1,5}}(?:\.[0-9]{{1,3}})?) ?|(?P<word>{'|'.join(COUNTS)}|half an?) )"
_PART = lazy_pattern(
    rf"{_AMOUNT}(?P<unit>(?:s|secs?|seconds?)|(?:m|mins?|minutes?)|(?:h|hrs?|hours?)|days?|weeks?|months?|years?)\b"
    r"(?P<more> and a half\b)?",
    re.IGNORECASE,
)
_HOURS_AND_MINUTES = lazy_pattern(r"\b([0-9]{1,2})h([0-5][0-9])(?:m|min)?\b", re.IGNORECASE)
_BETWEEN = lazy_pattern(r" ?, ?(?:and )?| and | ", re.IGNORECASE)
_WHILE = lazy_pattern(
    r"(?:in|after) (?P<then>.+?)(?:['’]s? time| from now)?|(?P<from_now>.+?) from now", re.IGNORECASE
)


def later(phrase: str, now: datetime) -> Time | None:
    """The moment of a whole phrase that is a duration from now."""
    found = _WHILE.fullmatch(_HOURS_AND_MINUTES.sub(r"\1h \2m", phrase))
    parts = _parts(found["then"] or found["from_now"]) if found else []
    if not parts:
        return None
    (many, unit), *others = parts
    if unit[0] in "my" and unit[:2] in ("mo", "ye"):
        return _by_calendar(many, unit, now) if not others else None
    if any(name[:2] in ("mo", "ye") for _, name in others):
        return None
    minutes = sum(number * _MINUTES[name[0]] for number, name in parts)
    at = utc(now) + timedelta(minutes=minutes)
    if minutes > MOST_MINUTES:
        return Time(at=at)
    return Time(at=at, minutes=int(minutes) if minutes == int(minutes) else minutes)


def _by_calendar(many: float, unit: str, now: datetime) -> Time | None:
    if many != int(many):
        return None
    then = moved(now.date(), unit.removesuffix("s"), int(many))
    return Time(at=utc(datetime.combine(then, now.timetz())))


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
_LATE = lazy_pattern(rf"\b(?:to)?({'|'.join(_LATE_FROM)})\b", re.IGNORECASE)
_SAFE_DAY = 28
"""The last day that every month has."""

_CLOCK = lazy_pattern(
    r"(?P<at>(?:at |@ ?)?)"
    r"(?:(?P<hour>[0-9]{1,2})(?::(?P<minute>[0-5][0-9]))? ?(?P<half>[ap]\.?m\b\.?)?|(?P<word>noon|midnight))"
    r"(?: ?o'?clock)?(?: ?(?P<zone>(?:utc|gmt)?[+-][0-9]{2}:?[0-9]{2}|utc|gmt|z"
    r"|(?-i:[A-Z][a-z]+/[A-Z]\w+(?:/[A-Z]\w+)?)))?",
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


_END_OF = lazy_pattern(
    r"^(?:at )?(?:eod|(?:the )?end of (?:the |this |(?P<next>next) )?(?P<unit>day|week|month|year))$",
    re.IGNORECASE,
)


_BY = lazy_pattern(
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
    said = found["rest"] if found else phrase
    rest = _END_OF.sub(_this, re.sub(r"^later (?=today$|this )", "", said, flags=re.IGNORECASE))
    if found is None and rest == said and rest.casefold() not in ("today", "this week", "this month"):
        return None
    if found is not None and found["within"]:
        clocked = moment_in(f"in {rest}", now)
    else:
        clocked = moment_in(rest, now) if _clock_split(rest)[1] or _iso(rest, now) else None
    if clocked is not None:
        return clocked.at
    day = _period(rest, now) or _period(f"in {rest}", now)
    is_before = found is not None and bool(found["before"] or found["due_before"]) and rest == found["rest"]
    end = None if day is None else utc(day.start if is_before else day.end)
    return end if end is not None and end > now else None


_HOURS = {word: least for word, (least, most) in COUNTS.items() if least == most and word not in ("a", "an")}
_SHARES = {"half": 30, "quarter": 15, "five": 5, "ten": 10, "twenty": 20}
_HOUR_NAME = "|".join(_HOURS)
_SPELT = lazy_pattern(
    rf"(?P<at>at |@ ?)?(?:(?P<share>half|(?:a )?quarter|five|ten|twenty) (?P<side>past|to) )?"
    rf"(?P<hour>{_HOUR_NAME}|[0-9]{{1,2}})(?P<rest>(?: ?[ap]\.?m\b\.?| ?o'?clock)?)",
    re.IGNORECASE,
)
"""A clock time with words: `at half past nine`, `nine pm`; a bare `nine` is a number."""


def _spelt_clock(phrase: str) -> str:
    """A clock time in digits: `at half past nine` is `at 9:30`."""
    found = _SPELT.fullmatch(phrase)
    if found is None or not (found["at"] or found["share"] or found["rest"]):
        return phrase
    named = found["hour"].casefold()
    hour = int(named) if named.isdecimal() else _HOURS[named]
    if not found["share"]:
        return f"{found['at'] or ''}{hour}{found['rest']}"
    minutes = _SHARES[found["share"].casefold().removeprefix("a ")]
    if found["side"].casefold() == "to":
        hour, minutes = (hour - 1) or 12, 60 - minutes
    return f"{found['at'] or ''}{hour}:{minutes:02}{found['rest']}"


Clock = tuple[int, tzinfo | None]
"""A minute of the day, and its zone if that is stated."""


def clock_in(phrase: str) -> Clock | None:
    """The minute of the day of a clock time, and the zone that it states."""
    found = _CLOCK.fullmatch(_spelt_clock(" ".join(phrase.split())))
    if found is None:
        return None
    hour, minute = int(found["hour"] or (12 if found["word"] else 0)), int(found["minute"] or 0)
    if found["word"]:
        hour = 0 if found["word"].casefold() == "midnight" else 12
    if found["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if found["half"][0] in "pP" else 0)
    zone = known_zone(found["zone"]) if found["zone"] else None
    return None if hour > 23 or (found["zone"] and zone is None) else (60 * hour + minute, zone)


def _iso(phrase: str, now: datetime) -> datetime | None:
    plain = re.sub(r"^(?:on|at) ", "", phrase.strip(), flags=re.IGNORECASE)
    if not re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]", plain):
        return None
    try:
        moment = datetime.fromisoformat(plain)
        return utc(moment.replace(tzinfo=now.tzinfo) if moment.tzinfo is None else moment)
    except (ValueError, OverflowError):
        return None


def _dated(phrase: str, now: datetime, usual: int) -> Time | None:
    """A day with or without a clock time, or a clock time alone."""
    moment = _iso(phrase, now) or _on_day(phrase, now, usual)
    return None if moment is None else Time(at=moment)


def _on_day(phrase: str, now: datetime, usual: int) -> datetime | None:
    rest, clock = _clock_split(phrase)
    rest = _short_day(rest) if clock or rest[:3].casefold() == "on " else rest
    if not rest:
        return None if clock is None else _next_clock(clock, now)
    period = _period(rest, now) or (_days_ahead(rest, now) if clock else None)
    if period is None or (clock is None and rest.casefold() == "today"):
        return None
    at, zone = _in_part(clock, rest) or (_part_of_day(rest, usual), None)
    day = period.start.date()
    moment = at_clock(day, at, zone or zone_in(now))
    if moment <= now and at < NOON_HOUR * 60 and _TODAY_AT.fullmatch(phrase):
        moment = at_clock(day, at + NOON_HOUR * 60, zone or zone_in(now))
    step = DAYS_PER_WEEK if _bare_weekday(rest) is not None else 1 if _PART_OF_NEXT_DAY.fullmatch(rest) else 0
    if moment <= now and step:
        return at_clock(day + timedelta(days=step), at, zone or zone_in(now))
    if moment <= now and _DAY_OF_MONTH.fullmatch(rest):
        return _on_day(phrase, now + timedelta(days=1), usual)
    return moment


def _short_day(phrase: str) -> str:
    """The whole name of a day, where a clock time or `on` says that `sat` is one."""
    number = _SHORT_DAYS.get(phrase.casefold().removeprefix("on ").rstrip("."))
    return phrase if number is None else WEEKDAYS[number]


def _days_ahead(phrase: str, now: datetime) -> Period | None:
    """The day of `in two weeks`, where a clock time is stated with it."""
    found = _WHILE.fullmatch(phrase)
    parts = _parts(found["then"] or found["from_now"]) if found else []
    if len(parts) != 1 or parts[0][0] != int(parts[0][0]):
        return None
    unit = parts[0][1].removesuffix("s")
    return (
        days(moved(now.date(), unit, int(parts[0][0])), zone_in(now))
        if unit in ("day", "week", "month", "year")
        else None
    )


def _clock_split(phrase: str) -> tuple[str, Clock | None]:
    """A phrase without the clock time it begins or ends with, and that time. A bare number is a clock time
    only after `at` or `tomorrow`."""
    words = phrase.split()
    if len(words) > 1 and words[-2].casefold() in ("tomorrow", "tonight") and words[-1].isdecimal():
        words[-1:] = ["at", words[-1]]
    for size in range(min(5, len(words)), 0, -1):
        for part, rest in ((words[-size:], words[:-size]), (words[:size], words[size:])):
            said = " ".join(part)
            clock = clock_in(said)
            if clock is not None and not re.fullmatch(r"[0-9]+", said):
                return " ".join(rest), clock
    return phrase, None


def _next_clock(clock: Clock, now: datetime) -> datetime:
    at, zone = clock[0], clock[1] or zone_in(now)
    today = now.astimezone(zone).date()
    moment = at_clock(today, at, zone)
    return moment if moment > now else at_clock(today + timedelta(days=1), at, zone)


def _in_part(clock: Clock | None, words: str) -> Clock | None:
    """A clock time in the part of the day beside it: seven in the evening is 19:00."""
    late = _LATE.search(words)
    if clock is None or late is None or not _LATE_FROM[late[1].casefold()] <= clock[0] // 60 < NOON_HOUR:
        return clock
    return clock[0] + NOON_HOUR * 60, clock[1]


def _part_of_day(words: str, usual: int) -> int:
    said = words.casefold().replace("tonight", "night").split()
    return next((minute for part, minute in _PARTS_OF_DAY.items() if part in said), usual)


_WITHOUT = lazy_pattern(r"^(?:on|in|at|over) (?:the )?| (?:morning|afternoon|evening|night)$", re.IGNORECASE)
"""Words around a day that do not change it."""


_ASTRAY = lazy_pattern(
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
        ahead = (weekday - now.weekday()) % DAYS_PER_WEEK
        return days(now.date() + timedelta(days=ahead), zone_in(now))
    if _PART_OF_NEXT_DAY.fullmatch(phrase.strip()):
        return days_of(now)
    numbered = _DAY_OF_MONTH.fullmatch(phrase.strip())
    if numbered is not None:
        return _next_numbered(int(numbered["day"]), now)
    plain = _WITHOUT.sub("", phrase.strip())
    plain = _STANDS_FOR.get(plain.casefold(), plain)
    found = expressions(plain)
    if len(found) != 1 or (found[0].start, found[0].end) != (0, len(plain)):
        return None
    if found[0].loose and not phrase.casefold().startswith("in "):
        return None  # a bare month may be the rest of a date that the calendar has not: `on 31 June`
    try:
        return found[0].read(now, moved(now.date(), "year", 1) - timedelta(days=1))
    except (ValueError, OverflowError):
        return None


_STANDS_FOR = {"this": "today", "weekend": "this weekend"}
_TODAY_AT = lazy_pattern(
    r"today at [0-9]{1,2}(?::[0-9]{2})?|at [0-9]{1,2}(?::[0-9]{2})? today", re.IGNORECASE
)
"""A clock time of today without `am`: at noon, `today at 6` is in the evening."""
_PART_OF_NEXT_DAY = lazy_pattern(r"in the (?:morning|afternoon|evening)|at night", re.IGNORECASE)
"""A part of a day without a day: the next one to come."""
_DAY_OF_MONTH = lazy_pattern(
    r"(?:on )?the (?P<day>[0-9]{1,2})(?:st|nd|rd|th)(?: of (?:the|this) month)?", re.IGNORECASE
)


def _next_numbered(number: int, now: datetime) -> Period | None:
    """The next day with this number in its month, today included."""
    nearest = (now.date() + timedelta(days=ahead) for ahead in range(62))
    return next((days(day, zone_in(now)) for day in nearest if day.day == number), None)


# -- Times that are given as an argument: past or to come


def stated_period(phrase: str, now: datetime, *, coming: bool) -> Period | None:
    """The moment (a period without length) or the days that words name, in UTC: `yesterday`, `2 hours ago`,
    `last monday at 9`, `tomorrow at 10`. A bare clock time is one of today; of several Mondays the next one
    is meant if it is `coming`, else the last."""
    plain = " ".join(phrase.split())
    if not plain:
        return None
    try:
        moment = _exactly(plain, now)
        if moment is None:
            rest, clock = _clock_split(plain)
            found = days_of(now) if not rest else _period(rest, now) if coming else _last_period(rest, now)
            if found is None or clock is None:
                return found and Period(start=utc(found.start), end=utc(found.end))
            at, zone = _in_part(clock, rest) or clock
            moment = at_clock(found.start.date(), at, zone or zone_in(now))
    except (ValueError, OverflowError):
        return None
    return Period(start=moment, end=moment)


_AGO = re.compile(r"(?P<then>.+) ago", re.IGNORECASE)


def _exactly(phrase: str, now: datetime) -> datetime | None:
    """The moment of `now`, or a duration before or after it."""
    if phrase.casefold() == "now":
        return utc(now)
    ago = _AGO.fullmatch(phrase)
    if ago is None:
        found = later(phrase, now)
        return found.at if found else _iso(phrase, now)
    parts = _parts(ago["then"])
    if len(parts) == 1 and parts[0][1][:2] in ("mo", "ye"):
        (many, unit), day = parts[0], now.date()
        then = moved(day, unit.removesuffix("s"), -int(many)) if many == int(many) else None
        return None if then is None else utc(datetime.combine(then, now.timetz()))
    if not parts or any(unit[:2] in ("mo", "ye") for _, unit in parts):
        return None
    return utc(now) - timedelta(minutes=sum(number * _MINUTES[unit[0]] for number, unit in parts))


def days_of(now: datetime) -> Period:
    """Today."""
    return days(now.date(), zone_in(now))


def _last_period(phrase: str, now: datetime) -> Period | None:
    """The days that a phrase names; of several such days the latest, today included."""
    weekday = _bare_weekday(phrase)
    if weekday is not None:
        return days(now.date() - timedelta(days=(now.weekday() - weekday) % DAYS_PER_WEEK), zone_in(now))
    plain = _WITHOUT.sub("", phrase.strip())
    found = expressions(plain)
    if len(found) != 1 or (found[0].start, found[0].end) != (0, len(plain)):
        return None
    return found[0].read(now, now.date())


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
    lazy_pattern(pattern, re.IGNORECASE)
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
_FIRST_OF = lazy_pattern(r"\bfirst (?:day )?of(?= (?:every|each|the) month)", re.IGNORECASE)
_UNTIL = lazy_pattern(r" until (?P<until>.+)$", re.IGNORECASE)
_FROM_NOW = lazy_pattern(r" (?:starting|beginning) (?:today|now)$", re.IGNORECASE)
_STARTING = lazy_pattern(r" (?:starting|beginning) (?:from )?(?P<start>.+)$", re.IGNORECASE)


def rule_in(phrase: str, now: datetime, *, usual: int = MORNING) -> Recurring | None:
    """The rule of a whole phrase; `usual` is the minute of a day without a clock time."""
    phrase = _FIRST_OF.sub("1st of", phrase)
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
        part = (found.groupdict().get("part") or "").casefold()
        at, zone = clock or (_PARTS_OF_DAY.get(part, usual), None)
        zone = zone or zone_in(now)
        if isinstance(pattern, recurrence.Interval):
            at, zone = 0, UTC
        rule = recurrence.Recurrence(
            pattern=pattern, start=start.at if start else utc(now), until=until, at=at, zone=zone
        )
        # A rule that begins at a stated moment may occur at that very moment.
        begun = recurrence.beginning(rule, start.at - timedelta.resolution if start else utc(now))
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
