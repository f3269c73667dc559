"""Triggers of intentions as callers give them: parsing and validation."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, ValidationError

from vestige.cognition.intentions.parse_time import MOST_MINUTES, clock_in, weekday_number
from vestige.cognition.intentions.recurrence import (
    Daily,
    Interval,
    Monthly,
    Pattern,
    Recurrence,
    Weekly,
    beginning,
    next_after,
)
from vestige.cognition.intentions.serialise import form_of
from vestige.cognition.intentions.triggers import (
    MORNING,
    Compound,
    ContextTrigger,
    EventTrigger,
    Manual,
    Recurring,
    Time,
    Trigger,
    leaves,
    words_of,
)
from vestige.cognition.time.calendar import WEEKDAYS, zone_in
from vestige.core.errors import InvalidInput
from vestige.core.models import check_label, utc
from vestige.core.timezone import zone_of
from vestige.operations.registry.arguments import (
    Arguments,
    ComingEnd,
    ComingMoment,
    TimeZone,
    moment_of,
    time_context,
)
from vestige.operations.registry.errors import validation_error

DEEPEST = 3
"""Maximum nesting of `all` and `any`."""
MOST_PARTS = 20
"""Maximum number of simple triggers in one."""
MOST_STEPS = 10_000

Words = Annotated[str, Field(min_length=1, max_length=300)]
Kind = Literal["time", "duration", "context", "event", "recurring", "all", "any", "manual"]
_UNITS = {"daily": "day", "weekly": "week", "monthly": "month", "hourly": "hour"}
_FIELDS: dict[str, tuple[str, ...]] = {
    "time": ("at", "in_minutes"),
    "recurring": ("every", "interval", "at", "timezone", "days", "day", "months", "start", "until"),
    "context": ("codebase", "file_pattern", "topic"),
    "event": ("condition",),
    "all": ("all",),
    "any": ("any",),
    "manual": (),
}
_ALSO = {"duration": "time"}
_EXAMPLES = {
    "time": '{"at": "2026-03-01T14:00Z"} or {"in_minutes": 45}',
    "recurring": '{"every": "week", "days": ["monday"], "at": "09:00"}',
    "context": '{"codebase": "shop", "file_pattern": "*.sql"}',
    "event": '{"condition": "deploy finished"}',
    "all": '{"all": [{"every": "day"}, {"codebase": "shop"}]}',
    "any": '{"any": [{"condition": "deploy finished"}, {"at": "2026-03-01T14:00Z"}]}',
}
_WORDS = "Give at least one meaningful word: letters or digits, and not only `the` or `is`."
_DAYS = f"Allowed: {', '.join(WEEKDAYS).casefold()}."
_SPLIT = "Set several intentions instead."
_ONLY: dict[str, tuple[str, ...]] = {
    "minute": (),
    "hour": (),
    "day": ("at", "timezone"),
    "week": ("at", "timezone", "days"),
    "month": ("at", "timezone", "day", "months"),
}


def _unit(value: Any) -> Any:
    """Accept `hours` and `weekly` as units too."""
    plain = value.strip().casefold() if isinstance(value, str) else value
    return _UNITS.get(plain, plain.removesuffix("s")) if isinstance(plain, str) else plain


class TriggerArguments(Arguments):
    """A trigger. The type may be omitted: it follows from the fields."""

    # Unknown names are rejected here: a misspelt trigger would never fire.
    tolerated: ClassVar[tuple[str, ...]] = ()

    type: Kind | None = Field(None, description="Omit it: it follows from the other fields.")
    at: str | None = Field(
        None,
        max_length=40,
        description="time: 2026-03-01T14:00Z, or words such as tomorrow at 10. recurring: a clock time, "
        "09:00 or 09:00+02:00 (default 09:00). Without an offset: in your time zone.",
    )
    timezone: TimeZone = Field(
        None, description="recurring: zone of `at`, which follows its daylight saving. Default: yours."
    )
    in_minutes: float | None = Field(None, gt=0, le=MOST_MINUTES, description="time: minutes from now.")
    codebase: Words | None = Field(None, description="context: name of the codebase.")
    file_pattern: Words | None = Field(
        None, description="context: current file, such as auth.py, *.sql or src/**/*.ts."
    )
    topic: Words | None = Field(None, description="context: current topic.")
    condition: Words | None = Field(None, description="event: words that must all occur in the event.")
    every: Annotated[
        Literal["minute", "hour", "day", "week", "month"] | None,
        BeforeValidator(_unit),
        Field(description="recurring: the unit."),
    ] = None
    interval: int | None = Field(None, ge=1, le=MOST_STEPS, description="recurring: every N units.")
    days: list[str] | None = Field(None, max_length=7, description="recurring by week: monday, tuesday …")
    day: int | None = Field(
        None, ge=-1, le=31, description="recurring by month: day of the month, -1 for the last."
    )
    months: list[Annotated[int, Field(ge=1, le=12)]] | None = Field(
        None, max_length=12, description="recurring by month: only these, 1 to 12."
    )
    start: ComingMoment | None = Field(None, description="recurring: first time. Default: now.")
    until: ComingEnd | None = Field(None, description="recurring: last time; a bare date includes that day.")
    all: list[dict[str, Any]] | None = Field(
        None, min_length=2, max_length=MOST_PARTS, description="Nested triggers: all must match."
    )
    any: list[dict[str, Any]] | None = Field(
        None, min_length=2, max_length=MOST_PARTS, description="Nested triggers: any must match."
    )


def trigger_from(given: TriggerArguments, now: datetime) -> Trigger:
    """The trigger a caller gives; InvalidInput for one that can never fire."""
    trigger = _trigger(given, now, "trigger", 1)
    parts = list(leaves(trigger))
    if len(parts) > MOST_PARTS:
        raise _invalid("trigger", f"has {len(parts)} triggers; the limit is {MOST_PARTS}", hint=_SPLIT)
    return trigger


def shown(trigger: Trigger) -> dict[str, Any]:
    """A trigger as an answer shows it, with the names that arguments take."""
    return _shown(form_of(trigger))


def _shown(form: Mapping[str, Any]) -> dict[str, Any]:
    inner = {mode: [_shown(part) for part in form[mode]] for mode in ("all", "any") if mode in form}
    # `in_minutes` already implies `at`: returning both would be rejected when sent back, and so would one
    # that is too long, which other programs may have stored.
    left = "at" if 0 < form.get("in_minutes", 0) <= MOST_MINUTES else "in_minutes"
    outer = {name: value for name, value in form.items() if name != left}
    if "timezone" in outer:
        outer["at"] = outer["at"][:5]  # the stored clock time has the offset of one season
    return {**TriggerArguments.model_validate(outer).wire(), **inner}


def _trigger(given: TriggerArguments, now: datetime, place: str, depth: int) -> Trigger:
    match _kind(given, place):
        case "time":
            return _time(given, now, place)
        case "context":
            return _context(given, place)
        case "event":
            return _event(given, place)
        case "recurring":
            return _recurring(given, now, place)
        case "all":
            return _compound("all", given.all or (), now, place, depth)
        case "any":
            return _compound("any", given.any or (), now, place, depth)
        case _:
            return Manual()


def _kind(given: TriggerArguments, place: str) -> str:
    """The given type or the one that the fields imply; fields of two types are rejected."""
    fields = [name for name in TriggerArguments.model_fields if name != "type" and _has(given, name)]
    kind = _ALSO.get(given.type, given.type) if given.type else _implied_by(fields)
    if kind is None:
        raise _invalid(place, "is empty", hint=f"Give a type: {', '.join(_FIELDS)}.")
    foreign = [name for name in fields if name not in _FIELDS[kind]]
    if foreign:
        raise _invalid(
            place,
            f"has the type {kind}, which does not take `{foreign[0]}`",
            hint="Combine two triggers with `all`.",
        )
    if _FIELDS[kind] and not fields:
        raise _invalid(
            place,
            f"of the type {kind} needs one of: {', '.join(_FIELDS[kind])}",
            hint=f"For example {_EXAMPLES[kind]}.",
        )
    return kind


def _implied_by(fields: Sequence[str]) -> str | None:
    """The type with such a field; `at` belongs to a rule only if there is one."""
    return next((kind for kind, own in _FIELDS.items() if {*own} & {*fields} - {"at"}), None) or (
        "time" if "at" in fields else None
    )


def _has(given: TriggerArguments, name: str) -> bool:
    return getattr(given, name) is not None


def _time(given: TriggerArguments, now: datetime, place: str) -> Time:
    if given.in_minutes is not None and given.at is not None:
        raise _invalid(place, "has both `at` and `in_minutes`", hint="Give one of them.")
    if given.in_minutes is not None:
        return Time(at=now + timedelta(minutes=given.in_minutes), minutes=given.in_minutes)
    try:
        return Time(at=moment_of(given.at or "", now, coming=True))
    except (ValueError, OverflowError) as exc:
        raise _invalid(
            f"{place}.at",
            "is not a time",
            hint="Give a date (2026-03-01), a time (2026-03-01T14:05:00Z), or words such as tomorrow at 10.",
        ) from exc


def _context(given: TriggerArguments, place: str) -> ContextTrigger:
    for name in ("codebase", "file_pattern", "topic"):
        text = getattr(given, name)
        if text is not None:
            check_label(name, text)
    if given.topic is not None and not words_of(given.topic):
        raise _invalid(f"{place}.topic", "has no meaningful word", hint=_WORDS)
    return ContextTrigger(codebase=given.codebase, file_pattern=given.file_pattern, topic=given.topic)


def _event(given: TriggerArguments, place: str) -> EventTrigger:
    condition = given.condition or ""
    check_label("condition", condition)
    if not words_of(condition):
        raise _invalid(f"{place}.condition", "has no meaningful word", hint=_WORDS)
    return EventTrigger(condition=condition)


def _compound(
    mode: Literal["all", "any"], parts: Sequence[Mapping[str, Any]], now: datetime, place: str, depth: int
) -> Compound:
    if depth >= DEEPEST:
        raise _invalid(place, f"is nested deeper than {DEEPEST} levels", hint=_SPLIT)
    made = []
    for number, part in enumerate(parts):
        inside = f"{place}.{mode}.{number}"
        try:
            given = TriggerArguments.model_validate(part, context=time_context(now))
        except ValidationError as exc:
            raise validation_error(inside, TriggerArguments, exc) from exc
        made.append(_trigger(given, now, inside, depth + 1))
    if any(isinstance(part, Manual) for part in made):
        raise _invalid(
            place,
            "contains a trigger of type manual, which never fires",
            hint="Remove the trigger of type manual.",
        )
    kinds = {type(leaf) for part in made for _, leaf in leaves(part)}
    if mode == "any" and {Recurring, ContextTrigger} <= kinds:
        raise _invalid(
            place,
            "combines a rule and a context with `any`, so it would fire all the time in that context",
            hint="Set two intentions, or use `all`.",
        )
    return Compound(mode=mode, parts=tuple(made))


# -- Recurrence rules


def _recurring(given: TriggerArguments, now: datetime, place: str) -> Recurring:
    if given.every is None:
        raise _invalid(place, "needs `every`", hint="One of: minute, hour, day, week, month.")
    foreign = [
        name
        for name in ("at", "timezone", "days", "day", "months")
        if name not in _ONLY[given.every] and _has(given, name)
    ]
    if foreign:
        unit = next(unit for unit, own in _ONLY.items() if foreign[0] in own)
        raise _invalid(
            place,
            f"recurs by {given.every}, which does not take `{foreign[0]}`",
            hint=f'`{foreign[0]}` needs "every": "{unit}"; remove it, or change `every`.',
        )
    by_clock = given.every in ("day", "week", "month")
    at, zone = _clock(given, now, place) if by_clock else (0, UTC)
    if given.start is not None and given.until is not None and given.until <= given.start:
        raise _invalid(
            f"{place}.until", "is not after `start`, so the rule never fires", hint="Give a later `until`."
        )
    rule = Recurrence(
        pattern=_pattern(given, place), start=given.start or utc(now), until=given.until, at=at, zone=zone
    )
    # A rule with a given start may fire at that very moment.
    begun = beginning(rule, utc(now) if given.start is None else given.start - timedelta.resolution)
    if begun is None or next_after(begun, now) is None:
        raise _invalid(
            place,
            "never fires",
            hint="No day matches, or it ends before its first time: check `until` and `day`.",
        )
    return Recurring(rule=begun)


def _pattern(given: TriggerArguments, place: str) -> Pattern:
    every = given.interval or 1
    match given.every:
        case "minute":
            return Interval(minutes=every)
        case "hour":
            return Interval(minutes=60 * every)
        case "day":
            return Daily(every=every)
        case "week":
            return Weekly(every=every, weekdays=_weekdays(given.days, place))
        case _:
            if not given.day:
                raise _invalid(
                    place, "needs the `day` of the month", hint="Give 1 to 31, or -1 for the last day."
                )
            if given.months == []:
                raise _invalid(
                    f"{place}.months",
                    "is empty, so the rule never fires",
                    hint="Give some of 1 to 12, or omit it.",
                )
            return Monthly(every=every, day=given.day, months=tuple(sorted(set(given.months or ()))))


def _weekdays(names: Sequence[str] | None, place: str) -> tuple[int, ...]:
    if not names:
        raise _invalid(f"{place}.days", "names no day, so the rule never fires", hint=_DAYS)
    numbers: set[int] = set()
    for name in names:
        number = weekday_number(name)
        if number is None:
            raise _invalid(f"{place}.days", f"contains {name!r}, which is not a day of the week", hint=_DAYS)
        numbers.add(number)
    return tuple(sorted(numbers))


def _clock(given: TriggerArguments, now: datetime, place: str) -> tuple[int, tzinfo]:
    clock = (MORNING, None) if given.at is None else clock_in(given.at)
    if clock is None:
        raise _invalid(f"{place}.at", "is not a clock time", hint="Give a time such as 09:00 or 09:00+02:00.")
    at, stated = clock
    named = zone_of(given.timezone) if given.timezone else None
    if named is not None and stated is not None and stated != named:
        raise _invalid(
            f"{place}.at", "has an offset beside `timezone`", hint="Give the clock time without an offset."
        )
    return at, named or stated or zone_in(now)


def _invalid(place: str, why: str, *, hint: str) -> InvalidInput:
    return InvalidInput(f"`{place}` {why}.", hint=hint, details={"argument": place})
