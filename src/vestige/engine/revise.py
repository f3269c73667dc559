"""Changing a memory that exists: load → change → save, again when somebody else was quicker.

Every change of a canonical field makes a revision; the earlier one stays in the history.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TypeVar

from vestige.core.errors import Conflict, IdempotencyConflict, NotFound
from vestige.core.events import (
    ConnectionDiscovered,
    MemoryCreated,
    MemoryDeleted,
    MemoryUpdated,
    places_of,
    preview,
)
from vestige.core.models import Edge, Evidence, Memory, Record
from vestige.engine.context import Call
from vestige.engine.embedding import vectors_for
from vestige.store.contract.changes import Change, RecordEvidence, Revise

# -- News of memories, told the same way by all who make some: what happened, and where.


def created(memory: Memory, at: datetime) -> MemoryCreated:
    """That a memory is new."""
    return MemoryCreated(
        timestamp=at,
        places=places_of(memory),
        id=memory.id,
        content_preview=preview(memory.content),
        node_type=memory.node_type,
        tags=memory.tags,
    )


def updated(memory: Memory, at: datetime, names: Iterable[str]) -> MemoryUpdated:
    """That these fields of a memory are others now. It is told where the memory is now: who could read it
    before is not shown what it says since."""
    return MemoryUpdated(
        timestamp=at,
        places=places_of(memory),
        id=memory.id,
        content_preview=preview(memory.content),
        field=", ".join(names),
    )


def deleted(memory: Memory, at: datetime) -> MemoryDeleted:
    """That a memory is gone from where it was."""
    return MemoryDeleted(timestamp=at, places=places_of(memory), id=memory.id)


def connected(edge: Edge, ends: Mapping[str, Memory]) -> ConnectionDiscovered:
    """That two memories are linked; where one of them is not known, only those who reach all hear of it."""
    there = [ends[end] for end in (edge.source_id, edge.target_id) if end in ends]
    return ConnectionDiscovered(
        timestamp=edge.created_at,
        places=places_of(*there) if len(there) == 2 else None,
        source_id=edge.source_id,
        target_id=edge.target_id,
        connection_type=edge.kind,
        weight=edge.weight,
    )


# -- revise

ATTEMPTS = 4
"""How often a change is decided anew when somebody else changed the same memory meanwhile."""
Outcome = TypeVar("Outcome")
BOOKKEEPING = frozenset({"revision", "updated_at"})
TEXT_FIELDS = frozenset({"content", "phrasings"})


def load(call: Call, memory_id: str) -> Record:
    """One record, or NotFound that says whether it was deleted."""
    found = call.engine.store.get_many([memory_id], access=call.access)
    if found:
        return found[0]
    grave = call.engine.store.tombstone(memory_id, access=call.access)
    if grave:
        raise NotFound(
            f"The memory {memory_id} was deleted on {grave.deleted_at:%Y-%m-%d %H:%M} UTC.",
            details={"id": memory_id, "deletedAt": grave.deleted_at.isoformat()},
        )
    raise NotFound(
        f"There is no memory {memory_id}.",
        hint="Find the right id with `search` or `memory list`.",
        details={"id": memory_id},
    )


def next_revision(memory: Memory, now: datetime) -> Memory:
    """The memory as its own next revision; time does not run backwards in a history."""
    return replace(memory, revision=memory.revision + 1, updated_at=max(memory.updated_at, now))


def persistently(call: Call, attempt: Callable[[], Outcome]) -> Outcome:
    """Run load → decide → save again when somebody else changed the same memory in between, or the model
    whose vectors the store holds."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except IdempotencyConflict:
            raise
        except Conflict:
            call.check()
    return attempt()


def save(call: Call, changes: Sequence[Change]) -> None:
    """Commit what was decided about memories nobody named. One that has gone since makes it a Conflict: it is
    decided again (`persistently`), without that one."""
    try:
        call.engine.store.commit(changes, access=call.access, patience_seconds=call.patience_seconds)
    except NotFound as exc:
        raise Conflict() from exc


def revise(
    call: Call,
    memory_id: str,
    change: Callable[[Memory], Memory],
    *,
    reason: str,
    evidence: Evidence | None = None,
) -> tuple[Record, bool]:
    """Apply `change` to a memory and save it, with what that says about its strength: the record, and whether
    there was anything to change."""

    def attempt() -> tuple[Record, bool]:
        record = load(call, memory_id)
        wanted = change(record.memory)
        names = changed_fields(record.memory, wanted)
        if not names:
            return record, False
        memory = next_revision(wanted, call.engine.now())
        changes: list[Change] = [revision(call, memory, names, reason)]
        if evidence is not None:
            changes.append(RecordEvidence(memory_id=memory_id, evidence=evidence, at=memory.updated_at))
        call.engine.store.commit(changes, access=call.access)
        call.engine.events.emit(updated(memory, memory.updated_at, names))
        return load(call, memory_id), True

    return persistently(call, attempt)


def revision(call: Call, memory: Memory, names: list[str], reason: str) -> Change:
    """The change that saves a revision, with new vectors when its text is new."""
    made = vectors_for(call, [memory]) if TEXT_FIELDS & set(names) else []
    return Revise(memory=memory, reason=reason, embedded=made[0] if made else None)


def changed_fields(before: Memory, after: Memory) -> list[str]:
    """The names of the fields that differ, bookkeeping apart."""
    names = (field.name for field in fields(Memory))
    return [n for n in names if n not in BOOKKEEPING and getattr(before, n) != getattr(after, n)]
