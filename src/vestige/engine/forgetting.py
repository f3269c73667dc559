"""Deleting a memory, everywhere, on somebody's explicit word."""

from dataclasses import replace
from datetime import datetime

from vestige.engine.context import Call
from vestige.engine.revising import load, next_revision
from vestige.errors import Conflict
from vestige.events import MemoryDeleted
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
    now = call.engine.now()
    revived = _revived(call, memory_id, now)
    ending: list[Change] = [*revived, Forget(memory_id=memory_id, at=now, reason="deleted")]
    call.engine.store.commit(ending, access=call.access)
    call.engine.events.emit(MemoryDeleted(timestamp=now, id=memory_id))
    return [change.memory.id for change in revived]


def _revived(call: Call, memory_id: str, now: datetime) -> list[Revise]:
    """A wrong correction that is taken back must not leave the right fact ended."""
    store = call.engine.store
    edges = store.edges([memory_id], access=call.access)
    ended = [edge.target_id for edge in edges if edge.kind == "supersedes" and edge.source_id == memory_id]
    changes = []
    for record in store.get_many(ended, access=call.access):
        memory = record.memory
        if memory.superseded_by == memory_id:
            before = store.history(memory.id, access=call.access)
            until = next((r.memory.valid_until for r in reversed(before) if r.reason == "superseded"), None)
            wanted = replace(memory, superseded_by=None, valid_until=until)
            changes.append(Revise(memory=next_revision(wanted, now), reason="revived"))
    return changes
