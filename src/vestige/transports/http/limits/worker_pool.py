"""Thread pools for calls: one for short calls, and a small one for long work, so that it never blocks short
calls. No key has more than half of the pool for long work. Calls wait for it in the order they came, except
that those whose key has its share are passed over."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

LONG_SHARE = 4
"""The pool for long work has this fraction of the threads for requests."""
MAX_WAITING = 100
"""Calls of one key that may wait for the pool of long work."""


class PoolFull(Exception):
    """The pool for long work is full."""


class PoolTimeout(PoolFull):
    """No thread was free in time."""


class _Turn:
    """A position in the queue. Compared by identity."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.called = anyio.Event()


class WorkerPools:
    """Both thread pools. Used on the event loop's thread."""

    def __init__(self, short: anyio.CapacityLimiter, max_concurrent: int) -> None:
        self._short = short
        self._most = max(1, max_concurrent // LONG_SHARE)
        self._most_of_one = max(1, self._most // 2)
        self._long = anyio.CapacityLimiter(self._most)
        self._running: Counter[str] = Counter()
        self._waiting: list[_Turn] = []

    @asynccontextmanager
    async def turn(self, key: str, *, long: bool, seconds: float) -> AsyncIterator[anyio.CapacityLimiter]:
        """The limiter of the threads to run in. Long work waits up to `seconds` for a turn, or fails with
        PoolFull. Without authentication (an empty key) there is no share for each key."""
        if not long:
            yield self._short
            return
        if sum(one.key == key for one in self._waiting) >= MAX_WAITING:
            raise PoolFull
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
            raise PoolTimeout

    def _call(self) -> None:
        """Start all calls whose turn it is."""
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
