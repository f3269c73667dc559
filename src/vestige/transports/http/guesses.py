"""Answers for those who are not let in: the more often somebody guesses, the later he is told."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
from starlette.responses import Response

from vestige.transports.http.limits import RATE_LIMITED, Buckets, retry_after
from vestige.transports.http.problems import Refusal, problem
from vestige.transports.http.slowdown import Slowdown

MAX_DELAYED = 8
"""Failures that are answered late at the same time; a request that waits takes a place from others."""
WRONG_TOO_OFTEN = Refusal(
    status=429, code="rate_limited", message="This address sent too many keys that open nothing."
)


class Guesses:
    """What a wrong credential costs, or none. Used by the event loop alone.

    Those who are not let in have a limit of their own, which takes nothing from others at the same address.
    `wrong` is told instead of the refusal to whoever showed something.
    """

    def __init__(
        self,
        refusal: Refusal,
        per_minute: int,
        monotonic: Callable[[], float],
        *,
        wrong: Refusal | None = None,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
    ) -> None:
        self._refusal, self._wrong = refusal, wrong or refusal
        self._pause, self._delayed = pause, 0
        self._slowdown = Slowdown(monotonic)
        self._buckets = Buckets(per_minute, monotonic) if per_minute else None

    def locked(self, sender: str, request_id: str) -> Response | None:
        """The answer to somebody who has guessed so often that nothing of his is looked at for a while."""
        seconds = self._slowdown.locked(sender)
        return self._too_often(seconds, request_id) if seconds else None

    def absent(self, sender: str, request_id: str, refusal: Refusal | None = None) -> Response:
        """The answer to somebody who showed nothing that could be a guess."""
        wait = self._taken(sender)
        if wait:
            return problem(RATE_LIMITED, request_id, retry_after(wait))
        return problem(refusal or self._refusal, request_id)

    async def wrong(self, sender: str, request_id: str) -> Response:
        """The answer to somebody who showed what opens nothing, the later the more often he did."""
        delay = self._slowdown.failed(sender)
        locked = self.locked(sender, request_id)
        if locked is not None:
            return locked
        if delay and self._delayed >= MAX_DELAYED:
            return self._too_often(delay, request_id)
        self._delayed += 1
        try:
            if delay:
                await self._pause(delay)
        finally:
            self._delayed -= 1
        wait = self._taken(sender)
        return self._too_often(wait, request_id) if wait else problem(self._wrong, request_id)

    def _taken(self, sender: str) -> float:
        return self._buckets.take(sender) if self._buckets else 0.0

    def _too_often(self, seconds: float, request_id: str) -> Response:
        wait = retry_after(seconds)
        hint = f"{self._wrong.hint} Come again in {wait['Retry-After']} s."
        return problem(replace(WRONG_TOO_OFTEN, hint=hint), request_id, wait)
