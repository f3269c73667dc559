"""Answers as bytes: how large one may be, and how many bytes wait until their clients take them."""

from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.core.errors import TooLarge
from vestige.transports.http.auth.addresses import payer_of
from vestige.transports.http.limits.fair_queue import Shares, refuse
from vestige.transports.http.problems import Refusal, starts
from vestige.transports.mcp.protocol.jsonrpc import Message as Reply
from vestige.transports.mcp.protocol.jsonrpc import encode

SMALL_BYTES = 1 << 16
"""Up to here a piece of an answer is not counted: it has room in buffers of the system."""
TIMES_BODY = 2
"""So many times the largest body an answer may be."""
LEAST_BYTES = 1 << 20
"""Answers have room as for bodies of this size, however small those may be."""

NO_ROOM = Refusal(
    status=503,
    code="overloaded",
    message="This was done, but there is no room for the answer to it now.",
    hint="Read the answers that wait for you before you ask for more.",
)


def encoded(value: Reply | list[Reply]) -> bytes:
    """A value as JSON on one line, quickly."""
    try:
        return orjson.dumps(value)
    except TypeError:  # half a character or a huge number that a client sent and gets back
        return encode(value).rstrip()


def check_size(size: int, most: int) -> None:
    """Refuse an answer that is too large."""
    if size > most:
        raise TooLarge(
            f"This was done, but the answer to it is larger than the {most:,} bytes that are sent at most.",
            hint="Ask for fewer memories at once, or for less of each (`detail_level`).",
            details={"limit": most},
        )


def check_texts(answer: Reply, most: int) -> None:
    """Refuse an answer whose texts alone are too large: written as JSON it would be there twice."""
    size, containers = 0, list[Any]((answer,))
    while containers:
        container = containers.pop()
        for value in container.values() if isinstance(container, dict) else container:
            if isinstance(value, str):
                size += len(value)
            elif isinstance(value, dict | list | tuple):
                containers.append(value)
        check_size(size, most)


class Answers:
    """Keeps so many bytes of answers at once that their clients have not taken yet.

    An answer without room is refused; a stream ends that has begun.
    """

    def __init__(self, app: ASGIApp, unsent: Shares) -> None:
        self._app, self._unsent = app, unsent

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and its answer back as far as there is room."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        beginning: Message | None = None
        over = False

        async def sending(message: Message) -> None:
            nonlocal beginning, over
            if over:
                return
            if starts(message):
                beginning = message  # goes with the first piece: until then it can be another one
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
            held.give_back()

        with self._unsent.held(payer_of(scope)) as held:
            await self._app(scope, receive, sending)


async def _taken(send: Send, message: Message) -> None:
    """Send a piece and wait until it is taken: the server waits with the next one until then."""
    await send({**message, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)})


# -- When a client goes away.


async def left(receive: Receive) -> None:
    """Wait until the client has left. Its body has been read: the next that is heard of it is that."""
    while (await receive())["type"] != "http.disconnect":
        pass
