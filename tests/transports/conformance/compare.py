"""Our protocol core and the official SDK's, each behind the same web server with the same tool, measured side
by side: `python -m tests.transports.conformance.compare`. ADR 0022 has the numbers.

Each is a process of its own that has imported the application already. `search` repeats its arguments, so
what is measured is the transport.
"""

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import anyio
import uvicorn
from starlette.types import ASGIApp

CALLS = 3_000
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
ARGUMENTS = {"query": "what did we decide about the parser", "limit": 10}


def core() -> ASGIApp:
    """Our core."""
    from tests.transports.http.support.mcp_endpoint import Echo, endpoint
    from tests.transports.mcp.lines import CATALOG

    return endpoint(Echo(), CATALOG)


def sdk() -> ASGIApp:
    """The SDK's low-level server, with the tool in a thread as ours is."""
    import mcp_types as types
    from anyio.to_thread import run_sync
    from mcp.server.context import ServerRequestContext
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
    from starlette.applications import Starlette
    from starlette.routing import Route

    tool = types.Tool(name="search", description="Find.", input_schema={"type": "object"})

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[tool])

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        answer = await run_sync(lambda: {"echo": params.arguments})
        content = types.TextContent(type="text", text=json.dumps(answer))
        return types.CallToolResult(content=[content], structured_content=answer)

    server = Server(
        "sdk",
        version="1",
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        get_tool_input_schema=lambda name: None,
    )
    manager = StreamableHTTPSessionManager(app=server)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Route("/mcp", endpoint=StreamableHTTPASGIApp(manager))], lifespan=lifespan)


def serve(name: str) -> None:
    """Serve one of them until the end; where and how large it is goes to stdout."""
    # Whatever speaks the protocol, these are there.
    importlib.import_module("vestige.app.app")
    importlib.import_module("vestige.transports.http.context")
    importlib.import_module("starlette.applications")

    began, known, before = time.process_time(), len(sys.modules), anonymous_mb("self")
    app = {"core": core, "sdk": sdk}[name]()
    told = {
        "imports s": time.process_time() - began,
        "modules": len(sys.modules) - known,
        "imported MB": anonymous_mb("self") - before,
    }
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_config=None, access_log=False, http="h11", ws="none")
    )

    async def main() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve)
            while not server.started:
                await anyio.sleep(0.01)
            port = server.servers[0].sockets[0].getsockname()[1]
            sys.stdout.write(json.dumps([port, told]) + "\n")
            sys.stdout.flush()

    anyio.run(main)


@contextmanager
def running(name: str) -> Iterator[tuple[int, dict[str, float], "subprocess.Popen[str]"]]:
    """One of them as a process: its port, what it said of itself, and its handle."""
    command = [sys.executable, "-m", "tests.transports.conformance.compare", name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            port, told = json.loads(process.stdout.readline())
            yield port, told, process
        finally:
            process.kill()


def anonymous_mb(process: str | int) -> float:
    """What a process has in memory of its own."""
    fields = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="utf-8").split()
    return int(fields[fields.index("Anonymous:") + 1]) / 1024


def cpu_ms(process: int) -> float:
    """What a process has taken of the processor, which depends less on what else goes on than the clock."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return 1000 * (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def handshake(http: HTTPConnection) -> dict[str, str]:
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    _, headers = send(http, {}, {"id": 0, "method": "initialize", "params": hello})
    session = {"Mcp-Session-Id": headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    send(http, session, {"method": "notifications/initialized"})
    return session


def send(http: HTTPConnection, headers: dict[str, str], body: dict[str, Any]) -> tuple[bytes, Any]:
    http.request("POST", "/mcp", json.dumps({"jsonrpc": "2.0", **body}), {**ACCEPT, **headers})
    response = http.getresponse()
    assert response.status in (200, 202), response.status
    return response.read(), response.headers


def measure(name: str) -> dict[str, float]:
    """The numbers of one of them."""
    with running(name) as (port, found, process):
        http = HTTPConnection("127.0.0.1", port, timeout=30)
        params = {"name": "search", "arguments": ARGUMENTS}
        envelope = {META + "protocolVersion": MODERN, META + "clientCapabilities": {}}
        routed = {"MCP-Protocol-Version": MODERN, "Mcp-Method": "tools/call", "Mcp-Name": "search"}
        rounds = {"stateless": (routed, {**params, "_meta": envelope}), "session": (handshake(http), params)}
        started = anonymous_mb(process.pid)
        for title, (headers, asked) in rounds.items():
            times, before = [], cpu_ms(process.pid)
            for number in range(CALLS):
                began = time.perf_counter()
                answer, _ = send(http, headers, {"id": number, "method": "tools/call", "params": asked})
                times.append(1000 * (time.perf_counter() - began))
                assert b"what did we decide" in answer
            spent = (cpu_ms(process.pid) - before) / CALLS
            found |= {f"{title} p50 ms": statistics.median(times), f"{title} cpu ms": spent}
        return {**found, "calls MB": anonymous_mb(process.pid) - started}


def main() -> None:
    """Measure both, or be one of them."""
    if len(sys.argv) > 1:
        serve(sys.argv[1])
        return
    results = {name: measure(name) for name in ("core", "sdk")}
    for title in results["core"]:
        numbers = "  ".join(f"{name} {results[name][title]:8.2f}" for name in results)
        sys.stdout.write(f"{title:18} {numbers}\n")


if __name__ == "__main__":
    main()
