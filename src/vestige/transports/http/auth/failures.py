"""Failed logins: responses that are delayed the more often an address fails, and a lock after too many."""

from collections.abc import Awaitable, Callable
from dataclasses import replace

import anyio
from starlette.responses import Response

from vestige.transports.http.limits.bodies_and_rates import RATE_LIMITED, Buckets, retry_after
from vestige.transports.http.problems import Refusal, problem
from vestige.transports.http.workers.table import CountRows, LocalRows

# -- The delay that failures of one sender cost

FREE_FAILURES = 5
FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 2.0
LOCK_FAILURES = 15
"""After this number of failures a sender is locked for a while."""
LOCK_SECONDS = 30.0
FORGET_SECONDS = 300.0
"""After this time without a failure the sender starts again at zero."""
MAX_SENDERS = 10_000
"""Senders that are remembered; the one not seen for longest is dropped first."""


class FailureDelay:
    """Delays and locks by sender. Used on the event loop only."""

    def __init__(self, monotonic: Callable[[], float], rows: CountRows | None = None) -> None:
        self._monotonic = monotonic
        self._rows = LocalRows(MAX_SENDERS) if rows is None else rows

    def locked(self, sender: str) -> float:
        """For how many seconds a sender is locked; 0 if it is not."""
        _, _, locked_until = self._rows.of(sender)
        return max(0.0, locked_until - self._monotonic()) if locked_until else 0.0

    def failed(self, sender: str) -> float:
        """Record a failure; returns the seconds to wait before it is answered."""
        now = self._monotonic()
        failures, last, locked_until = self._rows.of(sender)
        failures = 1 if now - last > FORGET_SECONDS else failures + 1
        if failures >= LOCK_FAILURES:
            # After a lock a few attempts are left, each with the longest delay, before the next lock.
            failures, locked_until = LOCK_FAILURES - FREE_FAILURES, now + LOCK_SECONDS
        self._rows.put(sender, [failures, now, locked_until])
        beyond = failures - FREE_FAILURES
        return min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (beyond - 1)) if beyond > 0 else 0.0


MAX_DELAYED = 8
"""Delayed responses at the same time. More would hold too many requests."""
TOO_MANY_FAILURES = Refusal(
    status=429, code="rate_limited", message="This address sent too many invalid keys."
)


class FailedLogins:
    """Responses to requests with a wrong credential, or without one. Used on the event loop only. Failed
    requests have a rate limit of their own, which takes nothing from others at the same address. `wrong`
    replaces the refusal where a credential was sent."""

    def __init__(
        self,
        refusal: Refusal,
        per_minute: int,
        monotonic: Callable[[], float],
        *,
        wrong: Refusal | None = None,
        pause: Callable[[float], Awaitable[None]] = anyio.sleep,
        rows: Callable[[str], CountRows | None] = lambda kind: None,
    ) -> None:
        self._refusal, self._wrong = refusal, wrong or refusal
        self._pause, self._delayed = pause, 0
        self._delay = FailureDelay(monotonic, rows("failures"))
        self._buckets = Buckets(per_minute, monotonic, rows("failed requests")) if per_minute else None

    def locked(self, sender: str, request_id: str) -> Response | None:
        """The response to a sender that is locked; None if it is not."""
        seconds = self._delay.locked(sender)
        return self._too_often(seconds, request_id) if seconds else None

    def absent(self, sender: str, request_id: str, refusal: Refusal | None = None) -> Response:
        """The response to a request without a credential that could be guessed."""
        wait = self._taken(sender)
        if wait:
            return problem(RATE_LIMITED, request_id, retry_after(wait))
        return problem(refusal or self._refusal, request_id)

    async def wrong(self, sender: str, request_id: str) -> Response:
        """The response to a wrong credential, with the delay that earlier failures cost."""
        delay = self._delay.failed(sender)
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
        hint = f"{self._wrong.hint} Try again in {wait['Retry-After']} s."
        return problem(replace(TOO_MANY_FAILURES, hint=hint), request_id, wait)
