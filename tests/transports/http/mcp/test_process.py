"""MCP on a server that is a process: the official client with a key, and the end of streams."""

import signal
from pathlib import Path

import httpx2
import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import bearer, key_in, serving
from tests.transports.http.support.mcp_requests import ACCEPT, PATH, modern, open_session, post
from tests.transports.mcp.harness import STDIO_MODES, sdk_remote

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("mode", STDIO_MODES)
def test_the_official_client_works_with_a_key_and_not_without(tmp_path: Path, mode: str) -> None:
    with serving(tmp_path) as server:
        url = server.url + PATH
        with sdk_remote(url, mode=mode, headers=bearer(key_in(tmp_path, "read", "write"))) as client:
            stored = client.tool("smart_ingest", {"content": "The heron stands in the pond."})
            assert isinstance(stored.structured_content, dict)
            found = client.tool("search", {"query": "heron"}).structured_content
            refused = client.tool("backup")
        headers, body = modern("tools/list")
        without = httpx2.post(url, json=body, headers=headers, timeout=PATIENCE_SECONDS)

    assert isinstance(found, dict)
    assert [hit["id"] for hit in found["results"]] == [stored.structured_content["nodeId"]]
    assert refused.is_error
    assert without.status_code == 401
    assert without.headers["www-authenticate"].startswith("Bearer")


def test_a_server_that_stops_ends_the_streams_of_its_clients(tmp_path: Path) -> None:
    with serving(tmp_path) as server, httpx2.Client(base_url=server.url, timeout=PATIENCE_SECONDS) as http:
        session = open_session(http, headers=bearer(key_in(tmp_path)))
        with http.stream("GET", PATH, headers={**ACCEPT, **session}) as listening:
            lines = listening.iter_lines()
            assert next(lines).startswith(":")
            assert post(http, session, {"jsonrpc": "2.0", "id": 1, "method": "ping"}).status_code == 200
            server.process.send_signal(signal.SIGTERM)
            rest = list(lines)  # complete, not cut off: that would raise
        code = server.process.wait(PATIENCE_SECONDS)

    assert [line for line in rest if line] == []
    assert code == 0
