"""Answers as bytes: how large one may be, and how many bytes wait until their clients take them."""

from typing import Any

import orjson
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from vestige.errors import TooLarge
from vestige.transports.http.addresses import sender_of
from vestige.transports.http.places import OVERLOADED, Shares, refuse
from vestige.transports.http.problems import starts
from vestige.transports.mcp.jsonrpc import Message as Reply
from vestige.transports.mcp.jsonrpc import encode

SMALL_BYTES = 1 << 16
"""Up to here a piece of an answer is not counted: it has room in buffers of the system."""
TIMES_BODY = 2
"""So many times the largest body an answer may be."""


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
        sender = scope["state"]["key_id"] or sender_of(scope)
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
            if not self._unsent.take(sender, counted):
                over = True
                if beginning is None:
                    await send({"type": "http.response.body"})
                else:
                    await refuse(OVERLOADED, scope, receive, send)
                return
            try:
                if beginning is not None:
                    await send(beginning)
                    beginning = None
                await _taken(send, message) if counted else await send(message)
            finally:
                self._unsent.give_back(sender, counted)

        await self._app(scope, receive, sending)


async def _taken(send: Send, message: Message) -> None:
    """Send a piece and wait until it is taken: the server waits with the next one until then."""
    await send({**message, "more_body": True})
    await send({"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)})
