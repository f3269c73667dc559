"""How much is taken: the size of a body, and requests of one sender. Requests at once: `places`."""

import math
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.errors import TooLarge
from vestige.transports.http.auth.addresses import payer_of
from vestige.transports.http.problems import Refusal, answer_instead, problem

BODY_SECONDS = 30.0
"""How long the next piece of a body may take to come."""
WHOLE_BODY_SECONDS = 120.0
"""How long all of it may take."""
MAX_SENDERS = 10_000
"""Senders whose requests are counted; the one not seen for longest is forgotten first."""

PROBES = frozenset({"/health", "/readyz", "/api/health", "/api/v1/health"})
"""Asked by whoever watches the server, above all when it has much to do; no limit is for them."""

TWO_LENGTHS = Refusal(
    status=400,
    code="two_lengths",
    message="A request has either Content-Length or Transfer-Encoding.",
    hint="Leave one out: who reads such a request otherwise than we do could be made to see another one.",
)
RATE_LIMITED = Refusal(
    status=429,
    code="rate_limited",
    message="Too many requests.",
    hint="Wait as long as Retry-After says. The setting `server.requests_per_minute` is the limit.",
)


class BodyLimit:
    """Refuses bodies that are too large, whatever their length says, or that never end."""

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
        """Pass a request on with its body counted as it comes."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        told = headers.get("content-length", "")
        if told and "transfer-encoding" in headers:
            response = problem(TWO_LENGTHS, scope["state"]["request_id"], {"Connection": "close"})
            await response(scope, receive, send)
        elif told.isdecimal() and int(told) > self._most:
            await problem(self._too_large(), scope["state"]["request_id"])(scope, receive, send)
        else:
            await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        taken, whole = 0, False
        latest = anyio.current_time() + self._whole_seconds

        async def counting() -> Message:
            nonlocal taken, whole
            if whole:  # from here on this waits for the client to leave, which may take as long as it likes
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


@dataclass(slots=True)
class _Bucket:
    tokens: float
    filled_at: float


class Buckets:
    """A bucket of tokens for each sender, filled evenly over a minute: a request takes one.

    Whoever brings more at once than half a bucket gets in with that half, and pays the rest by waiting after.
    """

    def __init__(
        self, per_minute: int, monotonic: Callable[[], float], *, max_senders: int = MAX_SENDERS
    ) -> None:
        self._full, self._per_second = float(per_minute), per_minute / 60
        self._monotonic, self._max = monotonic, max_senders
        self._buckets: OrderedDict[str, _Bucket] = OrderedDict()

    def take(self, sender: str, cost: int = 1) -> float:
        """Take so many tokens; 0, or the seconds until they are there."""
        now = self._monotonic()
        bucket = self._buckets.setdefault(sender, _Bucket(self._full, now))
        self._buckets.move_to_end(sender)
        while len(self._buckets) > self._max:
            self._buckets.popitem(last=False)
        bucket.tokens = min(self._full, bucket.tokens + (now - bucket.filled_at) * self._per_second)
        bucket.filled_at = now
        needed = min(cost, max(1.0, self._full / 2))
        if bucket.tokens < needed:
            return (needed - bucket.tokens) / self._per_second
        bucket.tokens -= cost
        return 0.0


class RateLimit:
    """Refuses requests of a key, or of an address where no key is needed, that has sent too many.

    What comes in one request and counts as several is charged further in (`charge_of`).
    """

    def __init__(self, app: ASGIApp, per_minute: int, monotonic: Callable[[], float]) -> None:
        self._app = app
        self._buckets = Buckets(per_minute, monotonic) if per_minute else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or not."""
        wait = 0.0
        if self._buckets is not None and scope["path"] not in PROBES:
            sender = payer_of(scope)
            scope["state"]["charge"] = partial(self._buckets.take, sender)
            wait = self._buckets.take(sender)
        if wait:
            response = problem(RATE_LIMITED, scope["state"]["request_id"], retry_after(wait))
            await answer_instead(response, scope, receive, send)
        else:
            await self._app(scope, receive, send)


def charge_of(connection: HTTPConnection) -> Callable[[int], float]:
    """What counts so many more requests: 0, or the seconds until they may come."""
    charge: Callable[[int], float] = connection.scope["state"].get("charge", _free)
    return charge


def _free(cost: int) -> float:
    return 0.0


def retry_after(seconds: float) -> dict[str, str]:
    """The header that says when to come again."""
    return {"Retry-After": str(max(1, math.ceil(seconds)))}


def is_stream(message: Message) -> bool:
    """Whether a response that begins is a stream of events."""
    return Headers(raw=message.get("headers", [])).get("content-type", "").startswith("text/event-stream")
