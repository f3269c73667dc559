"""Triggers of intentions: a time, a context, an event, a rule, or a combination.

A time, an event and a rule *happen* and stay so until the intention is triggered by it; a context *holds*
only while the caller is in it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Literal, assert_never

from vestige.cognition.intentions.recurrence import Recurrence, next_after, passed
from vestige.cognition.text.analyser import query_terms, terms
from vestige.core.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Manual:
    """No trigger: the intention waits until a user looks, or its deadline nears."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Time:
    """A moment; `minutes` is the delay after the intention was set, if one was given."""

    at: datetime
    minutes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextTrigger:
    """What the caller is working on. Every part that is given must match."""

    codebase: str | None = None
    file_pattern: str | None = None
    topic: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTrigger:
    """An event: its report must contain every word of the condition."""

    condition: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recurring:
    rule: Recurrence


@dataclass(frozen=True, slots=True, kw_only=True)
class Compound:
    """Several triggers: all of them, or any."""

    mode: Literal["all", "any"]
    parts: tuple["Trigger", ...]


MORNING = 9 * 60  # The minute of the day for a day without a clock time.

Trigger = Manual | Time | ContextTrigger | EventTrigger | Recurring | Compound


@dataclass(frozen=True, slots=True, kw_only=True)
class TriggerSituation:
    """The time, what the caller is working on, and what has happened: the words of each topic and event."""

    now: datetime
    codebase: str | None = None
    file: str | None = None
    topics: tuple[frozenset[str], ...] = ()
    events: tuple[frozenset[str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Whether a trigger is met, since when (unknown for a context), and how often its rules occurred."""

    holds: bool
    at: datetime | None = None
    times: int = 0


ABSENT = Judged(holds=False)
Met = Mapping[str, datetime]
"""When the events of a trigger happened, each by its position in the trigger."""


def judge(
    trigger: Trigger, situation: TriggerSituation, *, since: datetime | None, set_at: datetime, met: Met
) -> Judged:
    """Whether a trigger is met: events count from `since` on, when the intention was last triggered. `met`
    are the events that happened since; before the first time a rule counts from `set_at` on."""
    return _Judge(situation=situation, since=since, set_at=set_at, met=met).judge(trigger, "", enduring=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Judge:
    situation: TriggerSituation
    since: datetime | None
    set_at: datetime
    met: Met

    def judge(self, trigger: Trigger, place: str, *, enduring: bool) -> Judged:
        match trigger:
            case Manual():
                return ABSENT
            case Time(at=at):
                # Beside others, all of which must hold, a time is one from which on it may be.
                fresh = enduring or self.since is None or at > self.since
                return Judged(holds=True, at=at) if fresh and at <= self.situation.now else ABSENT
            case ContextTrigger():
                return Judged(holds=in_context(trigger, self.situation))
            case EventTrigger():
                return Judged(holds=True, at=self.met[place]) if place in self.met else ABSENT
            case Recurring(rule=rule):
                times, latest = passed(rule, self.since or self.set_at, self.situation.now)
                return Judged(holds=times > 0, at=latest, times=times)
            case Compound():
                return self._compound(trigger, place)
        assert_never(trigger)

    def _compound(self, trigger: Compound, place: str) -> Judged:
        every = trigger.mode == "all"
        judged = [
            self.judge(part, f"{place}.{number}", enduring=every) for number, part in enumerate(trigger.parts)
        ]
        holding = [one for one in judged if one.holds]
        if not holding or (every and len(holding) < len(judged)):
            return ABSENT
        times = [one.times for one in holding]
        at = max((one.at for one in holding if one.at is not None), default=None)
        return Judged(holds=True, at=at, times=max(times) if every else sum(times))


def shown_in(trigger: Trigger, situation: TriggerSituation) -> bool:
    """Whether a triggered intention concerns this situation: its context, if any, holds."""
    match trigger:
        case ContextTrigger():
            return in_context(trigger, situation)
        case Compound(mode="all", parts=parts):
            return all(shown_in(part, situation) for part in parts)
        case Compound(parts=parts):
            return any(shown_in(part, situation) for part in parts)
        case _:
            return True


def events_met(trigger: Trigger, events: Sequence[frozenset[str]]) -> set[str]:
    """The positions of those events in a trigger that have happened."""
    return {
        place
        for place, part in leaves(trigger)
        if isinstance(part, EventTrigger) and _all_words(part.condition, events)
    }


def leaves(trigger: Trigger, place: str = "") -> Iterator[tuple[str, Trigger]]:
    """The simple triggers in a trigger, each with its position."""
    if isinstance(trigger, Compound):
        for number, part in enumerate(trigger.parts):
            yield from leaves(part, f"{place}.{number}")
    else:
        yield place, trigger


def repeats(trigger: Trigger) -> bool:
    """Whether it may occur again and again."""
    return any(isinstance(part, Recurring) for _, part in leaves(trigger))


def next_time(trigger: Trigger, after: datetime) -> datetime | None:
    """When it could occur next by the clock alone; None when that does not depend on the clock."""
    match trigger:
        case Time(at=at):
            return at if at > after else None
        case Recurring(rule=rule):
            return next_after(rule, after)
        case Compound(parts=parts):
            found = [time for part in parts if (time := next_time(part, after)) is not None]
            return (max if trigger.mode == "all" else min)(found, default=None)
        case _:
            return None


# -- Context triggers


def in_context(context: ContextTrigger, situation: TriggerSituation) -> bool:
    """Whether every part of a context that is given matches."""
    return (
        (context.codebase is None or _same_codebase(context.codebase, situation.codebase))
        and (context.file_pattern is None or _matches(context.file_pattern, situation.file))
        and (context.topic is None or _all_words(context.topic, situation.topics))
    )


def words_of(text: str) -> frozenset[str]:
    """The words by which a condition or a topic is recognised."""
    return frozenset(query_terms(text))


def stated_words(texts: Iterable[str]) -> tuple[frozenset[str], ...]:
    """The words of reported topics or events."""
    return tuple(frozenset(terms(text)) for text in texts)


def _all_words(wanted: str, stated: Sequence[frozenset[str]]) -> bool:
    words = words_of(wanted)
    return any(words <= one for one in stated)


def _same_codebase(wanted: str, stated: str | None) -> bool:
    """By name, in any case; of a path the last part counts."""
    return stated is not None and wanted.casefold() in (
        stated.casefold(),
        _plain_path(stated).rstrip("/").rpartition("/")[2],
    )


def _plain_path(path: str) -> str:
    return path.strip().replace("\\", "/").casefold()


def _matches(pattern: str, file: str | None) -> bool:
    """Whether a file pattern matches the end of a path, from the start of one of its names, in any case.

    `*`, `?` and `[a-z]` stay within a name, `**` stands for any number of names. A pattern that begins with a
    slash matches a whole path, one that ends with a slash everything below.
    """
    if file is None:
        return False
    names = _plain_path(file).strip("/").split("/")
    plain = _plain_path(pattern)
    parts = [*plain.removeprefix("./").strip("/").split("/"), *(("**", "*") if plain.endswith("/") else ())]
    reached = {0} if plain.startswith("/") else set(range(len(names)))
    for part in parts:
        if part == "**":
            reached = set(range(min(reached, default=len(names) + 1), len(names) + 1))
        else:
            reached = {at + 1 for at in reached if at < len(names) and fnmatchcase(names[at], part)}
    return len(names) in reached
