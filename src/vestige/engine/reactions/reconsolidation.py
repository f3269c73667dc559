"""Reconsolidation: an edit of a memory that was just recalled is a correction, and strengthens it.

The time of a recall is the strength's `last_accessed`, which being shown sets at most once a day. For other
recalls a document beside the memory has the time, to the minute.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from vestige.cognition.fsrs.capture import LABILE, is_labile
from vestige.cognition.time.validity import reworded
from vestige.core.documents import Document
from vestige.core.events import SearchPerformed
from vestige.core.models import Evidence, Memory, Record
from vestige.core.origin import lowest
from vestige.engine.context import Call
from vestige.engine.revise import documents_by_id, find_document, load, put_document, revise
from vestige.store.contract.changes import Put

KIND = "recall"
EDITED, CORRECTED = "edit", "corrected"
"""The reasons of a revision: an edit at any time, or an edit while the memory was labile."""
FOLLOWED = 10
"""How many results of a search count as recalled."""
GRAIN = timedelta(minutes=1)
"""A recall is not written again within this time."""
LONG_AGO = datetime.min.replace(tzinfo=UTC)


def edit(call: Call, memory_id: str, content: str) -> tuple[Record, bool, bool]:
    """Give a memory another text: the record, whether anything changed, and whether it was a correction."""
    labile = _is_labile(call, memory_id)

    def change(memory: Memory) -> Memory:
        if memory.content == content:
            return memory
        from vestige.engine.ingest.inbox import refuse_orders  # a search needs this module without it

        refuse_orders(call, content, memory.scope)
        return replace(reworded(memory, content), origin=lowest((memory.origin, call.origin.value)))

    record, changed = revise(
        call,
        memory_id,
        change,
        reason=CORRECTED if labile else EDITED,
        evidence=Evidence.RECONSOLIDATED if labile else None,
    )
    return record, changed, changed and labile


def recalls(
    call: Call,
    events: Sequence[SearchPerformed],
    records: Mapping[str, Record],
    exposed: Mapping[str, datetime],
) -> list[Put]:
    """The changes that make labile what searches showed, of these records. The strength of what is exposed in
    the same commit gets that time."""
    ordered = sorted(events, key=lambda event: event.timestamp)
    # A memory that several searches showed has the time of the last one.
    shown = {
        name: event.timestamp for event in ordered for name in event.result_ids[:FOLLOWED] if name in records
    }
    late = [
        name
        for name, at in shown.items()
        if at - max(records[name].strength.last_accessed, exposed.get(name, LONG_AGO)) >= GRAIN
    ]
    kept = documents_by_id(call, KIND, late)
    return [
        _recall_put(records[name].memory, kept.get(name), shown[name])
        for name in late
        if name not in kept or shown[name] - kept[name].updated_at >= GRAIN
    ]


def _is_labile(call: Call, memory_id: str) -> bool:
    if not call.engine.settings.mechanisms.reconsolidation:
        return False
    store, now = call.engine.store, call.engine.now()
    record = load(call, memory_id)
    shown = find_document(call, KIND, memory_id)
    recalled = [shown.updated_at] if shown else []
    if record.strength.last_accessed > record.memory.created_at:  # creation is not a recall
        recalled.append(record.strength.last_accessed)
    if not is_labile(recalled, (), now):
        return False
    history = store.history(memory_id, access=call.access)
    return is_labile(recalled, [one.ended_at for one in history if one.reason == CORRECTED], now)


def _recall_put(memory: Memory, kept: Document | None, at: datetime) -> Put:
    body = {"labile_until": (at + LABILE).isoformat()}
    return put_document(KIND, memory.id, kept, at, body=body, scope=memory.scope, cites=(memory.id,))
