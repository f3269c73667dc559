"""Peers of an in-memory store: other threads only, because no process can see it."""

import json
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from vestige.store.contract.answers import MOST_NOTICES, Notice
from vestige.store.contract.processes import BRIEF, Who
from vestige.store.fair_lock import FairLock
from vestige.store.inmemory.state import StoreState

# -- Messages between the users of an in-memory store.


def add(state: StoreState, process: str, messages: Sequence[str]) -> None:
    """Append messages, without those that quote a deleted memory, and keep only the last ones."""
    kept = [message for message in messages if state.buried.keys().isdisjoint(_quoted(message))]
    numbered = enumerate(kept, state.noticed + 1)
    new = [Notice(id=number, process=process, message=message) for number, message in numbered]
    state.noticed += len(new)
    state.notices = (*state.notices, *new)[-MOST_NOTICES:]


def _quoted(message: str) -> list[str]:
    quoted: list[str] = json.loads(message).get("quotes", [])
    return quoted


# -- peers

PATIENCE_SECONDS = 5.0
"""The patience for exclusive work that takes only a moment."""


class InMemoryPeers:
    """The peers of an in-memory store. `MemoryStore` has the contract."""

    lingers_in: str | None = None
    """There are no files."""

    def __init__(self, who: Who | None) -> None:
        self._who = who
        self._brief, self._lasting = FairLock(who), FairLock(who)
        self._ended = threading.Event()

    @abstractmethod
    def _state(self) -> StoreState:
        """The present state; StoreError once the store was closed."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[StoreState]:
        """A copy of the state, published at the end."""

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        self._state()
        brief = purpose in BRIEF
        line, seconds = (self._brief, PATIENCE_SECONDS) if brief else (self._lasting, 0.0)
        with line.turn(purpose, seconds):
            yield

    def processes(self) -> list[Who]:
        self._state()
        return [self._who] if self._who else []

    def has_peers(self) -> bool:
        """False: no other process can see it."""
        self._state()
        return False

    def leading(self) -> bool:
        self._state()
        return True

    def notify(self, process: str, messages: Sequence[str]) -> None:
        with self._writing() as state:
            add(state, process, messages)

    def notices(self, after: int) -> list[Notice]:
        kept = self._state().notices
        return [notice for notice in kept if notice.id > after or kept[-1].id < after]

    @contextmanager
    def listening(self) -> Iterator[Callable[[float], bool]]:
        self._state()
        yield lambda seconds: not self._ended.wait(seconds)
