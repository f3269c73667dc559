"""Context memory: how well the present context fits that of a memory, and bringing that one back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from vestige.cognition.contexts import Context, Hints, hints
from vestige.engine.context import Call
from vestige.engine.history import as_known
from vestige.models import Filter, Memory
from vestige.pool import Floats

AROUND = timedelta(hours=1)
"""What was learned so shortly before or after belongs to the same episode."""
RELATED = 5
LOOKED_AT = 50
"""Of these, the nearest in time are named."""
_MOMENT = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reinstated:
    """The context of a memory: cues, and what else was learned in it, the nearest in time first."""

    memory_id: str
    hints: Hints
    related: tuple[str, ...]


def matches(call: Call, context: Context, memory_ids: Sequence[str], known_at: datetime | None) -> Floats:
    """How well each memory's context fits this one, 0 to 1; nothing is read where none is told."""
    levels = np.zeros(len(memory_ids))
    if not (call.engine.settings.mechanisms.context and context.is_known):
        return levels
    records = as_known(call, call.engine.store.get_many(memory_ids, access=call.access), known_at)
    here = {memory_id: at for at, memory_id in enumerate(memory_ids)}
    levels[[here[one.memory.id] for one in records]] = context.matches([one.memory for one in records])
    return levels


def reinstate(call: Call, memory: Memory, where: Filter) -> Reinstated:
    """What brings back the context of a memory. What was learned beside it is of its own scope, was known
    and true at the time asked about, and is not suppressed."""
    beside = Filter(
        scope=memory.scope,
        scope_only=True,
        session_id=memory.session_id,
        created_from=memory.created_at - AROUND,
        created_to=memory.created_at + AROUND + _MOMENT,
        valid_at=where.valid_at,
        known_at=where.known_at,
        include_suppressed=False,
    )
    found = call.engine.store.find(beside, access=call.access, limit=LOOKED_AT)
    others = [one.memory for one in found if one.memory.id != memory.id]
    others.sort(key=lambda one: (abs(one.created_at - memory.created_at), one.id))
    return Reinstated(
        memory_id=memory.id,
        hints=hints(memory),
        related=tuple(one.id for one in others[:RELATED]),
    )
