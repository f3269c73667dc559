"""Messages to an MCP client, and the two forms of a response: one JSON document, or a stream of events."""

from collections import deque
from collections.abc import Awaitable, Callable, Mapping

import anyio
from starlette.types import Send

from vestige.transports.http.limits.responses import encoded
from vestige.transports.http.middleware.security_headers import EVENT_STREAM
from vestige.transports.mcp.protocol.jsonrpc import Message

Outgoing = Message | list[Message]

STREAM_AFTER_SECONDS = 15.0
"""How long a response may take before a stream is begun, so that no proxy considers the client gone."""

KEEP_ALIVE_SECONDS = 15.0
"""How long a stream is silent at most, and how often the key of its reader is checked."""
MAX_WAITING = 1_000
"""Messages kept for a client that does not read. Beyond it notifications are dropped, responses never."""

_ALIVE = b": still here\n\n"


class Outbox:
    """The queue of messages for one stream. Used on the event loop's thread."""

    def __init__(self) -> None:
        self._messages: deque[Outgoing] = deque()
        self._changed = anyio.Event()
        self._closed = False

    def put(self, message: Outgoing) -> None:
        if self._closed or (len(self._messages) >= MAX_WAITING and _may_be_lost(message)):
            return
        self._messages.append(message)
        self._changed.set()

    def close(self) -> None:
        self._closed = True
        self._changed.set()

    def drain(self) -> list[Outgoing]:
        waiting = list(self._messages)
        self._messages.clear()
        return waiting

    @property
    def exhausted(self) -> bool:
        return self._closed and not self._messages

    async def next(self) -> Outgoing | None:
        """Wait for the oldest message; None when no more will come."""
        while not self._messages:
            if self._closed:
                return None
            self._changed = anyio.Event()
            await self._changed.wait()
        return self._messages.popleft()


def _may_be_lost(message: Outgoing) -> bool:
    return isinstance(message, dict) and "method" in message


async def answer(
    send: Send, status: int, message: Outgoing | None = None, headers: Mapping[str, str] | None = None
) -> None:
    """Send one whole response, empty without a message."""
    body = b"" if message is None else encoded(message)
    kind = {} if message is None else {"content-type": "application/json"}
    fields = {**kind, "content-length": str(len(body)), **(headers or {})}
    await send({"type": "http.response.start", "status": status, "headers": _raw(fields)})
    await send({"type": "http.response.body", "body": body})


async def first_of(outbox: Outbox) -> Outgoing | None:
    """The first message, if it comes in time to choose the form of the response by it."""
    with anyio.move_on_after(STREAM_AFTER_SECONDS):
        return await outbox.next()
    return None


async def stream(
    send: Send, outbox: Outbox, first: Outgoing | None = None, *, still: Callable[[], Awaitable[bool]]
) -> bool:
    """Send the messages of an outbox as events, until it is exhausted or the key of the reader is not valid
    any more, which is checked at intervals. Returns whether the key was valid to the end."""
    await send({"type": "http.response.start", "status": 200, "headers": _raw(EVENT_STREAM)})
    # The headers show the client that it is connected; the web server holds them back until there is a body.
    await _write(send, _ALIVE if first is None else _event(first))
    ask_at = anyio.current_time() + KEEP_ALIVE_SECONDS
    while not outbox.exhausted:
        message = None
        with anyio.CancelScope(deadline=ask_at):
            message = await outbox.next()
        if anyio.current_time() >= ask_at:  # even if there was no message
            if not await still():
                await send({"type": "http.response.body", "body": b""})
                return False
            ask_at = anyio.current_time() + KEEP_ALIVE_SECONDS
        if message is not None:
            await _write(send, _event(message))
        elif not outbox.exhausted:
            await _write(send, _ALIVE)
    await send({"type": "http.response.body", "body": b""})
    return True


async def _write(send: Send, data: bytes) -> None:
    await send({"type": "http.response.body", "body": data, "more_body": True})


def _event(message: Outgoing) -> bytes:
    return b"event: message\ndata: " + encoded(message) + b"\n\n"


def _raw(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers.items()]
