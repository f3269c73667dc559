"""The relay: sends events of this process to other processes of the same store, and receives theirs.

It is best effort: no call waits for it or fails because of it, and an event that cannot be sent is dropped. A
server has a thread for it; a single command sends its events when it ends. Received events go only to
listeners that follow all processes, not to the mechanisms: each process has its own reactions.
"""

import json
import logging
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from vestige.core.errors import StoreBusy, StoreUnavailable, VestigeError
from vestige.core.events import (
    Event,
    EventBus,
    ImportanceScored,
    IntentionTriggered,
    MemoryDeleted,
    ReviewWaiting,
    SearchPerformed,
    event_from,
    preview,
)
from vestige.store.contract.answers import MOST_NOTICES
from vestige.store.contract.store import MemoryStore

logger = logging.getLogger(__name__)

STEP_SECONDS = 0.2
"""How often events are sent, and polled if the store cannot signal them. A relay with no events to send and
no followers waits without polling."""
MEMORIES = ("id", "ids", "memory_id", "source_id", "target_id", "result_ids", "activated_ids")
"""The fields of events that hold memory ids."""


class Relay:
    """Carries events of a bus to other processes, and theirs to it; close it before the store. `process` is
    the id of this process, `others` whether there are others."""

    def __init__(
        self, store: MemoryStore, events: EventBus, *, process: str, others: Callable[[], bool]
    ) -> None:
        self._store = store
        self._events = events
        self._process = process
        self._others = others
        self._changed = threading.Condition()
        self._waiting: deque[Event] = deque(maxlen=MOST_NOTICES)
        self._receiving = threading.RLock()
        self._received = 0
        self._failing = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._listening = ExitStack()
        if not store.read_only:
            self._listening.enter_context(events.listening(self._keep))
        events.on_followed(self._begin)

    def start(self) -> None:
        """Exchange events in the background from now on."""
        self._thread = threading.Thread(target=self._serve, name="vestige-relay", daemon=True)
        self._thread.start()

    def send(self) -> None:
        """Send the events of this process to the others, if there are any."""
        with self._changed:
            taken = list(self._waiting)
            self._waiting.clear()
        if not taken:
            return
        with self._logging_failures():
            try:
                if self._others():
                    messages = [_message(event) for event in taken if _may_travel(event)]
                    self._store.notify(self._process, messages)
            except (StoreBusy, StoreUnavailable):  # sent the next time; the oldest are dropped
                with self._changed:
                    self._waiting = deque([*taken, *self._waiting], maxlen=MOST_NOTICES)

    def receive(self) -> None:
        """Pass on the events that other processes have sent since the last time, if a listener follows."""
        if not self._events.followed:
            return
        with self._receiving, self._logging_failures():
            for notice in self._store.notices(self._received):
                self._received = notice.id
                if notice.process != self._process:
                    self._pass_on(notice.message)

    def close(self, timeout_seconds: float) -> None:
        """Stop, and send the events that were not sent yet."""
        self._listening.close()
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        self.send()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(
                    lambda: self._waiting or self._events.followed or self._stopping.is_set()
                )
            if self._events.followed:
                self._exchange()
            # More events may come meanwhile, and a failing store gets a rest.
            self._stopping.wait(STEP_SECONDS)
            self.send()

    def _exchange(self) -> None:
        """Send and receive while a listener follows and the store does not fail."""
        with self._logging_failures(), self._store.listening() as wait:
            while self._events.followed and not self._stopping.is_set():
                arrived = wait(STEP_SECONDS)
                self.send()
                if arrived:
                    self.receive()

    def _keep(self, event: Event) -> None:
        with self._changed:
            self._waiting.append(event)
            self._changed.notify_all()

    def _begin(self) -> None:
        """A listener follows now: skip the events that were sent before."""
        with self._receiving, self._logging_failures():
            self._received = max((notice.id for notice in self._store.notices(0)), default=0)
        with self._changed:
            self._changed.notify_all()

    def _pass_on(self, message: str) -> None:
        try:
            event = event_from(json.loads(message))
        except (ValueError, TypeError, AttributeError):  # a newer version may send other forms
            logger.debug("A notice of another process could not be parsed")
            return
        if event is not None:
            self._events.pass_on(event)

    @contextmanager
    def _logging_failures(self) -> Iterator[None]:
        """Log a failure of the store once, until it works again."""
        try:
            yield
        except VestigeError as exc:
            if not self._failing:
                logger.warning("Events are not exchanged with other processes: %s", exc.message)
            self._failing = True
        else:
            self._failing = False


def _may_travel(event: Event) -> bool:
    """Whether an event may be written to the store: not a search that leaves no trace."""
    return not isinstance(event, SearchPerformed) or event.recorded


def _message(event: Event) -> str:
    """An event as it is written to the store, with its scopes and the memories it quotes: the store does not
    accept one that quotes a deleted memory. Text that belongs to no memory is cut."""
    match event:
        case SearchPerformed():
            event = replace(event, query=preview(event.query))
        case ImportanceScored(memory_id=None):
            event = replace(event, content_preview="")
        case IntentionTriggered():  # it can be deleted without a tombstone
            event = replace(event, description="")
    # Not orjson: a query may hold a lone surrogate, which only an escape sequence can carry.
    return json.dumps({**event.message(), "quotes": _quoted_ids(event), "places": _scopes(event)})


def _quoted_ids(event: Event) -> list[str]:
    """The memories that an event quotes: their text, or the names of their domains."""
    if isinstance(event, MemoryDeleted | IntentionTriggered | ReviewWaiting):
        return []
    named = [value for name, value in event.details().items() if name in MEMORIES and value is not None]
    return [one for value in named for one in ((value,) if isinstance(value, str) else value)]


def _scopes(event: Event) -> list[tuple[str, tuple[str, ...]]] | None:
    """Where an event happened. A deleted memory has only its scope, as in its tombstone."""
    if event.scopes is None:
        return None
    gone = isinstance(event, MemoryDeleted)
    return [(place.scope, () if gone else place.domains) for place in event.scopes]
