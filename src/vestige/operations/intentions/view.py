"""Intentions as answers and as text."""

from datetime import datetime, timedelta
from typing import Any

from vestige.cognition.evidence.briefing import LABEL_CHARS, gist
from vestige.cognition.intentions.describe import in_words
from vestige.cognition.intentions.intention import Intention, Looked
from vestige.cognition.intentions.parse_time import stated_period
from vestige.cognition.intentions.triggers import Manual, repeats
from vestige.core.timezone import current_zone, time_text
from vestige.operations.intentions.triggers import shown
from vestige.operations.registry.arguments import Wire
from vestige.operations.shared.text import clip, count, day, row_number, short_id, styled, table, warning


class IntentionView(Wire):
    """An intention. `priority` (1 to 4) is the effective one, which a deadline may have raised."""

    id: str
    description: str
    said: str | None = None
    status: str
    priority: int
    priority_name: str
    escalated_from: str | None = None
    trigger: dict[str, Any]
    when: str
    next_at: datetime | None = None
    deadline: datetime | None = None
    is_overdue: bool
    snoozed_until: datetime | None = None
    triggered_at: datetime | None = None
    due_at: datetime | None = None
    missed: int | None = None
    reminders: int | None = None
    created_at: datetime
    closed_at: datetime | None = None
    scope: str


class ToldView(IntentionView):
    """A triggered intention. `reminded`: a new reminder, not a repetition; `first`: the first reminder."""

    reminded: bool
    first: bool


class IntentionSet(Wire):
    """A new intention, and how it was understood."""

    action: str = "set"
    success: bool = True
    intention_id: str
    priority: int
    trigger_at: datetime | None = None
    deadline: datetime | None = None
    understood: str
    warning: str | None = None
    intention: IntentionView


class IntentionsChecked(Wire):
    """Triggered intentions, most urgent first, and waiting ones, soonest first."""

    action: str = "check"
    triggered: list[ToldView]
    pending: list[IntentionView]
    total_triggered: int
    total_pending: int
    checked_at: datetime
    scope: str


class IntentionUpdated(Wire):
    action: str = "update"
    success: bool = True
    intention_id: str
    status: str
    intention: IntentionView


class IntentionDeleted(Wire):
    action: str = "delete"
    success: bool = True
    intention_id: str


class IntentionsListed(Wire):
    """Intentions, soonest first."""

    action: str = "list"
    filter_status: str
    total: int
    intentions: list[IntentionView]
    scope: str


def render_set(made: IntentionSet) -> str:
    warned = f"\n{warning(made.warning)}" if made.warning else ""
    return (
        f"{made.intention.description}\n  {styled('quiet', made.understood)}{warned}\n"
        f"  {short_id(made.intention_id)}"
    )


def render_checked(checked: IntentionsChecked) -> str:
    if not checked.triggered:
        text = "No intention is due now."
    else:
        rows = (
            (
                row_number(one.id),
                one.description,
                _urgency(one),
                day(one.due_at),
                one.missed or "",
                short_id(one.id),
            )
            for one in checked.triggered
        )
        text = table(("#", "to do", "priority", "since", "missed", "id"), rows)
    return f"{text}\n\n{count(checked.total_pending, 'intention')} waiting in {checked.scope}."


def render_listed(found: IntentionsListed) -> str:
    rows = (
        (row_number(one.id), one.description, one.when, _urgency(one), one.status, short_id(one.id))
        for one in found.intentions
    )
    shown_rows = (
        table(("#", "to do", "when", "priority", "status", "id"), rows)
        if found.intentions
        else "No intentions."
    )
    return f"{shown_rows}\n\n{len(found.intentions)} of {count(found.total, 'intention')} in {found.scope}."


def _urgency(one: IntentionView) -> str:
    return styled("error", f"{one.priority_name}, overdue") if one.is_overdue else one.priority_name


def render_updated(done: IntentionUpdated) -> str:
    return (
        f"{done.intention.description}\n  {short_id(done.intention_id)}  {done.status}, {done.intention.when}"
    )


def view(intention: Intention, now: datetime) -> IntentionView:
    """An intention in its current state."""
    return IntentionView.of(intention, **_fields(intention, now))


def triggered_view(looked: Looked, now: datetime) -> ToldView:
    """A triggered intention."""
    first = looked.counted and looked.fresh
    return ToldView.of(looked.after, **_fields(looked.after, now), reminded=looked.counted, first=first)


def intention_line(looked: Looked, now: datetime) -> str:
    """An intention on one line, for `session_context`."""
    intention = looked.after
    facts = [intention.priority_at(now).name.casefold()]
    if intention.overdue(now):
        facts.append("overdue")
    elif intention.deadline is not None:
        facts.append(f"by {time_text(intention.deadline)}")
    if looked.shown and intention.firing is not None:
        facts.append(f"since {time_text(intention.firing.due_at)}")
    else:
        facts.append(clip(_when(intention), LABEL_CHARS))
    return f"- {gist(intention.description)} ({', '.join(facts)}) [intention {intention.id}]"


def _fields(intention: Intention, now: datetime) -> dict[str, Any]:
    """The fields that an intention does not have itself."""
    priority, firing = intention.priority_at(now), intention.firing
    raised = priority is not intention.priority
    return {
        "status": intention.stands_at(now).value,
        "priority": int(priority),
        "priority_name": priority.name.casefold(),
        "escalated_from": intention.priority.name.casefold() if raised else None,
        "trigger": shown(intention.trigger),
        "when": _when(intention),
        "next_at": intention.next_at(now),
        "is_overdue": intention.overdue(now),
        "triggered_at": firing.at if firing else None,
        "due_at": firing.due_at if firing else None,
        "missed": firing.missed if firing else None,
        "reminders": firing.reminders if firing else None,
    }


def _when(intention: Intention) -> str:
    """When an intention is due, in words: by its trigger, ahead of its deadline, or both."""
    ahead, is_manual = intention.ahead_at, isinstance(intention.trigger, Manual)
    by_trigger = in_words(intention.trigger, current_zone())
    if ahead is None:
        return "when it is overdue" if is_manual and intention.deadline else by_trigger
    said = f"at {time_text(ahead)}, ahead of its deadline"
    return said if is_manual else f"{by_trigger}, or {said}"


def understood(intention: Intention, now: datetime) -> str:
    """How an intention was understood, as a sentence."""
    said = f"Due {_when(intention)}"
    if isinstance(intention.trigger, Manual) and intention.deadline is None:
        said = "No trigger: it is never due by itself"
    then = intention.next_at(now)
    if repeats(intention.trigger) and then is not None:
        said += f", next {time_text(then)}"
    if intention.deadline is not None:
        said += f"; deadline {time_text(intention.deadline)}"
    return f"{said}. Priority {intention.priority_at(now).name.casefold()}."


def not_understood(words: str, now: datetime) -> str:
    """What to do about words that look like a time but were not understood."""
    example = f"{now + timedelta(days=1):%Y-%m-%d}T09:00"
    period = stated_period(words, now, coming=False)
    why = "In the past" if period and period.end <= now else "Not understood as a future time"
    return (
        f"{why}: \u201c{words}\u201d. Update it with a `trigger`, such as "
        f'{{"at": "{example}"}} or {{"every": "week", "days": ["monday"], "at": "09:00"}}, or set it again '
        "with a time such as `tomorrow at 9:00`, `in 2 hours` or `every monday at 10:00`."
    )
