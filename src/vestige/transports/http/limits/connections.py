"""Connections whose clients keep us waiting, and those that are too many.

uvicorn waits for ever: for headers that do not come, and for a client that takes nothing of its answer. What
it closes stays open, with all that is unsent in memory, until that client has taken it. Here each wait ends.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from uvicorn._types import ASGISendEvent
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from uvicorn.server import ServerState

HEADER_SECONDS = 20.0
"""How long headers may take to be there: from when a client connects, or begins with its next request."""
MOST_UNSENT = 1 << 20
"""Bytes that may wait for a WebSocket: its pings are answered whether it reads or not."""
STUCK_SECONDS = 5.0
"""After so long without taking anything it has to go when there is no room for others."""
UNREAD_SECONDS = 60.0
"""How long a client may take nothing of what waits for it."""
COMPLAINT_SECONDS = 60.0
"""How often the log tells at most that there are too many."""

DESCRIPTORS = 400
"""What a process has open beside its connections: databases, indexes, logs, and who is being let in."""
FEWEST_WAITING, MOST_WAITING = 10, 200

MOST_CRUMBS, CRUMB_BYTES = 2_000, 64
"""So many pieces of a body may be smaller than this on average."""
CRUMBS_TOLD = (
    f"The body has more than {MOST_CRUMBS} pieces smaller than {CRUMB_BYTES} bytes: send larger ones."
)
MOST_HEADER = 16_384
"""Bytes of headers."""
MOST_FRAMES, FRAMES_PER_SECOND = 200, 10.0
"""Messages of a WebSocket at once, and as it goes on."""
SLICE_BYTES = 1_024
"""Of what a WebSocket sends, before its messages are counted."""


def _raw(status: str, body: str, *headers: str) -> bytes:
    head = [f"HTTP/1.1 {status}", "Content-Type: text/plain", *headers, "Connection: close"]
    return "\r\n".join([*head, f"Content-Length: {len(body)}", "", body]).encode("ascii")


TOO_MANY = _raw("503 Service Unavailable", "Too many connections.\n", "Retry-After: 5")
NO_WEBSOCKET = _raw("400 Bad Request", "This is no handshake of a WebSocket.\n")

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How many connections a server has at once, and how long each may keep it waiting."""

    most: int
    header_seconds: float = HEADER_SECONDS
    unread_seconds: float = UNREAD_SECONDS
    stuck_seconds: float = STUCK_SECONDS


def affordable(most: int) -> int:
    """As many of these connections as the process may have descriptors for, after asking for more of them."""
    if os.name != "posix":
        return most
    import resource  # on POSIX only

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most + DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return most
    given = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (given, hard))
    if given < wanted:
        logger.warning("This process may have only %d files open: ulimit -n", given)
    return min(most, max(given - DESCRIPTORS, given // 2))


def waiting(most: int) -> int:
    """How many clients may wait to be let in, of so many connections at most.

    asyncio lets in all that wait at once, and that for a few turns before the first of them is closed. Where
    descriptors are few there are as many left for that as for connections.
    """
    return min(max(most // 5, FEWEST_WAITING), MOST_WAITING)


class Door:
    """Lets so many connections in. When there are as many, the one that has been idle longest has to go, or
    one that has not taken anything of its answer for a while."""

    def __init__(self, most: int, stuck_seconds: float) -> None:
        self._most, self._stuck_seconds = most, stuck_seconds
        self._idle: dict[object, Callable[[], None]] = {}  # the first has been idle longest
        self._unread: dict[object, Unread] = {}
        self._complained_at: float | None = None

    def idle(self, connection: object, hang_up: Callable[[], None]) -> None:
        """This one has no request under way; one that is idle already has been since it was first told."""
        self._idle.setdefault(connection, hang_up)

    def busy(self, connection: object) -> None:
        """This one has a request under way, or is gone."""
        self._idle.pop(connection, None)

    def waits(self, connection: object, unread: "Unread") -> None:
        """Something waits for this one to take it."""
        self._unread[connection] = unread

    def took(self, connection: object) -> None:
        """It has taken all of it, or is gone."""
        self._unread.pop(connection, None)

    def admits(self, inside: int, now: float) -> bool:
        """Whether there is room for another one, or has been made."""
        if inside < self._most:
            return True
        if self._complained_at is None or now - self._complained_at >= COMPLAINT_SECONDS:
            self._complained_at = now
            logger.warning(
                "%d connections are open, as many as may be (server.max_connections, ulimit -n); those "
                "that are idle or do not read are closed for others, who are refused if there are none",
                inside,
            )
        if self._idle:
            self._idle.pop(next(iter(self._idle)))()
            return True
        connection, unread = max(
            self._unread.items(), key=lambda one: one[1].stuck_seconds(), default=(None, None)
        )
        if unread is None or unread.stuck_seconds() < self._stuck_seconds:
            return False
        del self._unread[connection]
        unread.cut_off()
        return True


class Timer:
    """Does something after so many seconds, unless it is stopped before."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float, do: Callable[[], None]) -> None:
        self._loop, self._seconds, self._do = loop, seconds, do
        self._handle: asyncio.TimerHandle | None = None

    def start(self, seconds: float | None = None) -> None:
        """Begin to wait, so long if that is said; one that waits already goes on."""
        if self._handle is None:
            self._handle = self._loop.call_later(self._seconds if seconds is None else seconds, self._due)

    def stop(self) -> None:
        """Do nothing."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _due(self) -> None:
        self._handle = None
        self._do()


class Unread:
    """Cuts a connection off whose client takes nothing of what waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, transport: asyncio.Transport, seconds: float) -> None:
        # So that the protocol is told of every byte that waits, not only of many. Whoever sends waits then.
        transport.set_write_buffer_limits(high=0)
        self._loop, self._transport, self._seconds = loop, transport, seconds
        self._timer = Timer(loop, seconds, self._look)
        self._waiting, self._since = 0, 0.0

    def begin(self) -> None:
        """Something waits."""
        self._waiting, self._since = self._transport.get_write_buffer_size(), self._loop.time()
        self._timer.start()

    def end(self) -> None:
        """Everything was taken, or the client is gone."""
        self._timer.stop()

    def stuck_seconds(self) -> float:
        """How long the client has not been seen to take anything."""
        waiting, now = self._transport.get_write_buffer_size(), self._loop.time()
        if waiting < self._waiting:
            self._waiting, self._since = waiting, now
        return now - self._since

    def cut_off(self) -> None:
        """End the connection, whatever waits."""
        self._transport.abort()

    def _look(self) -> None:
        left = self._seconds - self.stuck_seconds()
        if left <= 0:
            self.cut_off()
        else:
            self._timer.start(left)


class Impatient(asyncio.Protocol):
    """A protocol whose client must take what waits for it. How long that may take its server says."""

    patience: Patience
    _unread: Unread

    def pause_writing(self) -> None:
        """Something waits to be taken."""
        super().pause_writing()
        self._unread.begin()

    def resume_writing(self) -> None:
        """It was."""
        super().resume_writing()
        self._unread.end()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._unread.end()
        super().connection_lost(exc)


class Parser(h11.Connection):
    """Reads requests, unless a body comes in crumbs: each costs as much as a large piece, and nobody else is
    served meanwhile."""

    crumbs = False
    _pieces = _bytes = 0

    def next_event(self) -> h11.Event | type[h11.NEED_DATA] | type[h11.PAUSED]:
        """What comes next."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._bytes = 0
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._bytes += len(event.data)
            if self._pieces > MOST_CRUMBS and self._bytes < CRUMB_BYTES * self._pieces:
                self.crumbs = True
                raise h11.RemoteProtocolError("A body in too many small pieces")
        return event


class HttpConnection(Impatient, H11Protocol):
    """A connection of HTTP. Made by `http_protocol`."""

    door: Door

    def __init__(
        self, config: uvicorn.Config, server_state: ServerState, app_state: dict[str, Any], **more: Any
    ) -> None:
        super().__init__(config, server_state, app_state, **more)
        self.conn = self._parser = Parser(h11.SERVER, config.h11_max_incomplete_event_size or MOST_HEADER)

    def connection_made(  # type: ignore[override]  # as uvicorn's: its transports are sockets
        self, transport: asyncio.Transport
    ) -> None:
        """Let a client in, if there is room."""
        self._unread = Unread(self.loop, transport, self.patience.unread_seconds)
        self._headers = Timer(self.loop, self.patience.header_seconds, transport.close)
        if self.door.admits(len(self.connections), self.loop.time()):
            super().connection_made(transport)
            self._headers.start()
            self._tell_door()
        else:
            self.transport = transport
            transport.write(TOO_MANY)
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Take what comes. While nothing is being answered it is headers, or a body that nobody wants."""
        super().data_received(data)
        if self._serves:
            self._headers.stop()
        else:
            self._headers.start()
        self._tell_door()

    def send_400_response(self, msg: str) -> None:
        """Tell a client that it is not understood; if it was told something else already, hang up. To whoever
        works on its request it has left."""
        if self._serves:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(CRUMBS_TOLD if self._parser.crumbs else msg)
        else:
            self.transport.close()

    def on_response_complete(self) -> None:
        """An answer is written; the next request may be there already."""
        super().on_response_complete()
        self._tell_door()

    def pause_writing(self) -> None:
        """Something waits to be taken."""
        super().pause_writing()
        self.door.waits(self, self._unread)

    def resume_writing(self) -> None:
        """It was."""
        super().resume_writing()
        self.door.took(self)
        self._tell_door()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        self._headers.stop()
        self.door.busy(self)
        self.door.took(self)
        super().connection_lost(exc)

    @property
    def _serves(self) -> bool:
        upgraded = self.transport.get_protocol() is not self
        return upgraded or (self.cycle is not None and not self.cycle.response_complete)

    def _tell_door(self) -> None:
        """Idle is whoever waits for nothing of ours, and has taken what it asked for."""
        if self._serves or self.transport.get_write_buffer_size():
            self.door.busy(self)
        else:
            self.door.idle(self, self.transport.close)


class SocketConnection(Impatient, WebSocketsSansIOProtocol):
    """A WebSocket. Its pings find a client that is gone, but wait for one that does not read.

    Clients have nothing to say here but that they are there: one that sends many messages is cut off.
    """

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Go on with a connection whose headers have come."""
        super().connection_made(transport)
        self._unread = Unread(self.loop, self.transport, self.patience.unread_seconds)
        self._came, self._frames = self.loop.time(), 0

    def data_received(self, data: bytes) -> None:
        """Take what comes, a little at a time, unless it is too much, or too much of what was answered to it
        is not read."""
        for start in range(0, len(data), SLICE_BYTES):
            super().data_received(data[start : start + SLICE_BYTES])
            allowed = MOST_FRAMES + FRAMES_PER_SECOND * (self.loop.time() - self._came)
            if self._frames > allowed or self.transport.get_write_buffer_size() > MOST_UNSENT:
                self.transport.abort()
                return
        if not self.handshake_initiated:  # the whole request is there at once, but it was not understood
            self.transport.write(NO_WEBSOCKET)
            self.transport.close()

    def handle_events(self) -> None:
        """Count what came, and act upon it."""
        self._frames += len(self.conn.events)
        super().handle_events()

    async def send(self, message: ASGISendEvent) -> None:
        """Send something. uvicorn logs a refusal that was sent whole as a handshake that was forgotten, and
        takes what comes after its own goodbye for a mistake."""
        if self.close_sent and message["type"] == "websocket.send":
            raise ClientDisconnected
        await super().send(message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body"):
            self.handshake_complete = True


def http_protocol(given: Patience) -> type[HttpConnection]:
    """What uvicorn makes of each connection, for one server."""

    class Patient(HttpConnection):
        patience = given
        door = Door(given.most, given.stuck_seconds)

    return Patient


def websocket_protocol(given: Patience) -> type[SocketConnection]:
    """The same for those that become WebSockets."""

    class PatientSocket(SocketConnection):
        patience = given

    return PatientSocket
