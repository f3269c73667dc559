"""What people and agents say about a memory: reviews, promotion, demotion, usefulness."""

from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.fsrs.strength import retention_of
from vestige.core.events import (
    Happening,
    MemoriesRestored,
    MemoryDemoted,
    MemoryPromoted,
    MemoryUnsuppressed,
    places_of,
)
from vestige.core.models import Evidence, Record
from vestige.engine.context import Call
from vestige.engine.memory.archive import restoring
from vestige.engine.memory.suppress import lifting
from vestige.engine.revise import load, persistently
from vestige.store.contract.changes import Change, RecordEvidence, Revise


@dataclass(frozen=True, slots=True, kw_only=True)
class Remarked:
    """A memory before and after a piece of evidence."""

    before: Record
    after: Record
    retention_before: float
    retention_after: float


def remark(call: Call, memory_id: str, evidence: Evidence) -> Remarked:
    """Log the evidence and fold it into the memory's strength. What is promoted is wanted: that also lifts
    its suppression and takes it out of the archive."""
    engine, now = call.engine, call.engine.now()

    def attempt() -> tuple[Record, list[Happening]]:
        before = load(call, memory_id)
        wanted, news = _wanted(before, now) if evidence is Evidence.PROMOTED else ([], [])
        told = RecordEvidence(memory_id=memory_id, evidence=evidence, at=now)
        engine.store.commit([*wanted, told], access=call.access)
        return before, news

    before, news = persistently(call, attempt)
    engine.events.emit(*news)
    after = load(call, memory_id)
    kept, here = retention_of(after.strength, now), places_of(after.memory)
    if evidence is Evidence.PROMOTED:
        engine.events.emit(MemoryPromoted(timestamp=now, places=here, id=memory_id, new_retention=kept))
    elif evidence is Evidence.DEMOTED:
        engine.events.emit(MemoryDemoted(timestamp=now, places=here, id=memory_id, new_retention=kept))
    return Remarked(
        before=before,
        after=after,
        retention_before=retention_of(before.strength, now),
        retention_after=kept,
    )


def _wanted(record: Record, now: datetime) -> tuple[list[Change], list[Happening]]:
    """What brings a memory back to mind, and the news of it; nothing for one that is there."""
    memory, news, here = record.memory, list[Happening](), places_of(record.memory)
    freed = lifting(record, now)
    if freed:
        memory = next(change.memory for change in freed if isinstance(change, Revise))
        news.append(MemoryUnsuppressed(timestamp=now, places=here, id=memory.id, remaining_count=0))
    back = restoring(memory, now)
    if back:
        news.append(MemoriesRestored(timestamp=now, places=here, ids=(memory.id,), archive_id=""))
    return [*freed, *back], news
