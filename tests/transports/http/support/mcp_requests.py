"""MCP over HTTP, request by request: what clients of either era send, and what comes back."""

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.mcp_endpoint import endpoint
from tests.transports.http.support.socket import served
from tests.transports.mcp.lines import CATALOG, ENVELOPE, MODERN_VERSION
from vestige.transports.http.context import ServerContext
from vestige.transports.http.mcp import endpoint as mcp
from vestige.transports.http.mcp.driver import Conversation, Run
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.service import Service

PATH = "/mcp"
LEGACY_VERSION = "2025-11-25"

ACCEPT = {"Accept": "application/json, text/event-stream"}
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
Headers = dict[str, str]
Body = dict[str, Any]


def message(method: str, params: Body | None = None, request_id: Any = 1) -> Body:
    """A request, or without an id a notification."""
    told: Body = {"jsonrpc": "2.0", "method": method, "params": params or {}}
    return told if request_id is None else {**told, "id": request_id}


def modern(
    method: str, params: Body | None = None, *, meta: Body | None = None, request_id: Any = 1
) -> tuple[Headers, Body]:
    """A request of the stateless era, with the headers that it must have."""
    body = message(method, {**(params or {}), "_meta": {**ENVELOPE, **(meta or {})}}, request_id)
    headers = {**ACCEPT, "MCP-Protocol-Version": MODERN_VERSION, "Mcp-Method": method}
    if method in NAMED_BY and params:
        headers["Mcp-Name"] = params[NAMED_BY[method]]
    return headers, body


def post(http: httpx2.Client, headers: Headers, body: object) -> httpx2.Response:
    """Send a message."""
    return http.post(PATH, json=body, headers={**ACCEPT, **headers})


def ask(http: httpx2.Client, method: str, params: Body | None = None, **more: Any) -> httpx2.Response:
    """Send a request of the stateless era as it must be."""
    headers, body = modern(method, params, **more)
    return post(http, headers, body)


def call(tool: str, request_id: Any = 1, token: Any = None, **arguments: Any) -> Body:
    """A call of a tool, as the handshake era sends it."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    return message("tools/call", {"name": tool, "arguments": arguments, **meta}, request_id)


def open_session(
    http: httpx2.Client,
    version: str = LEGACY_VERSION,
    capabilities: Body | None = None,
    headers: Headers | None = None,
) -> Headers:
    """Shake hands; the headers of what follows."""
    hello = {"protocolVersion": version, "capabilities": capabilities or {}, "clientInfo": {}}
    more = headers or {}
    response = post(http, more, message("initialize", hello, "hello"))
    assert response.status_code == 200, response.text
    assert response.json()["result"]["protocolVersion"] == version
    session = {"Mcp-Session-Id": response.headers["mcp-session-id"], "MCP-Protocol-Version": version, **more}
    assert post(http, session, message("notifications/initialized", request_id=None)).status_code == 202
    return session


def events(lines: Iterator[str]) -> Iterator[Body]:
    """The messages in a stream of events."""
    for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))


@contextmanager
def sent(http: httpx2.Client, headers: Headers, body: Body) -> Iterator[None]:
    """Send a message and do not wait for the answer; at the end the client hangs up."""
    host, port = http.base_url.host, http.base_url.port
    assert port is not None
    request = http.build_request("POST", PATH, headers={**ACCEPT, **headers}, json=body)
    head = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items())
    with socket.create_connection((host, port)) as connection:
        connection.sendall(f"POST {PATH} HTTP/1.1\r\n{head}\r\n".encode() + request.read())
        yield


@contextmanager
def talking_to(app: Service) -> Iterator[httpx2.Client]:
    """A client of MCP alone, with the small catalog, on a real socket."""
    with served(endpoint(app, CATALOG)) as url, httpx2.Client(base_url=url, timeout=PATIENCE_SECONDS) as http:
        yield http


def watched(patch: pytest.MonkeyPatch) -> list[Conversation]:
    """The conversations that begin from now on, to see how far they are."""
    begun: list[Conversation] = []

    class Watched(Conversation):
        def __init__(self, context: ServerContext, connection: ClientConversation, do: Run) -> None:
            super().__init__(context, connection, do)
            begun.append(self)

    patch.setattr(mcp, "Conversation", Watched)
    return begun
