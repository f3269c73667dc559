"""Suppression and archiving: the effect of a suppression, and which memories have faded enough to archive.

Suppression follows Anderson & Green, "Suppressing unwanted memories by executive control" (2001): a
suppressed memory is recalled less easily. Weakening its neighbours once (retrieval-induced forgetting,
Anderson, Bjork & Bjork 1994; active forgetting by Rac1, Davis & Zhong 2017) is an analogy.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from vestige.cognition.fsrs.strength import accessibility, retention_of
from vestige.cognition.graph.kinds import SILENT
from vestige.core.models import Edge, Memory, Record

WINDOW = timedelta(hours=24)
"""How long a suppression can be undone exactly; its neighbours are weakened only after that."""
MOST_NEIGHBOURS = 100
INHIBITION = 0.3
"""The share of its stability that a neighbour over a link of full weight loses …"""
MOST_INHIBITION = 0.5  # … and the limit of that share for any weight.
ASKED_WITHIN = timedelta(days=30)  # A memory that was found this recently is never archived.
ABSURD_RETENTION = 0.5  # Above this threshold archiving would take well-kept memories.


def penalty(suppression_count: int) -> float:
    """The share of its score that a suppressed memory loses in a search."""
    return 1.0 - float(accessibility(1.0, suppression_count))


def reversible_until(memory: Memory) -> datetime | None:
    """The end of the window in which the last suppression can be undone, or None."""
    if not memory.suppression_count or memory.suppressed_at is None:
        return None
    return memory.suppressed_at + WINDOW


def is_reversible(memory: Memory, now: datetime) -> bool:
    """Whether the last suppression of a memory can still be undone."""
    until = reversible_until(memory)
    return until is not None and now < until


def neighbours(memory_id: str, edges: Iterable[Edge]) -> dict[str, float]:
    """Memories linked to a memory over links that carry activation, each with its heaviest weight."""
    found: dict[str, float] = {}
    for edge in edges:
        if edge.kind in SILENT or memory_id not in (edge.source_id, edge.target_id):
            continue
        other = edge.target_id if edge.source_id == memory_id else edge.source_id
        found[other] = max(found.get(other, 0.0), edge.weight)
    return found


def inhibitable(memory: Memory) -> bool:
    """Whether the suppression of a neighbour may weaken a memory."""
    return not memory.pinned and memory.suppression_count == 0 and memory.archived_at is None


def inhibition(weight: float) -> float:
    """The share of its stability that a neighbour over a link of this weight loses."""
    return min(MOST_INHIBITION, max(0.0, INHIBITION * weight))


def collectable(record: Record, *, below: float, now: datetime) -> bool:
    """Whether a memory may be archived: less accessible than this, and not in use."""
    memory, strength = record.memory, record.strength
    if memory.pinned or memory.archived_at is not None or is_reversible(memory, now):
        return False
    if strength.due_at > now or strength.last_accessed > now - ASKED_WITHIN:
        return False
    return accessibility_of(record, now) < below


def accessibility_of(record: Record, now: datetime) -> float:
    """How accessible a memory is now."""
    return float(accessibility(retention_of(record.strength, now), record.memory.suppression_count))
