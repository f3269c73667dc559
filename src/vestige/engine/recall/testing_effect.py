"""The testing effect: a memory that is shown becomes a little stronger, at most once a day.

It is a reaction (`engine.reactions.searches`), so that it shares its reads and its commit with what else
follows from a search. Where nothing reacts, the answer waits for it.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from vestige.cognition.fsrs.strength import EXPOSURE_EVERY, exposable, exposure
from vestige.core.errors import NotFound, StoreBusy, StoreError
from vestige.core.events import Event
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, Record
from vestige.engine.context import Call
from vestige.store.contract.changes import RecordEvidence

logger = logging.getLogger(__name__)

PATIENCE_SECONDS = 0.5
"""How long an answer waits for its trace while other processes write."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesShown(Event):
    """Memories were shown, in this order. Only the reaction to it gets it: it is not sent to listeners."""

    ids: tuple[str, ...]


def leave_trace(call: Call, shown: Sequence[Record]) -> None:
    """Strengthen the memories that were shown, the first ones most. It never raises. Where the process reacts
    to events, it does so after the answer: if it is killed before, only this evidence is lost."""
    now = call.engine.now()
    if call.engine.store.read_only or not any(exposable(record.strength, now) for record in shown):
        return
    ids = tuple(record.memory.id for record in shown)
    event = MemoriesShown(timestamp=now, scopes=None, ids=ids)
    if not call.engine.react(event):
        _strengthen(call, event, {record.memory.id: record for record in shown})


def exposures(events: Iterable[MemoriesShown], records: Mapping[str, Record]) -> list[RecordEvidence]:
    """The evidence that these events are for those of the memories that are there. One that another search
    has shown within a day has had its trace."""
    found: list[RecordEvidence] = []
    traced: dict[str, datetime] = {}
    for event in events:
        for place, memory_id in enumerate(event.ids):
            record = records.get(memory_id)
            if record is None:
                continue
            last = traced.get(memory_id)
            at = event.timestamp
            if exposable(record.strength, at) if last is None else at - last >= EXPOSURE_EVERY:
                traced[memory_id] = at
                found.append(_exposed(memory_id, at, exposure(place)))
    return found


def _exposed(memory_id: str, at: datetime, amount: float) -> RecordEvidence:
    return RecordEvidence(memory_id=memory_id, evidence=Evidence.EXPOSED, at=at, amount=amount)


def _strengthen(call: Call, event: MemoriesShown, records: Mapping[str, Record]) -> None:
    store = call.engine.store

    def commit(there: Mapping[str, Record]) -> None:
        evidence = exposures([event], there)
        store.commit(evidence, access=call.access, patience_seconds=PATIENCE_SECONDS)

    try:
        try:
            commit(records)
        except NotFound:
            # Some were deleted since they were found; strengthen the others.
            left = store.get_many(event.ids, access=call.access)
            commit({record.memory.id: record for record in left})
    except (NotFound, StoreError) as exc:
        # For example a full disk, or many writers.
        why = exc.message if isinstance(exc, StoreBusy) else (type(exc).__doc__ or "")
        logger.warning("The memories shown were not strengthened: %s", why)
