"""Answers for those who are not let in: the more often somebody guesses, the later he is told."""

from collections.abc import Awaitable, Callable

import anyio
from starlette.responses import Response

from vestige.transports.http.limits import RATE_LIMITED, Buckets, retry_after
from vestige.transports.http.problems import Refusal, problem
from vestige.transports.http.slowdown import Slowdown

MAX_DELAYED = 8
"""Failures that are answered late at the same time; a request that waits takes a place from others."""


class Guesses:
    """What a wrong credential costs, or none. Used by the event loop alone.

    Those who are not let in have a limit of their own, which takes nothing from others at the same address.
    """

    def __init__(
        self,
        refusal: Refusal,
        per_minute: int,
        monotonic: Callable[[], float],
        *,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._refusal, self._pause, self._delayed = refusal, pause, 0
        self._slowdown = Slowdown(monotonic)
        self._buckets = Buckets(per_minute, monotonic) if per_minute else None

    def locked(self, sender: str, request_id: str) -> Response | None:
        """The answer to somebody who has guessed so often that nothing of his is looked at for a while."""
        seconds = self._slowdown.locked(sender)
        return problem(RATE_LIMITED, request_id, retry_after(seconds)) if seconds else None

    def absent(self, sender: str, request_id: str) -> Response:
        """The answer to somebody who showed nothing."""
        wait = self._buckets.take(sender) if self._buckets else 0.0
        if wait:
            return problem(RATE_LIMITED, request_id, retry_after(wait))
        return problem(self._refusal, request_id)

    async def wrong(self, sender: str, request_id: str) -> Response:
        """The answer to somebody who showed what opens nothing, the later the more often he did."""
        delay = self._slowdown.failed(sender)
        locked = self.locked(sender, request_id)
        if locked is not None:
            return locked
        if delay and self._delayed >= MAX_DELAYED:
            return problem(RATE_LIMITED, request_id, retry_after(delay))
        self._delayed += 1
        try:
            if delay:
                await self._pause(delay)
        finally:
            self._delayed -= 1
        return self.absent(sender, request_id)
