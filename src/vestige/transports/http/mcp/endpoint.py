"""MCP over Streamable HTTP at /mcp, in both eras, with the protocol core that also serves stdio.

Stateless era: each POST is a conversation of its own, and a client that closes the response cancels its
request. Handshake era: `initialize` opens a session, GET opens a stream for messages that answer no request,
DELETE ends the session; a lost response cancels nothing there. Reasons: ADR 0022.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import anyio
from anyio.to_thread import run_sync
from starlette.requests import ClientDisconnect, Request
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from vestige import __version__
from vestige.core.caller import Caller
from vestige.core.errors import StoreError, TooLarge
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access
from vestige.transports.http.auth.addresses import is_local, payer_of
from vestige.transports.http.context import (
    Gauge,
    ServerContext,
    caller_of,
    key_of,
    parse_body,
    recheck_of,
    request_id_of,
    slot_release_of,
)
from vestige.transports.http.limits.bodies_and_rates import RATE_LIMITED, charge_of, retry_after
from vestige.transports.http.limits.responses import wait_for_disconnect
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
from vestige.transports.http.workers.group import held_elsewhere
from vestige.transports.mcp.catalog import WHOLE_STORE, Catalog, is_in_project, packaged_data
from vestige.transports.mcp.protocol import jsonrpc, versions
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.jsonrpc import Message, ProtocolError, RequestId, as_id, as_object
from vestige.transports.mcp.protocol.messages import Send as SendAction

logger = logging.getLogger(__name__)

PATH = "/mcp"
MAX_BATCH = 100
"""Most messages in one request, in versions that have batches."""

SESSION_SECONDS = 60.0
"""Retry-After when no session can be opened."""
UNFINISHED_SECONDS = 1.0
"""Retry-After when too many calls of a session are unfinished."""

BAD_REQUEST, NOT_FOUND, NOT_ALLOWED, CONFLICT, UNAVAILABLE = 400, 404, 405, 409, 503

_BAD = (
    jsonrpc.PARSE_ERROR,
    jsonrpc.INVALID_REQUEST,
    jsonrpc.INVALID_PARAMS,
    HEADER_MISMATCH,
    versions.MISSING_CAPABILITY,
    versions.UNSUPPORTED_VERSION,
)
_STATUS = {**dict.fromkeys(_BAD, BAD_REQUEST), jsonrpc.METHOD_NOT_FOUND: NOT_FOUND}


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What the endpoint serves: the catalog of each caller, the information about the server, and the
    function that runs jobs."""

    catalog: Callable[[Caller], Catalog]
    connection: type[ClientConversation] = ClientConversation
    do: Run = run_job


def routes(context: ServerContext, served: Served | None = None) -> list[BaseRoute]:
    return [Route(PATH, Endpoint(context, served or Served(catalog=catalogs(context, packaged_data()))))]


def catalogs(context: ServerContext, data: Message) -> Callable[[Caller], Catalog]:
    """A function that returns the catalog of what a caller may use."""
    made: dict[frozenset[str], Catalog] = {}
    profile, instructions = context.settings.mcp.profile, context.settings.mcp.instructions
    in_project = is_in_project()

    def of(caller: Caller) -> Catalog:
        granted = caller.permissions
        if caller.access == EVERYTHING:
            granted |= {WHOLE_STORE}
        if granted not in made:  # few, whatever the number of callers
            made[granted] = Catalog(data, profile, instructions, granted, in_project=in_project)
        return made[granted]

    return of


class Endpoint:
    """The handler of /mcp."""

    def __init__(self, context: ServerContext, served: Served) -> None:
        self._context = context
        self._served = served
        server = context.settings.server
        self._sessions = Sessions(
            most=server.max_sessions,
            idle_seconds=60 * server.session_idle_minutes,
            monotonic=context.monotonic,
            entropy=context.entropy,
            prefix=f"w{context.group.number}-" if context.group else "",
            elsewhere=held_elsewhere(context.group, "sessions"),
        )
        if context.group:
            context.group.has_session = self._sessions.has
            context.group.hand_over, context.group.take_over = self.hand_over, self.take_over
        # Its own thread: checking a key does not wait for long work.
        self._rechecking = anyio.CapacityLimiter(1)
        context.gauges["mcp_sessions"] = Gauge("MCP sessions that are open.", lambda: len(self._sessions))
        self._handlers = {"POST": self._post, "GET": self._get, "DELETE": self._delete}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            handler = self._handlers.get(request.method)
            if handler is None:
                raise refused(NOT_ALLOWED, f"{request.method} is not supported at this address")
            await handler(request, send)
        except HeaderRefused as refusal:
            await answer(send, refusal.status, _refusal(request, refusal), _hints(request, refusal))
        except ClientDisconnect:
            return

    # -- Methods

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
        """The message of a request, and its size in bytes. The bytes are not kept: a call may wait long."""
        body = b"".join([piece async for piece in request.stream()])
        try:
            return await parse_body(self._context.reading, body, jsonrpc.parse), len(body)
        except ProtocolError as error:
            raise HeaderRefused(BAD_REQUEST, error) from None
        except TooLarge as error:
            failure = ProtocolError(jsonrpc.INVALID_REQUEST, error.message, {"error": error.value()})
            raise HeaderRefused(error.status, failure) from None

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
                    await wait_for_disconnect(request.receive)
                    tasks.cancel_scope.cancel()

                async def stop() -> None:
                    await self._context.stopping.wait()
                    conversation.listener.close()

                tasks.start_soon(leave)
                tasks.start_soon(stop)
                await stream(
                    send, conversation.listener, still=partial(self._key_is_valid, recheck_of(request))
                )
                tasks.cancel_scope.cancel()
        finally:
            conversation.listening = False
            self._sessions.used(session)

    async def _key_is_valid(self, recheck: Callable[[], bool]) -> bool:
        try:
            return await run_sync(recheck, limiter=self._rechecking)
        except StoreError as error:  # a failure of the store must not end streams
            logger.info("The key of an MCP stream could not be checked: %s", error.message)
            return True

    async def _delete(self, request: Request, send: Send) -> None:
        self._sessions.end(self._asked_session(request))
        await answer(send, 204)

    # -- Sessions that move from one worker to another

    def hand_over(self) -> list[dict[str, Any]]:
        """The sessions without a request under way, for another worker. They end here."""
        handed = []
        for session in self._sessions.all():
            if not session.conversation.busy:
                handed.append(_portable(session))
                self._sessions.end(session)
        return handed

    def take_over(self, sessions: list[dict[str, Any]]) -> None:
        """Go on with sessions of another worker."""
        for one in sessions:
            caller = Caller(
                name=one["name"],
                permissions=frozenset(one["permissions"]),
                access=EVERYTHING if one["everything"] else Access(scopes=()),
            )
            state = one["state"]
            connection = self._served.connection(
                self._served.catalog(caller), __version__, stateless=False, local=state["local"]
            )
            connection.resume(state)
            self._sessions.add(one["id"], (one["key"], one["name"]), self._conversation(connection), caller)

    # -- The stateless era

    async def _stateless(self, request: Request, send: Send, message: object, size: int) -> None:
        fields = as_object(message) or {}
        if jsonrpc.is_reply(fields):
            raise refused(BAD_REQUEST, "Invalid request: it has no message that can be answered")
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

    # -- The handshake era

    async def _greet(self, request: Request, send: Send, message: object, size: int) -> None:
        connection = self._connection(request, stateless=False)
        replies = [
            action.message for action in connection.take(message, size) if isinstance(action, SendAction)
        ]
        if not connection.greeted:
            await answer(send, BAD_REQUEST, replies[0])
            return
        if not self._sessions.make_room(_owner(request), shared=not key_of(request)):
            raise refused(UNAVAILABLE, "Too many sessions are open")
        session_id = self._sessions.open(_owner(request), self._conversation(connection), caller_of(request))
        await answer(send, 200, replies[0], {SESSION: session_id})

    def _asked_session(self, request: Request) -> McpSession:
        """The session of a request without a message."""
        if is_modern(request.headers, None):
            raise refused(NOT_ALLOWED, f"{request.method} is not supported in this protocol version")
        return self._session(request)

    def _session(self, request: Request) -> McpSession:
        session_id = request.headers.get(SESSION)
        if session_id is None:
            raise refused(BAD_REQUEST, "Missing session id: send `initialize`, or a 2026-07-28 request")
        session = self._sessions.find(session_id, _owner(request))
        if session is None:
            raise refused(NOT_FOUND, "Session not found")
        return session

    def _connection(self, request: Request, *, stateless: bool) -> ClientConversation:
        catalog = self._served.catalog(caller_of(request))
        return self._served.connection(catalog, __version__, stateless=stateless, local=is_local(request))

    def _conversation(self, connection: ClientConversation) -> Conversation:
        return Conversation(self._context, connection, self._served.do)

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
        """Answer a message; returns when all its jobs have ended."""
        with self._context.unsent.held(payer_of(request.scope)) as unsent:
            async with anyio.create_task_group() as tasks:
                exchange = Exchange(
                    caller=caller_of(request),
                    key=key_of(request),
                    unsent=unsent,
                    request_id=request_id_of(request),
                    arrived=self._context.monotonic(),
                    tasks=tasks,
                    release_slot=slot_release_of(request),
                    recheck=recheck_of(request),
                )
                conversation.take(message, size, exchange)

                async def watch() -> None:
                    await wait_for_disconnect(request.receive)
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
        """Send one JSON response if a single message is the whole answer, else a stream. Returns whether the
        key was valid to the end."""
        first = await first_of(exchange.outbox)
        if not exchange.outbox.exhausted:
            return await stream(
                send, exchange.outbox, first, still=partial(self._key_is_valid, exchange.recheck)
            )
        if first is None:
            await answer(send, 202)
        else:
            exchange.unsent.release()  # from here on it is counted while it is sent
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
        del reply["id"]  # in the stateless era it may be absent, but not null
    return reply


def _hints(request: Request, refusal: HeaderRefused) -> dict[str, str]:
    if refusal.status == NOT_ALLOWED:
        return {"allow": "POST" if is_modern(request.headers, None) else "GET, POST, DELETE"}
    if isinstance(refusal, _TooOften):
        return retry_after(refusal.seconds)
    return retry_after(SESSION_SECONDS) if refusal.status == UNAVAILABLE else {}


class _TooOften(HeaderRefused):
    """More messages than the rate limit allows."""

    def __init__(self, seconds: float, why: str, request_id: RequestId | None = None) -> None:
        error = ProtocolError(jsonrpc.INVALID_REQUEST, why)
        super().__init__(RATE_LIMITED.status, error, request_id)
        self.seconds = seconds


def _charge(request: Request, messages: int) -> None:
    """Charge each message of a batch as a request; the first one has been charged."""
    if messages > MAX_BATCH:
        raise refused(BAD_REQUEST, f"Invalid request: more than {MAX_BATCH} messages in a batch")
    wait = charge_of(request)(messages - 1) if messages > 1 else 0.0
    if wait:
        raise _TooOften(wait, f"{RATE_LIMITED.message} {RATE_LIMITED.hint}")


def _check_room(conversation: Conversation, message: object) -> None:
    """Refuse calls beyond the limit of unfinished ones. Pings and notifications do not count."""
    messages = message if isinstance(message, list) else [message]
    asked = [one for one in map(_asked, messages) if one is not None]
    calls = [one.id for one in asked if one.id is not None and one.method != "ping"]
    if calls and not conversation.has_room_for(len(calls)):
        why = "Too many calls of this session are unfinished. Wait for responses before you send more."
        raise _TooOften(UNFINISHED_SECONDS, why, None if isinstance(message, list) else calls[0])


def _owner(request: Request) -> tuple[str, str]:
    """The owner of a session: the key that opened it."""
    return key_of(request), caller_of(request).name


def _portable(session: McpSession) -> dict[str, Any]:
    """A session as JSON. Of the caller that opened it, what decides which tools are listed."""
    opener = session.opener
    return {
        "id": session.id,
        "key": session.owner[0],
        "name": session.owner[1],
        "permissions": sorted(opener.permissions),
        "everything": opener.access == EVERYTHING,
        "state": session.conversation.state(),
    }
