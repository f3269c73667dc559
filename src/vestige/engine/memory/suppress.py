"""Keeping a memory out of mind, taking that back, and what it does to its neighbours once it is final.

Suppressing changes nothing but the memory's own two fields, so that within the window it can be taken back
exactly. Only when the window has closed are the neighbours weakened, once: a document says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial

from vestige.cognition.fsrs.forgetting import (
    MOST_NEIGHBOURS,
    WINDOW,
    inhibitable,
    inhibition,
    is_reversible,
    neighbours,
    reversible_until,
)
from vestige.core.documents import Document
from vestige.core.errors import Conflict
from vestige.core.events import MemorySuppressed, MemoryUnsuppressed, Rac1CascadeSwept, places_of
from vestige.core.models import Evidence, Filter, Memory, Record, Revision
from vestige.engine.context import Call
from vestige.engine.memory.states import transition
from vestige.engine.recall.as_known import in_order
from vestige.engine.revise import load, next_revision, persistently, save
from vestige.store.contract.changes import REMARKED, REVISED, Change, Put, RecordEvidence, Revise

SUPPRESSED, REVERSED, WANTED = "suppressed", "unsuppressed", "wanted again"
"""Why revisions end."""
CASCADE = "cascade"
"""The kind of the documents that say which suppressions have reached their neighbours."""
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A memory before and after it was suppressed or freed, how many neighbours that touches later, and
    whether anything else has changed in the memory while it was suppressed."""

    before: Record
    after: Record
    neighbours: int = 0
    changed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """How many suppressions became final, and how many neighbours they weakened."""

    seeds: int
    neighbors: int


def suppress(call: Call, memory_id: str) -> Suppressed:
    """Keep a memory out of mind, or further out."""

    def attempt() -> Suppressed:
        now = call.engine.now()
        record = load(call, memory_id)
        _check_suppressible(record.memory, now)
        if record.memory.suppression_count:  # the suppression before this one is final
            _cascade(call, record.memory, now)
        count = record.memory.suppression_count + 1
        wanted = replace(record.memory, suppression_count=count, suppressed_at=now)
        call.engine.store.commit(_changes(record, wanted, SUPPRESSED, now), access=call.access)
        met = len(_neighbours(call, memory_id))
        call.engine.events.emit(
            MemorySuppressed(
                timestamp=now,
                places=places_of(wanted),
                id=memory_id,
                suppression_count=count,
                estimated_cascade=met,
                reversible_until=now + WINDOW,
            )
        )
        return Suppressed(before=record, after=load(call, memory_id), neighbours=met)

    return persistently(call, attempt)


def unsuppress(call: Call, memory_id: str) -> Suppressed:
    """Take the last suppression back, as if it had never been; Conflict when there is none or it is final."""

    def attempt() -> Suppressed:
        now = call.engine.now()
        record = load(call, memory_id)
        _check_reversible(record.memory, now)
        wanted = _as_before(record.memory, call.engine.store.history(memory_id, access=call.access))
        changed = _changed_since(call, record.memory)
        call.engine.store.commit(_changes(record, wanted, REVERSED, now), access=call.access)
        left = wanted.suppression_count
        call.engine.events.emit(
            MemoryUnsuppressed(timestamp=now, places=places_of(wanted), id=memory_id, remaining_count=left)
        )
        return Suppressed(before=record, after=load(call, memory_id), changed=changed)

    return persistently(call, attempt)


def lifting(record: Record, now: datetime) -> list[Change]:
    """What ends all suppression of a memory: for when somebody says that it is wanted after all."""
    if not record.memory.suppression_count:
        return []
    return _changes(record, replace(record.memory, suppression_count=0, suppressed_at=None), WANTED, now)


def sweep(call: Call) -> Swept:
    """Weaken the neighbours of every suppression that has become final since; each counts once, for ever."""
    now, seeds, met = call.engine.now(), 0, 0
    for memory in _unswept(call, now):
        call.check()
        weakened = persistently(call, partial(_cascade, call, memory, now))
        seeds += weakened is not None
        met += weakened or 0
    if seeds:
        call.engine.events.emit(
            Rac1CascadeSwept(timestamp=now, places=None, seeds=seeds, neighbors_affected=met)
        )
    return Swept(seeds=seeds, neighbors=met)


def on_suppressed(call: Call, happening: MemorySuppressed) -> None:
    """A new suppression waits for its window to close; those before it may be final by now."""
    sweep(call)


def _unswept(call: Call, now: datetime) -> list[Memory]:
    """Those whose last suppression is final and has not reached its neighbours."""
    where = Filter(suppressed_by=now - WINDOW, archived=None)
    seeds: list[Memory] = []
    for batch in call.engine.store.stream(where, access=call.access, batch=BATCH):
        names = {_document_id(record.memory): record.memory for record in batch}
        done = call.engine.store.documents(CASCADE, access=call.access, ids=list(names), limit=BATCH)
        known = {document.id for document in done}
        seeds += [memory for name, memory in names.items() if name not in known]
    return seeds


def _cascade(call: Call, seed: Memory, now: datetime) -> int | None:
    """Weaken what is linked to a suppressed memory; how many, or None where that was done before, or the
    suppression is not what it was."""
    store, name = call.engine.store, _document_id(seed)
    present = store.get_many([seed.id], access=call.access)
    if [one.memory.suppressed_at for one in present if one.memory.suppression_count] != [seed.suppressed_at]:
        return None
    if store.documents(CASCADE, access=call.access, ids=[name], limit=1):
        return None
    met = _neighbours(call, seed.id)
    changes: list[Change] = [
        RecordEvidence(memory_id=other, evidence=Evidence.INHIBITED, at=now, amount=inhibition(weight))
        for other, weight in met.items()
    ]
    done = Document(
        kind=CASCADE,
        id=name,
        body={"neighbors": len(met)},
        scope=seed.scope,
        cites=(seed.id,),
        created_at=now,
        updated_at=now,
    )
    save(call, [*changes, Put(document=done)])
    return len(met)


def _neighbours(call: Call, memory_id: str) -> dict[str, float]:
    """What the suppression of a memory weakens, with the weight of the link to it."""
    store = call.engine.store
    edges = store.edges([memory_id], access=call.access, heaviest=MOST_NEIGHBOURS)
    near = neighbours(memory_id, edges)
    records = store.get_many(list(near), access=call.access)
    return {one.memory.id: near[one.memory.id] for one in records if inhibitable(one.memory)}


def _document_id(seed: Memory) -> str:
    """One name for each suppression of a memory: no two have the same time."""
    return f"{seed.id} {seed.suppressed_at}"


def _as_before(memory: Memory, past: Sequence[Revision]) -> Memory:
    """The memory with the suppression it had before the last one; what else was changed since stays."""
    earlier = (one.memory for one in reversed(past) if one.reason == SUPPRESSED)
    count = memory.suppression_count
    before = next((one for one in earlier if one.suppression_count < count), None)
    if before is None:  # it came here suppressed, from a file
        return replace(memory, suppression_count=count - 1, suppressed_at=None)
    return replace(memory, suppression_count=before.suppression_count, suppressed_at=before.suppressed_at)


def _changed_since(call: Call, memory: Memory) -> bool:
    """Whether anything happened to a memory after its last suppression: told again, edited, shown, voted."""
    told = in_order(call, memory.id)
    last = [event for event in told if event.kind in (REVISED, REMARKED)][-1:]
    return any(event.payload.get("reason") != SUPPRESSED for event in last)


def _changes(record: Record, wanted: Memory, reason: str, now: datetime) -> list[Change]:
    """The revision that changes how far a memory is suppressed, and its state where that moves it."""
    moved = transition(record, now, reason, suppressions=wanted.suppression_count)
    revised: list[Change] = [Revise(memory=next_revision(wanted, now), reason=reason)]
    return [*revised, moved] if moved else revised


def _check_suppressible(memory: Memory, now: datetime) -> None:
    if memory.pinned:
        raise Conflict(
            f"The memory {memory.id} is pinned: it is meant to come to mind.",
            hint="Unpin it first (`memory unpin`).",
            details={"id": memory.id},
        )
    until = reversible_until(memory)
    if until is not None and is_reversible(memory, now):
        raise Conflict(
            f"The memory {memory.id} is suppressed already, since {memory.suppressed_at:%Y-%m-%d %H:%M} UTC.",
            hint=f"Until {until:%Y-%m-%d %H:%M} UTC that can be taken back (`reverse`); "
            "after that it can be suppressed further.",
            details={"id": memory.id, "reversibleUntil": until.isoformat()},
        )


def _check_reversible(memory: Memory, now: datetime) -> None:
    if not memory.suppression_count:
        raise Conflict(
            f"The memory {memory.id} is not suppressed.",
            hint="There is nothing to take back.",
            details={"id": memory.id},
        )
    if not is_reversible(memory, now):
        hours = WINDOW // timedelta(hours=1)
        raise Conflict(
            f"The last suppression of {memory.id} is more than {hours} hours old: it cannot be taken back.",
            hint="Promote the memory (`memory promote`): that ends its suppression and strengthens it.",
            details={"id": memory.id},
        )
