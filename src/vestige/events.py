"""What happened, told to whoever listens in this process: the dashboard, autopilot, tests.

The bus is not the log. The log (`models.LogEvent`) is the store's durable truth; the bus carries
live news after a commit and may lose some for a listener that does not keep up.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

logger = logging.getLogger(__name__)

PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happened, and when."""

    timestamp: datetime

    def message(self) -> dict[str, Any]:
        """The event as listeners outside this process get it: `{type, data}`."""
        data = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in asdict(self).items()
        }
        return {"type": type(self).__name__, "data": data}


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCreated(Happening):
    """A new memory was written."""

    id: str
    content_preview: str
    node_type: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdated(Happening):
    """A memory got a new revision; `field` names what changed."""

    id: str
    content_preview: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDeleted(Happening):
    """A memory was deleted."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPromoted(Happening):
    """Somebody said a memory was right or helpful."""

    id: str
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDemoted(Happening):
    """Somebody said a memory was wrong or unhelpful."""

    id: str
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPerformed(Happening):
    """A search was answered."""

    query: str
    result_count: int
    result_ids: tuple[str, ...]
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionDiscovered(Happening):
    """Two memories were linked."""

    source_id: str
    target_id: str
    connection_type: str
    weight: float


Listener = Callable[[Happening], None]


class EventBus:
    """Hands every event to every listener, in order, on the thread that emits it.

    A listener that raises is logged and does not disturb the others or the emitter: what it was
    told has already been committed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: tuple[Listener, ...] = ()

    @contextmanager
    def listening(self, listener: Listener) -> Iterator[None]:
        """Subscribe for as long as the block runs."""
        with self._lock:
            self._listeners = (*self._listeners, listener)
        try:
            yield
        finally:
            with self._lock:
                # Only one of them goes, should somebody listen twice.
                at = self._listeners.index(listener)
                self._listeners = (*self._listeners[:at], *self._listeners[at + 1 :])

    def emit(self, *happenings: Happening) -> None:
        """Tell every listener."""
        for happening in happenings:
            for listener in self._listeners:
                try:
                    listener(happening)
                except Exception:  # a listener is foreign code; what it hears is already committed
                    logger.exception("A listener failed on %s", type(happening).__name__)


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The beginning of a text on one line, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
