"""State changes of memories: noticing them, and reading them from the log.

A memory's state follows from its accessibility at any moment (cognition/fsrs/strength.py) and is not stored.
What is logged is when it was seen to have changed: an evidence event carries that itself, and for changes by
time alone a run has to look.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from vestige.cognition.fsrs.strength import accessibility, retention_of, state
from vestige.core.errors import NotFound
from vestige.core.events import RetentionDecayed, scopes_of
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, LogEvent, MemoryState, Record
from vestige.engine.context import Call
from vestige.engine.recall.as_known import events_of
from vestige.store.contract.changes import REMARKED, STATE, ChangeState

BATCH = 250
"""The most memories read and written in one transaction."""
MOST_ANNOUNCED = 300
"""The most state changes that are emitted as events; the log has all of them."""

BY_TIME = "time_decay"
BY_CURVE = "curve_tuned"
BY_ACCESS = "access"
AGAINST = (Evidence.AGAIN, Evidence.DEMOTED, Evidence.INHIBITED)
"""Evidence that can lower a memory's state. With any other evidence, the state had fallen before, by time."""

_RANK = {state.value: rank for rank, state in enumerate(MemoryState)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    at: datetime
    before: MemoryState
    after: MemoryState
    reason: str


def log_state_changes(call: Call) -> int:
    """Log every accessible memory whose state differs from the one it was last seen in; returns how many.
    Looking changes nothing about a memory, so pinned ones are included."""
    read, changed = 0, 0
    for records in call.engine.store.stream(access=call.access, batch=BATCH):
        call.check()
        now = call.engine.now()
        noted = _note(call, records, now)
        for one in noted[: max(0, MOST_ANNOUNCED - changed)]:
            _announce(call, one, now)
        read, changed = read + len(records), changed + len(noted)
        call.progress(read, None, f"{changed} of {read} memories changed state")
    return changed


def transitions(call: Call, memory_id: str) -> list[Transition]:
    """The state changes of one memory in the log, oldest first."""
    return [one for event in events_of(call, memory_id) for one in _transitions_in(event)]


def transition(
    record: Record, at: datetime, reason: str, *, suppressions: int | None = None
) -> ChangeState | None:
    """The change to log if a memory is in another state than it was last seen in; else None. `suppressions`
    is the new number of suppressions, if that changes."""
    memory, strength = record.memory, record.strength
    at = max(at, strength.retention_at)
    count = memory.suppression_count if suppressions is None else suppressions
    before = _state(strength.retention, memory.suppression_count)
    after = _state(retention_of(strength, at), count)
    if before is after:
        return None
    return ChangeState(memory_id=memory.id, at=at, before=before, after=after, reason=reason)


def _note(call: Call, records: Sequence[Record], now: datetime) -> list[Record]:
    """Log the state changes of some records; returns the records that had one."""
    store, noted = call.engine.store, _changed(records, now)
    if noted and not store.read_only:
        try:
            store.commit([change for _, change in noted], access=call.access)
        except NotFound:
            # Some were deleted since they were read; log the others.
            left = store.get_many([one.memory.id for one, _ in noted], access=call.access)
            noted = _changed(left, now)
            store.commit([change for _, change in noted], access=call.access)
    return [record for record, _ in noted]


def _changed(records: Sequence[Record], now: datetime) -> list[tuple[Record, ChangeState]]:
    seen = ((record, transition(record, now, _reason(record, now))) for record in records)
    return [(record, change) for record, change in seen if change is not None]


def _reason(record: Record, now: datetime) -> str:
    """The reason of a change. Time only lowers retention; a rise comes from another forgetting curve."""
    risen = retention_of(record.strength, max(now, record.strength.retention_at)) > record.strength.retention
    return BY_CURVE if risen else BY_TIME


def _announce(call: Call, record: Record, now: datetime) -> None:
    left = retention_of(record.strength, now)
    if left < record.strength.retention:
        call.engine.events.emit(
            RetentionDecayed(
                timestamp=now,
                scopes=scopes_of(record.memory),
                id=record.memory.id,
                old_retention=record.strength.retention,
                new_retention=left,
            )
        )


def _transitions_in(event: LogEvent) -> Iterator[Transition]:
    if event.kind == STATE:
        before, after, reason = event.payload["from"], event.payload["to"], event.payload["reason"]
    elif event.kind == REMARKED and "state" in event.payload:
        before, after = event.payload["state"]
        reason = _cause(Evidence(event.payload["evidence"]), fell=_RANK[after] > _RANK[before])
    else:
        return
    yield Transition(at=event.at, before=MemoryState(before), after=MemoryState(after), reason=reason)


def _cause(evidence: Evidence, *, fell: bool) -> str:
    """The reason why an evidence event found or left a memory in another state."""
    if not fell:
        return BY_ACCESS
    return evidence.value if evidence in AGAINST else BY_TIME


def _state(retention: float, suppressions: int) -> MemoryState:
    return state(float(accessibility(retention, suppressions)))
