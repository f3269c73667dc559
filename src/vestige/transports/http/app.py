"""The server as an ASGI application: all routes, behind the middleware that every request passes."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.core.errors import INSIDE, VestigeError
from vestige.operations.registry.registry import generic_error
from vestige.transports.dashboard import pages as dashboard
from vestige.transports.http import rest
from vestige.transports.http.auth import login
from vestige.transports.http.auth.addresses import bind_of
from vestige.transports.http.auth.gate import Auth, Gate, public_paths
from vestige.transports.http.auth.hosts import AllowedNames, Hosts, Origins
from vestige.transports.http.context import ServerContext, request_id_of
from vestige.transports.http.events import endpoints
from vestige.transports.http.limits.bodies_and_rates import PROBES, BodyLimit, RateLimit
from vestige.transports.http.limits.fair_queue import BodyBuffer, ConcurrencyLimit, RequestShare
from vestige.transports.http.limits.responses import UnreadLimit
from vestige.transports.http.mcp import endpoint
from vestige.transports.http.middleware.access_log import ANONYMOUS, AccessLog
from vestige.transports.http.middleware.error_pages import ErrorPages
from vestige.transports.http.middleware.security_headers import SecurityHeaders
from vestige.transports.http.problems import client_gone, failure, problem, refusal_of
from vestige.transports.http.status import health, metrics
from vestige.transports.http.workers.group import rows_of
from vestige.transports.http.workers.peer_relay import Forwarding

Part = Callable[[ServerContext], Sequence[BaseRoute]]
"""Makes the routes of a part of the server."""

PARTS: tuple[Part, ...] = (rest.routes, endpoint.routes, endpoints.routes, dashboard.routes)


def build_app(context: ServerContext, auth: Auth, parts: Sequence[Part] = PARTS) -> ASGIApp:
    counted = metrics.Metrics()
    inside = Starlette(
        routes=routes(context, auth, counted, parts),
        lifespan=lambda _: _owning(context),
        exception_handlers={
            VestigeError: _refuse,
            HTTPException: _not_found,
            ClientDisconnect: client_gone,
            Exception: _fail,
        },
    )
    entry = AccessLog(
        _layers(inside, context, auth),
        new_id=context.app.engine.new_id,
        now=context.app.engine.now,
        monotonic=context.monotonic,
        routes=inside.routes,
        unknown={"caller": ANONYMOUS, "via": "", "key_id": "", "recheck": lambda: True},
        who=lambda state: {"caller": state["caller"].name, "via": state["via"]},
        metrics=counted,
    )

    if context.group is None:
        served: ASGIApp = entry
    else:
        served = Forwarding(entry, context.group, endpoint.PATH)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        # Startup and shutdown are not requests, and pass no middleware.
        await (inside if scope["type"] == "lifespan" else served)(scope, receive, send)

    return serve


def routes(
    context: ServerContext, auth: Auth, counted: metrics.Metrics, parts: Sequence[Part] = PARTS
) -> list[BaseRoute]:
    return [
        *health.routes(context),
        *metrics.routes(context, counted),
        # Before the login: without the dashboard, the login is the start page.
        *(route for part in parts for route in part(context)),
        *login.routes(context, auth),
    ]


def _layers(inside: ASGIApp, context: ServerContext, auth: Auth) -> ASGIApp:
    """The middleware of every request, innermost first."""
    server = context.settings.server
    names = AllowedNames.of(bind_of(server.bind), server.allowed_hosts, server.allowed_origins)
    is_public = public_paths(context.public)
    app: ASGIApp = ConcurrencyLimit(inside, server.max_concurrent, is_public)
    app = BodyBuffer(app, server.max_body_bytes, is_public, buffered=context.buffered_bodies)
    requests = rows_of(context.group, "requests")
    app = RateLimit(app, server.requests_per_minute, context.monotonic, requests)
    app = UnreadLimit(app, context.unsent)
    app = RequestShare(app, context.most_connections, PROBES.__contains__)
    app = Gate(app, auth, is_public)
    app = BodyLimit(app, server.max_body_bytes)
    app = Origins(app, names)
    app = Hosts(app, names)
    app = ErrorPages(app)
    return SecurityHeaders(app)


@asynccontextmanager
async def _owning(context: ServerContext) -> AsyncIterator[None]:
    """Enter the context managers that parts of the server registered, and leave them in reverse order."""
    async with AsyncExitStack() as stack:
        for owned in context.owned:
            await stack.enter_async_context(owned())
        yield


async def _refuse(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, VestigeError)
    request_id = request_id_of(request)
    return problem(generic_error(exc, request_id) if isinstance(exc, INSIDE) else exc, request_id)


async def _not_found(request: Request, exc: Exception) -> Response:
    assert isinstance(exc, HTTPException)
    return problem(refusal_of(exc), request_id_of(request), exc.headers)


async def _fail(request: Request, exc: Exception) -> Response:
    return failure(request_id_of(request))  # the outermost layer logs the exception
