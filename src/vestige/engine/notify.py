"""News of memories, told the same way by all who make some: what happened, and where."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from vestige.core.events import (
    ConnectionDiscovered,
    MemoryCreated,
    MemoryDeleted,
    MemoryUpdated,
    places_of,
    preview,
)
from vestige.core.models import Edge, Memory


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
