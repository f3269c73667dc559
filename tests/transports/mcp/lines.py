"""A conversation with the pure MCP core: a small catalog, and functions that speak to a connection."""

import json
from typing import Any

from vestige.transports.mcp.catalog import Catalog
from vestige.transports.mcp.protocol.core import ClientConversation
from vestige.transports.mcp.protocol.jsonrpc import encode
from vestige.transports.mcp.protocol.messages import Action, Job, Send, Start

LEGACY_VERSIONS = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN_VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
ENVELOPE: dict[str, Any] = {META + "protocolVersion": MODERN_VERSION, META + "clientCapabilities": {}}
STAMP = {META + "serverInfo": {"name": "vestige", "title": "Vestige", "version": "9.9"}}
HERE = "file:///home/ada/here"
HAS_ROOTS: dict[str, Any] = {"roots": {"listChanged": True}}
INITIALIZED = "notifications/initialized"


def tool(name: str, description: str) -> dict[str, Any]:
    return {"name": name, "description": description, "inputSchema": {"type": "object"}}


DATA: dict[str, Any] = {
    "instructions": {"minimal": "Remember.", "full": "Remember everything."},
    "tools": {
        "core": [tool("search", "Find."), tool("anything", "Reach the others.")],
        "full": [tool("search", "Find."), tool("dream", "Replay."), tool("tidy", "Look for twins, or not.")],
    },
    "gateway": "anything",
    "long": {"dream": [""], "tidy": ["scan"]},
    "aliases": {
        "hybrid_search": {"tool": "search", "arguments": {}},
        "find_twins": {"tool": "tidy", "arguments": {"action": "scan"}},
    },
    "prompts": [
        {
            "name": "greet",
            "title": "Greet",
            "description": "Say hello.",
            "arguments": [
                {"name": "who", "description": "Whom.", "required": True},
                {"name": "mood", "description": "How.", "required": False},
            ],
            "parts": [
                "Say hello",
                {"argument": "who", "text": [" to ", " and nobody else"]},
                {"argument": "mood", "text": [", in a ", " mood"]},
                ".",
            ],
        }
    ],
    "resources": [{"uri": "memory://stats", "name": "stats", "mimeType": "application/json"}],
    "resourceTemplates": [
        {"uriTemplate": "memory://stats{?n}", "name": "stats", "mimeType": "application/json"},
        {"uriTemplate": "memory://item/{id}", "name": "item", "mimeType": "application/x-item"},
    ],
}
CATALOG = Catalog(DATA, "full")


def connect(
    version: str | None = None,
    *,
    catalog: Catalog = CATALOG,
    capabilities: dict[str, Any] | None = None,
    stateless: bool = False,
    local: bool = True,
) -> ClientConversation:
    """A connection, after the handshake for `version` when one is given."""
    connection = ClientConversation(catalog, "9.9", stateless=stateless, local=local)
    if version:
        hello = {"protocolVersion": version, "capabilities": capabilities or {}}
        ask(connection, "initialize", hello, request_id="hello")
    return connection


def listed(*uris: str) -> dict[str, Any]:
    """What a client answers that works in these folders."""
    return {"roots": [{"uri": uri, "name": "x"} for uri in uris]}


def line(message: object) -> bytes:
    return json.dumps(message).encode()


def ask(
    connection: ClientConversation, method: str, params: dict[str, Any] | None = None, *, request_id: Any = 1
) -> dict[str, Any]:
    """The one reply to a request that is answered at once."""
    message = {"jsonrpc": "2.0", "id": request_id, "method": method}
    return only_reply(connection.receive(line(message if params is None else {**message, "params": params})))


def ask_modern(
    connection: ClientConversation,
    method: str,
    params: dict[str, Any] | None = None,
    meta: dict[str, Any] | None = None,
) -> dict[str, Any]:
    return ask(connection, method, {**(params or {}), "_meta": {**ENVELOPE, **(meta or {})}})


def only_reply(actions: list[Action]) -> dict[str, Any]:
    (action,) = actions
    assert isinstance(action, Send)
    reply: dict[str, Any] = json.loads(encode(action.message))
    return reply


def start(
    connection: ClientConversation,
    method: str = "tools/call",
    params: dict[str, Any] | None = None,
    *,
    request_id: str | int = 7,
    modern: bool = False,
    meta: dict[str, Any] | None = None,
) -> Job:
    """The job that a request begins."""
    params = dict(params or {"name": "search", "arguments": {"query": "tea"}})
    params["_meta"] = {**(ENVELOPE if modern else {}), **(meta or {})}
    (action,) = connection.receive(
        line({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
    )
    assert isinstance(action, Start)
    return action.job


def notify(connection: ClientConversation, method: str) -> list[Action]:
    return connection.receive(line({"jsonrpc": "2.0", "method": method}))


def cancel(connection: ClientConversation, request_id: object) -> list[Action]:
    params = {"requestId": request_id, "reason": "changed my mind"}
    return connection.receive(line({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}))
