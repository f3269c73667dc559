"""Limits concurrent requests and shares the slots fairly among senders. A request holds a slot from when it
was received whole until its response begins or it waits for something else. Slow senders and slow readers
hold none. A free slot goes to the sender that has the fewest. Large bodies also take turns by their bytes."""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.errors import TooLarge
from vestige.transports.http.auth.addresses import payer_of
from vestige.transports.http.limits.bodies_and_rates import is_stream
from vestige.transports.http.problems import Refusal, is_response_start, problem, refusal_of, respond_instead

QUEUE_SECONDS = 1.0
"""How long a request waits for a slot."""
BUFFERED_BODIES = 32
"""Bodies kept in memory at once, in units of the largest body. One sender has at most half of it."""
LARGE_BYTES = 65_536
"""Larger bodies count in the bytes that are worked on at once."""
WORKED_BODIES = 4
"""These bytes, in units of the largest body. Work on a body can take twenty times its memory."""
WORK_SECONDS = 30.0
"""How long a large body waits for its turn."""

OVERLOADED = Refusal(
    status=503,
    code="overloaded",
    message="The server is busy.",
    hint="Send the request again a little later.",
)
LARGE_REQUESTS = Refusal(
    status=503,
    code="overloaded",
    message="Too many large requests are being processed.",
    hint=f"Send it again later, or in smaller parts: bodies up to {LARGE_BYTES:,} bytes do not wait.",
)


class QueueSlot:
    """The slot of one request, or its position in the queue."""

    def __init__(self, queue: "FairQueue", sender: str, size: int = 1) -> None:
        self._queue, self._sender, self.size = queue, sender, size
        self._called = anyio.Event()
        self._over = False

    @property
    def called(self) -> bool:
        """Whether the request has, or had, a slot."""
        return self._called.is_set()

    def call(self) -> None:
        self._called.set()

    async def turn(self, seconds: float) -> bool:
        """Wait this long for the slot; returns whether it was given."""
        if not self.called:
            with anyio.move_on_after(seconds):
                await self._called.wait()
        return self.called

    def release(self) -> None:
        """Release the slot, or leave the queue. Further calls do nothing."""
        if not self._over:
            self._over = True
            self._queue.leave(self, self._sender)


class FairQueue:
    """A limited number of slots, or of bytes. Used on the event loop's thread. The next slot goes to the
    waiting sender that has the fewest slots; of several, to the one that has waited longest. If it needs more
    than is free, the others wait too: otherwise small requests could pass it for ever."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._working: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[QueueSlot]] = OrderedDict()

    def ask(self, sender: str, size: int = 1) -> QueueSlot | None:
        """Queue for a slot, or for this many; None if too many requests of this sender wait."""
        queue = self._waiting.setdefault(sender, deque())
        if len(queue) >= self._most:
            return None
        slot = QueueSlot(self, sender, min(size, self._most))
        queue.append(slot)
        self._call()
        return slot

    def leave(self, slot: QueueSlot, sender: str) -> None:
        """A request is done, or does not wait any more."""
        if slot.called:
            self._working[sender] -= slot.size
            if not self._working[sender]:
                del self._working[sender]
        else:
            self._waiting[sender].remove(slot)
            if not self._waiting[sender]:
                del self._waiting[sender]
        self._call()

    def _call(self) -> None:
        while self._waiting:
            sender = min(self._waiting, key=self._working.__getitem__)  # of several, the one that came first
            queue = self._waiting[sender]
            if self._working.total() + queue[0].size > self._most:
                return
            slot = queue.popleft()
            slot.call()
            self._working[sender] += slot.size
            del self._waiting[sender]
            if queue:
                self._waiting[sender] = queue


class RequestShare:
    """Middleware that limits one sender to half of all requests under way, streams and waiting ones
    included. Paths that are `is_free` do not count."""

    def __init__(self, app: ASGIApp, most: int, is_free: Callable[[str], bool]) -> None:
        self._app, self._shares, self._is_free = app, SharedBudget(most), is_free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._is_free(scope["path"]):
            await self._app(scope, receive, send)
            return
        with self._shares.held(payer_of(scope)) as held:
            if held.take(1):
                await self._app(scope, receive, send)
            else:
                await refuse(OVERLOADED, scope, receive, send)


class ConcurrencyLimit:
    """Middleware that limits the requests served at once. As many more of each sender wait a little; others
    are refused. Paths that are `is_free` need no slot: health checks and static files."""

    def __init__(
        self, app: ASGIApp, most: int, is_free: Callable[[str], bool], *, queue_seconds: float = QUEUE_SECONDS
    ) -> None:
        self._app, self._is_free, self._seconds = app, is_free, queue_seconds
        self._queue = FairQueue(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_free(scope["path"]):
            await self._app(scope, receive, send)
            return
        slot = self._queue.ask(payer_of(scope))
        if slot is None:
            await refuse(OVERLOADED, scope, receive, send)
            return
        try:
            if await slot.turn(self._seconds):
                await self._serve(slot, scope, receive, send)
            else:
                await refuse(OVERLOADED, scope, receive, send)
        finally:
            slot.release()

    async def _serve(self, slot: QueueSlot, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["slot"] = slot

        async def sending(message: Message) -> None:
            if is_response_start(message):
                slot.release()
            await send(message)

        await self._app(scope, receive, sending)


class SharedBudget:
    """A limited amount of something, in bytes or requests. One sender has at most half of it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def take(self, sender: str, size: int) -> bool:
        """Take an amount; returns whether it was available."""
        share = max(1, self._most // 2)
        if self._taken[sender] + size > share or self._taken.total() + size > self._most:
            return False
        if size:
            self._taken[sender] += size
        return True

    @contextmanager
    def held(self, sender: str) -> Iterator["Reservation"]:
        """A reservation that is released at the end of the block."""
        held = Reservation(self, sender)
        try:
            yield held
        finally:
            held.release()

    def release(self, sender: str, size: int) -> None:
        self._taken[sender] -= size
        if not self._taken[sender]:
            del self._taken[sender]


class Reservation:
    """What one request has taken from a budget."""

    def __init__(self, shares: SharedBudget, sender: str) -> None:
        self._shares, self._sender, self.size = shares, sender, 0

    def take(self, size: int) -> bool:
        room = self._shares.take(self._sender, size)
        self.size += size if room else 0
        return room

    def release(self) -> None:
        self._shares.release(self._sender, self.size)
        self.size = 0


class BodyBuffer:
    """Middleware that reads the body of a request before it passes it on. It limits the bytes of all bodies,
    and of the large ones that are worked on at once. Paths that are `is_free` read theirs themselves."""

    def __init__(
        self,
        app: ASGIApp,
        most_bytes: int,
        is_free: Callable[[str], bool],
        *,
        work_seconds: float = WORK_SECONDS,
        buffered: int = BUFFERED_BODIES,
    ) -> None:
        self._app, self._shares, self._is_free = app, SharedBudget(buffered * most_bytes), is_free
        worked = max(1, WORKED_BODIES * buffered // BUFFERED_BODIES)
        self._work, self._seconds = FairQueue(worked * most_bytes), work_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self._is_free(scope["path"]):
            await self._app(scope, receive, send)
            return
        with self._shares.held(payer_of(scope)) as held:
            pieces = await _whole(held, receive)
            if not isinstance(pieces, deque):
                await refuse(pieces, scope, receive, send)
            elif held.size <= LARGE_BYTES:
                await self._app(scope, _again(pieces, receive), send)
            else:
                await self._in_turn(held.size, scope, _again(pieces, receive), send)

    async def _in_turn(self, size: int, scope: Scope, receive: Receive, send: Send) -> None:
        slot = self._work.ask(payer_of(scope), size)
        if slot is None:
            await refuse(LARGE_REQUESTS, scope, receive, send)
            return

        async def sending(message: Message) -> None:
            # A stream begins before the work is done. Other responses begin after it, and are read slowly.
            if is_response_start(message) and not is_stream(message):
                slot.release()
            await send(message)

        try:
            if await slot.turn(self._seconds):
                await self._app(scope, receive, sending)
            else:
                await refuse(LARGE_REQUESTS, scope, receive, send)
        finally:
            slot.release()


async def _whole(held: Reservation, receive: Receive) -> deque[Message] | Refusal | TooLarge:
    """All messages of a body, or why it is refused."""
    pieces: deque[Message] = deque()
    while True:
        try:
            message = await receive()
        except HTTPException as exc:  # it was too slow
            return refusal_of(exc)
        except TooLarge as exc:
            return exc
        if not held.take(len(message.get("body", b""))):
            return OVERLOADED
        pieces.append(message)
        if not message.get("more_body", False):  # the end of it, or the client has disconnected
            return pieces


def _again(pieces: deque[Message], receive: Receive) -> Receive:
    """Replay received messages, then go on receiving."""

    async def receiving() -> Message:
        return pieces.popleft() if pieces else await receive()

    return receiving


async def refuse(refusal: Refusal | TooLarge, scope: Scope, receive: Receive, send: Send) -> None:
    later = {"Retry-After": "1"} if refusal is OVERLOADED else {}
    if refusal is LARGE_REQUESTS:
        later = {"Retry-After": "10"}
    response = problem(refusal, scope["state"]["request_id"], later)
    await respond_instead(response, scope, receive, send)
