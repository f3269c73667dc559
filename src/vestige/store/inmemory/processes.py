"""What concerns others who use an in-memory store: other threads only, because no process can see it."""

import json
import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager

from vestige.store.contract.answers import MOST_NOTICES, Notice
from vestige.store.contract.processes import BRIEF, Who
from vestige.store.fair_lock import FairLock
from vestige.store.inmemory.state import StoreState

# -- What those who share an in-memory store tell each other.


def add(state: StoreState, process: str, messages: Sequence[str]) -> None:
    """Add these at the end, without those that quote a deleted memory, and keep the last ones."""
    told = [message for message in messages if state.buried.keys().isdisjoint(_quoted(message))]
    numbered = enumerate(told, state.told + 1)
    new = [Notice(id=number, process=process, message=message) for number, message in numbered]
    state.told += len(new)
    state.notices = (*state.notices, *new)[-MOST_NOTICES:]


def _quoted(message: str) -> list[str]:
    quoted: list[str] = json.loads(message).get("quotes", [])
    return quoted


# -- company

PATIENCE_SECONDS = 5.0
"""How long what is over in a moment is waited for."""


class InMemoryPeers:
    """What each method promises is said in `MemoryStore`."""

    lingers_in: str | None = None
    """There are no files."""

    def __init__(self, who: Who | None) -> None:
        self._who = who
        self._brief, self._lasting = FairLock(who), FairLock(who)
        self._ended = threading.Event()

    @abstractmethod
    def _state(self) -> StoreState:
        """What is in the store now; StoreError once it was closed."""

    @abstractmethod
    def _writing(self) -> AbstractContextManager[StoreState]:
        """A draft of it, which is published at the end."""

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        """Hold what only one at a time may do; StoreBusy while another thread does."""
        self._state()
        brief = purpose in BRIEF
        line, seconds = (self._brief, PATIENCE_SECONDS) if brief else (self._lasting, 0.0)
        with line.turn(purpose, seconds):
            yield

    def processes(self) -> list[Who]:
        """This process, if it said who it is."""
        self._state()
        return [self._who] if self._who else []

    def has_company(self) -> bool:
        """No: no other process can see it."""
        self._state()
        return False

    def leading(self) -> bool:
        """Yes: nobody else could."""
        self._state()
        return True

    def notify(self, process: str, messages: Sequence[str]) -> None:
        """Tell whoever else uses this store."""
        with self._writing() as state:
            add(state, process, messages)

    def notices(self, after: int) -> list[Notice]:
        """What was told after a notice, oldest first; everything when all there is came before."""
        told = self._state().notices
        return [notice for notice in told if notice.id > after or told[-1].id < after]

    @contextmanager
    def listening(self) -> Iterator[Callable[[float], bool]]:
        """Whoever waits looks again when the time is over."""
        self._state()
        yield lambda seconds: not self._ended.wait(seconds)
