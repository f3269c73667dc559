"""Requests that are worked on at once: so many places, handed out by turns among those who send.

A request has its place from when all of it is there until its answer begins or it waits for something else.
One who sends slowly or does not read holds none, and one who sends much leaves the next free place to others.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anyio
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.errors import TooLarge
from vestige.transports.http.auth.addresses import payer_of
from vestige.transports.http.problems import Refusal, answer_instead, problem, refusal_of, starts

QUEUE_SECONDS = 1.0
"""How long a request waits for its turn."""
BODIES = 32
"""So many times the largest body is kept in memory at once; a half of it for one sender."""

OVERLOADED = Refusal(
    status=503,
    code="overloaded",
    message="The server has as much to do as it can take.",
    hint="Send the request again a little later.",
)


class QueueSlot:
    """What one request has while it is worked on."""

    def __init__(self, places: "Places", sender: str) -> None:
        self._places, self._sender = places, sender
        self._called = anyio.Event()
        self._over = False

    @property
    def called(self) -> bool:
        """Whether it is this one's turn, or was."""
        return self._called.is_set()

    def call(self) -> None:
        """It is this one's turn."""
        self._called.set()

    async def turn(self, seconds: float) -> bool:
        """Wait so long for the turn; whether it came."""
        if not self.called:
            with anyio.move_on_after(seconds):
                await self._called.wait()
        return self.called

    def give_back(self) -> None:
        """Let another one have it: nothing is worked on here now. Once is enough."""
        if not self._over:
            self._over = True
            self._places.leave(self, self._sender)


class Places:
    """So many at once. Used on the event loop's thread.

    Of those who wait the sender comes next who has the fewest, and of them the one who has waited longest.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._working: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[QueueSlot]] = OrderedDict()

    def ask(self, sender: str) -> QueueSlot | None:
        """A place to wait for; None if too many of this sender wait."""
        queue = self._waiting.setdefault(sender, deque())
        if len(queue) >= self._most:
            return None
        place = QueueSlot(self, sender)
        queue.append(place)
        self._call()
        return place

    def leave(self, place: QueueSlot, sender: str) -> None:
        """Somebody is done, or does not wait any more."""
        if place.called:
            self._working[sender] -= 1
            if not self._working[sender]:
                del self._working[sender]
        else:
            self._waiting[sender].remove(place)
            if not self._waiting[sender]:
                del self._waiting[sender]
        self._call()

    def _call(self) -> None:
        while self._waiting and self._working.total() < self._most:
            sender = min(self._waiting, key=self._working.__getitem__)  # of several, who came first
            queue = self._waiting[sender]
            queue.popleft().call()
            self._working[sender] += 1
            del self._waiting[sender]
            if queue:
                self._waiting[sender] = queue


class RequestShare:
    """Lets a sender have a half of all requests under way that the server has connections for, streams and
    whatever waits among them. What `is_free` asks whoever watches the server."""

    def __init__(self, app: ASGIApp, most: int, is_free: Callable[[str], bool]) -> None:
        self._app, self._shares, self._is_free = app, Shares(most), is_free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, unless too many others of its sender are under way."""
        if self._is_free(scope["path"]):
            await self._app(scope, receive, send)
            return
        with self._shares.held(payer_of(scope)) as held:
            if held.take(1):
                await self._app(scope, receive, send)
            else:
                await refuse(OVERLOADED, scope, receive, send)


class Concurrency:
    """Serves so many requests at once. As many more of each sender wait a little; others are refused.

    What `is_free` takes no place: it is there already, or asked by whoever watches the server.
    """

    def __init__(
        self, app: ASGIApp, most: int, is_free: Callable[[str], bool], *, queue_seconds: float = QUEUE_SECONDS
    ) -> None:
        self._app, self._is_free, self._seconds = app, is_free, queue_seconds
        self._places = Places(most)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on when there is a place for it."""
        if scope["type"] != "http" or self._is_free(scope["path"]):
            await self._app(scope, receive, send)
            return
        place = self._places.ask(payer_of(scope))
        if place is None:
            await refuse(OVERLOADED, scope, receive, send)
            return
        try:
            if await place.turn(self._seconds):
                await self._serve(place, scope, receive, send)
            else:
                await refuse(OVERLOADED, scope, receive, send)
        finally:
            place.give_back()

    async def _serve(self, place: QueueSlot, scope: Scope, receive: Receive, send: Send) -> None:
        scope["state"]["place"] = place

        async def sending(message: Message) -> None:
            if starts(message):
                place.give_back()
            await send(message)

        await self._app(scope, receive, sending)


class Shares:
    """So much of something at once: bytes, requests. One sender has a half of it at most."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._taken: Counter[str] = Counter()

    def take(self, sender: str, size: int) -> bool:
        """Have so many more, if there is room for them."""
        share = max(1, self._most // 2)
        if self._taken[sender] + size > share or self._taken.total() + size > self._most:
            return False
        if size:
            self._taken[sender] += size
        return True

    @contextmanager
    def held(self, sender: str) -> Iterator["HeldShare"]:
        """What is taken within this, until its end."""
        held = HeldShare(self, sender)
        try:
            yield held
        finally:
            held.give_back()

    def give_back(self, sender: str, size: int) -> None:
        """So many are over."""
        self._taken[sender] -= size
        if not self._taken[sender]:
            del self._taken[sender]


class HeldShare:
    """What one request has of such a share."""

    def __init__(self, shares: Shares, sender: str) -> None:
        self._shares, self._sender, self._size = shares, sender, 0

    def take(self, size: int) -> bool:
        """Have so many more, if there is room for them."""
        room = self._shares.take(self._sender, size)
        self._size += size if room else 0
        return room

    def give_back(self) -> None:
        """All of it is over."""
        self._shares.give_back(self._sender, self._size)
        self._size = 0


class Bodies:
    """Lets a request through when its body is whole, and keeps so many bytes of bodies in memory at once.

    What `is_free` sees to its bodies itself, if it reads them at all.
    """

    def __init__(self, app: ASGIApp, most_bytes: int, is_free: Callable[[str], bool]) -> None:
        self._app, self._shares, self._is_free = app, Shares(BODIES * most_bytes), is_free

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the body in, then pass the request on."""
        if scope["type"] != "http" or self._is_free(scope["path"]):
            await self._app(scope, receive, send)
            return
        with self._shares.held(payer_of(scope)) as held:
            pieces = await _whole(held, receive)
            if isinstance(pieces, deque):
                await self._app(scope, _again(pieces, receive), send)
            else:
                await refuse(pieces, scope, receive, send)


async def _whole(held: HeldShare, receive: Receive) -> deque[Message] | Refusal | TooLarge:
    """All messages of a body, or why it is not taken."""
    pieces: deque[Message] = deque()
    while True:
        try:
            message = await receive()
        except HTTPException as exc:  # it did not come in time
            return refusal_of(exc)
        except TooLarge as exc:
            return exc
        if not held.take(len(message.get("body", b""))):
            return OVERLOADED
        pieces.append(message)
        if not message.get("more_body", False):  # the end of it, or the client has left
            return pieces


def _again(pieces: deque[Message], receive: Receive) -> Receive:
    """Give what was received already, then what comes."""

    async def receiving() -> Message:
        return pieces.popleft() if pieces else await receive()

    return receiving


async def refuse(refusal: Refusal | TooLarge, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request with why it is not worked on."""
    later = {"Retry-After": "1"} if refusal is OVERLOADED else {}
    response = problem(refusal, scope["state"]["request_id"], later)
    await answer_instead(response, scope, receive, send)
