"""The channel between a worker and its parent: a pair of Unix sockets.

The parent accepts connections and passes them on, so they are spread evenly, none is lost when a worker ends,
and a worker that stands still gets no more. It sends orders of one byte, with a connection if it is one. The
worker answers with reports of one byte. When the parent ends, however it ends, the channel does, and the
worker stops.
"""

import asyncio
import json
import os
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Literal

from vestige.core.lazy_dataclass import dataclass
from vestige.transports.http.limits.connections import LimitedListener

CONNECTION = b"c"
"""Order: serve this connection."""
LISTENING = b"l"
"""Order: connections are accepted now; print the greeting."""
STOP = b"s"
"""Order: no further connection comes; finish what is under way and end. The next byte is the index of the
worker that takes over sessions and connections, or `NOBODY` when the whole server ends."""
NOBODY = 255

READY = b"r"
"""Report: the worker can serve."""
GIVEN_BACK = b"c"
"""Report: a connection without a request under way, for another worker."""
CLOSED = b"x"
"""Report: a connection has ended."""
LEAVING = b"d"
"""Report: the worker was asked by a signal to end, and waits for `STOP`."""

_LENGTH = struct.Struct("!I")


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What a worker needs to start. `flags` are the options of the command line, `table` is the descriptor of
    the shared table, and `folder` has the sockets of all workers. The first worker prints the `greeting`."""

    flags: dict[str, Any]
    form: Literal["json", "table"] | None
    greeting: dict[str, Any] | None
    parent: int
    index: int
    number: int
    workers: int
    table: int
    folder: str

    def send(self, channel: socket.socket) -> None:
        text = json.dumps(asdict(self)).encode()
        channel.sendall(_LENGTH.pack(len(text)) + text)

    @classmethod
    def receive(cls, channel: socket.socket) -> "Assignment":
        """Wait for the assignment; EOFError if the parent has ended."""
        (length,) = _LENGTH.unpack(_exactly(channel, _LENGTH.size))
        return cls(**json.loads(_exactly(channel, length)))


def _exactly(channel: socket.socket, size: int) -> bytes:
    read = b""
    while len(read) < size:
        piece = channel.recv(size - len(read))
        if not piece:
            raise EOFError("The parent has ended.")
        read += piece
    return read


class HandedListener(LimitedListener):
    """The worker's end of the channel, as a listening socket: what it accepts are the connections that the
    parent passes on. `listening` is called when the parent accepts connections, and `stop` when no more will
    come, with the index of the worker that takes over."""

    listening: Callable[[], None] = staticmethod(lambda: None)
    stop: Callable[[int], None] = staticmethod(lambda heir: None)

    def listen(self, backlog: int = 0, /) -> None:
        """Nothing to do: the parent listens."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection. BlockingIOError without one, ConnectionAbortedError for one that is refused or
        already closed."""
        try:
            order, handles, _, _ = socket.recv_fds(self, 1, 1)
        except ConnectionResetError:
            order, handles = b"", []
        if order == CONNECTION and handles:
            return self._admitted(handles[0])
        if order == LISTENING:
            self.listening()
        else:  # the order to stop, or the end of the parent
            asyncio.get_running_loop().remove_reader(self.fileno())
            self.stop(_heir(self) if order == STOP else NOBODY)
        raise BlockingIOError

    def _admitted(self, handle: int) -> tuple[socket.socket, Any]:
        os.set_inheritable(handle, False)
        accepted = socket.socket(fileno=handle)
        try:
            address = accepted.getpeername()
        except OSError as exc:
            accepted.close()
            self.report(CLOSED)
            raise ConnectionAbortedError("The client has closed the connection.") from exc
        try:
            return self.admitted(accepted, address, closed=lambda: self.report(CLOSED))
        except ConnectionAbortedError:
            self.report(CLOSED)
            raise

    def give_back(self, handle: int) -> bool:
        """Pass a connection back to the parent; returns whether it took it."""
        try:
            return socket.send_fds(self, [GIVEN_BACK], [handle]) == 1
        except OSError:
            return False

    def report(self, what: bytes) -> None:
        """Send a report. Without a parent it does not matter."""
        with suppress(OSError):
            self.send(what)


def _heir(channel: socket.socket) -> int:
    try:
        return channel.recv(1)[0]
    except (OSError, IndexError):
        return NOBODY
