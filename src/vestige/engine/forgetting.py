"""Deleting a memory, everywhere, on somebody's explicit word."""

from dataclasses import replace
from datetime import datetime

from vestige.engine.context import Call
from vestige.engine.revising import load, next_revision, persistently
from vestige.errors import Conflict
from vestige.events import MemoryDeleted
from vestige.models import Memory
from vestige.store.protocol import Change, Forget, Revise


def forget(call: Call, memory_id: str, *, even_pinned: bool) -> list[str]:
    """Delete a memory from every surface. What it had superseded is true again; the ids of those."""
    record = load(call, memory_id)
    if record.memory.pinned and not even_pinned:
        raise Conflict(
            f"The memory {memory_id} is pinned.",
            hint="Unpin it first, or say `even_pinned`.",
            details={"id": memory_id},
        )
    return persistently(call, lambda: _forget(call, record.memory))


def _forget(call: Call, memory: Memory) -> list[str]:
    now = call.engine.now()
    heirs = _heirs(call, memory, now)
    ending: list[Change] = [*heirs, Forget(memory_id=memory.id, at=now, reason="deleted")]
    call.engine.store.commit(ending, access=call.access)
    call.engine.events.emit(MemoryDeleted(timestamp=now, id=memory.id))
    return [one.memory.id for one in heirs if isinstance(one, Revise) and one.reason == "revived"]


def _heirs(call: Call, gone: Memory, now: datetime) -> list[Change]:
    """What becomes of the facts a memory had superseded.

    A wrong correction that is taken back must not leave the right fact ended; one that was corrected
    itself hands them on to what corrected it.
    """
    store = call.engine.store
    edges = store.edges([gone.id], access=call.access)
    ended = [edge.target_id for edge in edges if edge.kind == "supersedes" and edge.source_id == gone.id]
    changes: list[Change] = []
    for record in store.get_many(ended, access=call.access):
        memory = record.memory
        if memory.superseded_by != gone.id:
            continue
        if gone.superseded_by is not None:
            wanted, reason = replace(memory, superseded_by=gone.superseded_by), "handed on"
        else:
            before = store.history(memory.id, access=call.access)
            until = next((r.memory.valid_until for r in reversed(before) if r.reason == "superseded"), None)
            wanted, reason = replace(memory, superseded_by=None, valid_until=until), "revived"
        changes.append(Revise(memory=next_revision(wanted, now), reason=reason))
    return changes
