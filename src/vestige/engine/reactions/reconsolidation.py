"""Reconsolidation: an edit of what was just recalled is a correction, and strengthens it.

When a memory was recalled is its strength's `last_accessed`. That is set at most once a day by being shown;
for the other times a document beside the memory remembers it, to the minute.
"""

from datetime import datetime, timedelta

from vestige.cognition.fsrs.capture import LABILE, is_labile
from vestige.cognition.time.validity import reworded
from vestige.core.documents import Document
from vestige.core.events import SearchPerformed
from vestige.core.models import Evidence, Memory, Record
from vestige.engine.context import Call
from vestige.engine.revise import load, retry_on_conflict, revise, save
from vestige.store.contract.changes import Put

KIND = "recall"
EDITED, CORRECTED = "edit", "corrected"
"""Why a revision ended: by an edit at any time, or by one while the memory was labile."""
FOLLOWED = 10
"""Of the results of a search so many are taken as recalled."""
GRAIN = timedelta(minutes=1)
"""A recall is not written again within this time."""


def edit(call: Call, memory_id: str, content: str) -> tuple[Record, bool, bool]:
    """Give a memory another text: the record, whether that changed anything, and whether it was a
    correction."""
    labile = _is_labile(call, memory_id)
    record, changed = revise(
        call,
        memory_id,
        lambda memory: reworded(memory, content),
        reason=CORRECTED if labile else EDITED,
        evidence=Evidence.RECONSOLIDATED if labile else None,
    )
    return record, changed, changed and labile


def on_search(call: Call, happening: SearchPerformed) -> None:
    """What was shown is labile from now on."""
    shown = happening.result_ids[:FOLLOWED]
    if not (call.engine.settings.mechanisms.reconsolidation and happening.recorded and shown):
        return

    def attempt() -> None:
        store, at = call.engine.store, happening.timestamp
        found = store.documents(KIND, access=call.access, ids=shown, limit=len(shown))
        kept = {one.id: one for one in found}
        due = [one for one in shown if one not in kept or at - kept[one].updated_at >= GRAIN]
        records = store.get_many(due, access=call.access)
        changes = [
            Put(document=_recall_document(one.memory, kept.get(one.memory.id), at), logged=False)
            for one in records
            if at - one.strength.last_accessed >= GRAIN
        ]
        if changes:
            save(call, changes)

    retry_on_conflict(call, attempt)


def _is_labile(call: Call, memory_id: str) -> bool:
    if not call.engine.settings.mechanisms.reconsolidation:
        return False
    store, now = call.engine.store, call.engine.now()
    record = load(call, memory_id)
    recalled = [one.updated_at for one in store.documents(KIND, access=call.access, ids=[memory_id], limit=1)]
    if record.strength.last_accessed > record.memory.created_at:  # being made is no recall
        recalled.append(record.strength.last_accessed)
    if not is_labile(recalled, (), now):
        return False
    history = store.history(memory_id, access=call.access)
    return is_labile(recalled, [one.ended_at for one in history if one.reason == CORRECTED], now)


def _recall_document(memory: Memory, kept: Document | None, at: datetime) -> Document:
    return Document(
        kind=KIND,
        id=memory.id,
        scope=memory.scope,
        cites=(memory.id,),
        body={"labile_until": (at + LABILE).isoformat()},
        version=kept.version + 1 if kept else 1,
        created_at=kept.created_at if kept else at,
        updated_at=at,
    )
