"""A proxy in front of a PostgreSQL server that can speak TLS, and cuts a conversation at a given message.

It knows as much of the protocol as that takes: the first messages of a client, and where a message ends.
"""

import select
import socket
import ssl
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import parse_qs, quote, urlsplit

from tests.store.support.postgres_stores import query

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102
LOOK_SECONDS = 0.05
READ = 1 << 16

How = Literal["before", "after", "terminated"]
"""How a conversation is cut: before a message reaches the server; after the server has answered it, but
before the client hears so; or the backend is terminated, as an administrator does it, before the message."""


@dataclass(kw_only=True)
class Proxy:
    """A proxy that listens on a port of this machine."""

    server_url: str
    tls: ssl.SSLContext | None = None
    port: int = 0
    cut_at: int = -1
    """The message of clients at which the conversation is cut, counted from the moment this was set; it is
    negative when there was a cut, or when there shall be none."""
    how: How = "before"
    seen: int = 0
    """Messages since the counting began."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _ended: threading.Event = field(default_factory=threading.Event)

    def url(self, *, host: str = "127.0.0.1", options: str = "sslmode=disable") -> str:
        """The address of the database through the proxy."""
        parts = urlsplit(self.server_url)
        user = parts.netloc.rpartition("@")[0] or "postgres"
        return f"postgresql://{user}@{host}:{self.port}{quote(parts.path)}?{options}"

    def arm(self, message: int, how: How) -> None:
        """Cut at this message, counted from now on."""
        with self._lock:
            self.cut_at, self.how, self.seen = message, how, 0

    def disarm(self) -> bool:
        """Cut no more; whether there was a cut."""
        with self._lock:
            cut, self.cut_at = self.cut_at < 0, -1
        return cut

    def cuts(self) -> bool:
        """Count a message; whether it is the one to cut at."""
        with self._lock:
            self.seen += 1
            if self.cut_at < 0 or self.seen <= self.cut_at:
                return False
            self.cut_at = -1
            return True

    def run(self, listening: socket.socket) -> None:
        while not self._ended.is_set():
            with suppress(TimeoutError):
                client, _ = listening.accept()
                client.settimeout(None)
                threading.Thread(target=self._attend, args=(client,), daemon=True).start()

    def end(self) -> None:
        self._ended.set()

    def _attend(self, client: socket.socket) -> None:
        with suppress(OSError), ExitStack() as opened:
            opened.enter_context(closing(client))
            secure, start = self._begun(client, opened)
            server = opened.enter_context(closing(socket.socket(socket.AF_UNIX)))
            server.connect(self._socket())
            server.sendall(start)
            _Conversation(proxy=self, client=secure, server=server).run(self._ended)

    def _begun(self, client: socket.socket, opened: ExitStack) -> tuple[socket.socket, bytes]:
        """The socket to go on with, and the message that starts the session."""
        while True:
            head = _exactly(client, 8)
            length, code = struct.unpack("!II", head)
            if code == SSL_REQUEST and self.tls is not None:
                client.sendall(b"S")
                client = opened.enter_context(closing(self.tls.wrap_socket(client, server_side=True)))
            elif code in (SSL_REQUEST, GSS_REQUEST):
                client.sendall(b"N")
            else:
                return client, head + _exactly(client, length - 8)

    def _socket(self) -> str:
        parts = parse_qs(urlsplit(self.server_url).query)
        return f"{parts['host'][0]}/.s.PGSQL.{parts['port'][0]}"


@dataclass(kw_only=True)
class _Conversation:
    proxy: Proxy
    client: socket.socket
    server: socket.socket
    backend: int = 0
    _waiting: bytes = b""

    def run(self, ended: threading.Event) -> None:
        while not ended.is_set():
            # What TLS has decrypted is not seen by select.
            held = isinstance(self.client, ssl.SSLSocket) and self.client.pending()
            ready, _, _ = select.select([self.client, self.server], [], [], 0 if held else LOOK_SECONDS)
            if self.server in ready:
                answer = self.server.recv(READ)
                if not answer:
                    return
                self._note(answer)
                self.client.sendall(answer)
            if (held or self.client in ready) and not self._forward():
                return

    def _note(self, answer: bytes) -> None:
        """Read the number of the backend, which the server sends once at the start (BackendKeyData)."""
        at = answer.find(b"K\x00\x00\x00\x0c")
        if not self.backend and at >= 0:
            self.backend = struct.unpack("!I", answer[at + 5 : at + 9])[0]

    def _forward(self) -> bool:
        """Send on the whole messages of the client; False to end the conversation."""
        sent = self.client.recv(READ)
        self._waiting += sent
        while len(self._waiting) >= 5:
            size = 1 + struct.unpack("!I", self._waiting[1:5])[0]
            if len(self._waiting) < size:
                break
            message, self._waiting = self._waiting[:size], self._waiting[size:]
            if self.proxy.cuts():
                return self._cut(message)
            self.server.sendall(message)
        return bool(sent)

    def _cut(self, message: bytes) -> bool:
        match self.proxy.how:
            case "before":
                return False
            case "after":
                self.server.sendall(message)
                # The server answers a query or a Sync; other messages are answered with the next of those.
                if message[:1] in b"QS":
                    _until_ready(self.server)
                return False
            case "terminated":
                query(self.proxy.server_url, "SELECT pg_terminate_backend(%s, 60000)", self.backend)
                with suppress(OSError):
                    self.server.sendall(message)
                return True


def _until_ready(server: socket.socket) -> None:
    data = b""
    while not data.endswith((b"Z\x00\x00\x00\x05I", b"Z\x00\x00\x00\x05T", b"Z\x00\x00\x00\x05E")):
        got = server.recv(READ)
        if not got:
            return
        data = (data + got)[-64:]


def _exactly(source: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        got = source.recv(size - len(data))
        if not got:
            raise ConnectionError("the client has left")
        data += got
    return data


@contextmanager
def proxy(server_url: str, tls: ssl.SSLContext | None = None) -> Iterator[Proxy]:
    """A proxy in front of the database at this URL, until the end of the block."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(LOOK_SECONDS)
        made = Proxy(server_url=server_url, tls=tls, port=listening.getsockname()[1])
        thread = threading.Thread(target=made.run, args=(listening,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.end()
            thread.join()
