"""MCP over HTTP for an application of a test, without what stands before it in the product."""

import os
import time
from dataclasses import replace

import anyio
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from vestige.core.caller import LOCAL_USER, Invocation
from vestige.engine.context import Engine
from vestige.operations.registry.registry import Registry
from vestige.settings.settings import load_settings
from vestige.transports.http.context import ServerContext
from vestige.transports.http.mcp import endpoint as mcp
from vestige.transports.mcp.catalog import Catalog, packaged
from vestige.transports.mcp.protocol.jsonrpc import Message
from vestige.transports.mcp.service import Service


class Echo:
    """Repeats what it is given."""

    def call_tool(self, invocation: Invocation) -> Message:
        invocation.progress(1, 2, "half")
        return {"echo": dict(invocation.arguments)}

    def read_resource(self, invocation: Invocation) -> Message:
        return {"uri": invocation.name}

    def close(self) -> None:
        pass


class Borrowed:
    """An application that belongs to the test, so the server's closing it does nothing."""

    def __init__(self, app: Service) -> None:
        self._app = app

    @property
    def engine(self) -> Engine:
        raise NotImplementedError

    def call_operation(self, invocation: Invocation) -> Message:
        raise NotImplementedError

    def call_tool(self, invocation: Invocation) -> Message:
        return self._app.call_tool(replace(invocation, deadline=None))  # its clock is the test's

    def read_resource(self, invocation: Invocation) -> Message:
        return self._app.read_resource(replace(invocation, deadline=None))

    def close(self) -> None:
        pass


def endpoint(app: Service, catalog: Catalog | None) -> ASGIApp:
    """MCP over HTTP alone, without what stands before it in the product: everybody is the local user."""
    context = ServerContext(
        app=Borrowed(app),
        settings=load_settings({"data_dir": "/nowhere"}, environ={}),
        registry=Registry(),
        monotonic=time.monotonic,
        entropy=os.urandom,
        limiter=anyio.CapacityLimiter(8),
    )
    shown = catalog or packaged()
    inside = Starlette(routes=mcp.routes(context, mcp.Served(catalog=lambda caller: shown)))

    async def let_in(scope: Scope, receive: Receive, send: Send) -> None:
        scope.setdefault("state", {}).update(
            caller=LOCAL_USER, request_id="test", key_id="", recheck=lambda: True
        )
        await inside(scope, receive, send)

    return let_in
