"""Reading the event log, page by page."""

from collections.abc import Iterator

from vestige.engine.context import Call
from vestige.models import Access, LogEvent

PAGE = 5_000


def logged(call: Call, *, access: Access, memory_id: str | None = None, after: int = 0) -> Iterator[LogEvent]:
    """Everything logged after a position, or about one memory, in commit order."""
    while page := call.engine.store.log(access=access, memory_id=memory_id, after=after, limit=PAGE):
        call.check()
        yield from page
        after = page[-1].position
