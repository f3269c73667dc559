"""The past: the event log page by page, and memories as the store knew them once."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from vestige.engine.context import Call
from vestige.models import Access, LogEvent, Memory, Record
from vestige.store.lives import stamp

PAGE = 5_000


def logged(call: Call, *, access: Access, memory_id: str | None = None, after: int = 0) -> Iterator[LogEvent]:
    """Everything logged after a position, or about one memory, in commit order."""
    while page := call.engine.store.log(access=access, memory_id=memory_id, after=after, limit=PAGE):
        call.check()
        yield from page
        after = page[-1].position


def in_order(call: Call, memory_id: str) -> list[LogEvent]:
    """What the log tells of one memory, in the order in which it happened: what came from another machine is
    logged where it arrived."""
    return sorted(logged(call, access=call.access, memory_id=memory_id), key=stamp)


def as_known(call: Call, records: Sequence[Record], known_at: datetime | None) -> list[Record]:
    """The records with their memories as the store knew them then; as they are now without a time."""
    revised = [one.memory.id for one in records if known_at is not None and one.memory.updated_at > known_at]
    if known_at is None or not revised:
        return list(records)
    then = call.engine.store.earlier(revised, known_at, access=call.access)
    return [replace(one, memory=_then(one.memory, then.get(one.memory.id))) for one in records]


def _then(memory: Memory, known: Memory | None) -> Memory:
    """The memory as it was known; what is kept out of mind now is so for every time."""
    if known is None:
        return memory
    return replace(
        known,
        suppression_count=memory.suppression_count,
        suppressed_at=memory.suppressed_at,
        archived_at=memory.archived_at,
    )
