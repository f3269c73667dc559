"""Limits on responses: the size of one, and the bytes of all that clients have not read yet."""

from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.errors import TooLarge
from vestige.transports.http.auth.addresses import payer_of
from vestige.transports.http.limits.fair_queue import SharedBudget, refuse
from vestige.transports.http.problems import Refusal, is_response_start
from vestige.transports.mcp.protocol.jsonrpc import Message as JsonRpcMessage
from vestige.transports.mcp.protocol.jsonrpc import encode

SMALL_BYTES = 1 << 16
"""Parts of a response up to this size are not counted: they fit into buffers of the system."""
TIMES_BODY = 2
"""Largest response, in units of the largest body."""
MIN_BODY_BYTES = 1 << 20
"""The limits of responses are never lower than for bodies of this size."""

NO_ROOM = Refusal(
    status=503,
    code="overloaded",
    message="The request was carried out, but too many responses wait to be read.",
    hint="Read the responses that wait for you before you send more requests.",
)


def encoded(value: JsonRpcMessage | list[JsonRpcMessage]) -> bytes:
    """A value as JSON on one line."""
    try:
        return orjson.dumps(value)
    except TypeError:  # a lone surrogate or a huge number that a client sent and gets back
        return encode(value).rstrip()


def check_size(size: int, most: int) -> None:
    if size > most:
        raise TooLarge(
            f"The request was carried out, but its response is larger than the limit of {most:,} bytes.",
            hint="Request fewer memories at once, or less of each (`detail_level`).",
            details={"limit": most},
        )


def check_texts(answer: JsonRpcMessage, most: int) -> None:
    """Refuse a response whose texts alone are too large, before they are copied into JSON."""
    size, containers = 0, list[Any]((answer,))
    while containers:
        container = containers.pop()
        for value in container.values() if isinstance(container, dict) else container:
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, dict | list | tuple):
                containers.append(value)
        check_size(size, most)


class UnreadLimit:
    """Middleware that limits the bytes of responses that clients have not read yet. Beyond the limit a
    response is refused; a stream that has begun ends."""

    def __init__(self, app: ASGIApp, unsent: SharedBudget) -> None:
        self._app, self._unsent = app, unsent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        beginning: Message | None = None
        over = False

        async def sending(message: Message) -> None:
            nonlocal beginning, over
            if over:
                return
            if is_response_start(message):
                beginning = message  # sent with the first part: until then it can be replaced by a refusal
                return
            size = len(message.get("body", b""))
            counted = size if size > SMALL_BYTES else 0
            if not held.take(counted):
                over = True
                if beginning is None:
                    await send({"type": "http.response.body"})
                else:
                    await refuse(NO_ROOM, scope, receive, send)
                return
            if beginning is not None:
                await send(beginning)
                beginning = None
            await _taken(send, message) if counted else await send(message)
            held.release()

        with self._unsent.held(payer_of(scope)) as held:
            await self._app(scope, receive, sending)


async def _taken(send: Send, message: Message) -> None:
    """Send a part and wait until the client has read it: the server accepts the next one only then."""
    await send({**message, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)})


async def wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects. Its body must have been read."""
    while (await receive())["type"] != "http.disconnect":
        pass
