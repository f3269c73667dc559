"""Answers for those who are not let in: the more often somebody guesses, the later he is told."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import anyio
from starlette.responses import Response

from vestige.transports.http.limits.bodies_and_rates import RATE_LIMITED, Buckets, retry_after
from vestige.transports.http.problems import Refusal, problem

# -- Slows down whoever tries out credentials.

FREE_FAILURES = 5
FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 2.0
LOCK_FAILURES = 15
"""After so many there are no answers for a while."""
LOCK_SECONDS = 30.0
FORGET_SECONDS = 300.0
"""After so long without a failure, all is forgotten."""
MAX_SENDERS = 10_000
"""Senders who are remembered; the one not seen for longest is forgotten first."""


@dataclass(slots=True)
class _Sender:
    failures: int = 0
    last: float = 0.0
    locked_until: float = 0.0


class Slowdown:
    """What failures cost, by sender. Used by the event loop alone."""

    def __init__(self, monotonic: Callable[[], float], *, max_senders: int = MAX_SENDERS) -> None:
        self._monotonic, self._max = monotonic, max_senders
        self._senders: OrderedDict[str, _Sender] = OrderedDict()

    def locked(self, sender: str) -> float:
        """For how many seconds a sender gets no answers; 0 if he does."""
        known = self._senders.get(sender)
        return max(0.0, known.locked_until - self._monotonic()) if known else 0.0

    def failed(self, sender: str) -> float:
        """Note a failure; how many seconds to wait before it is answered."""
        now = self._monotonic()
        known = self._senders.setdefault(sender, _Sender())
        self._senders.move_to_end(sender)
        while len(self._senders) > self._max:
            self._senders.popitem(last=False)
        if now - known.last > FORGET_SECONDS:
            known.failures = 0
        known.failures, known.last = known.failures + 1, now
        if known.failures >= LOCK_FAILURES:
            # A lock that ends leaves a few tries, each at the full price, before the next one.
            known.failures, known.locked_until = LOCK_FAILURES - FREE_FAILURES, now + LOCK_SECONDS
        beyond = known.failures - FREE_FAILURES
        return min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (beyond - 1)) if beyond > 0 else 0.0


# -- guesses

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
