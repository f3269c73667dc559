"""A small application for the MCP driver to serve, and the pipes to speak to it through."""

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader, FileIO
from typing import Any

from testbed.patience import PATIENCE_SECONDS
from tests.transports.mcp.lines import CATALOG
from vestige.core.caller import CancelSignal, Invocation
from vestige.core.errors import NotFound, TooLarge
from vestige.transports.mcp.protocol.jsonrpc import Message
from vestige.transports.mcp.service import OpenApp
from vestige.transports.mcp.stdio import GRACE_SECONDS, ROOTS_SECONDS, StdioServer


class SmallApp:
    """`search` repeats its arguments; some make it wait, fail, report or grow. `dream` waits for its end.

    `running` is set while something waits, `release` lets it go on.
    """

    def __init__(self) -> None:
        self.seen: list[Message] = []
        self.roots: list[tuple[str, ...]] = []
        self.running = threading.Event()
        self.release = threading.Event()
        self.cancelled = threading.Event()
        self.closed = False

    def call_tool(self, invocation: Invocation) -> Message:
        arguments = dict(invocation.arguments)
        self.seen.append(arguments)
        self.roots.append(tuple(invocation.roots))
        if invocation.name == "dream":
            return self._dream(invocation.cancelled)
        if "fail" in arguments:
            raise TooLarge("Too much.", hint="Send less.", details={"limit": 3})
        if "bug" in arguments:
            raise ZeroDivisionError("the secret is swordfish")
        if "exit" in arguments:
            raise SystemExit(3)
        if "wait" in arguments:
            self.running.set()
            assert self.release.wait(PATIENCE_SECONDS)
        for step in range(int(str(arguments.get("steps", 0)))):
            invocation.progress(step + 1, 3, f"step {step + 1}")
        size = int(str(arguments.get("size", 0)))
        return {"echo": arguments, "filler": "é" * size} if size else {"echo": arguments}

    def read_resource(self, invocation: Invocation) -> Message:
        self.roots.append(tuple(invocation.roots))
        if invocation.name.endswith("/missing"):
            raise NotFound
        return {"uri": invocation.name}

    def close(self) -> None:
        self.closed = True

    def _dream(self, cancelled: CancelSignal) -> Message:
        self.running.set()
        assert isinstance(cancelled, threading.Event)
        if self.release.is_set():
            return {"dreamt": True}
        assert cancelled.wait(PATIENCE_SECONDS)
        self.cancelled.set()
        return {"dreamt": False}


class Peer:
    """The client's ends of the pipes, and the server with its thread."""

    def __init__(
        self, writer: FileIO, reader: "BufferedReader[FileIO]", server: StdioServer, thread: threading.Thread
    ) -> None:
        self.writer = writer
        self.reader = reader
        self.server = server
        self.ended: list[tuple[int, bool]] = []
        self._thread = thread

    def send_bytes(self, raw: bytes) -> None:
        left = memoryview(raw)
        while left:
            left = left[self.writer.write(left) :]

    def send(self, method: str, params: dict[str, Any] | None = None, request_id: Any = None) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        if request_id is not None:
            message["id"] = request_id
        self.send_bytes(json.dumps(message).encode() + b"\n")

    def call(self, request_id: Any, *, tool: str = "search", token: Any = None, **arguments: Any) -> None:
        meta = {} if token is None else {"progressToken": token}
        params = {"name": tool, "arguments": arguments, "_meta": meta}
        self.send("tools/call", params, request_id)

    def cancel(self, request_id: Any) -> None:
        self.send("notifications/cancelled", {"requestId": request_id})

    def read(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.reader.readline())
        return message

    def finish(self) -> list[dict[str, Any]]:
        """Close the server's stdin and read all it still has to say."""
        self.writer.close()
        rest = [json.loads(raw) for raw in self.reader]
        self.wait()
        return rest

    def wait(self) -> None:
        """Wait for the server to end by itself."""
        self._thread.join(PATIENCE_SECONDS)
        assert not self._thread.is_alive()


@contextmanager
def serving(
    open_app: OpenApp,
    *,
    grace_seconds: float = GRACE_SECONDS,
    roots_seconds: float = ROOTS_SECONDS,
    greet: bool = True,
) -> Iterator[Peer]:
    """A server of the small catalog on a thread, after the handshake unless `greet` is off."""
    server_reads, client_writes = os.pipe()
    client_reads, server_writes = os.pipe()

    stdin, stdout = FileIO(server_reads, "rb"), FileIO(server_writes, "wb")
    server = StdioServer(stdin, stdout, open_app, CATALOG, grace_seconds, roots_seconds)

    def serve() -> None:
        with stdin, stdout:
            peer.ended.append(server.run())

    thread = threading.Thread(target=serve)
    with FileIO(client_writes, "wb") as writer, BufferedReader(FileIO(client_reads, "rb")) as reader:
        peer = Peer(writer, reader, server, thread)
        thread.start()
        if greet:
            peer.send("initialize", {"protocolVersion": "2025-11-25"}, "hello")
            assert peer.read()["result"]["protocolVersion"] == "2025-11-25"
        try:
            yield peer
        finally:
            writer.close()
            thread.join(PATIENCE_SECONDS)
