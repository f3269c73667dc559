"""Prospective memory: intentions, and when they are triggered.

An intention waits, is triggered, is shown a few times, and ends when it is done. Every step is a
pure function from an intention and a situation to the next intention.
"""

import enum
from collections.abc import Mapping
from dataclasses import field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from types import MappingProxyType
from typing import Literal

from vestige.cognition.intentions import triggers
from vestige.core.lazy_dataclass import dataclass
from vestige.core.timezone import at_clock, local

# -- Priority

NEAR = timedelta(hours=24)
CLOSE = timedelta(hours=1)


AHEAD = timedelta(hours=4)  # The least time between a morning's reminder and the deadline.


class Priority(enum.IntEnum):
    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


def in_force(priority: Priority, deadline: datetime | None, now: datetime) -> Priority:
    """The priority now: one level up within a day of the deadline, two within an hour, critical after it."""
    if deadline is None or deadline - now > NEAR:
        return priority
    if deadline <= now:
        return Priority.CRITICAL
    raised = priority + (2 if deadline - now <= CLOSE else 1)
    return Priority(min(raised, Priority.CRITICAL))


def reminder_before(deadline: datetime, set_at: datetime, zone: tzinfo = UTC) -> datetime:
    """When to remind of a deadline: the last morning in a zone that is AHEAD of it, or, if none is left, when
    half of the time has passed."""
    latest = deadline - AHEAD
    today = local(latest, zone).date()
    morning = at_clock(today, triggers.MORNING, zone)
    morning = morning if morning <= latest else at_clock(today - timedelta(days=1), triggers.MORNING, zone)
    return morning if morning > set_at else set_at + (deadline - set_at) / 2


# -- Intentions

REMINDERS = 5  # The limit of reminders of one intention.
APART = timedelta(minutes=30)
"""The least time between two reminders; a look sooner than this shows the same reminder."""
KEPT = timedelta(days=30)  # How long a finished or cancelled intention stays visible.

NOTHING_MET: Mapping[str, datetime] = MappingProxyType({})


class IntentionStatus(enum.StrEnum):
    ACTIVE = "active"
    DUE = "due"
    TRIGGERED = "triggered"
    SNOOZED = "snoozed"
    FULFILLED = "fulfilled"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Firing:
    """The record that an intention was triggered: when that was noticed, for which moment, the number of
    earlier moments of its rule that were missed, and the number and time of its reminders."""

    at: datetime
    due_at: datetime
    missed: int = 0
    reminders: int = 0
    reminded_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Intention:
    """Something to do. `said` is the original sentence, if the trigger was found in it.

    `zone` is the zone of the caller that set it: a morning is one there. `armed_at` is when the trigger was
    set, `since` when it was last triggered: earlier events do not trigger it again. `met` are events that
    happened since. `announced` is the moment that listeners got an event for. `ended` and `closed_at`: it was
    done or cancelled.
    """

    id: str
    scope: str
    version: int = 1
    created_at: datetime
    updated_at: datetime
    description: str
    said: str | None = None
    trigger: triggers.Trigger
    priority: Priority = Priority.NORMAL
    deadline: datetime | None = None
    snoozed_until: datetime | None = None
    zone: tzinfo = UTC
    armed_at: datetime
    since: datetime | None = None
    met: Mapping[str, datetime] = field(default_factory=lambda: NOTHING_MET)
    firing: Firing | None = None
    announced: datetime | None = None
    ended: Literal[IntentionStatus.FULFILLED, IntentionStatus.CANCELLED] | None = None
    closed_at: datetime | None = None

    def status_at(self, now: datetime) -> IntentionStatus:
        if self.ended is not None:
            return self.ended
        if self.snoozed_until is not None and self.snoozed_until > now:
            return IntentionStatus.SNOOZED
        return IntentionStatus.ACTIVE if self.firing is None else IntentionStatus.TRIGGERED

    def stands_at(self, now: datetime) -> IntentionStatus:
        """Its status for a read without reminders: due if the clock has brought it up."""
        status = self.status_at(now)
        due = status is IntentionStatus.ACTIVE and look(self, triggers.TriggerSituation(now=now)).shown
        return IntentionStatus.DUE if due else status

    def priority_at(self, now: datetime) -> Priority:
        """Its priority, raised by its deadline."""
        return self.priority if self.ended else in_force(self.priority, self.deadline, now)

    def overdue(self, now: datetime) -> bool:
        """Whether its deadline has passed and it is not done."""
        return self.ended is None and self.deadline is not None and self.deadline <= now

    @property
    def ahead_at(self) -> datetime | None:
        """When it reminds of its deadline; None if its trigger does so, or there is no time left to."""
        if self.deadline is None or self.deadline <= self.armed_at:
            return None
        by_clock = triggers.next_time(self.trigger, self.armed_at - timedelta.resolution)
        if by_clock is not None and by_clock < self.deadline:
            return None
        return reminder_before(self.deadline, self.armed_at, self.zone)

    def next_at(self, now: datetime) -> datetime | None:
        """When it is triggered next by the clock; a context or an event may trigger it at any time."""
        if self.ended is not None:
            return None
        times = [triggers.next_time(self.trigger, now), self.ahead_at, self.deadline]
        first = min((time for time in times if time is not None and time > now), default=None)
        if self.status_at(now) is not IntentionStatus.SNOOZED or self.snoozed_until is None:
            return first
        if self.firing is not None:
            return self.snoozed_until
        return None if first is None else max(first, self.snoozed_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """The result of a look at an intention: the intention after it was shown, and if it is not shown.
    `shown`: show it now. `fresh`: it was triggered just now. `counted`: showing it is a new reminder."""

    after: Intention
    unshown: Intention
    shown: bool = False
    fresh: bool = False
    counted: bool = False


def look(intention: Intention, situation: triggers.TriggerSituation) -> Looked:
    """Whether an intention is to be shown in a situation, and what it becomes."""
    if intention.ended is not None:
        return Looked(after=intention, unshown=intention)
    heard = _with_events(intention, situation)
    if heard.snoozed_until is not None and heard.snoozed_until > situation.now:
        return Looked(after=heard, unshown=heard)
    fired = _fired(heard, situation)
    firing = fired.firing
    if firing is None or not triggers.shown_in(fired.trigger, situation):
        return Looked(after=heard, unshown=heard)
    fresh = firing != heard.firing
    counted = firing.reminded_at is None or (
        firing.reminders < REMINDERS and situation.now - firing.reminded_at >= APART
    )
    if counted:
        reminded = replace(firing, reminders=firing.reminders + 1, reminded_at=situation.now)
        after = replace(fired, firing=reminded)
        return Looked(after=after, unshown=heard, shown=True, fresh=fresh, counted=True)
    just_shown = firing.reminded_at is not None and situation.now - firing.reminded_at < APART
    return Looked(after=heard, unshown=heard, shown=just_shown)


def _with_events(intention: Intention, situation: triggers.TriggerSituation) -> Intention:
    """The intention with the events that happened, each at its first time."""
    happened = triggers.events_met(intention.trigger, situation.events) if situation.events else set()
    fresh = dict.fromkeys(sorted(happened - set(intention.met)), situation.now)
    return replace(intention, met={**intention.met, **fresh}) if fresh else intention


def _fired(intention: Intention, situation: triggers.TriggerSituation) -> Intention:
    """The intention as triggered, again or still; unchanged while nothing triggers it."""
    now, firing = situation.now, intention.firing
    due, times = _due(intention, situation)
    if due is None and intention.snoozed_until is not None and firing is not None:
        due = intention.snoozed_until  # it had been triggered, and its snooze is over
    if due is None:
        return intention
    return replace(
        intention,
        snoozed_until=None,
        since=now,
        met=NOTHING_MET,
        firing=Firing(at=now, due_at=due, missed=max(0, times - 1)),
    )


def _due(intention: Intention, situation: triggers.TriggerSituation) -> tuple[datetime | None, int]:
    """The moment for which it is triggered again, if any, and how often its rules occurred since."""
    # A deadline is reported twice: ahead of it, and when it has passed.
    moments = (one for one in (intention.deadline, intention.ahead_at) if one is not None)
    deadline = next((triggers.Time(at=one) for one in moments if one <= situation.now), None)
    # An intention without recurrence is triggered only once.
    done = intention.firing is not None and not triggers.repeats(intention.trigger)
    judged = (
        triggers.judge(one, situation, since=intention.since, set_at=intention.armed_at, met=intention.met)
        for one in (None if done else intention.trigger, deadline)
        if one is not None
    )
    holding = [one for one in judged if one.holds]
    if not holding:
        return None, 0
    return max(one.at or situation.now for one in holding), sum(one.times for one in holding)


# -- Changes of an intention


def completed(intention: Intention, now: datetime) -> Intention:
    """Done. A recurring one waits for its next time, if there is one."""
    if triggers.repeats(intention.trigger) and triggers.next_time(intention.trigger, now) is not None:
        return replace(intention, snoozed_until=None, since=now, met=NOTHING_MET, firing=None)
    return replace(intention, snoozed_until=None, ended=IntentionStatus.FULFILLED, closed_at=now)


def cancelled(intention: Intention, now: datetime) -> Intention:
    return replace(intention, snoozed_until=None, ended=IntentionStatus.CANCELLED, closed_at=now)


def snoozed(intention: Intention, until: datetime) -> Intention:
    """Hidden until a moment; if it had been triggered, it is then triggered again."""
    return replace(intention, snoozed_until=until)


def resumed(intention: Intention, now: datetime) -> Intention:
    """No longer snoozed; one that had ended is set again."""
    if intention.ended is None:
        return replace(intention, snoozed_until=None)
    return armed(replace(intention, ended=None, closed_at=None), intention.trigger, now)


def armed(intention: Intention, trigger: triggers.Trigger, now: datetime) -> Intention:
    """Waiting for a trigger, whatever triggered it before."""
    return replace(
        intention,
        trigger=trigger,
        snoozed_until=None,
        armed_at=now,
        since=None,
        met=NOTHING_MET,
        firing=None,
        announced=None,
    )


def with_deadline(intention: Intention, deadline: datetime | None) -> Intention:
    """With another deadline or none; if only the old one brought it up, it waits again."""
    firing, moments = intention.firing, (intention.deadline, intention.ahead_at)
    if firing is None or firing.due_at not in moments or deadline == intention.deadline:
        return replace(intention, deadline=deadline)
    return replace(intention, deadline=deadline, since=None, firing=None, announced=None)


def outlived(intention: Intention, now: datetime) -> bool:
    """Whether it ended so long ago that it is deleted."""
    return intention.closed_at is not None and now - intention.closed_at > KEPT
