"""A server under test on a real socket, in a thread of this process: the layers and parts of the product."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio

from tests.conformance.connection import FixtureConnection, do
from tests.conformance.fixtures import with_fixtures
from tests.transports.http_socket import served
from tests.world import open_world
from vestige.operations.all import registry
from vestige.transports.http import asgi, mcp
from vestige.transports.http.auth import Auth
from vestige.transports.http.desk import Application, Desk
from vestige.transports.mcp.catalog import packaged_data

OPEN: dict[str, Any] = {
    "server.requests_per_minute": 0,
    "auth.enabled": False,
}
"""Settings of a server that needs no key and counts no requests."""


def with_suite_fixtures(desk: Desk) -> mcp.Offer:
    """What the suites need, beside all that Vestige offers."""
    catalog = mcp.catalogs(desk, with_fixtures(packaged_data()))
    return mcp.Offer(catalog=catalog, connection=FixtureConnection, do=do)


def _nothing_else(desk: Desk) -> mcp.Offer | None:
    return None


@contextmanager
def fixture_server(folder: Path) -> Iterator[str]:
    """The address of MCP on a server of a new store that has the fixtures and needs no key."""
    with open_world(folder, **OPEN) as world, serving(world.app, with_suite_fixtures) as url:
        yield url


@contextmanager
def serving(app: Application, offering: Callable[[Desk], mcp.Offer | None] = _nothing_else) -> Iterator[str]:
    """Serve an application, which is left open; the address of MCP."""
    desk = Desk(
        app=app,
        settings=app.engine.settings,
        registry=registry,
        monotonic=app.engine.monotonic,
        entropy=app.engine.entropy,
        limiter=anyio.CapacityLimiter(16),
    )
    inside = asgi.build(desk, Auth(desk, b"x" * 64), [lambda desk: mcp.routes(desk, offering(desk))])
    with served(inside) as url:
        yield f"{url}{mcp.PATH}"
