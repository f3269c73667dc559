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
    """Strengthen the memories that were shown, the first ones most. It never raises. Where a worker runs, it
    does so after the answer: if the process is killed before, only this evidence is lost."""
    store, now = call.engine.store, call.engine.now()
    due = _due(shown, now)
    if store.read_only or not due:
        return
    places = [record.memory.id for record in shown]

    def trace() -> None:
        # Another search may have shown the same memories since.
        there = {record.memory.id: record for record in store.get_many(list(due), access=call.access)}
        _strengthen(call, _due([there.get(one) for one in places], now), now)

    if not call.engine.later("testing_effect.trace", trace):
        _strengthen(call, due, now)


def _due(shown: Sequence[Record | None], now: datetime) -> dict[str, float]:
    """Those of the memories that a trace strengthens, and how much; None is one that is gone."""
    return {
        record.memory.id: exposure(place)
        for place, record in enumerate(shown)
        if record is not None and exposable(record.strength, now)
    }


def _strengthen(call: Call, due: Mapping[str, float], now: datetime) -> None:
    store = call.engine.store
    if not due:
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
