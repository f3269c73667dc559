"""Feedback on memories by users and agents: reviews, promotion, demotion, usefulness."""

from datetime import datetime

from vestige.cognition.fsrs.strength import retention_of
from vestige.core.events import (
    Event,
    MemoriesRestored,
    MemoryDemoted,
    MemoryPromoted,
    MemoryUnsuppressed,
    scopes_of,
)
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, Record
from vestige.engine.context import Call
from vestige.engine.memory.archive import restore_changes
from vestige.engine.memory.suppress import lift_changes
from vestige.engine.revise import load, retry_on_conflict
from vestige.store.contract.changes import Change, RecordEvidence, Revise


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedbackResult:
    before: Record
    after: Record
    retention_before: float
    retention_after: float


def give_feedback(call: Call, memory_id: str, evidence: Evidence) -> FeedbackResult:
    """Log a piece of evidence and fold it into the memory's strength. A promotion also lifts the memory's
    suppression and restores it from the archive."""
    engine, now = call.engine, call.engine.now()

    def attempt() -> tuple[Record, list[Event]]:
        before = load(call, memory_id)
        wanted, emitted = _make_visible(before, now) if evidence is Evidence.PROMOTED else ([], [])
        given = RecordEvidence(memory_id=memory_id, evidence=evidence, at=now)
        engine.store.commit([*wanted, given], access=call.access)
        return before, emitted

    before, emitted = retry_on_conflict(call, attempt)
    engine.events.emit(*emitted)
    after = load(call, memory_id)
    kept, here = retention_of(after.strength, now), scopes_of(after.memory)
    if evidence is Evidence.PROMOTED:
        engine.events.emit(MemoryPromoted(timestamp=now, scopes=here, id=memory_id, new_retention=kept))
    elif evidence is Evidence.DEMOTED:
        engine.events.emit(MemoryDemoted(timestamp=now, scopes=here, id=memory_id, new_retention=kept))
    return FeedbackResult(
        before=before, after=after, retention_before=retention_of(before.strength, now), retention_after=kept
    )


def _make_visible(record: Record, now: datetime) -> tuple[list[Change], list[Event]]:
    """The changes and events that unsuppress and restore a memory; none if it is visible."""
    memory, emitted, here = record.memory, list[Event](), scopes_of(record.memory)
    lifted = lift_changes(record, now)
    if lifted:
        memory = next(change.memory for change in lifted if isinstance(change, Revise))
        emitted.append(MemoryUnsuppressed(timestamp=now, scopes=here, id=memory.id, remaining_count=0))
    back = restore_changes(memory, now)
    if back:
        emitted.append(MemoriesRestored(timestamp=now, scopes=here, ids=(memory.id,), archive_id=""))
    return [*lifted, *back], emitted
