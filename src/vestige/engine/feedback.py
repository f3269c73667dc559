"""What people and agents say about a memory: reviews, promotion, demotion, usefulness."""

from dataclasses import dataclass

from vestige.cognition.strength import retention_of
from vestige.engine.context import Call
from vestige.engine.revising import load, persistently
from vestige.engine.suppression import lifting
from vestige.events import MemoryDemoted, MemoryPromoted, MemoryUnsuppressed
from vestige.models import Evidence, Record
from vestige.store.changes import Remark


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarked:
    """A memory before and after a piece of evidence."""

    before: Record
    after: Record
    retention_before: float
    retention_after: float


def remark(call: Call, memory_id: str, evidence: Evidence) -> Remarked:
    """Log the evidence and fold it into the memory's strength; a promotion also lifts its suppression."""
    engine, now = call.engine, call.engine.now()

    def attempt() -> tuple[Record, bool]:
        before = load(call, memory_id)
        freed = lifting(before, now) if evidence is Evidence.PROMOTED else []
        told = Remark(memory_id=memory_id, evidence=evidence, at=now)
        engine.store.commit([*freed, told], access=call.access)
        return before, bool(freed)

    before, freed = persistently(call, attempt)
    if freed:
        engine.events.emit(MemoryUnsuppressed(timestamp=now, id=memory_id, remaining_count=0))
    after = load(call, memory_id)
    kept = retention_of(after.strength, now)
    if evidence is Evidence.PROMOTED:
        engine.events.emit(MemoryPromoted(timestamp=now, id=memory_id, new_retention=kept))
    elif evidence is Evidence.DEMOTED:
        engine.events.emit(MemoryDemoted(timestamp=now, id=memory_id, new_retention=kept))
    return Remarked(
        before=before,
        after=after,
        retention_before=retention_of(before.strength, now),
        retention_after=kept,
    )
