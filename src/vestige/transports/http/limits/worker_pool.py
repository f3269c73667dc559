"""Threads for calls, in two lanes: long work has a few of its own and never takes those of short calls.

No key has more than half of the long lane, and those who wait for a turn there come in the order they asked,
past those whose key has its share.
"""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

LONG_SHARE = 4
"""The long lane has this part of as many threads as requests are served at once."""
MOST_WAITING = 100
"""Turns that may be waited for with one key."""


class Crowded(Exception):
    """There is no turn to be had."""


class TooLate(Crowded):
    """No turn came in time."""


class _Turn:
    """A place in the queue. Compared by identity."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.called = anyio.Event()


class Lanes:
    """Both lanes. Used on the event loop's thread."""

    def __init__(self, short: anyio.CapacityLimiter, max_concurrent: int) -> None:
        self._short = short
        self._most = max(1, max_concurrent // LONG_SHARE)
        self._most_of_one = max(1, self._most // 2)
        self._long = anyio.CapacityLimiter(self._most)
        self._running: Counter[str] = Counter()
        self._waiting: list[_Turn] = []

    @asynccontextmanager
    async def turn(self, key: str, *, long: bool, seconds: float) -> AsyncIterator[anyio.CapacityLimiter]:
        """The threads to run in. Long work waits for its turn so many seconds, or is refused as Crowded.

        Without keys (an empty one) nobody can be told from others, and there is no share.
        """
        if not long:
            yield self._short
            return
        if sum(one.key == key for one in self._waiting) >= MOST_WAITING:
            raise Crowded
        turn = _Turn(key)
        self._waiting.append(turn)
        try:
            self._call()
            await self._called(turn, seconds)
            yield self._long
        finally:
            self._leave(turn)

    async def _called(self, turn: _Turn, seconds: float) -> None:
        if not turn.called.is_set():
            with anyio.move_on_after(seconds):
                await turn.called.wait()
        if not turn.called.is_set():
            raise TooLate

    def _call(self) -> None:
        """Call all whose turn it is."""
        for turn in list(self._waiting):
            if self._running.total() >= self._most:
                return
            if not turn.key or self._running[turn.key] < self._most_of_one:
                self._waiting.remove(turn)
                self._running[turn.key] += 1
                turn.called.set()

    def _leave(self, turn: _Turn) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
            return
        self._running[turn.key] -= 1
        if not self._running[turn.key]:
            del self._running[turn.key]
        self._call()
