"""Noticing that memories have changed their state, and what the log tells about it.

A memory's state follows from its accessibility at any moment (cognition/strength.py) and is stored nowhere.
What is stored is when it was seen to have changed: evidence tells so itself, and for what time alone does
somebody has to look.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from vestige.cognition.fsrs.strength import accessibility, retention_of, state
from vestige.core.errors import NotFound
from vestige.core.events import RetentionDecayed, places_of
from vestige.core.models import Evidence, LogEvent, MemoryState, Record
from vestige.engine.context import Call
from vestige.engine.recall.as_known import in_order
from vestige.store.contract.changes import REMARKED, STATE, ChangeState

BATCH = 250
"""Memories looked at, and written at most, in one transaction."""
TOLD = 300
"""So many are announced on the bus; who wants all of them reads the log."""

BY_TIME = "time_decay"
BY_CURVE = "curve_tuned"
BY_ACCESS = "access"
AGAINST = (Evidence.AGAIN, Evidence.DEMOTED, Evidence.INHIBITED)
"""Evidence that can take a memory down; below any other it had fallen by itself before."""

_RANK = {state.value: rank for rank, state in enumerate(MemoryState)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Transition:
    """A memory's state changed."""

    at: datetime
    before: MemoryState
    after: MemoryState
    reason: str


def settle(call: Call) -> int:
    """Log every memory in reach whose state is no longer the one it was last seen in; how many.

    Looking changes nothing about a memory, so pinned ones are looked at too. Done again, nothing is left.
    """
    looked, settled = 0, 0
    for records in call.engine.store.stream(access=call.access, batch=BATCH):
        call.check()
        now = call.engine.now()
        noted = _note(call, records, now)
        for one in noted[: max(0, TOLD - settled)]:
            _announce(call, one, now)
        looked, settled = looked + len(records), settled + len(noted)
        call.progress(looked, None, f"{settled} of {looked} memories changed their state")
    return settled


def transitions(call: Call, memory_id: str) -> list[Transition]:
    """The changes of one memory's state that the log tells of, oldest first."""
    return [one for event in in_order(call, memory_id) for one in _told(event)]


def transition(
    record: Record, at: datetime, reason: str, *, suppressions: int | None = None
) -> ChangeState | None:
    """That a memory is in another state now than it was last seen in, if so.

    `suppressions` is how often it is suppressed from now on, where that is what changes.
    """
    memory, strength = record.memory, record.strength
    at = max(at, strength.retention_at)
    count = memory.suppression_count if suppressions is None else suppressions
    before = _state(strength.retention, memory.suppression_count)
    after = _state(retention_of(strength, at), count)
    if before is after:
        return None
    return ChangeState(memory_id=memory.id, at=at, before=before, after=after, reason=reason)


def _note(call: Call, records: Sequence[Record], now: datetime) -> list[Record]:
    """Log the transitions of some records; those that had one."""
    store, noted = call.engine.store, _changed(records, now)
    if noted and not store.read_only:
        try:
            store.commit([change for _, change in noted], access=call.access)
        except NotFound:
            # Some were deleted since they were read; the others are as they were.
            left = store.get_many([one.memory.id for one, _ in noted], access=call.access)
            noted = _changed(left, now)
            store.commit([change for _, change in noted], access=call.access)
    return [record for record, _ in noted]


def _changed(records: Sequence[Record], now: datetime) -> list[tuple[Record, ChangeState]]:
    seen = ((record, transition(record, now, _reason(record, now))) for record in records)
    return [(record, change) for record, change in seen if change is not None]


def _reason(record: Record, now: datetime) -> str:
    """Time only takes; what is more accessible than before was judged by another curve before."""
    risen = retention_of(record.strength, max(now, record.strength.retention_at)) > record.strength.retention
    return BY_CURVE if risen else BY_TIME


def _announce(call: Call, record: Record, now: datetime) -> None:
    left = retention_of(record.strength, now)
    if left < record.strength.retention:
        call.engine.events.emit(
            RetentionDecayed(
                timestamp=now,
                places=places_of(record.memory),
                id=record.memory.id,
                old_retention=record.strength.retention,
                new_retention=left,
            )
        )


def _told(event: LogEvent) -> Iterator[Transition]:
    if event.kind == STATE:
        before, after, reason = event.payload["from"], event.payload["to"], event.payload["reason"]
    elif event.kind == REMARKED and "state" in event.payload:
        before, after = event.payload["state"]
        reason = _cause(Evidence(event.payload["evidence"]), fell=_RANK[after] > _RANK[before])
    else:
        return
    yield Transition(at=event.at, before=MemoryState(before), after=MemoryState(after), reason=reason)


def _cause(evidence: Evidence, *, fell: bool) -> str:
    """Why a memory was in another state after some evidence than it was last seen in."""
    if not fell:
        return BY_ACCESS
    return evidence.value if evidence in AGAINST else BY_TIME


def _state(retention: float, suppressions: int) -> MemoryState:
    return state(float(accessibility(retention, suppressions)))
