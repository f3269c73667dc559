"""Live events: at /ws as a WebSocket, and at /api/v1/events as server-sent events, for curl and plain pages.

A client is told that it is connected, every five seconds how the memory is doing, and each event that lies
within its reach. What it sends is not read.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress

import anyio
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from vestige import __version__
from vestige.transports.http.auth.credentials import Identity
from vestige.transports.http.context import Desk, Gauge, caller_of, key_of, recheck_of, request_id_of
from vestige.transports.http.events.channels import Ending, Listener, as_text
from vestige.transports.http.events.listeners import Listeners
from vestige.transports.http.limits.responses import left
from vestige.transports.http.middleware.security_headers import EVENT_STREAM
from vestige.transports.http.problems import Refusal, answer_instead, problem

MAX_FRAME_BYTES = 65_536
"""Nobody has that much to say to a server that does not listen."""
GOODBYE_SECONDS = 0.4
"""How long a client that does not read may keep the end of its stream from it."""

FULL = Refusal(
    status=503,
    code="too_many_listeners",
    message="As many listen as may.",
    hint="Try again later. The setting `server.max_listeners` is the limit.",
)
FULL_FOR_KEY = Refusal(
    status=503,
    code="too_many_listeners",
    message="As many listen with this key as may.",
    hint="End a stream of this key. Half of the setting `server.max_listeners` is the limit of one key.",
)
NO_UPGRADE = Refusal(
    status=426,
    code="upgrade_required",
    message="This is a WebSocket; over plain HTTP /api/v1/events tells the same.",
)
TOO_LONG = Ending(code=1009, reason="Nothing so long is taken here.")
GONE = Ending(code=1000, reason="")

Tell = Callable[[str], Awaitable[None]]
Job = Callable[[], Awaitable[Ending]]


def routes(desk: Desk) -> Sequence[BaseRoute]:
    """The routes of this part."""
    listeners = Listeners(desk)
    desk.owned.append(listeners.running)
    desk.gauges["listeners"] = Gauge("Who is told of events as they happen.", lambda: len(listeners))

    async def by_socket(websocket: WebSocket) -> None:
        refused = _refused(websocket, listeners)
        if refused is not None:
            await answer_instead(refused, websocket.scope, websocket.receive, websocket.send)
            return
        async with _joined(listeners, websocket) as listener:
            with suppress(WebSocketDisconnect):  # it has left already
                await websocket.accept()
                await _converse(desk, websocket, listener)

    async def by_stream(request: Request) -> Response:
        refused = _refused(request, listeners)
        if refused is not None:
            return refused
        return Response(headers=EVENT_STREAM) if request.method == "HEAD" else _Stream(desk, listeners)

    async def no_socket(request: Request) -> Response:
        return problem(NO_UPGRADE, request_id_of(request), {"Upgrade": "websocket"})

    return [
        WebSocketRoute("/ws", by_socket),
        Route("/ws", no_socket, methods=["GET"]),
        Route("/api/v1/events", by_stream, methods=["GET"]),
    ]


def _refused(connection: HTTPConnection, listeners: Listeners) -> Response | None:
    # Whoever was let in may read: every permission brings that one.
    if listeners.full:
        refusal = FULL
    elif listeners.full_for(key_of(connection)):
        refusal = FULL_FOR_KEY
    else:
        return None
    return problem(refusal, request_id_of(connection), {"Retry-After": "5"})


def _joined(listeners: Listeners, connection: HTTPConnection) -> AbstractAsyncContextManager[Listener]:
    identity: Identity = connection.state.identity
    return listeners.joined(caller_of(connection).access, identity, recheck_of(connection))


async def _converse(desk: Desk, websocket: WebSocket, listener: Listener) -> None:
    ending = await _first(
        lambda: _told(desk, listener, websocket.send_text), lambda: _unheard(websocket), listener.ended
    )
    if ending is not GONE:
        with anyio.move_on_after(GOODBYE_SECONDS):
            await websocket.close(ending.code, ending.reason)


class _Stream(Response):
    """Events as they happen, until the client leaves."""

    def __init__(self, desk: Desk, listeners: Listeners) -> None:
        super().__init__(headers=EVENT_STREAM)
        del self.headers["content-length"]
        self._desk, self._listeners = desk, listeners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send them."""
        connection = HTTPConnection(scope)

        async def write(text: str) -> None:
            await send(_body(f"data: {text}\n\n"))

        async with _joined(self._listeners, connection) as listener:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            ending = await _first(
                lambda: _told(self._desk, listener, write), lambda: _left(receive), listener.ended
            )
            if ending is not GONE:
                with anyio.move_on_after(GOODBYE_SECONDS):
                    await write(as_text("Closed", {"code": ending.code, "reason": ending.reason}))
                    await send(_body("", more=False))


async def _first(*jobs: Job) -> Ending:
    """Do several things at once until one of them comes to an end."""
    endings: list[Ending] = []
    async with anyio.create_task_group() as tasks:

        async def do(job: Job) -> None:
            endings.append(await job())
            tasks.cancel_scope.cancel()

        for job in jobs:
            tasks.start_soon(do, job)
    return endings[0]


async def _told(desk: Desk, listener: Listener, tell: Tell) -> Ending:
    """Tell a listener everything, until it has left."""
    greeting = {"version": __version__, "timestamp": desk.app.engine.now().isoformat()}
    try:
        await tell(as_text("Connected", greeting))
        while True:
            await tell(await listener.next())
    except (WebSocketDisconnect, OSError):
        return GONE


async def _unheard(websocket: WebSocket) -> Ending:
    """Take what comes and drop it, until the client leaves or sends something long."""
    while (message := await websocket.receive())["type"] != "websocket.disconnect":
        if len(message.get("text") or message.get("bytes") or "") > MAX_FRAME_BYTES:
            return TOO_LONG
    return GONE


async def _left(receive: Receive) -> Ending:
    await left(receive)
    return GONE


def _body(text: str, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}
