"""A server under test on a real socket, in a thread of this process: the product, with all its layers and
parts, and the suites' fixtures among what it offers."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
from starlette.types import ASGIApp, Receive, Scope, Send

from testbed.world import open_world
from tests.transports.conformance.connection import FixtureConnection, do
from tests.transports.conformance.fixtures import with_fixtures
from tests.transports.http.support.socket import served
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.transports.http import app, rest
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext
from vestige.transports.http.events import endpoints
from vestige.transports.http.mcp import endpoint
from vestige.transports.mcp.catalog import packaged_data

UNCOUNTED: dict[str, Any] = {"server.requests_per_minute": 0}


def with_suite_fixtures(context: ServerContext) -> endpoint.Served:
    """What the suites need, beside all that Vestige offers."""
    catalog = endpoint.catalogs(context, with_fixtures(packaged_data()))
    return endpoint.Served(catalog=catalog, connection=FixtureConnection, do=do)


@contextmanager
def fixture_server(folder: Path) -> Iterator[str]:
    """The address of MCP on a server of a new store that has the fixtures."""
    with open_world(folder, **UNCOUNTED) as world:
        engine = world.app.engine
        context = ServerContext(
            app=world.app,
            settings=engine.settings,
            registry=registry,
            monotonic=engine.monotonic,
            entropy=engine.entropy,
            limiter=anyio.CapacityLimiter(16),
        )
        parts = (
            rest.routes,
            lambda context: endpoint.routes(context, with_suite_fixtures(context)),
            endpoints.routes,
        )
        _, key = keys.mint(Call(engine=engine), "the suites", ["write"], None, None, None)
        with served(_with_key(app.build_app(context, Auth(context, bytes(64)), parts), key)) as url:
            yield f"{url}{endpoint.PATH}"


def _with_key(server: ASGIApp, key: str) -> ASGIApp:
    """A server behind what adds a key to every request: the suites have no way to send one."""
    shown = (b"authorization", f"Bearer {key}".encode())

    async def pass_on(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], shown]}
        await server(scope, receive, send)

    return pass_on
