"""A lock that threads of one process get in the order in which they asked for it."""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.processes import Holder, Who, kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LockTurn:
    purpose: str


class FairLock:
    """A first-come, first-served lock. `who` (this process) and `details` (the store) go into the error for a
    thread that waited in vain."""

    def __init__(self, who: Who | None, details: Mapping[str, Any] | None = None) -> None:
        self._who = who
        self._details = details
        self._places: deque[LockTurn] = deque()
        self._moved = threading.Condition()

    @contextmanager
    def turn(self, purpose: str, patience_seconds: float) -> Iterator[bool]:
        """Wait for the lock and hold it; yields whether other threads were ahead. StoreBusy when the queue
        does not advance for the whole patience. The patience starts anew with each thread ahead, so a long
        queue alone refuses no one."""
        mine = LockTurn(purpose=purpose)
        with self._moved:
            others = bool(self._places)
            self._places.append(mine)
        try:
            self._wait(mine, patience_seconds)
            yield others
        finally:
            with self._moved:
                self._places.remove(mine)
                self._moved.notify_all()

    def _wait(self, mine: LockTurn, patience_seconds: float) -> None:
        with self._moved:
            while (first := self._places[0]) is not mine:
                if not self._moved.wait_for(lambda: self._places[0] is not first, patience_seconds):
                    holder = Holder(who=self._who, purpose=first.purpose) if self._who else None
                    raise kept(holder, details=self._details)
