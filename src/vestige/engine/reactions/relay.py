"""What happens in one process, told to the others at work on the same store; and what they tell, told here.

It is a courtesy: a call neither waits for it nor fails by it, and what cannot be told is dropped. A server
has a thread for it; a single command tells what it did when it ends. What happened elsewhere reaches only
those who listen everywhere, and the mechanisms do not: each process has its own reactions.
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
    EventBus,
    Happening,
    ImportanceScored,
    IntentionTriggered,
    MemoryDeleted,
    SearchPerformed,
    happening_from,
    preview,
)
from vestige.store.contract.answers import MOST_NOTICES
from vestige.store.contract.store import MemoryStore

logger = logging.getLogger(__name__)

STEP_SECONDS = 0.2
"""How often news is told, and looked for where the store cannot say that there is some; never while there is
none and nobody wants any."""
MEMORIES = ("id", "ids", "memory_id", "source_id", "target_id", "result_ids", "activated_ids")
"""The fields of events that hold ids of memories."""


class Relay:
    """Carries the events of a bus to the other processes, and theirs to it. Close it before the store.

    `process` tells this one from the others; `others` says whether there are any.
    """

    def __init__(
        self, store: MemoryStore, events: EventBus, *, process: str, others: Callable[[], bool]
    ) -> None:
        self._store = store
        self._events = events
        self._process = process
        self._others = others
        self._changed = threading.Condition()
        self._waiting: deque[Happening] = deque(maxlen=MOST_NOTICES)
        self._hearing = threading.RLock()
        self._heard = 0
        self._failing = False
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._listening = ExitStack()
        if not store.read_only:
            self._listening.enter_context(events.listening(self._keep))
        events.on_followed(self._begin)

    def start(self) -> None:
        """Exchange news in the background from now on."""
        self._thread = threading.Thread(target=self._serve, name="vestige-relay", daemon=True)
        self._thread.start()

    def tell(self) -> None:
        """Tell the others what happened here, if there are any."""
        with self._changed:
            taken = list(self._waiting)
            self._waiting.clear()
        if not taken:
            return
        with self._calmly():
            try:
                if self._others():
                    messages = [_message(happening) for happening in taken if _may_travel(happening)]
                    self._store.notify(self._process, messages)
            except (StoreBusy, StoreUnavailable):  # for the next time; of too many the oldest go
                with self._changed:
                    self._waiting = deque([*taken, *self._waiting], maxlen=MOST_NOTICES)

    def hear(self) -> None:
        """Pass on what the others told since the last time, if anybody wants to know."""
        if not self._events.followed:
            return
        with self._hearing, self._calmly():
            for notice in self._store.notices(self._heard):
                self._heard = notice.id
                if notice.process != self._process:
                    self._pass_on(notice.message)

    def close(self, timeout_seconds: float) -> None:
        """Stop, and tell what has not been told yet."""
        self._listening.close()
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout_seconds)
        self.tell()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            with self._changed:
                self._changed.wait_for(
                    lambda: self._waiting or self._events.followed or self._stopping.is_set()
                )
            if self._events.followed:
                self._exchange()
            # More may happen meanwhile, and a store that fails gets a rest.
            self._stopping.wait(STEP_SECONDS)
            self.tell()

    def _exchange(self) -> None:
        """Tell and hear for as long as somebody follows and the store does not fail."""
        with self._calmly(), self._store.listening() as wait:
            while self._events.followed and not self._stopping.is_set():
                news = wait(STEP_SECONDS)
                self.tell()
                if news:
                    self.hear()

    def _keep(self, happening: Happening) -> None:
        with self._changed:
            self._waiting.append(happening)
            self._changed.notify_all()

    def _begin(self) -> None:
        """Somebody follows now: what was told before is not news."""
        with self._hearing, self._calmly():
            self._heard = max((notice.id for notice in self._store.notices(0)), default=0)
        with self._changed:
            self._changed.notify_all()

    def _pass_on(self, message: str) -> None:
        try:
            happening = happening_from(json.loads(message))
        except (ValueError, TypeError, AttributeError):  # a newer version may have other ideas
            logger.debug("A notice of another process was not understood")
            return
        if happening is not None:
            self._events.pass_on(happening)

    @contextmanager
    def _calmly(self) -> Iterator[None]:
        """Log a failure of the store, once for as long as it lasts."""
        try:
            yield
        except VestigeError as exc:
            if not self._failing:
                logger.warning("News is not exchanged with other processes: %s", exc.message)
            self._failing = True
        else:
            self._failing = False


def _may_travel(happening: Happening) -> bool:
    """Whether it may be written down: not a search that is to leave no trace."""
    return not isinstance(happening, SearchPerformed) or happening.recorded


def _message(happening: Happening) -> str:
    """An event as it is written into the store, with where it happened and the memories it speaks of.

    The store does not take one that speaks of a deleted memory. What belongs to no memory is cut.
    """
    match happening:
        case SearchPerformed():
            happening = replace(happening, query=preview(happening.query))
        case ImportanceScored(memory_id=None):
            happening = replace(happening, content_preview="")
        case IntentionTriggered():  # it can be deleted, and leaves no mark by which that would be known
            happening = replace(happening, description="")
    # Not orjson: a query may hold half a character, which only an escape can carry.
    return json.dumps({**happening.message(), "quotes": _quoted_ids(happening), "places": _places(happening)})


def _quoted_ids(happening: Happening) -> list[str]:
    """The memories whose words it tells: their text, or the names of their domains."""
    if isinstance(happening, MemoryDeleted | IntentionTriggered):
        return []
    named = [value for name, value in happening.details().items() if name in MEMORIES and value is not None]
    return [one for value in named for one in ((value,) if isinstance(value, str) else value)]


def _places(happening: Happening) -> list[tuple[str, tuple[str, ...]]] | None:
    """Where it happened. A deleted memory leaves its scope only, here as in its tombstone."""
    if happening.places is None:
        return None
    gone = isinstance(happening, MemoryDeleted)
    return [(place.scope, () if gone else place.domains) for place in happening.places]
