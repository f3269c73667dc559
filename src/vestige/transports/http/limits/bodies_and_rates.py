"""Limits on the size and duration of bodies, and on requests per minute. Concurrency limits: `fair_queue`."""

import math
from collections.abc import Callable
from functools import partial

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.errors import TooLarge
from vestige.transports.http.auth.addresses import payer_of
from vestige.transports.http.problems import Refusal, problem, respond_instead
from vestige.transports.http.workers.table import CountRows, LocalRows

BODY_SECONDS = 30.0
"""How long the next part of a body may take to arrive."""
WHOLE_BODY_SECONDS = 120.0
"""How long the whole body may take."""
MAX_SENDERS = 10_000
"""Senders whose requests are counted; the one not seen for longest is dropped first."""

PROBES = frozenset({"/health", "/readyz", "/api/health", "/api/v1/health"})
"""Paths of health checks. They have no limits: monitoring must work on a busy server."""

TWO_LENGTHS = Refusal(
    status=400,
    code="two_lengths",
    message="A request must not have both Content-Length and Transfer-Encoding.",
    hint="Leave one out. A proxy could read such a request differently (request smuggling).",
)
RATE_LIMITED = Refusal(
    status=429,
    code="rate_limited",
    message="Too many requests.",
    hint="Wait as long as Retry-After says. The limit is the setting `server.requests_per_minute`.",
)


class BodyLimit:
    """Middleware that refuses bodies that are too large, whatever their Content-Length says, or too slow."""

    def __init__(
        self,
        app: ASGIApp,
        most_bytes: int,
        *,
        body_seconds: float = BODY_SECONDS,
        whole_seconds: float = WHOLE_BODY_SECONDS,
    ) -> None:
        self._app, self._most = app, most_bytes
        self._piece_seconds, self._whole_seconds = body_seconds, whole_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        length = headers.get("content-length", "")
        if length and "transfer-encoding" in headers:
            response = problem(TWO_LENGTHS, scope["state"]["request_id"], {"Connection": "close"})
            await response(scope, receive, send)
        elif length.isdecimal() and int(length) > self._most:
            await problem(self._too_large(), scope["state"]["request_id"])(scope, receive, send)
        else:
            await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        taken, whole = 0, False
        latest = anyio.current_time() + self._whole_seconds

        async def counting() -> Message:
            nonlocal taken, whole
            if whole:  # from here on this waits for the client to disconnect, without a limit
                return await receive()
            next_piece = anyio.current_time() + self._piece_seconds
            with anyio.CancelScope(deadline=min(next_piece, latest)) as waiting:
                message = await receive()
            if waiting.cancelled_caught:
                raise HTTPException(status_code=408)
            taken += len(message.get("body", b""))
            whole = not message.get("more_body", False)
            if taken > self._most:
                raise self._too_large()
            return message

        return counting

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"The body is larger than {self._most:,} bytes.",
            hint="Send less at once. The setting `server.max_body_bytes` is the limit.",
            details={"limit": self._most},
        )


class Buckets:
    """Token buckets, one for each sender, filled evenly over a minute. A request takes one token. A request
    that costs more than half a bucket needs only that half; the rest is taken from later tokens."""

    def __init__(
        self, per_minute: int, monotonic: Callable[[], float], rows: CountRows | None = None
    ) -> None:
        self._full, self._per_second = float(per_minute), per_minute / 60
        self._monotonic = monotonic
        self._rows = LocalRows(MAX_SENDERS) if rows is None else rows

    def take(self, sender: str, cost: int = 1) -> float:
        """Take tokens; 0, or the seconds until there are enough."""
        now = self._monotonic()
        tokens, filled_at, is_known = self._rows.of(sender)
        left = min(self._full, tokens + (now - filled_at) * self._per_second) if is_known else self._full
        needed = min(cost, max(1.0, self._full / 2))
        enough = left >= needed
        self._rows.put(sender, [left - cost if enough else left, now, 1.0])
        return 0.0 if enough else (needed - left) / self._per_second


class RateLimit:
    """Middleware that refuses the requests of a key, or an address without a key, above its rate. Requests
    that count as several are charged where that is known (`charge_of`)."""

    def __init__(
        self, app: ASGIApp, per_minute: int, monotonic: Callable[[], float], rows: CountRows | None = None
    ) -> None:
        self._app = app
        self._buckets = Buckets(per_minute, monotonic, rows) if per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        wait = 0.0
        if self._buckets is not None and scope["path"] not in PROBES:
            sender = payer_of(scope)
            scope["state"]["charge"] = partial(self._buckets.take, sender)
            wait = self._buckets.take(sender)
        if wait:
            response = problem(RATE_LIMITED, scope["state"]["request_id"], retry_after(wait))
            await respond_instead(response, scope, receive, send)
        else:
            await self._app(scope, receive, send)


def charge_of(connection: HTTPConnection) -> Callable[[int], float]:
    """A function that charges further requests: 0, or the seconds until they are allowed."""
    charge: Callable[[int], float] = connection.scope["state"].get("charge", _free)
    return charge


def _free(cost: int) -> float:
    return 0.0


def retry_after(seconds: float) -> dict[str, str]:
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def is_stream(message: Message) -> bool:
    """Whether a response is a stream of events, by its first message."""
    return Headers(raw=message.get("headers", [])).get("content-type", "").startswith("text/event-stream")
