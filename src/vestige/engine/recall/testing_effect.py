"""The trace of being shown: the testing effect, weak and at most once a day."""

import logging
from collections.abc import Mapping, Sequence
from datetime import datetime

from vestige.cognition.fsrs.strength import exposable, exposure
from vestige.core.errors import NotFound, StoreBusy, StoreError
from vestige.core.models import Evidence, Record
from vestige.engine.context import Call
from vestige.store.contract.changes import RecordEvidence

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 0.5
"""How long an answer is held back for its trace while others write."""


def leave_trace(call: Call, shown: Sequence[Record]) -> None:
    """Strengthen what was shown a little, in this order. It never fails: an answer is worth more than its
    trace."""
    store, now = call.engine.store, call.engine.now()
    due = {
        record.memory.id: exposure(place)
        for place, record in enumerate(shown)
        if exposable(record.strength, now)
    }
    if store.read_only or not due:
        return
    try:
        try:
            store.commit(_exposures(due, now), access=call.access, patience_seconds=PATIENCE_SECONDS)
        except NotFound:
            # Some were deleted since they were found; the others still get theirs.
            left = {record.memory.id for record in store.get_many(list(due), access=call.access)}
            there = {name: amount for name, amount in due.items() if name in left}
            store.commit(_exposures(there, now), access=call.access, patience_seconds=PATIENCE_SECONDS)
    except (NotFound, StoreError) as exc:
        # A full disk, many writers.
        told = exc.message if isinstance(exc, StoreBusy) else (type(exc).__doc__ or "")
        logger.warning("What was shown left no trace: %s", told)


def _exposures(due: Mapping[str, float], now: datetime) -> list[RecordEvidence]:
    return [
        RecordEvidence(memory_id=name, evidence=Evidence.EXPOSED, at=now, amount=amount)
        for name, amount in due.items()
    ]
