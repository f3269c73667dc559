"""What clients send: each operation over REST, and over MCP of either era."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from benchmarks.client import PROTOCOL, Json
from benchmarks.http.wire import Answer, Connection

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ENVELOPE: Json = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
BOTH_KINDS = {"Accept": "application/json, text/event-stream"}
REST = {"search": "/api/v1/search", "smart_ingest": "/api/v1/memories"}


class Refused(Exception):
    """The server did not do what was asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request, ready to be sent."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str]

    async def sent(self, connection: Connection) -> Answer:
        """The answer, which must be a good one."""
        answer = await connection.ask(self.method, self.path, self.body, self.headers)
        if not 200 <= answer.status < 300 or b'"isError":true' in answer.body:
            raise Refused(f"{self.method} {self.path}: {answer.status} {answer.body[:500]!r}")
        return answer


def rest(operation: str, arguments: Json) -> Request:
    """An operation over REST."""
    return Request(method="POST", path=REST[operation], body=json_bytes(arguments), headers={})


def mcp(tool: str, arguments: Json) -> Request:
    """A tool over MCP as the stateless era calls it."""
    params = {"name": tool, "arguments": arguments, "_meta": ENVELOPE}
    body = json_bytes({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    headers = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": tool, **BOTH_KINDS}
    return Request(method="POST", path="/mcp", body=body, headers=headers)


async def mcp_session(connection: Connection, tool: str, arguments: Json) -> int:
    """A whole session of the handshake era with one call in it; how many requests that took."""
    about = {"name": "benchmark", "version": "1"}
    hello = {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": about}
    begun = await _post("initialize", hello, BOTH_KINDS, request_id=1).sent(connection)
    session = {
        "Mcp-Session-Id": begun.headers["mcp-session-id"],
        "MCP-Protocol-Version": PROTOCOL,
        **BOTH_KINDS,
    }
    await _post("notifications/initialized", {}, session).sent(connection)
    called = {"name": tool, "arguments": arguments}
    await _post("tools/call", called, session, request_id=2).sent(connection)
    await Request(method="DELETE", path="/mcp", headers=session).sent(connection)
    return 4


def _post(method: str, params: Json, headers: Mapping[str, str], request_id: int | None = None) -> Request:
    message: Json = {"jsonrpc": "2.0", "method": method, "params": params}
    if request_id is not None:
        message["id"] = request_id
    return Request(method="POST", path="/mcp", body=json_bytes(message), headers=headers)


def json_bytes(value: Json) -> bytes:
    """A body."""
    return json.dumps(value).encode()
