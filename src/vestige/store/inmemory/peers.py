"""Peers of an in-memory store: other threads only, because no process can see it."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from vestige.store.contract.answers import MOST_NOTICES, Notice
from vestige.store.contract.processes import BRIEF, Who
from vestige.store.fair_lock import FairLock
from vestige.store.inmemory.state import PublishedState

PATIENCE_SECONDS = 5.0
"""The patience for exclusive work that takes only a moment."""


class InMemoryPeers(PublishedState):
    """The peers of an in-memory store. `MemoryStore` has the contract."""

    lingers_in: str | None = None
    """There are no files."""

    def __init__(self, who: Who | None) -> None:
        super().__init__()
        self._who = who
        self._brief, self._lasting = FairLock(who), FairLock(who)
        self._ended = threading.Event()

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        self._state()
        line, seconds = (self._brief, PATIENCE_SECONDS) if purpose in BRIEF else (self._lasting, 0.0)
        with line.turn(purpose, seconds):
            yield

    def processes(self) -> list[Who]:
        self._state()
        return [self._who] if self._who else []

    def has_peers(self) -> bool:
        self._state()
        return False

    def leading(self) -> bool:
        self._state()
        return True

    def notify(self, process: str, messages: Sequence[str]) -> None:
        with self._writing() as state:
            gone = state.buried.keys()
            kept = [one for one in messages if gone.isdisjoint(json.loads(one).get("quotes", ()))]
            numbered = enumerate(kept, state.noticed + 1)
            new = [Notice(id=number, process=process, message=message) for number, message in numbered]
            state.noticed += len(new)
            state.notices = (*state.notices, *new)[-MOST_NOTICES:]

    def notices(self, after: int) -> list[Notice]:
        kept = self._state().notices
        return [notice for notice in kept if notice.id > after or kept[-1].id < after]

    @contextmanager
    def listening(self) -> Iterator[Callable[[float], bool]]:
        self._state()
        yield lambda seconds: not self._ended.wait(seconds)
