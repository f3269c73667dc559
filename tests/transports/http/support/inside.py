"""The server's ASGI application in this process, for plain httpx clients.

with inside(world.app) as transport, httpx.Client(transport=transport, base_url=URL) as http:
    http.post("/api/v1/search", json={"query": "tea"})
"""

from collections.abc import Iterator
from contextlib import contextmanager

import anyio
import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal
from starlette.types import ASGIApp

from vestige.operations.registry.groups import registry
from vestige.settings.sections import AuthSettings
from vestige.transports.http import rest
from vestige.transports.http.app import build_app
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext
from vestige.transports.mcp.service import ServerApplication

URL = "http://127.0.0.1:3927"


class Inside(httpx.BaseTransport):
    """Hands requests to an application, and waits for the whole answer."""

    def __init__(self, portal: BlockingPortal, app: ASGIApp) -> None:
        self._portal = portal
        self.app = app
        self._transport = httpx.ASGITransport(app)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.headers.setdefault("X-Request-Id", "test")  # or one would be taken from the test's own ids

        async def answered() -> httpx.Response:
            response = await self._transport.handle_async_request(request)
            content = await response.aread()
            return httpx.Response(response.status_code, headers=response.headers, content=content)

        return self._portal.call(answered)


@contextmanager
def inside(app: ServerApplication) -> Iterator[Inside]:
    """REST on an application that belongs to the test. Everybody may do everything."""
    settings = app.engine.settings.model_copy(update={"auth": AuthSettings(enabled=False)})
    context = ServerContext(
        app=app,
        settings=settings,
        registry=registry,
        monotonic=app.engine.monotonic,
        entropy=app.engine.entropy,
        limiter=anyio.CapacityLimiter(8),
    )
    with start_blocking_portal() as portal:
        yield Inside(portal, build_app(context, Auth(context, bytes(64)), [rest.routes]))
