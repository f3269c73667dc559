"""Doing something alone among the threads that share a store in memory."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from vestige.store.processes import BRIEF, Holder, Who, kept

BRIEF_SECONDS = 5.0
"""How long what is over in a moment is waited for."""


class Turn:
    """Who has the store alone. No other process can see it, so `who` is always this one."""

    def __init__(self, who: Who | None) -> None:
        self.who = who
        self._purposes: set[str] = set()
        self._changed = threading.Condition()

    @contextmanager
    def taken(self, purpose: str) -> Iterator[None]:
        """Have it; StoreBusy while another thread has."""
        with self._changed:
            if purpose in BRIEF:
                self._changed.wait_for(lambda: not self._in_the_way(purpose), BRIEF_SECONDS)
            for other in self._in_the_way(purpose):
                raise kept(Holder(who=self.who, purpose=other) if self.who else None)
            self._purposes.add(purpose)
        try:
            yield
        finally:
            with self._changed:
                self._purposes.remove(purpose)
                self._changed.notify_all()

    def _in_the_way(self, purpose: str) -> set[str]:
        """What is done now that this cannot be done beside."""
        return {other for other in self._purposes if (other in BRIEF) == (purpose in BRIEF)}
