"""Intentions: reminders that are kept as documents, and shown when they are triggered."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
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
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import SHARED_SCOPE, Filter, Memory, covers
from vestige.engine.context import Call
from vestige.engine.ingest.inbox import refuse_orders
from vestige.engine.revise import find_document, not_before, retry_on_conflict
from vestige.store.contract.changes import Drop, Put

KIND = "intention"
Which = Literal["active", "due", "open", "snoozed", "fulfilled", "cancelled", "all"]
MOST = 1000
"""The most open intentions in one scope."""
PAGE = 1000
EVENT_CHARS = 10_000
"""How much of a new memory is read for an event trigger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewIntention:
    description: str
    said: str | None
    trigger: Trigger
    priority: Priority
    deadline: datetime | None
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentionCheck:
    """The result of a check: the triggered intentions, most urgent first and cut to the limit, those that
    wait, and the number of all that were triggered."""

    triggered: tuple[Looked, ...]
    pending: tuple[Intention, ...]
    total: int


def create_intention(call: Call, wanted: NewIntention) -> Intention:
    """Create an intention. It belongs to no domain, so a caller limited to domains cannot have one."""
    if call.access.domains is not None:
        raise Forbidden(
            "An intention belongs to no domain, and this caller is limited to domains.",
            hint="Use a key that is limited by scopes only.",
        )
    now = call.engine.now()
    refuse_orders(call, wanted.description, wanted.scope)
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
        zone=call.zone,
    )
    call.engine.store.commit([Put(document=_document(made))], access=call.access)
    return made


def _check_room(call: Call, scope: str) -> None:
    held = intentions(call, Filter(scope=scope))
    if sum(one.scope == scope and one.ended is None for one in held) >= MOST:
        raise InvalidInput(
            f"The scope {scope} has {MOST:,} open intentions, which is the limit.",
            hint="Complete or cancel some; `intention` with the action `list` shows them.",
            details={"scope": scope, "limit": MOST},
        )


def find(call: Call, intention_id: str) -> Intention:
    found = find_document(call, KIND, intention_id)
    if found is None:
        raise NotFound(
            f"There is no intention {intention_id}.",
            hint="Find the right id with `intention` and the action `list`.",
            details={"id": intention_id},
        )
    return _intention(found)


def change(call: Call, intention_id: str, decide: Callable[[Intention], Intention]) -> Intention:
    """Change an intention; `decide` runs again if another process changed it meanwhile."""

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

    return retry_on_conflict(call, attempt)


def delete(call: Call, intention_id: str) -> Intention:
    """Delete an intention with its text; returns what it was."""

    def attempt() -> Intention:
        found = find(call, intention_id)
        drop = Drop(kind=KIND, id=intention_id, at=call.engine.now())
        call.engine.store.commit([drop], access=call.access)
        return found

    return retry_on_conflict(call, attempt)


def intentions(call: Call, within: Filter) -> list[Intention]:
    """Every intention of a scope and, if the filter says `inherited`, of the scopes above it."""
    found: dict[str, Intention] = {}
    read, offset = partial(call.engine.store.documents, KIND, access=call.access, limit=PAGE), 0
    while page := read(scope=within.scope, inherited=within.inherited, offset=offset):
        found.update((one.id, _intention(one)) for one in page)
        if len(page) < PAGE:
            break
        offset += PAGE
        call.check()
    return list(found.values())


def intentions_by_status(call: Call, within: Filter, which: Which) -> list[Intention]:
    """The intentions with a status, unless they ended long ago: triggered ones first, ended ones last."""
    now = call.engine.now()
    kept = [one for one in intentions(call, within) if not outlived(one, now)]
    wanted = [one for one in kept if _has_status(one, which, now)]
    return sorted(wanted, key=lambda one: (one.ended is not None, *_order(one, now)))


def _has_status(intention: Intention, which: Which, now: datetime) -> bool:
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


def check(call: Call, situation: TriggerSituation, within: Filter, *, limit: int) -> IntentionCheck:
    """The intentions that a situation triggers. That they were shown is saved; of several processes that
    check at once, one is first. A check within half an hour shows the same again."""
    return retry_on_conflict(call, lambda: _check(call, situation, within, limit))


def _check(call: Call, situation: TriggerSituation, within: Filter, limit: int) -> IntentionCheck:
    waiting = [one for one in intentions(call, within) if one.ended is None]
    looked = [look(one, situation) for one in waiting]
    triggered = [one for one in looked if one.shown]
    triggered.sort(key=lambda one: _urgency(one.after, situation.now))
    shown = triggered[:limit]
    names = {one.after.id for one in shown}
    after = [one.after if one.after.id in names else one.unshown for one in looked]
    changes = [_next(one, situation.now) for one, was in zip(after, waiting, strict=True) if one != was]
    # A read-only store shows them all the same.
    if changes and not call.engine.store.read_only:
        call.engine.store.commit(changes, access=call.access)
    before = {one.id: one for one in waiting}
    _announce(call, [one.after for one in shown if _is_new_firing(one, before[one.after.id])], situation.now)
    pending = [one for one in after if one.id not in names]
    pending.sort(key=lambda one: _order(one, situation.now))
    return IntentionCheck(triggered=tuple(shown), pending=tuple(pending), total=len(triggered))


def relevant(call: Call, situation: TriggerSituation, within: Filter) -> list[Looked]:
    """The intentions that matter at the start of a session: triggered, overdue or of high priority. That does
    not count as a reminder, so nothing is changed."""
    now = situation.now
    looked = [look(one, situation) for one in intentions(call, within)]
    wanted = [one for one in looked if one.shown or _matters(one.unshown, now)]
    return sorted(wanted, key=lambda one: (not one.shown, *_urgency(one.after, now)))


def poll(call: Call) -> tuple[Intention, ...]:
    """Announce the intentions that have become due since the last poll; the next check shows them still."""
    situation = TriggerSituation(now=call.engine.now())
    return retry_on_conflict(call, lambda: _announce_triggered(call, situation, Filter()))


def on_created(call: Call, events: Sequence[MemoryCreated]) -> None:
    """Announce the intentions that wait for an event which a new memory mentions."""
    if not any(_waits_for_event(one) for one in intentions(call, Filter())):
        return
    for record in call.engine.store.get_many([event.id for event in events], access=call.access):
        call.check()
        _on_created(call, record.memory)


def _on_created(call: Call, memory: Memory) -> None:
    text = "\n".join((memory.content[:EVENT_CHARS], *memory.tags))
    situation = TriggerSituation(now=call.engine.now(), events=stated_words([text]))
    # What is about the user holds in every project.
    everywhere = covers(SHARED_SCOPE, memory.scope)
    within = Filter() if everywhere else Filter(scope=memory.scope, inherited=True)
    retry_on_conflict(call, lambda: _announce_triggered(call, situation, within))


def _waits_for_event(intention: Intention) -> bool:
    return any(isinstance(part, EventTrigger) for _, part in leaves(intention.trigger))


def _announce_triggered(call: Call, situation: TriggerSituation, within: Filter) -> tuple[Intention, ...]:
    """Save which triggers were met, and emit an event once for every intention that is triggered."""
    changes: list[Put] = []
    announced: list[Intention] = []
    for one in intentions(call, within):
        if situation.events and not _waits_for_event(one):
            continue
        looked = look(one, situation)
        after = looked.unshown
        if _is_new_firing(looked, one) and looked.after.firing is not None:
            after = replace(after, announced=looked.after.firing.due_at)
            announced.append(after)
        if after != one:
            changes.append(replace(_next(after, situation.now), logged=after.met != one.met))
    if changes:
        call.engine.store.commit(changes, access=call.access, patience_seconds=call.patience_seconds)
    _announce(call, announced, situation.now)
    return tuple(announced)


def drop_ended(call: Call) -> int:
    """Drop the intentions that ended long ago; returns how many."""

    def attempt() -> int:
        now = call.engine.now()
        old = [one for one in intentions(call, Filter()) if outlived(one, now)]
        if not old:
            return 0
        try:
            call.engine.store.commit([Drop(kind=KIND, id=one.id, at=now) for one in old], access=call.access)
        except NotFound as exc:
            raise Conflict("Another process is already cleaning up intentions.") from exc
        return len(old)

    return retry_on_conflict(call, attempt)


def _is_new_firing(looked: Looked, before: Intention) -> bool:
    """Whether the intention was triggered just now and this firing was not announced yet."""
    firing = looked.after.firing
    return looked.fresh and firing is not None and firing.due_at != before.announced


def _announce(call: Call, came_up: Sequence[Intention], now: datetime) -> None:
    call.engine.events.emit(
        *(
            IntentionTriggered(
                timestamp=now,
                scopes=(EventScope(scope=one.scope),),
                id=one.id,
                description=preview(one.description),
                priority=one.priority_at(now).name.casefold(),
            )
            for one in came_up
        )
    )


def _matters(intention: Intention, now: datetime) -> bool:
    waiting = intention.status_at(now) in (IntentionStatus.ACTIVE, IntentionStatus.TRIGGERED)
    return waiting and intention.priority_at(now) >= Priority.HIGH


def _urgency(intention: Intention, now: datetime) -> tuple[int, datetime, str]:
    due = intention.firing.due_at if intention.firing is not None else intention.deadline
    return -intention.priority_at(now), due or intention.created_at, intention.id


def _order(intention: Intention, now: datetime) -> tuple[int, datetime, int, str]:
    """The sort key: triggered intentions first, then those that become due soonest."""
    looked = look(intention, TriggerSituation(now=now))
    then = intention.next_at(now)
    came_up = looked.shown or intention.status_at(now) is IntentionStatus.TRIGGERED
    group = 0 if came_up else 1 if then is not None else 2
    return group, then or intention.created_at, -intention.priority_at(now), intention.id


# -- Intentions as documents


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
    at = not_before(intention.updated_at, now)
    changed = replace(intention, version=intention.version + 1, updated_at=at)
    return Put(document=_document(changed))
