"""The past: the event log page by page, and memories as the store knew them once."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

from vestige.engine.context import Call
from vestige.models import Access, LogEvent, Record

PAGE = 5_000


def logged(call: Call, *, access: Access, memory_id: str | None = None, after: int = 0) -> Iterator[LogEvent]:
    """Everything logged after a position, or about one memory, in commit order."""
    while page := call.engine.store.log(access=access, memory_id=memory_id, after=after, limit=PAGE):
        call.check()
        yield from page
        after = page[-1].position


def as_known(call: Call, record: Record, known_at: datetime | None) -> Record:
    """The record with its memory as the store knew it then; as it is now without a time."""
    if known_at is None or record.memory.updated_at <= known_at:
        return record
    past = [one.memory for one in call.engine.store.history(record.memory.id, access=call.access)]
    # In force was the last revision recorded by then, or the first one: a memory may come with a later date.
    known = [memory for memory in past if memory.updated_at <= known_at] or past[:1]
    return replace(record, memory=known[-1]) if known else record
