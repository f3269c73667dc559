"""The server as an ASGI application: the routes of every part behind the layers that all requests pass."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.core.errors import INSIDE, VestigeError
from vestige.operations.registry.privacy import in_general
from vestige.transports.http import health, metrics, rest
from vestige.transports.http.auth import login
from vestige.transports.http.auth.addresses import bind_of
from vestige.transports.http.auth.gate import Auth, Gate, public
from vestige.transports.http.auth.hosts import AllowedNames, Hosts, Origins
from vestige.transports.http.context import Desk, request_id_of
from vestige.transports.http.events import endpoints
from vestige.transports.http.limits.bodies_and_rates import PROBES, BodyLimit, RateLimit
from vestige.transports.http.limits.fair_queue import Bodies, Concurrency, RequestShare
from vestige.transports.http.limits.responses import Answers
from vestige.transports.http.mcp import endpoint
from vestige.transports.http.middleware.access_log import ServerAccessLog
from vestige.transports.http.middleware.security_headers import SecurityHeaders
from vestige.transports.http.problems import failure, gone, problem, refusal_of

Part = Callable[[Desk], Sequence[BaseRoute]]
"""Makes the routes of a part of the server."""

PARTS: tuple[Part, ...] = (rest.routes, endpoint.routes, endpoints.routes)


def build(desk: Desk, auth: Auth, parts: Sequence[Part] = PARTS) -> ASGIApp:
    """The application."""
    counted = metrics.Metrics()
    inside = Starlette(
        routes=routes(desk, auth, counted, parts),
        lifespan=lambda _: _owning(desk),
        exception_handlers={
            VestigeError: _refuse,
            HTTPException: _not_found,
            ClientDisconnect: gone,
            Exception: _fail,
        },
    )
    entry = ServerAccessLog(_layers(inside, desk, auth), desk, inside.routes, counted)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # Starting and stopping is no request, and passes no layer.
        await (inside if scope["type"] == "lifespan" else entry)(scope, receive, send)

    return serve


def routes(
    desk: Desk, auth: Auth, counted: metrics.Metrics, parts: Sequence[Part] = PARTS
) -> list[BaseRoute]:
    """Everything that the application has an address for."""
    return [
        *health.routes(desk),
        *metrics.routes(desk, counted),
        *login.routes(desk, auth),
        *(route for part in parts for route in part(desk)),
    ]


def _layers(inside: ASGIApp, desk: Desk, auth: Auth) -> ASGIApp:
    """What a request passes, innermost first."""
    server = desk.settings.server
    names = AllowedNames.of(bind_of(server.bind), server.allowed_hosts, server.allowed_origins)
    is_public = public(desk.public)
    app: ASGIApp = Concurrency(inside, server.max_concurrent, is_public)
    app = Bodies(app, server.max_body_bytes, is_public)
    app = RateLimit(app, server.requests_per_minute, desk.monotonic)
    app = Answers(app, desk.unsent)
    app = RequestShare(app, desk.most_connections, PROBES.__contains__)
    app = Gate(app, auth, is_public)
    app = BodyLimit(app, server.max_body_bytes)
    app = Origins(app, names)
    app = Hosts(app, names)
    return SecurityHeaders(app)


@asynccontextmanager
async def _owning(desk: Desk) -> AsyncIterator[None]:
    """Open what parts of the server own, and close it in reverse."""
    async with AsyncExitStack() as stack:
        for owned in desk.owned:
            await stack.enter_async_context(owned())
        yield


async def _refuse(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, VestigeError)
    request_id = request_id_of(request)
    return problem(in_general(exc, request_id) if isinstance(exc, INSIDE) else exc, request_id)


async def _not_found(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    return problem(refusal_of(exc), request_id_of(request), exc.headers)


async def _fail(request: Request, exc: Exception) -> Response:
    return failure(request_id_of(request))  # and it goes on to the outermost layer, which logs it
