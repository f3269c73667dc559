"""The official MCP client against our server, on pipes, on a socket or as a child process, without async.

    with sdk_client(app, mode="2026-07-28") as call:
        call.tool("search", {"query": "tea"}).structured_content

`mode` is the client's: "auto" probes, "legacy" handshakes, "2026-07-28" goes straight ahead. After "http " it
speaks Streamable HTTP, else it is on pipes as with a child process.
"""

import os
import threading
import warnings
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from io import BufferedReader, FileIO
from typing import Any

import anyio
import anyio.to_thread
import httpx2
import mcp_types as types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client
from mcp.client._transport import Transport, TransportStreams
from mcp.client.session import ClientRequestContext
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.shared.message import SessionMessage
from pydantic import FileUrl

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.mcp_endpoint import Borrowed, endpoint
from tests.transports.http.support.socket import served
from vestige.transports.http.mcp.endpoint import PATH
from vestige.transports.mcp.catalog import Catalog
from vestige.transports.mcp.service import Service
from vestige.transports.mcp.stdio import StdioServer

STDIO_MODES = ("auto", "legacy", "2026-07-28")
HTTP = "http "
MODES = (*STDIO_MODES, *(HTTP + mode for mode in STDIO_MODES))


class SdkClient:
    """A connected official client with plain methods."""

    def __init__(self, portal: BlockingPortal, client: Client, roots: list[str]) -> None:
        self._portal = portal
        self._client = client
        self._roots = roots
        self.progress: list[tuple[float, float | None, str | None]] = []

    @property
    def version(self) -> str:
        return self._client.protocol_version

    @property
    def instructions(self) -> str | None:
        return self._client.instructions

    def tools(self) -> list[types.Tool]:
        return self._portal.call(self._client.list_tools).tools

    def resources(self) -> list[types.Resource]:
        return self._portal.call(self._client.list_resources).resources

    def templates(self) -> list[types.ResourceTemplate]:
        return self._portal.call(self._client.list_resource_templates).resource_templates

    def resource(self, uri: str) -> types.ReadResourceResult:
        return self._portal.call(self._client.read_resource, uri)

    def prompts(self) -> list[types.Prompt]:
        return self._portal.call(self._client.list_prompts).prompts

    def prompt(self, name: str, arguments: dict[str, str] | None = None) -> types.GetPromptResult:
        return self._portal.call(self._client.get_prompt, name, arguments)

    def change_roots(self, *uris: str) -> None:
        """Work in other folders from now on, and say so."""
        self._roots[:] = uris
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MCPDeprecationWarning)  # of a later era; this one has it
            self._portal.call(self._client.send_roots_list_changed)

    def tool(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        async def progressed(progress: float, total: float | None, message: str | None) -> None:
            self.progress.append((progress, total, message))

        async def call() -> types.CallToolResult:
            return await self._client.call_tool(name, arguments or {}, progress_callback=progressed)

        return self._portal.call(call)


@contextmanager
def sdk_client(
    app: Service, *, mode: str = "auto", catalog: Catalog | None = None, roots: Sequence[str] | None = None
) -> Iterator[SdkClient]:
    """Connect to `app` served by our driver on a thread of this process; it is left open afterwards.

    A client with `roots` says that it has some, and tells them when asked.
    """
    if mode.startswith(HTTP):
        with (
            served(endpoint(app, catalog)) as url,
            _connected(f"{url}{PATH}", mode.removeprefix(HTTP), roots) as client,
        ):
            yield client
    else:
        with _connected(_piped(Borrowed(app), catalog), mode, roots) as client:
            yield client


@contextmanager
def sdk_process(
    command: str,
    *arguments: str,
    mode: str = "auto",
    cwd: str | None = None,
    roots: Sequence[str] | None = None,
    **environment: str,
) -> Iterator[SdkClient]:
    """Connect to a server started as a child process."""
    server = StdioServerParameters(command=command, args=list(arguments), env=environment, cwd=cwd)
    with _connected(server, mode, roots) as client:
        yield client


@contextmanager
def sdk_remote(url: str, *, mode: str = "auto", headers: Mapping[str, str]) -> Iterator[SdkClient]:
    """Connect to a server at an address, with headers such as the key's."""

    @asynccontextmanager
    async def transport() -> AsyncIterator[TransportStreams]:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=PATIENCE_SECONDS) as http,
            streamable_http_client(url, http_client=http) as streams,
        ):
            yield streams

    with _connected(transport(), mode, None) as client:
        yield client


@contextmanager
def _connected(
    server: Transport | StdioServerParameters | str, mode: str, roots: Sequence[str] | None
) -> Iterator[SdkClient]:
    folders = list(roots or ())

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=FileUrl(uri)) for uri in folders])

    client = Client(
        server,
        mode=mode,
        read_timeout_seconds=PATIENCE_SECONDS,
        list_roots_callback=None if roots is None else list_roots,
    )
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(client) as connected:
        yield SdkClient(portal, connected, folders)


@asynccontextmanager
async def _piped(app: Service, catalog: Catalog | None) -> AsyncIterator[TransportStreams]:
    """The streams of a client whose other ends are held by our server, on real pipes."""
    server_reads, client_writes = os.pipe()
    client_reads, server_writes = os.pipe()
    thread = threading.Thread(target=_serve, args=(server_reads, server_writes, app, catalog))
    thread.start()
    to_session, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)

    # Each task owns the end it works on: one that is closed under it would be an error.
    async def read() -> None:
        async with to_session:
            with BufferedReader(FileIO(client_reads, "rb")) as lines:
                while line := await anyio.to_thread.run_sync(lines.readline):
                    message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                    try:
                        await to_session.send(SessionMessage(message))
                    except anyio.BrokenResourceError:
                        continue  # the session has gone: read the rest away, so that the server can end

    async def write() -> None:
        async with from_session:
            with FileIO(client_writes, "wb") as pipe:
                async for message in from_session:
                    line = message.message.model_dump_json(by_alias=True, exclude_unset=True)
                    await anyio.to_thread.run_sync(_write_all, pipe, line.encode() + b"\n")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read)
        tasks.start_soon(write)
        try:
            yield incoming, outgoing
        finally:
            incoming.close()
            outgoing.close()  # ends `write` and with it the server's stdin, then the server, then `read`
    await anyio.to_thread.run_sync(thread.join)


def _write_all(pipe: FileIO, line: bytes) -> None:
    while line:
        line = line[pipe.write(line) :]


def _serve(stdin: int, stdout: int, app: Service, catalog: Catalog | None) -> None:
    with FileIO(stdin, "rb") as reading, FileIO(stdout, "wb") as writing:
        StdioServer(reading, writing, lambda: app, catalog).run()
