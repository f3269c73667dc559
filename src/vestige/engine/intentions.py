"""Intentions: kept as documents, told when they come up, changed by whoever deals with them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

from vestige.cognition.intentions.intention import (
    Intention,
    IntentionStatus,
    Looked,
    Priority,
    look,
    outlived,
)
from vestige.cognition.intentions.serialise import body_of, intention_of
from vestige.cognition.intentions.triggers import (
    EventTrigger,
    Trigger,
    TriggerSituation,
    leaves,
    stated_words,
)
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from vestige.core.events import EventScope, IntentionTriggered, MemoryCreated, preview
from vestige.core.models import Filter
from vestige.engine.context import Call
from vestige.engine.revise import persistently
from vestige.store.contract.changes import Drop, Put

KIND = "intention"
Which = Literal["active", "due", "open", "snoozed", "fulfilled", "cancelled", "all"]
MOST = 1000
"""How many intentions may wait in one scope."""
PAGE = 1000
EVENT_CHARS = 10_000
"""How much of a new memory is looked at for an event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIntention:
    """An intention to be set."""

    description: str
    said: str | None
    trigger: Trigger
    priority: Priority
    deadline: datetime | None
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What a check tells, the most urgent first, what waits, and how many of each there are."""

    told: tuple[Looked, ...]
    pending: tuple[Intention, ...]
    told_in_all: int


def intend(call: Call, wanted: NewIntention) -> Intention:
    """Set an intention. It belongs to no domain, so who is limited to domains has none."""
    if call.access.domains is not None:
        raise Forbidden(
            "An intention belongs to no domain, and this caller is limited to domains.",
            hint="Use a key that is limited by scopes only.",
        )
    now = call.engine.now()
    _check_room(call, wanted.scope)
    made = Intention(
        id=call.engine.new_id(),
        scope=wanted.scope,
        created_at=now,
        updated_at=now,
        armed_at=now,
        description=wanted.description,
        said=wanted.said,
        trigger=wanted.trigger,
        priority=wanted.priority,
        deadline=wanted.deadline,
    )
    call.engine.store.commit([Put(document=_document(made))], access=call.access)
    return made


def _check_room(call: Call, scope: str) -> None:
    held = intentions(call, Filter(scope=scope))
    if sum(one.scope == scope and one.ended is None for one in held) >= MOST:
        raise InvalidInput(
            f"{MOST:,} intentions wait in the scope {scope} already.",
            hint="Complete or cancel some: `intention` with the action `list` shows them.",
            details={"scope": scope, "limit": MOST},
        )


def find(call: Call, intention_id: str) -> Intention:
    """One intention, or NotFound."""
    found = call.engine.store.documents(KIND, access=call.access, ids=[intention_id], limit=1)
    if not found:
        raise NotFound(
            f"There is no intention {intention_id}.",
            hint="Find the right id with `intention` and the action `list`.",
            details={"id": intention_id},
        )
    return _intention(found[0])


def change(call: Call, intention_id: str, decide: Callable[[Intention], Intention]) -> Intention:
    """Change an intention by a decision, which is taken again when somebody else was quicker."""

    def attempt() -> Intention:
        before = find(call, intention_id)
        after = decide(before)
        if after == before:
            return before
        if before.ended is not None and after.ended is None:
            _check_room(call, before.scope)
        put = _next(after, call.engine.now())
        call.engine.store.commit([put], access=call.access)
        return _intention(put.document)

    return persistently(call, attempt)


def delete(call: Call, intention_id: str) -> Intention:
    """Delete an intention with its words; what it was."""

    def attempt() -> Intention:
        found = find(call, intention_id)
        drop = Drop(kind=KIND, id=intention_id, at=call.engine.now())
        call.engine.store.commit([drop], access=call.access)
        return found

    return persistently(call, attempt)


def intentions(call: Call, within: Filter) -> list[Intention]:
    """Every intention in a scope and, where the filter says so, what holds there from above."""
    found: dict[str, Intention] = {}
    for page in _pages(call, within):
        found.update((one.id, _intention(one)) for one in page)
    return list(found.values())


def listed(call: Call, within: Filter, which: Which) -> list[Intention]:
    """Intentions by where they stand: what has come up goes first, what ended goes last.

    What ended long ago is left out. Nothing is changed by looking.
    """
    now = call.engine.now()
    kept = [one for one in intentions(call, within) if not outlived(one, now)]
    wanted = [one for one in kept if _stands(one, which, now)]
    return sorted(wanted, key=lambda one: (one.ended is not None, *_order(one, now)))


def _stands(intention: Intention, which: Which, now: datetime) -> bool:
    status = intention.status_at(now)
    match which:
        case "all":
            return True
        case "open":
            return intention.ended is None
        case "active":
            return status in (IntentionStatus.ACTIVE, IntentionStatus.TRIGGERED)
        case "due":
            return look(intention, TriggerSituation(now=now)).shown
        case _:
            return status == which


def check(call: Call, situation: TriggerSituation, within: Filter, *, limit: int) -> Checked:
    """What comes up in a situation. That it was told is kept, in one transaction: of several who look at
    once, one is the first to be told, and who looks again within half an hour is told the same."""
    return persistently(call, lambda: _check(call, situation, within, limit))


def _check(call: Call, situation: TriggerSituation, within: Filter, limit: int) -> Checked:
    waiting = [one for one in intentions(call, within) if one.ended is None]
    looked = [look(one, situation) for one in waiting]
    told = sorted((one for one in looked if one.shown), key=lambda one: _urgency(one.after, situation.now))
    shown = told[:limit]
    names = {one.after.id for one in shown}
    after = [one.after if one.after.id in names else one.unshown for one in looked]
    changes = [_next(one, situation.now) for one, was in zip(after, waiting, strict=True) if one != was]
    # Where nothing can be kept, who looks is told all the same.
    if changes and not call.engine.store.read_only:
        call.engine.store.commit(changes, access=call.access)
    before = {one.id: one for one in waiting}
    _announce(call, [one.after for one in shown if _news(one, before[one.after.id])], situation.now)
    pending = sorted(
        (one for one in after if one.id not in names), key=lambda one: _order(one, situation.now)
    )
    return Checked(told=tuple(shown), pending=tuple(pending), told_in_all=len(told))


def relevant(call: Call, situation: TriggerSituation, within: Filter) -> list[Looked]:
    """What somebody who begins to work should know of: what comes up, is overdue or matters much.

    Nothing is changed by it: it counts as no reminder.
    """
    now = situation.now
    looked = [look(one, situation) for one in intentions(call, within)]
    wanted = [one for one in looked if one.shown or _matters(one.unshown, now)]
    return sorted(wanted, key=lambda one: (not one.shown, *_urgency(one.after, now)))


def poll(call: Call) -> tuple[Intention, ...]:
    """Announce what the clock brought up since the last time. The next check tells of it all the same."""
    situation = TriggerSituation(now=call.engine.now())
    return persistently(call, lambda: _announced(call, situation, Filter()))


def on_created(call: Call, happening: MemoryCreated) -> None:
    """Note that something happened that intentions wait for: a memory that tells of it."""
    found = call.engine.store.get_many([happening.id], access=call.access)
    if not found:
        return
    memory = found[0].memory
    told = "\n".join((memory.content[:EVENT_CHARS], *memory.tags))
    situation = TriggerSituation(now=call.engine.now(), events=stated_words([told]))
    within = Filter(scope=memory.scope, inherited=True)
    persistently(call, lambda: _announced(call, situation, within))


def _announced(call: Call, situation: TriggerSituation, within: Filter) -> tuple[Intention, ...]:
    """Keep what happened, and tell listeners once of every intention that comes up by it."""
    changes: list[Put] = []
    news: list[Intention] = []
    for one in intentions(call, within):
        if situation.events and not any(isinstance(part, EventTrigger) for _, part in leaves(one.trigger)):
            continue
        looked = look(one, situation)
        after = looked.unshown
        if _news(looked, one) and looked.after.firing is not None:
            after = replace(after, announced=looked.after.firing.due_at)
            news.append(after)
        if after != one:
            changes.append(replace(_next(after, situation.now), logged=after.met != one.met))
    if changes:
        call.engine.store.commit(changes, access=call.access, patience_seconds=call.patience_seconds)
    _announce(call, news, situation.now)
    return tuple(news)


def tidy(call: Call) -> int:
    """Drop what was done or given up long ago; how many intentions that were."""

    def attempt() -> int:
        now = call.engine.now()
        old = [one for one in intentions(call, Filter()) if outlived(one, now)]
        if not old:
            return 0
        try:
            call.engine.store.commit([Drop(kind=KIND, id=one.id, at=now) for one in old], access=call.access)
        except NotFound as exc:
            raise Conflict("Somebody else tidies up.") from exc
        return len(old)

    return persistently(call, attempt)


def _news(looked: Looked, before: Intention) -> bool:
    """Whether it came up just now and nobody was told of that moment."""
    firing = looked.after.firing
    return looked.fresh and firing is not None and firing.due_at != before.announced


def _announce(call: Call, news: Sequence[Intention], now: datetime) -> None:
    call.engine.events.emit(
        *(
            IntentionTriggered(
                timestamp=now,
                places=(EventScope(scope=one.scope),),
                id=one.id,
                description=preview(one.description),
                priority=one.priority_at(now).name.casefold(),
            )
            for one in news
        )
    )


def _matters(intention: Intention, now: datetime) -> bool:
    status = intention.status_at(now)
    return (
        status in (IntentionStatus.ACTIVE, IntentionStatus.TRIGGERED)
        and intention.priority_at(now) >= Priority.HIGH
    )


def _urgency(intention: Intention, now: datetime) -> tuple[int, datetime, str]:
    due = intention.firing.due_at if intention.firing is not None else intention.deadline
    return -intention.priority_at(now), due or intention.created_at, intention.id


def _order(intention: Intention, now: datetime) -> tuple[int, datetime, int, str]:
    """What has come up goes first, then what the clock brings up, the soonest at the top."""
    looked = look(intention, TriggerSituation(now=now))
    then = intention.next_at(now)
    came_up = looked.shown or intention.status_at(now) is IntentionStatus.TRIGGERED
    group = 0 if came_up else 1 if then is not None else 2
    return group, then or intention.created_at, -intention.priority_at(now), intention.id


# -- documents -----------------------------------------------------------------------------------


def _pages(call: Call, within: Filter) -> Iterator[list[Document]]:
    offset = 0
    while True:
        page = call.engine.store.documents(
            KIND,
            access=call.access,
            scope=within.scope,
            inherited=within.inherited,
            limit=PAGE,
            offset=offset,
        )
        yield page
        if len(page) < PAGE:
            return
        offset += PAGE
        call.check()


def _intention(document: Document) -> Intention:
    return intention_of(
        document.body,
        id=document.id,
        scope=document.scope,
        version=document.version,
        created_at=document.created_at,
        updated_at=document.updated_at,
    )


def _document(intention: Intention) -> Document:
    return Document(
        kind=KIND,
        id=intention.id,
        body=body_of(intention),
        scope=intention.scope,
        version=intention.version,
        created_at=intention.created_at,
        updated_at=intention.updated_at,
    )


def _next(intention: Intention, now: datetime) -> Put:
    """The intention in its next version."""
    changed = replace(intention, version=intention.version + 1, updated_at=max(intention.updated_at, now))
    return Put(document=_document(changed))
