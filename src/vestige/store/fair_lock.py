"""Threads of one process that do something one after another, in the order in which they came."""

import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from vestige.store.contract.processes import Holder, Who, kept


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LockTurn:
    """A place in a line, and what for."""

    purpose: str


class FairLock:
    """Who comes first has it, and the others wait. `who` this process is and `details` of the store are told
    to one who waited in vain."""

    def __init__(self, who: Who | None, details: Mapping[str, Any] | None = None) -> None:
        self._who = who
        self._details = details
        self._places: deque[LockTurn] = deque()
        self._moved = threading.Condition()

    @contextmanager
    def turn(self, purpose: str, patience_seconds: float) -> Iterator[bool]:
        """Wait for one's turn and have it; whether others were before. StoreBusy when nobody gets ahead for
        so long: each one is waited for anew, so that none is refused because many came at once."""
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
