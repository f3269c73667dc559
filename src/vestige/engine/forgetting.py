"""Deleting a memory, everywhere, on somebody's explicit word."""

from vestige.engine.context import Call
from vestige.engine.revising import load
from vestige.errors import Conflict
from vestige.events import MemoryDeleted
from vestige.models import Record
from vestige.store.protocol import Forget


def forget(call: Call, memory_id: str, *, even_pinned: bool) -> Record:
    """Delete a memory from every surface; what it was, for the answer."""
    record = load(call, memory_id)
    if record.memory.pinned and not even_pinned:
        raise Conflict(
            f"The memory {memory_id} is pinned.",
            hint="Unpin it first, or say that pinned memories may go.",
            details={"id": memory_id},
        )
    now = call.engine.now()
    call.engine.store.commit([Forget(memory_id=memory_id, at=now, reason="deleted")], access=call.access)
    call.engine.events.emit(MemoryDeleted(timestamp=now, id=memory_id))
    return record
