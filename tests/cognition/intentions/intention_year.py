"""Rules for intentions, made up, and when they should come up: by looking at every day of a year.

Nothing here is shared with the code under test: a rule is the form that the tool takes, and what it means is
written down as a condition on a day or a situation, not as a step from one time to the next.
"""

import random
from bisect import bisect_right
from calendar import monthrange
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

BEGIN = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
YEAR = timedelta(days=366)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
CODEBASES = ("shop", "web", "billing")
FILES = ("src/auth.py", "/home/ada/shop/db/schema.sql", "db/old/init.sql", "README.md", "web/src/app/main.ts")
TOPICS = ("payments", "caching", "release")
HAPPENINGS = ("The deploy of the api finished.", "All tests pass again.", "The certificate expired.")
CONDITIONS = {
    "deploy finished": HAPPENINGS[0],
    "tests pass": HAPPENINGS[1],
    "certificate expired": HAPPENINGS[2],
}
PATTERNS: dict[str, Callable[[str], bool]] = {
    "*.sql": lambda file: file.endswith(".sql"),
    "auth.py": lambda file: file.rpartition("/")[2] == "auth.py",
    "db/*.sql": lambda file: file.split("/")[-2:-1] == ["db"] and file.endswith(".sql"),
    "src/**/*.ts": lambda file: "src" in file.split("/")[:-1] and file.endswith(".ts"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """When somebody looks, and what he says."""

    at: datetime
    codebase: str
    file: str
    topics: tuple[str, ...]
    events: tuple[str, ...]

    def told(self) -> dict[str, Any]:
        """The context as the tool takes it."""
        return {
            "codebase": self.codebase,
            "file": self.file,
            "topics": list(self.topics),
            "events": list(self.events),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A trigger and its meaning: moments of the clock, a context, an event, or parts."""

    trigger: dict[str, Any]
    moments: tuple[datetime, ...] = ()
    recurs: bool = False
    context: Callable[[Moment], bool] | None = None
    event: str | None = None
    parts: "tuple[Rule, ...]" = ()

    @property
    def repeats(self) -> bool:
        return self.recurs or any(part.repeats for part in self.parts)


@dataclass(slots=True)
class Watch:
    """What should happen to one rule, as time goes by."""

    rule: Rule
    last: datetime | None = None
    heard: dict[int, datetime] = field(default_factory=dict)

    def look(self, moment: Moment) -> tuple[datetime, int] | None:
        """The moment for which it comes up anew and how many were missed, or None."""
        self._hear(self.rule, moment)
        if self.last is not None and not self.rule.repeats:
            return None
        held = self._holds(self.rule, moment, lasting=False)
        if held is None:
            return None
        self.last, self.heard = moment.at, {}
        due, times = held
        return due or moment.at, max(0, times - 1)

    def _hear(self, rule: Rule, moment: Moment) -> None:
        for part in rule.parts:
            self._hear(part, moment)
        if rule.event in moment.events:
            self.heard.setdefault(id(rule), moment.at)

    def _holds(self, rule: Rule, moment: Moment, *, lasting: bool) -> tuple[datetime | None, int] | None:
        if rule.parts:
            return self._together(rule, moment)
        if rule.context is not None:
            return (None, 0) if rule.context(moment) else None
        if rule.event is not None:
            return (self.heard[id(rule)], 0) if id(rule) in self.heard else None
        after = None if lasting and not rule.recurs else self.last
        if rule.recurs and after is None:
            after = BEGIN
        begun = 0 if after is None else bisect_right(rule.moments, after)
        past = rule.moments[begun : bisect_right(rule.moments, moment.at)]
        return (past[-1], len(past) if rule.recurs else 0) if past else None

    def _together(self, rule: Rule, moment: Moment) -> tuple[datetime | None, int] | None:
        every = "all" in rule.trigger
        found = [self._holds(part, moment, lasting=every) for part in rule.parts]
        held = [one for one in found if one is not None]
        if not held or (every and len(held) < len(found)):
            return None
        dues = [due for due, _ in held if due is not None]
        times = [many for _, many in held]
        return max(dues, default=None), max(times) if every else sum(times)


def rules(seed: int, many: int) -> list[Rule]:
    """So many rules of every kind."""
    rng = random.Random(seed)
    makers = (interval, interval, daily, weekly, weekly, monthly, monthly, once, soon, place, event, several)
    return [makers[number % len(makers)](rng) for number in range(many)]


def looks(seed: int, many: int, beside: Sequence[datetime] = ()) -> list[Moment]:
    """Times to look, at random and just before and just at some others, in order."""
    rng = random.Random(seed)
    times = {BEGIN + timedelta(seconds=rng.randrange(1, int(YEAR.total_seconds()))) for _ in range(many)}
    times |= {one - timedelta(seconds=1) for one in beside} | set(beside)
    return [_moment(rng, at) for at in sorted(times) if BEGIN < at <= BEGIN + YEAR]


def _moment(rng: random.Random, at: datetime) -> Moment:
    return Moment(
        at=at,
        codebase=rng.choice(CODEBASES),
        file=rng.choice(FILES),
        topics=tuple(rng.sample(TOPICS, rng.randrange(0, 3))),
        events=tuple(one for one in HAPPENINGS if rng.random() < 0.1),
    )


# -- kinds of rules ------------------------------------------------------------------------------


def interval(rng: random.Random) -> Rule:
    unit, size = rng.choice((("minute", 1), ("hour", 60)))
    every = rng.choice((7, 20, 90, 1441) if unit == "minute" else (1, 5, 24, 100))
    start = BEGIN + timedelta(minutes=rng.randrange(-5000, 5000)) if rng.random() < 0.4 else None
    found, at = [], start or BEGIN
    while at <= BEGIN + YEAR:
        if at > BEGIN:
            found.append(at)
        at += timedelta(minutes=every * size)
    return _recurring(rng, {"every": unit, "interval": every, **_iso(start=start)}, found)


def daily(rng: random.Random) -> Rule:
    return _calendar(rng, {"every": "day"}, lambda day: True, lambda first, day: (day - first).days)


def weekly(rng: random.Random) -> Rule:
    names = rng.sample(DAYS, rng.randrange(1, 5))
    return _calendar(
        rng,
        {"every": "week", "days": names},
        lambda day: DAYS[day.weekday()] in names,
        lambda first, day: (_monday(day) - _monday(first)).days // 7,
    )


def monthly(rng: random.Random) -> Rule:
    wanted = rng.choice((1, 15, 28, 29, 30, 31, -1))
    months = sorted(rng.sample(range(1, 13), 7)) if rng.random() < 0.3 and wanted in (1, 15, 28) else None

    def fits(day: date) -> bool:
        length = monthrange(day.year, day.month)[1]
        return day.day == (length if wanted == -1 else wanted) and (not months or day.month in months)

    form = {"every": "month", "day": wanted, **({"months": months} if months else {})}
    return _calendar(
        rng, form, fits, lambda first, day: 12 * (day.year - first.year) + day.month - first.month
    )


def _calendar(
    rng: random.Random,
    form: dict[str, Any],
    fits: Callable[[date], bool],
    distance: Callable[[date, date], int],
) -> Rule:
    every = rng.choice((1, 1, 1, 2, 3))
    clock = time(rng.randrange(24), rng.randrange(60))
    ahead = timedelta(hours=rng.choice((0, 0, 2, -7, 13)), minutes=rng.choice((0, 30)))
    start = BEGIN + timedelta(hours=rng.randrange(-900, 900)) if rng.random() < 0.3 else None
    found: list[datetime] = []
    first: date | None = None
    for number in range(-100, 420):
        day = BEGIN.date() + timedelta(days=number)
        at = datetime.combine(day, clock, UTC) - ahead
        if not fits(day) or (at < start if start else at <= BEGIN):
            continue
        first = first or day
        if distance(first, day) % every == 0 and BEGIN < at <= BEGIN + YEAR:
            found.append(at)
    told = {**form, "interval": every, "at": f"{clock:%H:%M}{_offset(ahead)}", **_iso(start=start)}
    return _recurring(rng, told, found)


def _recurring(rng: random.Random, form: dict[str, Any], found: Sequence[datetime]) -> Rule:
    """The rule, which may end in between or at the very moment it would come up."""
    if len(found) < 2 or rng.random() < 0.6:
        return Rule(trigger=form, moments=tuple(found), recurs=True)
    until = rng.choice(found[1:]) + rng.choice((timedelta(0), timedelta(seconds=1)))
    kept = tuple(one for one in found if one < until)
    return Rule(trigger={**form, **_iso(until=until)}, moments=kept, recurs=True)


def once(rng: random.Random) -> Rule:
    at = BEGIN + timedelta(minutes=rng.randrange(-1000, 500_000))
    return Rule(trigger={"at": at.isoformat()}, moments=(at,))


def soon(rng: random.Random) -> Rule:
    minutes = rng.randrange(1, 500_000)
    return Rule(trigger={"in_minutes": minutes}, moments=(BEGIN + timedelta(minutes=minutes),))


def place(rng: random.Random) -> Rule:
    codebase = rng.choice((None, *CODEBASES))
    pattern = rng.choice((None, *PATTERNS))
    topic = rng.choice((None, *TOPICS)) if codebase or pattern else rng.choice(TOPICS)

    def matches(moment: Moment) -> bool:
        return (
            codebase in (None, moment.codebase)
            and (pattern is None or PATTERNS[pattern](moment.file))
            and (topic is None or topic in moment.topics)
        )

    form = {"codebase": codebase, "filePattern": pattern, "topic": topic}
    return Rule(trigger={name: told for name, told in form.items() if told}, context=matches)


def event(rng: random.Random) -> Rule:
    condition = rng.choice(list(CONDITIONS))
    return Rule(trigger={"condition": condition}, event=CONDITIONS[condition])


def several(rng: random.Random) -> Rule:
    if rng.random() < 0.5:
        makers = rng.choice(((once, place), (weekly, place), (daily, event), (once, monthly), (event, place)))
        mode = "all"
    else:
        makers = rng.choice(((once, event), (daily, weekly), (monthly, event), (soon, place), (once, place)))
        mode = "any"
    parts = tuple(make(rng) for make in makers)
    return Rule(trigger={mode: [part.trigger for part in parts]}, parts=parts)


def _iso(**moments: datetime | None) -> dict[str, str]:
    return {name: at.isoformat() for name, at in moments.items() if at is not None}


def _offset(ahead: timedelta) -> str:
    minutes = int(ahead.total_seconds()) // 60
    hours, rest = divmod(abs(minutes), 60)
    return f"{'-' if minutes < 0 else '+'}{hours:02}:{rest:02}"


def _monday(day: date) -> date:
    return day - timedelta(days=day.weekday())
