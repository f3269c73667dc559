"""MCP over Streamable HTTP at /mcp, in both eras, with the protocol core that also serves stdio.

Stateless era: each POST is a conversation of its own, and a client that closes the response takes its request
back. Handshake era: `initialize` opens a session, GET a stream for what the server has to say unasked, DELETE
ends it; there a lost response takes nothing back. ADR 0022 has the reasons.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from vestige import __version__
from vestige.core.caller import Caller
from vestige.core.errors import StoreError, TooLarge
from vestige.core.models import EVERYTHING
from vestige.transports.http.auth.addresses import is_local, payer_of
from vestige.transports.http.context import (
    Desk,
    Gauge,
    caller_of,
    key_of,
    place_of,
    read,
    recheck_of,
    request_id_of,
)
from vestige.transports.http.limits.bodies_and_rates import RATE_LIMITED, charge_of, retry_after
from vestige.transports.http.limits.responses import left
from vestige.transports.http.mcp.driver import Conversation, Exchange, Run, run_job
from vestige.transports.http.mcp.headers import (
    EVENTS,
    HEADER_MISMATCH,
    JSON,
    SESSION,
    HeaderRefused,
    check_accept,
    check_content_type,
    check_routing,
    is_modern,
    refused,
)
from vestige.transports.http.mcp.sessions import McpSession, Sessions
from vestige.transports.http.mcp.streams import Outgoing, answer, first_of, stream
from vestige.transports.mcp import catalog as allowed
from vestige.transports.mcp.catalog import Catalog, packaged_data
from vestige.transports.mcp.protocol import eras, jsonrpc
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.jsonrpc import Message, ProtocolError, RequestId, as_id, as_object
from vestige.transports.mcp.protocol.messages import Send as Sending

logger = logging.getLogger(__name__)

PATH = "/mcp"
MOST_BATCHED = 100
"""Messages in one request, where a version has batches."""

SESSION_SECONDS = 60.0
"""When to come again if no session can be opened now."""
UNFINISHED_SECONDS = 1.0
"""When to come again if too many calls of a session are unfinished."""

BAD_REQUEST, NOT_FOUND, NOT_ALLOWED, CONFLICT, UNAVAILABLE = 400, 404, 405, 409, 503

_BAD = (
    jsonrpc.PARSE_ERROR,
    jsonrpc.INVALID_REQUEST,
    jsonrpc.INVALID_PARAMS,
    HEADER_MISMATCH,
    eras.MISSING_CAPABILITY,
    eras.UNSUPPORTED_VERSION,
)
_STATUS = {**dict.fromkeys(_BAD, BAD_REQUEST), jsonrpc.METHOD_NOT_FOUND: NOT_FOUND}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What clients are served: the lists that somebody sees, who speaks with them, what does their jobs."""

    catalog: Callable[[Caller], Catalog]
    connection: type[ClientConversation] = ClientConversation
    do: Run = run_job


def routes(desk: Desk, offer: Offer | None = None) -> list[BaseRoute]:
    """Where MCP is served."""
    return [Route(PATH, Endpoint(desk, offer or Offer(catalog=catalogs(desk, packaged_data()))))]


def catalogs(desk: Desk, data: Message) -> Callable[[Caller], Catalog]:
    """Gives everybody the catalog of what he may use."""
    made: dict[frozenset[str], Catalog] = {}
    profile, instructions = desk.settings.mcp.profile, desk.settings.mcp.instructions

    def of(caller: Caller) -> Catalog:
        granted = caller.permissions
        if caller.access == EVERYTHING:
            granted |= {allowed.EVERYTHING}
        if granted not in made:  # there are few, whoever comes
            made[granted] = Catalog(data, profile, instructions, granted)
        return made[granted]

    return of


class Endpoint:
    """The one address of the protocol."""

    def __init__(self, desk: Desk, offer: Offer) -> None:
        self._desk = desk
        self._offer = offer
        server = desk.settings.server
        self._sessions = Sessions(
            most=server.max_sessions,
            idle_seconds=60 * server.session_idle_minutes,
            monotonic=desk.monotonic,
            entropy=desk.entropy,
        )
        # One of its own: a recheck does not wait for the long work of others.
        self._rechecking = anyio.CapacityLimiter(1)
        desk.gauges["mcp_sessions"] = Gauge("MCP sessions that are open.", lambda: len(self._sessions))
        self._handlers = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        request = Request(scope, receive)
        try:
            handler = self._handlers.get(request.method)
            if handler is None:
                raise refused(NOT_ALLOWED, f"There is no {request.method} here")
            await handler(request, send)
        except HeaderRefused as refusal:
            await answer(send, refusal.status, _refusal(request, refusal), _hints(request, refusal))
        except ClientDisconnect:
            return

    # -- methods ---------------------------------------------------------------------------------

    async def _post(self, request: Request, send: Send) -> None:
        check_content_type(request.headers)
        check_accept(request.headers, JSON, EVENTS)
        message, size = await self._read(request)
        asked = _asked(message)
        if is_modern(request.headers, asked):
            await self._stateless(request, send, message, size)
        elif asked is not None and asked.method == "initialize" and asked.id is not None:
            await self._greet(request, send, message, size)
        else:
            session = self._session(request)
            if isinstance(message, list):
                _charge(request, len(message))
            _check_room(session.conversation, message)
            await self._serve(session.conversation, request, send, message, size)
            self._sessions.used(session)

    async def _read(self, request: Request) -> tuple[object, int]:
        """The message of a request, and how many bytes it was. Those are not kept: a call may wait long."""
        body = b"".join([piece async for piece in request.stream()])
        try:
            return await read(self._desk, body, jsonrpc.parse), len(body)
        except ProtocolError as error:
            raise HeaderRefused(BAD_REQUEST, error) from None
        except TooLarge as error:
            told = ProtocolError(jsonrpc.INVALID_REQUEST, error.message, {"error": error.value()})
            raise HeaderRefused(error.status, told) from None

    async def _get(self, request: Request, send: Send) -> None:
        session = self._asked_session(request)
        check_accept(request.headers, EVENTS)
        conversation = session.conversation
        if conversation.listening:
            raise refused(CONFLICT, "This session has a stream already")
        conversation.listening = True
        try:
            async with anyio.create_task_group() as tasks:

                async def leave() -> None:
                    await left(request.receive)
                    tasks.cancel_scope.cancel()

                async def stop() -> None:
                    await self._desk.stopping.wait()
                    conversation.listener.close()

                tasks.start_soon(leave)
                tasks.start_soon(stop)
                await stream(send, conversation.listener, still=partial(self._welcome, recheck_of(request)))
                tasks.cancel_scope.cancel()
        finally:
            conversation.listening = False
            self._sessions.used(session)

    async def _welcome(self, recheck: Callable[[], bool]) -> bool:
        """Whether the reader of a stream still may."""
        try:
            return await run_sync(recheck, limiter=self._rechecking)
        except StoreError as error:  # nobody is sent away because the store is
            logger.info("A stream of MCP was not rechecked: %s", error.message)
            return True

    async def _delete(self, request: Request, send: Send) -> None:
        self._sessions.end(self._asked_session(request))
        await answer(send, 204)

    # -- the stateless era -----------------------------------------------------------------------

    async def _stateless(self, request: Request, send: Send, message: object, size: int) -> None:
        fields = as_object(message) or {}
        if jsonrpc.is_reply(fields):
            raise refused(BAD_REQUEST, "Invalid request: nothing was asked that this could answer")
        try:
            asked = jsonrpc.read_request(message)
            if asked.id is None:
                await answer(send, 202)
                return
            check_routing(request.headers, asked)
        except ProtocolError as error:
            raise HeaderRefused(BAD_REQUEST, error, as_id(fields.get("id"))) from None
        conversation = self._conversation(self._connection(request, stateless=True))
        await self._serve(conversation, request, send, message, size, stateless=True)

    # -- the handshake era -----------------------------------------------------------------------

    async def _greet(self, request: Request, send: Send, message: object, size: int) -> None:
        connection = self._connection(request, stateless=False)
        replies = [action.message for action in connection.take(message, size) if isinstance(action, Sending)]
        if not connection.greeted:
            await answer(send, BAD_REQUEST, replies[0])
            return
        if not self._sessions.make_room(_owner(request), shared=not key_of(request)):
            raise refused(UNAVAILABLE, "Too many sessions are open")
        session_id = self._sessions.open(_owner(request), self._conversation(connection))
        await answer(send, 200, replies[0], {SESSION: session_id})

    def _asked_session(self, request: Request) -> McpSession:
        """The session that a request without a message is about."""
        if is_modern(request.headers, None):
            raise refused(NOT_ALLOWED, f"There is no {request.method} in this version")
        return self._session(request)

    def _session(self, request: Request) -> McpSession:
        session_id = request.headers.get(SESSION)
        if session_id is None:
            raise refused(BAD_REQUEST, "Missing session id: send `initialize`, or a 2026-07-28 request")
        session = self._sessions.find(session_id, _owner(request))
        if session is None:
            raise refused(NOT_FOUND, "Session not found")
        return session

    # -- both ------------------------------------------------------------------------------------

    def _connection(self, request: Request, *, stateless: bool) -> ClientConversation:
        catalog = self._offer.catalog(caller_of(request))
        return self._offer.connection(catalog, __version__, stateless=stateless, local=is_local(request))

    def _conversation(self, connection: ClientConversation) -> Conversation:
        return Conversation(self._desk, connection, self._offer.do)

    async def _serve(
        self,
        conversation: Conversation,
        request: Request,
        send: Send,
        message: object,
        size: int,
        *,
        stateless: bool = False,
    ) -> None:
        """Have a message answered; left when all the jobs it began have ended."""
        with self._desk.unsent.held(payer_of(request.scope)) as unsent:
            async with anyio.create_task_group() as tasks:
                exchange = Exchange(
                    caller_of(request),
                    key=key_of(request),
                    unsent=unsent,
                    request_id=request_id_of(request),
                    arrived=self._desk.monotonic(),
                    tasks=tasks,
                    give_place_back=place_of(request),
                    recheck=recheck_of(request),
                )
                conversation.take(message, size, exchange)

                async def watch() -> None:
                    await left(request.receive)
                    if stateless:
                        conversation.leave(exchange)
                    exchange.outbox.close()

                async with anyio.create_task_group() as watching:
                    watching.start_soon(watch)
                    if not await self._respond(send, exchange, stateless=stateless):
                        conversation.leave(exchange)
                    watching.cancel_scope.cancel()
                await exchange.settled.wait()

    async def _respond(self, send: Send, exchange: Exchange, *, stateless: bool) -> bool:
        """One JSON answer where that is all there is to say, else a stream; whether the client was welcome to
        the end."""
        first = await first_of(exchange.outbox)
        if not exchange.outbox.exhausted:
            return await stream(send, exchange.outbox, first, still=partial(self._welcome, exchange.recheck))
        if first is None:
            await answer(send, 202)
        else:
            exchange.unsent.give_back()  # from here on it is counted as it is sent
            await answer(send, _status(first, stateless=stateless), first)
        return True


def _status(reply: Outgoing, *, stateless: bool) -> int:
    fields = as_object(reply) or {}
    error = as_object(fields.get("error"))
    if error is None:
        return 200
    if not stateless:
        return 200 if fields.get("id") is not None else BAD_REQUEST
    code = error.get("code")
    return _STATUS.get(code, 200) if isinstance(code, int) else 200


def _asked(message: object) -> jsonrpc.Request | None:
    try:
        return jsonrpc.read_request(message)
    except ProtocolError:
        return None


def _refusal(request: Request, refusal: HeaderRefused) -> Message:
    reply = jsonrpc.error_reply(refusal.request_id, refusal.error)
    if refusal.request_id is None and is_modern(request.headers, None):
        del reply["id"]  # the stateless era lets it be absent, never null
    return reply


def _hints(request: Request, refusal: HeaderRefused) -> dict[str, str]:
    if refusal.status == NOT_ALLOWED:
        return {"allow": "POST" if is_modern(request.headers, None) else "GET, POST, DELETE"}
    if isinstance(refusal, _TooOften):
        return retry_after(refusal.seconds)
    return retry_after(SESSION_SECONDS) if refusal.status == UNAVAILABLE else {}


class _TooOften(HeaderRefused):
    """More messages than may come now."""

    def __init__(self, seconds: float, why: str, request_id: RequestId | None = None) -> None:
        error = ProtocolError(jsonrpc.INVALID_REQUEST, why)
        super().__init__(RATE_LIMITED.status, error, request_id)
        self.seconds = seconds


def _charge(request: Request, messages: int) -> None:
    """Count a batch as so many requests; as one it has been counted."""
    if messages > MOST_BATCHED:
        raise refused(BAD_REQUEST, f"Invalid request: more than {MOST_BATCHED} messages in a batch")
    wait = charge_of(request)(messages - 1) if messages > 1 else 0.0
    if wait:
        raise _TooOften(wait, f"{RATE_LIMITED.message} {RATE_LIMITED.hint}")


def _check_room(conversation: Conversation, message: object) -> None:
    """Refuse calls that would be too many unfinished ones. A ping is none, nor is what has no answer."""
    messages = message if isinstance(message, list) else [message]
    asked = [one for one in map(_asked, messages) if one is not None]
    calls = [one.id for one in asked if one.id is not None and one.method != "ping"]
    if calls and not conversation.has_room_for(len(calls)):
        why = "Too many calls of this session are unfinished. Wait for answers before you send more."
        raise _TooOften(UNFINISHED_SECONDS, why, None if isinstance(message, list) else calls[0])


def _owner(request: Request) -> object:
    """Whose a session is: the key's that opened it."""
    return key_of(request), caller_of(request).name
