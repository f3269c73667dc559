"""The testing effect: a memory that is shown becomes a little stronger, at most once a day."""

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
"""How long an answer waits for its trace while other processes write."""


def leave_trace(call: Call, shown: Sequence[Record]) -> None:
    """Strengthen the memories that were shown, the first ones most. It never raises."""
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
            # Some were deleted since they were found; strengthen the others.
            left = {record.memory.id for record in store.get_many(list(due), access=call.access)}
            there = {name: amount for name, amount in due.items() if name in left}
            store.commit(_exposures(there, now), access=call.access, patience_seconds=PATIENCE_SECONDS)
    except (NotFound, StoreError) as exc:
        # For example a full disk, or many writers.
        why = exc.message if isinstance(exc, StoreBusy) else (type(exc).__doc__ or "")
        logger.warning("The memories shown were not strengthened: %s", why)


def _exposures(due: Mapping[str, float], now: datetime) -> list[RecordEvidence]:
    return [
        RecordEvidence(memory_id=name, evidence=Evidence.EXPOSED, at=now, amount=amount)
        for name, amount in due.items()
    ]
