"""The bridge as an ASGI application, its routes behind the middleware that every request passes; and its
process."""

import math
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import field, replace
from datetime import datetime

import anyio
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.core.errors import ConfigError, InvalidInput, TooLarge, VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.settings.settings import Settings
from vestige.transports.bridge import requests
from vestige.transports.bridge.answers import BridgeRefused, answer, truncated
from vestige.transports.bridge.auth import UNAUTHENTICATED, TokenGate, agent_of
from vestige.transports.bridge.child import ChildLost, Fault, Message
from vestige.transports.bridge.isolation import call_apart
from vestige.transports.bridge.supervisor import ChildDown, NoAnswer, Supervisor
from vestige.transports.http import run
from vestige.transports.http.auth.addresses import bind_of
from vestige.transports.http.auth.failures import FailedLogins
from vestige.transports.http.auth.hosts import AllowedNames, Hosts, Origins
from vestige.transports.http.context import parse_body, parser_limiter
from vestige.transports.http.limits.bodies_and_rates import PROBES, BodyLimit, RateLimit
from vestige.transports.http.limits.connections import (
    ConnectionLimits,
    Connections,
    LimitedListener,
    affordable,
)
from vestige.transports.http.limits.fair_queue import BodyBuffer, ConcurrencyLimit
from vestige.transports.http.middleware.access_log import AccessLog
from vestige.transports.http.middleware.security_headers import SecurityHeaders
from vestige.transports.http.problems import NO_SUCH_ROUTE, Refusal, client_gone, failure, problem, refusal_of

IDEMPOTENCY = "Idempotency-Key"
MAX_KEY_CHARS = 200
HEALTH_SECONDS = 2.0
"""How long the process may take to answer a health check."""

NOT_READY = Refusal(status=503, code="not_ready", message="vestige-mcp not ready")
LOST = Refusal(
    status=502,
    code="child_lost",
    message="vestige-mcp ended before it answered. Whether it carried out the request is not known.",
    hint="Another process is being started. Check the result before you send the request again.",
)
DOWN = Refusal(
    status=502,
    code="child_down",
    message="vestige-mcp cannot be started.",
    hint="The log of the bridge has the reason. The request was not carried out.",
)
SLOW = Refusal(
    status=502,
    code="timeout",
    message="vestige-mcp did not answer in time. Whether it carried out the request is not known.",
    hint=f"VESTIGE_REQUEST_TIMEOUT is the limit. With the same {IDEMPOTENCY} a memory can be sent again.",
)
NOWHERE = replace(NO_SUCH_ROUTE, hint=f"There are: {', '.join(requests.READERS)}, /health, /readyz.")
Handler = Callable[[Request], Awaitable[Response]]
_WITHOUT_ANSWER: dict[type[Exception], Refusal] = {ChildLost: LOST, ChildDown: DOWN, NoAnswer: SLOW}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bridge:
    """The shared state of the routes."""

    settings: Settings
    supervisor: Supervisor
    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    new_id: Callable[[], str]
    token: str | None
    reading: anyio.CapacityLimiter = field(default_factory=parser_limiter)


def build(bridge: Bridge) -> ASGIApp:
    """Build the application. The process behind it runs from its start to its end."""

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with bridge.supervisor.running():
            yield

    began = bridge.monotonic()
    inside = Starlette(
        routes=[
            *(Route(path, _handler(bridge, path), methods=["POST"]) for path in requests.READERS),
            Route("/health", _health(bridge, began), methods=["GET"]),
            Route("/readyz", _readyz(bridge), methods=["GET"]),
        ],
        lifespan=lifespan,
        exception_handlers={
            BridgeRefused: _refuse, VestigeError: _refuse, HTTPException: _refuse,
            ClientDisconnect: client_gone, Exception: _fail,
        },
    )  # fmt: skip
    entrance = AccessLog(
        _layers(inside, bridge),
        new_id=bridge.new_id,
        now=bridge.now,
        monotonic=bridge.monotonic,
        routes=inside.routes,
        unknown={"agent": "", "key_id": ""},
        who=lambda state: {"agent": state["agent"]},  # checked; nothing else that the client sent is logged
    )

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # Startup and shutdown are not requests, and pass no middleware.
        await (inside if scope["type"] == "lifespan" else entrance)(scope, receive, send)

    return serve


def _layers(inside: ASGIApp, bridge: Bridge) -> ASGIApp:
    """The middleware of every request, innermost first."""
    server = bridge.settings.server
    names = AllowedNames.of(
        bind_of(bridge.settings.bridge.bind), server.allowed_hosts, server.allowed_origins
    )
    is_probe = PROBES.__contains__
    app: ASGIApp = ConcurrencyLimit(inside, server.max_concurrent, is_probe)
    app = BodyBuffer(app, server.max_body_bytes, is_probe)
    app = RateLimit(app, server.requests_per_minute, bridge.monotonic)
    app = TokenGate(
        app, bridge.token, FailedLogins(UNAUTHENTICATED, server.requests_per_minute, bridge.monotonic)
    )
    app = BodyLimit(app, server.max_body_bytes)
    app = Origins(app, names)
    if bridge.token is None:
        # A page whose name resolves to this server could use the bridge (DNS rebinding). It cannot where a
        # token is needed, and there agents may use any name that their network has for the bridge.
        app = Hosts(app, names)
    return SecurityHeaders(app)


def _handler(bridge: Bridge, path: str) -> Handler:
    async def handle(request: Request) -> Response:
        agent = agent_of(request.headers)
        request.state.agent = agent or ""
        origin = requests.RequestOrigin(agent=agent, idempotency_key=_key(bridge, request))
        body = await parse_body(bridge.reading, await request.body(), _body, count_all=True)
        asked = requests.read(path, body, origin)
        try:
            result = await _result(bridge, asked, agent)
        except tuple(_WITHOUT_ANSWER) as exc:
            raise BridgeRefused(_WITHOUT_ANSWER[type(exc)]) from None
        except Fault as exc:
            raise BridgeRefused(Refusal(status=502, code="protocol", message=f"vestige-mcp: {exc}")) from None
        return _json(answer(truncated(result, asked.truncate)))

    return handle


async def _result(bridge: Bridge, asked: requests.ToolCall, agent: str | None) -> Message:
    settings = bridge.settings.bridge

    async def send(call: requests.ToolCall) -> Message:
        seconds = settings.long_timeout if call.long else settings.request_timeout
        return await bridge.supervisor.call(
            call.tool, call.arguments, seconds=seconds, again=call.again, long=call.long
        )

    if not settings.isolate_agents:
        return await send(asked)
    return await call_apart(asked, agent, send, limit=bridge.settings.memory.limit)


def _key(bridge: Bridge, request: Request) -> str:
    """The idempotency key of a request: the one that the client sent, or a new one."""
    given = request.headers.get(IDEMPOTENCY, "").strip()
    if len(given) > MAX_KEY_CHARS:
        raise BridgeRefused(
            Refusal(status=400, code="bad_idempotency_key", message=f"{IDEMPOTENCY} is too long.")
        )
    return given or bridge.new_id()


def _body(raw: bytes) -> Message:
    try:
        body = orjson.loads(raw) if raw.strip() else {}
    except ValueError:
        raise InvalidInput("The body is not JSON.") from None
    if not isinstance(body, dict):
        raise InvalidInput("The body is not a JSON object.")
    return body


def _health(bridge: Bridge, began: float) -> Handler:
    async def health(_: Request) -> Response:
        lives = bridge.supervisor.child is not None
        connected = lives and await bridge.supervisor.answers(HEALTH_SECONDS)
        status: Message = {
            "status": "healthy" if connected else "unhealthy",
            "vestige_process": lives,
            "vestige_connected": connected,
            "uptime_seconds": round(bridge.monotonic() - began, 1),
        }
        return _json(status, 200 if connected else 503)

    return health


def _readyz(bridge: Bridge) -> Handler:
    async def readyz(_: Request) -> Response:
        if bridge.supervisor.child is None:
            raise BridgeRefused(NOT_READY)
        return _json({"ready": True})

    return readyz


def _json(value: Message, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status_code=status, media_type="application/json")


async def _refuse(request: Request, exc: Exception) -> Response:
    request_id = request.state.request_id
    match exc:
        case BridgeRefused():
            return problem(exc.refusal, request_id)
        case InvalidInput() if not isinstance(exc, TooLarge):
            why = Refusal(status=422, code=exc.code, message=exc.message, hint=exc.hint, details=exc.details)
            return problem(why, request_id)
        case VestigeError():
            return problem(exc, request_id)
        case HTTPException(status_code=404):
            return problem(NOWHERE, request_id)
        case HTTPException():
            return problem(refusal_of(exc), request_id, exc.headers)
        case _:
            return failure(request_id)


async def _fail(request: Request, exc: Exception) -> Response:
    return failure(request.state.request_id)  # the outermost layer logs the exception


OWN_PROGRAM = ("-P", "-m", "vestige.transports.mcp.stdio")
"""Our `vestige-mcp`, run by this interpreter without the working directory on its path."""


def child_command(settings: Settings, options: Sequence[str]) -> list[str]:
    """The command that starts `vestige-mcp`, with further options; ConfigError if the program is missing."""
    binary = settings.bridge.binary
    words = ["--data-dir", str(settings.data_dir), *options]
    if not binary:
        return [sys.executable, *OWN_PROGRAM, *words]
    found = shutil.which(binary)
    if found is None:
        raise ConfigError(
            f"There is no program {binary}.",
            hint="VESTIGE_BINARY names the `vestige-mcp` to run. Without it the one of this installation "
            "is used.",
            details={"setting": "bridge.binary"},
        )
    return [found, *words]


def serve(app: ASGIApp, settings: Settings, opened: LimitedListener, started: Callable[[], None]) -> None:
    """Serve until a signal ends it. `started` is called when requests are accepted."""
    connections = Connections(limits=ConnectionLimits(most=affordable(settings.server.max_connections)))
    end_seconds = math.ceil(settings.server.shutdown_seconds)
    config = run.server_config(app, settings, connections, ws="none", end_seconds=end_seconds)
    opened.connections = connections
    run.SignalledServer(config, started).run(sockets=[opened])
