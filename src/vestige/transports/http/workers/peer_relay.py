"""Requests that one worker passes on to another: those of an MCP session that is open there, and questions
for its metrics. They travel as HTTP over Unix sockets in a folder that only this user can enter. The other
worker does everything: authentication, limits, the log. This one only copies bytes."""

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio
import h11
from anyio.abc import ByteStream
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.transports.http.limits.connections import MAX_HEADER_BYTES
from vestige.transports.http.mcp.headers import SESSION
from vestige.transports.http.mcp.streams import answer
from vestige.transports.http.workers.group import WorkerGroup, socket_of
from vestige.transports.http.workers.table import Seat, WorkerState
from vestige.transports.mcp.protocol import jsonrpc
from vestige.transports.mcp.protocol.jsonrpc import ProtocolError

logger = logging.getLogger(__name__)

PEER = b"x-vestige-peer"
"""The header with what the other worker cannot see: address of the client, scheme, and address of the server.
Only requests that came over a Unix socket may have it."""
HANDOVER = "/workers/sessions"
"""The path at which a worker takes over sessions. It exists for other workers only."""
FROM_PEER = "vestige.from_peer"
"""The field of the scope of such requests."""
PIECE_BYTES = 1 << 16
HANDOVER_POLL_SECONDS = 0.05
_SESSION = SESSION.lower().encode()
_OF_THE_CONNECTION = frozenset({b"connection", b"keep-alive", b"expect", b"te", b"upgrade", PEER})
_NOT_COPIED = frozenset({b"connection", b"keep-alive", b"transfer-encoding", b"date"})

Headers = list[tuple[bytes, bytes]]


class WorkerAbsent(Exception):
    """There is no such worker any more."""


class WorkerGone(Exception):
    """The other worker ended before it answered."""


class Forwarding:
    """Middleware that passes requests on to the worker that has their MCP session, and accepts those that
    others pass on. `path` is that of the endpoint. Outermost: the other worker has all layers as well."""

    def __init__(self, app: ASGIApp, group: WorkerGroup, path: str) -> None:
        self._app, self._group, self._path = app, group, path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        found = from_peer(scope, self._group)
        if found is not None and scope["path"] == HANDOVER:
            self._group.take_over(json.loads(await Request(scope, receive).body()))
            await answer(send, 204)
            return
        if found is None and scope["path"] == self._path:
            session_id = next((value for name, value in scope["headers"] if name == _SESSION), b"")
            number = self._elsewhere(session_id.decode("latin-1"))
            if number is not None:
                await self._forward(number, scope, receive, send)
                return
        await self._app(found or scope, receive, send)

    def _elsewhere(self, session_id: str) -> int | None:
        """The number of the worker that has a session; None if it is here, or nowhere."""
        number = self._group.named(session_id)
        if number in (None, self._group.number) or self._group.has_session(session_id):
            return None
        return number

    async def _forward(self, number: int, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; answer it here if there is no such worker."""
        body = _Body(receive)
        while True:
            try:
                async with self._connected(number) as stream:
                    await _exchange(stream, _head(scope), body.receive, send)
            except WorkerAbsent:
                body.rewind()
                await self._app(scope, body.receive, send)
            except WorkerGone:
                # A worker that hands its sessions over finishes the requests that it has begun. It had not
                # begun this one, so the worker that takes over can do it. The table first: the socket becomes
                # a link before the row of the worker is cleared.
                if self._drains(number) or socket_of(self._group.folder, number).is_symlink():
                    body.rewind()
                    continue
                lost = jsonrpc.error_reply(None, ProtocolError(jsonrpc.INVALID_REQUEST, "Session not found"))
                await answer(send, 404, lost)
            return

    @asynccontextmanager
    async def _connected(self, number: int) -> AsyncIterator[ByteStream]:
        path = socket_of(self._group.folder, number)
        while True:
            try:
                stream = await anyio.connect_unix(path)
            except OSError as exc:
                # A worker that ends hands its sessions over when its last request is done. The parent
                # removes the socket of one that was killed.
                if not self._drains(number) and not path.exists():
                    raise WorkerAbsent from exc
                await anyio.sleep(HANDOVER_POLL_SECONDS)
            else:
                async with stream:
                    yield stream
                return

    def _drains(self, number: int) -> bool:
        found = (seat.state for seat in self._group.table.seats() if seat.number == number)
        return WorkerState.DRAINING in found


class _Body:
    """The body of a request, which can be read again until a worker has begun its response."""

    def __init__(self, receive: Receive) -> None:
        self._receive, self._read, self._next = receive, list[Message](), 0

    async def receive(self) -> Message:
        if self._next == len(self._read):
            self._read.append(await self._receive())
        self._next += 1
        return self._read[self._next - 1]

    def rewind(self) -> None:
        self._next = 0


def from_peer(scope: Scope, group: WorkerGroup) -> Scope | None:
    """A request of another worker as that one received it; None if it did not come over our own socket."""
    if scope.get("server") != (str(group.own_socket), None):
        return None
    fields = json.loads(next(value for name, value in scope["headers"] if name == PEER))
    return {
        **scope,
        "client": tuple(fields["client"]) if fields["client"] else None,
        "server": tuple(fields["server"]) if fields["server"] else None,
        "scheme": fields["scheme"],
        "headers": [pair for pair in scope["headers"] if pair[0] != PEER],
        FROM_PEER: True,
    }


def _head(scope: Scope) -> h11.Request:
    seen = {"client": scope.get("client"), "scheme": scope.get("scheme"), "server": scope.get("server")}
    headers: Headers = [pair for pair in scope["headers"] if pair[0] not in _OF_THE_CONNECTION]
    target: bytes = scope.get("raw_path") or scope["path"].encode()
    if scope.get("query_string"):
        target += b"?" + scope["query_string"]
    return h11.Request(
        method=scope["method"],
        target=target,
        headers=[*headers, (PEER, json.dumps(seen).encode()), (b"connection", b"close")],
    )


async def _exchange(stream: ByteStream, head: h11.Request, receive: Receive, send: Send) -> None:
    """Send a request to the other worker and its response to the client, until one of them leaves.
    WorkerGone if the other worker ends before its response begins.

    The other worker may refuse a request, close and be heard before the body is sent. So a failed write must
    not end the reading, as it does with the streams of asyncio."""
    connection = h11.Connection(h11.CLIENT, max_incomplete_event_size=2 * MAX_HEADER_BYTES)
    begun = left = False
    async with anyio.create_task_group() as tasks:

        async def upload() -> None:
            nonlocal left
            try:
                await stream.send(connection.send(head) or b"")
                await _upload(connection, stream, receive)
            except anyio.BrokenResourceError:  # the end of the response says what happened
                return
            left = True
            tasks.cancel_scope.cancel()

        tasks.start_soon(upload)
        begun = await _download(connection, stream, send)
        tasks.cancel_scope.cancel()
    if not begun and not left:
        raise WorkerGone


async def _upload(connection: h11.Connection, stream: ByteStream, receive: Receive) -> None:
    """Pass on the body, then wait for the client to leave."""
    whole = False
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return
        if whole:
            continue
        whole = not message.get("more_body", False)
        if body := message.get("body", b""):
            await stream.send(connection.send(h11.Data(data=body)) or b"")
        if whole:
            await stream.send(connection.send(h11.EndOfMessage()) or b"")


async def _download(connection: h11.Connection, stream: ByteStream, send: Send) -> bool:
    """Pass on the response; returns whether it began."""
    begun = False
    async for event in _events(connection, stream):
        if isinstance(event, h11.Response):
            headers = [(name, value) for name, value in event.headers if name not in _NOT_COPIED]
            await send({"type": "http.response.start", "status": event.status_code, "headers": headers})
            begun = True
        elif isinstance(event, h11.Data):
            await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
        elif isinstance(event, h11.EndOfMessage):
            await send({"type": "http.response.body", "body": b""})
            return True
    if begun:
        logger.warning("Another worker ended in the middle of a response")
    return begun


async def _events(connection: h11.Connection, stream: ByteStream) -> AsyncIterator[object]:
    """What the other worker sends, to its end."""
    while True:
        try:
            event = connection.next_event()
        except h11.RemoteProtocolError:  # it was killed in the middle
            return
        if event is h11.NEED_DATA:
            try:
                received = await stream.receive(PIECE_BYTES)
            except anyio.EndOfStream:
                received = b""
            except anyio.BrokenResourceError:
                return
            connection.receive_data(received)
        elif isinstance(event, h11.ConnectionClosed) or event is h11.PAUSED:
            return
        else:
            yield event


# -- Requests of our own to another worker


async def pass_sessions_on(group: WorkerGroup, heir: Seat) -> None:
    """Hand the sessions of this worker over to another one, and let requests for them go there."""
    sessions = group.hand_over()
    try:
        if sessions:
            body = json.dumps(sessions).encode()
            await ask(group, heir.number, "POST", HANDOVER, [(b"host", b"vestige")], body)
        group.point_to(heir)
    except (OSError, WorkerGone) as exc:
        logger.warning("%d MCP sessions could not be handed over: %r", len(sessions), exc)


async def ask(
    group: WorkerGroup,
    number: int,
    method: str,
    path: str,
    headers: Headers,
    body: bytes = b"",
    client: tuple[str, int] | None = None,
) -> tuple[int, bytes]:
    """The status and body of another worker's answer; OSError or WorkerGone without one."""
    kept = [pair for pair in headers if pair[0] not in (b"content-length", b"transfer-encoding")]
    length = (b"content-length", str(len(body)).encode())
    scope: Scope = {"method": method, "path": path, "headers": [*kept, length], "client": client}
    status, pieces = 0, bytearray()
    waiting = anyio.Event()
    first = True

    async def receive() -> Message:
        nonlocal first
        if first:
            first = False
            return {"type": "http.request", "body": body}
        await waiting.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        nonlocal status
        status = message.get("status", status)
        pieces.extend(message.get("body", b""))

    async with await anyio.connect_unix(socket_of(group.folder, number)) as stream:
        await _exchange(stream, _head(scope), receive, send)
    return status, bytes(pieces)
