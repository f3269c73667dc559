"""Limits on connections: their number, slow headers, idle sockets, slow readers and floods of tiny pieces.

The web server accepts connections from the socket that it is given. `LimitedListener` is such a socket: it
counts the connections, refuses those beyond the limit, and hands out sockets that count the bytes they
receive. `ConnectionGuard` is ASGI middleware that records which of them serve a request. Both use public
interfaces only: `socket.socket` and ASGI. Where the event loop does not call `accept` of the socket (on
Windows), the limits of the other middleware remain.
"""

import asyncio
import logging
import os
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import field
from typing import Any

import anyio
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.lazy_dataclass import dataclass

KEEP_ALIVE_SECONDS = 30
"""How long the web server keeps a connection open between two requests."""
HEADER_SECONDS = 20.0
"""How long after it was accepted a connection must have sent the headers of its first request."""
IDLE_SECONDS = KEEP_ALIVE_SECONDS + HEADER_SECONDS
"""The same for every further request, counted from the end of the request before."""
UNREAD_SECONDS = 60.0
"""How long a client may take to read `SLICE_BYTES` of a response."""
STUCK_SECONDS = 5.0
"""After this time without reading a connection is closed when the server is full."""
CHECK_SECONDS = 1.0
"""How often these times are checked."""
WARNING_SECONDS = 60.0
"""How often the log says at most that the server is full."""

RESERVED_DESCRIPTORS = 400
"""File descriptors for everything but connections: databases, indexes, logs, clients being accepted."""
MIN_BACKLOG, MAX_BACKLOG = 10, 200

MAX_HEADER_BYTES = 16_384
SLICE_BYTES = 1 << 16
"""Responses are passed to the web server in slices of this size, so that little waits in its buffers."""
RECEIVE_BYTES = 1 << 15
"""Bytes taken from a connection at once, before other connections have their turn."""
WEBSOCKET_BYTES, WEBSOCKET_BYTES_PER_SECOND = 80_000, 1_000
"""What a WebSocket may send, at once and over time. Its clients have nothing to send but pings and pongs."""

MAX_TINY_CHUNKS, TINY_CHUNK_BYTES = 2_000, 64
CHUNK_OVERHEAD_BYTES = 6
"""Framing bytes of a small chunk: two hexadecimal digits and two line ends."""
TINY_CHUNKS = f"More than {MAX_TINY_CHUNKS} chunks have less than {TINY_CHUNK_BYTES} bytes. Send larger ones."
REFUSED_SECONDS = 1.0
"""How long a refused WebSocket handshake may take to be closed."""

TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 5\r\nConnection: close\r\n"
    b"Content-Length: 22\r\n\r\nToo many connections.\n"
)
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections a server has at once, and how long each may keep it waiting."""

    most: int
    header_seconds: float = HEADER_SECONDS
    idle_seconds: float = IDLE_SECONDS
    unread_seconds: float = UNREAD_SECONDS
    stuck_seconds: float = STUCK_SECONDS
    check_seconds: float = CHECK_SECONDS


def affordable(most: int) -> int:
    """The number of connections, up to `most`, that the process has file descriptors for. Raises the soft
    limit of descriptors as far as needed and allowed."""
    if os.name != "posix":
        return most
    import resource  # on POSIX only

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + RESERVED_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return most
    given = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
    if given < wanted:
        logger.warning("This process may have only %d files open: ulimit -n", given)
    return min(most, max(given - RESERVED_DESCRIPTORS, given // 2))


def backlog(most: int) -> int:
    """How many clients may wait to be accepted by a server with this limit of connections. asyncio accepts
    all of them at once, before the first is closed: they need descriptors, too."""
    return min(max(most // 5, MIN_BACKLOG), MAX_BACKLOG)


class AcceptedSocket(socket.socket):
    """The socket of one connection. It counts what it receives and knows whether it serves a request."""

    def __init__(self, accepted: socket.socket, now: float, closed: Callable[[], None]) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._on_close = closed
        self.closed = asyncio.Event()
        self.requests, self.served, self.is_websocket = 0, False, False
        self.since = now
        """When the state of this connection changed last: accepted, request begun, request ended."""
        self.sending_since: float | None = None
        self.received = self.discarded_lines = 0
        self.discards_chunks = False

    def recv(self, size: int, flags: int = 0, /) -> bytes:
        """Receive some bytes; b"", the end of the stream, for a client that sends too much."""
        data = super().recv(min(size, RECEIVE_BYTES), flags)
        self.received += len(data)
        if self.is_websocket:
            elapsed = asyncio.get_running_loop().time() - self.since
            too_much = self.received > WEBSOCKET_BYTES + WEBSOCKET_BYTES_PER_SECOND * elapsed
        elif self.discards_chunks:  # the rest of a body that was answered before it was complete
            self.discarded_lines += data.count(b"\r\n")
            too_much = self.discarded_lines > 2 * MAX_TINY_CHUNKS
        else:
            too_much = False
        if too_much:
            self.reset()
            return b""
        return data

    def begin(self, now: float, *, is_websocket: bool) -> None:
        self.requests, self.served, self.is_websocket = self.requests + 1, True, is_websocket
        self.since, self.discards_chunks = now, False
        if self.received > MAX_HEADER_BYTES + RECEIVE_BYTES:  # the rest of an earlier body is among it
            self.received = 0

    def end(self, now: float, *, discards_chunks: bool) -> None:
        """A request has ended, with or without the whole of its body."""
        self.requests, self.since, self.sending_since = self.requests - 1, now, None
        self.received, self.discards_chunks, self.discarded_lines = 0, discards_chunks, 0

    def hang_up(self) -> None:
        """End the connection; what the system holds for the client is still sent."""
        with suppress(OSError):
            self.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        """End the connection and drop everything that waits for the client."""
        with suppress(OSError):
            self.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.hang_up()

    def close(self) -> None:
        """Close the socket, which the event loop does when the connection is lost."""
        super().close()
        if not self.closed.is_set():
            self.closed.set()
            self._on_close()


@dataclass(slots=True, kw_only=True)
class Connections:
    """All open connections of one server, by address and port of the client. Used on the loop's thread."""

    limits: ConnectionLimits
    _open: dict[tuple[str, int], AcceptedSocket] = field(default_factory=dict, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)
    _warned_at: float | None = field(default=None, init=False)

    def __len__(self) -> int:
        return len(self._open)

    @property
    def requests(self) -> int:
        """Requests under way, WebSockets included."""
        return sum(one.requests for one in self._open.values())

    @property
    def websockets(self) -> int:
        """WebSockets that the application has not ended."""
        return sum(one.is_websocket and one.requests > 0 for one in self._open.values())

    def idle(self, client: tuple[str, int]) -> AcceptedSocket | None:
        """The connection of a client, if nothing of a request has been received on it."""
        found = self._open.get(client)
        return found if found and not found.requests and not found.received else None

    def of(self, scope: Scope) -> AcceptedSocket | None:
        """The connection of a request; None if it was not accepted by our listener."""
        client = scope.get("client")
        return self._open.get((client[0], client[1])) if client else None

    def admit(
        self, accepted: socket.socket, address: Any, closed: Callable[[], None] = lambda: None
    ) -> AcceptedSocket | None:
        """Register a connection; None if the server is full and none can be closed for it. `closed` is
        called when it has ended."""
        loop = asyncio.get_running_loop()
        if len(self._open) >= self.limits.most and not self._make_room(loop.time()):
            return None
        key = (str(address[0]), int(address[1]))

        def forget() -> None:
            self._forget(key, opened)
            closed()

        opened = AcceptedSocket(accepted, loop.time(), forget)
        self._open[key] = opened
        if self._timer is None:
            self._timer = loop.call_later(self.limits.check_seconds, self._check)
        return opened

    def _forget(self, key: tuple[str, int], closed: AcceptedSocket) -> None:
        if self._open.get(key) is closed:  # else it was removed to make room
            del self._open[key]
        if not self._open and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _make_room(self, now: float) -> bool:
        """Close the connection that has been idle longest, or one that does not read."""
        if self._warned_at is None or now - self._warned_at >= WARNING_SECONDS:
            self._warned_at = now
            logger.warning(
                (
                    "%d connections are open, which is the limit (server.max_connections, ulimit "
                    "-n). For new ones, idle connections and those that do not read are closed. If "
                    "every connection is busy, new ones are refused."
                ),
                len(self._open),
            )
        idle = [(one.since, key) for key, one in self._open.items() if not one.requests]
        if idle:
            self._open.pop(min(idle)[1]).hang_up()
            return True
        stuck = [(one.sending_since, key) for key, one in self._open.items() if one.sending_since is not None]
        since, key = min(stuck, default=(now, None))
        if key is None or now - since < self.limits.stuck_seconds:
            return False
        self._open.pop(key).reset()
        return True

    def _check(self) -> None:
        """End the connections whose time is up."""
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self.limits.check_seconds, self._check)
        now = loop.time()
        for one in list(self._open.values()):
            allowed = self.limits.idle_seconds if one.served else self.limits.header_seconds
            if not one.requests and now - one.since >= allowed:
                one.hang_up()
            elif one.sending_since is not None and now - one.sending_since >= self.limits.unread_seconds:
                one.reset()


class LimitedListener(socket.socket):
    """A listening socket that accepts connections within the limits of `connections`, once that is set."""

    connections: Connections | None = None

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection; ConnectionAbortedError for one that is refused."""
        return self.admitted(*super().accept())

    def admitted(
        self, accepted: socket.socket, address: Any, closed: Callable[[], None] = lambda: None
    ) -> tuple[socket.socket, Any]:
        """A connection that was accepted, with its address; ConnectionAbortedError if it is refused."""
        if self.connections is None:
            return accepted, address
        opened = self.connections.admit(accepted, address, closed)
        if opened is None:
            _refuse(accepted)
            raise ConnectionAbortedError("The server is full.")
        return opened, address


def _refuse(accepted: socket.socket) -> None:
    with accepted, suppress(OSError):
        accepted.setblocking(False)
        accepted.send(TOO_MANY)
        accepted.shutdown(socket.SHUT_WR)
        accepted.recv(MAX_HEADER_BYTES)  # a request that nothing reads would make the system drop the answer


class ConnectionGuard:
    """Records which connections serve a request, and passes responses on in slices that the client must read.
    Outermost layer: it needs the address of the connection, not the one that a proxy states."""

    def __init__(self, app: ASGIApp, connections: Connections) -> None:
        self._app, self._connections = app, connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        connection = None if scope["type"] == "lifespan" else self._connections.of(scope)
        if connection is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(connection, scope, receive, send)
        else:
            await self._http(connection, scope, receive, send)

    async def _http(self, connection: AcceptedSocket, scope: Scope, receive: Receive, send: Send) -> None:
        is_chunked = "chunked" in Headers(scope=scope).get("transfer-encoding", "").lower()
        body = _ChunkedBody(connection, scope, receive) if is_chunked else None

        async def sending(message: Message) -> None:
            if body and body.is_tiny and message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
            for slice_ in _slices(message):
                await _send(connection, send, slice_)

        connection.begin(anyio.current_time(), is_websocket=False)
        try:
            await self._app(scope, body.receive if body else receive, sending)
        finally:
            connection.end(anyio.current_time(), discards_chunks=body is not None and not body.complete)

    async def _websocket(
        self, connection: AcceptedSocket, scope: Scope, receive: Receive, send: Send
    ) -> None:
        refused = False

        async def sending(message: Message) -> None:
            nonlocal refused
            refused = refused or message["type"] == "websocket.http.response.start"
            try:
                await _send(connection, send, message)
            except RuntimeError as exc:
                if message["type"] != "websocket.send":
                    raise
                # uvicorn has closed this WebSocket itself, because no pong came.
                raise ConnectionAbortedError("The WebSocket is closed.") from exc

        connection.begin(anyio.current_time(), is_websocket=True)
        try:
            await self._app(scope, receive, sending)
            if refused:  # uvicorn reports a handshake as incomplete if this returns before it is closed
                with anyio.move_on_after(REFUSED_SECONDS):
                    await connection.closed.wait()
        finally:
            connection.end(anyio.current_time(), discards_chunks=False)


class _ChunkedBody:
    """The body of a request in chunks. A tiny one costs the parser as much as a large one: there is a limit.
    The web server joins chunks before it passes them on. Their framing is what the connection received beyond
    the headers and the bytes of the body."""

    def __init__(self, connection: AcceptedSocket, scope: Scope, receive: Receive) -> None:
        self._connection, self._receive, self._bytes = connection, receive, 0
        self._header_bytes = len(scope["raw_path"]) + sum(len(a) + len(b) + 4 for a, b in scope["headers"])
        self.complete = self.is_tiny = False

    async def receive(self) -> Message:
        message = await self._receive()
        if self.complete or message["type"] != "http.request":
            return message
        self._bytes += len(message.get("body", b""))
        framing = self._connection.received - self._header_bytes - self._bytes
        chunks = framing // CHUNK_OVERHEAD_BYTES
        if chunks > MAX_TINY_CHUNKS and self._bytes < chunks * TINY_CHUNK_BYTES:
            self.is_tiny = True
            raise HTTPException(status_code=400, detail=TINY_CHUNKS)
        self.complete = not message.get("more_body", False)
        return message


def _slices(message: Message) -> Iterator[Message]:
    """A message in parts that are small enough to wait for."""
    body: bytes = message.get("body", b"")
    if len(body) <= SLICE_BYTES or message["type"] != "http.response.body":
        yield message
        return
    for start in range(0, len(body), SLICE_BYTES):
        end = start + SLICE_BYTES
        yield {
            **message,
            "body": body[start:end],
            "more_body": end < len(body) or message.get("more_body", False),
        }


async def _send(connection: AcceptedSocket, send: Send, message: Message) -> None:
    connection.sending_since = anyio.current_time()
    try:
        await send(message)
    finally:
        connection.sending_since = None
