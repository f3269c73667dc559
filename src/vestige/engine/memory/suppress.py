"""Suppression: hides a memory, can be reversed within a window, and weakens its neighbours once it is final.

Suppressing changes only two fields of the memory, so that it can be reversed exactly within the window. When
the window has closed, the neighbours are weakened once, and a document records that.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

from vestige.cognition.fsrs.suppression import (
    MOST_NEIGHBOURS,
    WINDOW,
    inhibitable,
    inhibition,
    is_reversible,
    neighbours,
    reversible_until,
)
from vestige.core.errors import Conflict
from vestige.core.events import MemorySuppressed, MemoryUnsuppressed, Rac1CascadeSwept, scopes_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, Filter, Memory, Record, Revision
from vestige.core.timezone import time_text
from vestige.engine.context import Call
from vestige.engine.memory.states import transition
from vestige.engine.recall.as_known import events_of
from vestige.engine.revise import (
    documents_by_id,
    find_document,
    load,
    next_revision,
    put_document,
    retry_on_conflict,
    save,
)
from vestige.store.contract.changes import REMARKED, REVISED, Change, RecordEvidence, Revise

SUPPRESSED, REVERSED, WANTED = "suppressed", "unsuppressed", "wanted again"
"""The reasons of the revisions."""
CASCADE = "cascade"
"""The kind of the documents that record which suppressions have weakened their neighbours."""
BATCH = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppressed:
    """A memory before and after it was suppressed or unsuppressed. `neighbours` will be weakened later.
    `changed`: something else has changed in the memory meanwhile."""

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
    """Suppress a memory, or suppress it further."""

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
                scopes=scopes_of(wanted),
                id=memory_id,
                suppression_count=count,
                estimated_cascade=met,
                reversible_until=now + WINDOW,
            )
        )
        return Suppressed(before=record, after=load(call, memory_id), neighbours=met)

    return retry_on_conflict(call, attempt)


def unsuppress(call: Call, memory_id: str) -> Suppressed:
    """Reverse the last suppression exactly; Conflict if the memory is not suppressed, or that is final."""

    def attempt() -> Suppressed:
        now = call.engine.now()
        record = load(call, memory_id)
        _check_reversible(record.memory, now)
        wanted = _as_before(record.memory, call.engine.store.history(memory_id, access=call.access))
        changed = _changed_since(call, record.memory)
        call.engine.store.commit(_changes(record, wanted, REVERSED, now), access=call.access)
        left = wanted.suppression_count
        call.engine.events.emit(
            MemoryUnsuppressed(timestamp=now, scopes=scopes_of(wanted), id=memory_id, remaining_count=left)
        )
        return Suppressed(before=record, after=load(call, memory_id), changed=changed)

    return retry_on_conflict(call, attempt)


def lift_changes(record: Record, now: datetime) -> list[Change]:
    """The changes that end all suppression of a memory, because a user wants it after all."""
    if not record.memory.suppression_count:
        return []
    return _changes(record, replace(record.memory, suppression_count=0, suppressed_at=None), WANTED, now)


def sweep(call: Call) -> Swept:
    """Weaken the neighbours of every suppression that has become final; each suppression does that once."""
    now, seeds, met = call.engine.now(), 0, 0
    for memory in _unswept(call, now):
        call.check()
        weakened = retry_on_conflict(call, partial(_cascade, call, memory, now))
        seeds += weakened is not None
        met += weakened or 0
    if seeds:
        call.engine.events.emit(
            Rac1CascadeSwept(timestamp=now, scopes=None, seeds=seeds, neighbors_affected=met)
        )
    return Swept(seeds=seeds, neighbors=met)


def on_suppressed(call: Call, events: Sequence[MemorySuppressed]) -> None:
    """Sweep when memories are suppressed: earlier suppressions may have become final."""
    sweep(call)


def _unswept(call: Call, now: datetime) -> list[Memory]:
    """Memories whose last suppression is final and has not weakened its neighbours yet."""
    where = Filter(suppressed_by=now - WINDOW, archived=None)
    seeds: list[Memory] = []
    for batch in call.engine.store.stream(where, access=call.access, batch=BATCH):
        names = {_document_id(record.memory): record.memory for record in batch}
        done = documents_by_id(call, CASCADE, list(names))
        seeds += [memory for name, memory in names.items() if name not in done]
    return seeds


def _cascade(call: Call, seed: Memory, now: datetime) -> int | None:
    """Weaken the neighbours of a suppressed memory: how many, or None if that was done or is obsolete."""
    store, name = call.engine.store, _document_id(seed)
    present = store.get_many([seed.id], access=call.access)
    if [one.memory.suppressed_at for one in present if one.memory.suppression_count] != [seed.suppressed_at]:
        return None
    if find_document(call, CASCADE, name):
        return None
    met = _neighbours(call, seed.id)
    changes: list[Change] = [
        RecordEvidence(memory_id=other, evidence=Evidence.INHIBITED, at=now, amount=inhibition(weight))
        for other, weight in met.items()
    ]
    body, cites = {"neighbors": len(met)}, (seed.id,)
    done = put_document(CASCADE, name, None, now, body=body, scope=seed.scope, cites=cites, logged=True)
    save(call, [*changes, done])
    return len(met)


def _neighbours(call: Call, memory_id: str) -> dict[str, float]:
    """The memories that the suppression of a memory weakens, with the weights of their links."""
    store = call.engine.store
    edges = store.edges([memory_id], access=call.access, heaviest=MOST_NEIGHBOURS)
    near = neighbours(memory_id, edges)
    records = store.get_many(list(near), access=call.access)
    return {one.memory.id: near[one.memory.id] for one in records if inhibitable(one.memory)}


def _document_id(seed: Memory) -> str:
    """An id for each suppression of a memory: no two have the same time."""
    return f"{seed.id} {seed.suppressed_at}"


def _as_before(memory: Memory, past: Sequence[Revision]) -> Memory:
    """The memory with the suppression it had before the last one; other changes stay."""
    earlier = (one.memory for one in reversed(past) if one.reason == SUPPRESSED)
    count = memory.suppression_count
    before = next((one for one in earlier if one.suppression_count < count), None)
    if before is None:  # it was imported as a suppressed memory
        return replace(memory, suppression_count=count - 1, suppressed_at=None)
    return replace(memory, suppression_count=before.suppression_count, suppressed_at=before.suppressed_at)


def _changed_since(call: Call, memory: Memory) -> bool:
    """Whether a memory was revised or got evidence after its last suppression."""
    last = [event for event in events_of(call, memory.id) if event.kind in (REVISED, REMARKED)][-1:]
    return any(event.payload.get("reason") != SUPPRESSED for event in last)


def _changes(record: Record, wanted: Memory, reason: str, now: datetime) -> list[Change]:
    """The revision that changes the suppression of a memory, and its state change if there is one."""
    moved = transition(record, now, reason, suppressions=wanted.suppression_count)
    revised: list[Change] = [Revise(memory=next_revision(wanted, now), reason=reason)]
    return [*revised, moved] if moved else revised


def _check_suppressible(memory: Memory, now: datetime) -> None:
    if memory.pinned:
        raise Conflict(
            f"The memory {memory.id} is pinned, so it cannot be suppressed.",
            hint="Unpin it first (`memory unpin`).",
            details={"id": memory.id},
        )
    until = reversible_until(memory)
    if until is not None and is_reversible(memory, now):
        raise Conflict(
            f"The memory {memory.id} is suppressed already, since {time_text(memory.suppressed_at or now)}.",
            hint=f"Until {time_text(until)} the suppression can be reversed (`reverse`); "
            "after that the memory can be suppressed further.",
            details={"id": memory.id, "reversibleUntil": until.isoformat()},
        )


def _check_reversible(memory: Memory, now: datetime) -> None:
    if not memory.suppression_count:
        raise Conflict(
            f"The memory {memory.id} is not suppressed.",
            hint="There is nothing to reverse.",
            details={"id": memory.id},
        )
    if not is_reversible(memory, now):
        hours = WINDOW // timedelta(hours=1)
        raise Conflict(
            f"The last suppression of {memory.id} is more than {hours} hours old and cannot be reversed.",
            hint="Promote the memory (`memory promote`): that ends its suppression and strengthens it.",
            details={"id": memory.id},
        )
