"""Live events: a WebSocket at /ws, and server-sent events at /api/v1/events for curl and plain pages. A
client is sent a greeting, a heartbeat with numbers about the memory every five seconds, and each event that
its key may see. What the client sends is dropped."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress

import anyio
from starlette.requests import HTTPConnection, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from vestige import __version__
from vestige.core.models import EVERYTHING
from vestige.transports.http.auth.credentials import Identity
from vestige.transports.http.context import Gauge, ServerContext, caller_of, key_of, recheck_of, request_id_of
from vestige.transports.http.events.channels import Ending, Listener, as_text
from vestige.transports.http.events.listeners import Listeners
from vestige.transports.http.limits.responses import wait_for_disconnect
from vestige.transports.http.middleware.security_headers import EVENT_STREAM
from vestige.transports.http.problems import Refusal, problem, respond_instead

MAX_FRAME_BYTES = 65_536
"""Largest message of a client. The server drops all of them."""
GOODBYE_SECONDS = 0.4
"""How long sending the end of a stream may take."""

FULL = Refusal(
    status=503,
    code="too_many_listeners",
    message="Too many listeners.",
    hint="Try again later. The limit is the setting `server.max_listeners`.",
)
FULL_FOR_KEY = Refusal(
    status=503,
    code="too_many_listeners",
    message="Too many listeners with this key.",
    hint="Close a stream of this key. The limit of one key is half of the setting `server.max_listeners`.",
)
NO_UPGRADE = Refusal(
    status=426,
    code="upgrade_required",
    message="This is a WebSocket. Over plain HTTP, /api/v1/events sends the same events.",
)
TOO_LONG = Ending(code=1009, reason="The message is too long.")
GONE = Ending(code=1000, reason="")

SendText = Callable[[str], Awaitable[None]]
Job = Callable[[], Awaitable[Ending]]


def routes(context: ServerContext) -> Sequence[BaseRoute]:
    listeners = Listeners(context)
    context.owned.append(listeners.running)
    context.gauges["listeners"] = Gauge("Clients that listen to live events.", lambda: len(listeners))

    async def by_socket(websocket: WebSocket) -> None:
        refused = _refused(websocket, listeners)
        if refused is not None:
            await respond_instead(refused, websocket.scope, websocket.receive, websocket.send)
            return
        async with _joined(listeners, websocket) as listener:
            with suppress(WebSocketDisconnect):  # the client is gone already
                await websocket.accept()
                await _converse(context, websocket, listener)

    async def by_stream(request: Request) -> Response:
        refused = _refused(request, listeners)
        if refused is not None:
            return refused
        return Response(headers=EVENT_STREAM) if request.method == "HEAD" else _Stream(context, listeners)

    async def no_socket(request: Request) -> Response:
        return problem(NO_UPGRADE, request_id_of(request), {"Upgrade": "websocket"})

    return [
        WebSocketRoute("/ws", by_socket),
        Route("/ws", no_socket, methods=["GET"]),
        Route("/api/v1/events", by_stream, methods=["GET"]),
    ]


def _refused(connection: HTTPConnection, listeners: Listeners) -> Response | None:
    # Every key may read: each permission includes it.
    if listeners.full:
        refusal = FULL
    elif listeners.full_for(key_of(connection)):
        refusal = FULL_FOR_KEY
    else:
        return None
    return problem(refusal, request_id_of(connection), {"Retry-After": "5"})


def _joined(listeners: Listeners, connection: HTTPConnection) -> AbstractAsyncContextManager[Listener]:
    identity: Identity = connection.state.identity
    caller = caller_of(connection)
    # An event can name the key that caused it, which is for those who may list the keys.
    actors = "admin" in caller.permissions and caller.access == EVERYTHING
    return listeners.joined(caller.access, identity, recheck_of(connection), actors=actors)


async def _converse(context: ServerContext, websocket: WebSocket, listener: Listener) -> None:
    ending = await _first(
        lambda: _send_events(context, listener, websocket.send_text),
        lambda: _drop_messages(websocket),
        listener.ended,
    )
    if ending is not GONE:
        with anyio.move_on_after(GOODBYE_SECONDS):
            await websocket.close(ending.code, ending.reason)


class _Stream(Response):
    """A stream of events, until the client disconnects."""

    def __init__(self, context: ServerContext, listeners: Listeners) -> None:
        super().__init__(headers=EVENT_STREAM)
        del self.headers["content-length"]
        self._context, self._listeners = context, listeners

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = HTTPConnection(scope)

        async def write(text: str) -> None:
            await send(_body(f"data: {text}\n\n"))

        async with _joined(self._listeners, connection) as listener:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            ending = await _first(
                lambda: _send_events(self._context, listener, write),
                lambda: _disconnected(receive),
                listener.ended,
            )
            if ending is not GONE:
                with anyio.move_on_after(GOODBYE_SECONDS):
                    await write(as_text("Closed", {"code": ending.code, "reason": ending.reason}))
                    await send(_body("", more=False))


async def _first(*jobs: Job) -> Ending:
    """Run several jobs concurrently until the first one ends, and cancel the others."""
    endings: list[Ending] = []
    async with anyio.create_task_group() as tasks:

        async def do(job: Job) -> None:
            endings.append(await job())
            tasks.cancel_scope.cancel()

        for job in jobs:
            tasks.start_soon(do, job)
    return endings[0]


async def _send_events(context: ServerContext, listener: Listener, send_text: SendText) -> Ending:
    greeting = {"version": __version__, "timestamp": context.app.engine.now().isoformat()}
    try:
        await send_text(as_text("Connected", greeting))
        while True:
            await send_text(await listener.next())
    except (WebSocketDisconnect, OSError):
        return GONE


async def _drop_messages(websocket: WebSocket) -> Ending:
    """Drop what a client sends, until it disconnects or sends something too long."""
    while (message := await websocket.receive())["type"] != "websocket.disconnect":
        if len(message.get("text") or message.get("bytes") or "") > MAX_FRAME_BYTES:
            return TOO_LONG
    return GONE


async def _disconnected(receive: Receive) -> Ending:
    await wait_for_disconnect(receive)
    return GONE


def _body(text: str, *, more: bool = True) -> Message:
    return {"type": "http.response.body", "body": text.encode(), "more_body": more}
