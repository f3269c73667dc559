"""Thousands of messages that something is wrong with, over each transport half of them: none goes
unanswered for good, none does harm. Over HTTP they come with a key and pass the whole server."""

import json
import resource
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import pytest

from testbed.effort import effort
from testbed.patience import PATIENCE_SECONDS
from testbed.world import open_world
from tests.transports.http.support.mcp_endpoint import Echo
from tests.transports.http.support.socket import served
from tests.transports.mcp.apps import serving
from tests.transports.mcp.lines import MODERN_VERSION
from tests.transports.mcp.mutations import malformed
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.transports.http.app import build_app
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext

pytestmark = pytest.mark.slow

SEED = 20261116
OVER_STDIO, OVER_HTTP = 50_000, effort(5_000, nightly=50_000)
MOST_GROWTH_MB = 32
"""Keeping every message would take three times as much."""


LAST = "the last one"


def check(message: Any) -> str:
    """Hold what the server wrote to JSON-RPC; what kind of message it is."""
    if isinstance(message, list):
        assert message
        return check(message[0]) if all(map(check, message)) else ""
    assert message["jsonrpc"] == "2.0"
    if "method" in message:
        assert isinstance(message["method"], str)
        assert not {"result", "error"} & message.keys()
        return "request" if "id" in message else "notification"
    assert ("result" in message) != ("error" in message)
    assert isinstance(message.get("id"), str | int | None)
    if "error" in message:
        assert isinstance(message["error"]["code"], int)
        assert isinstance(message["error"]["message"], str)
        return "error"
    assert isinstance(message["result"], dict)
    return "result"


def memory_mb() -> float:
    """What this process has in memory; where the system does not tell, the most it ever had."""
    statm = Path("/proc/self/statm")
    if statm.exists():
        return int(statm.read_text(encoding="ascii").split()[1]) * resource.getpagesize() / (1 << 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)


def test_over_stdio() -> None:
    seen: Counter[str] = Counter()
    with serving(Echo, greet=False) as peer:

        def write(messages: Iterable[bytes]) -> None:
            for one in messages:
                peer.send_bytes(one + b"\n")
            peer.send("ping", request_id=LAST)

        def exchange(seed: int, number: int) -> None:
            writer = threading.Thread(target=write, args=(malformed(seed, number),))
            writer.start()
            while (message := peer.read()) != {"jsonrpc": "2.0", "id": LAST, "result": {}}:
                seen[check(message)] += 1
            writer.join()

        exchange(SEED, OVER_STDIO // 10)
        before = memory_mb()
        exchange(SEED + 1, OVER_STDIO - OVER_STDIO // 10)

        assert memory_mb() - before < MOST_GROWTH_MB
        peer.finish()
    assert peer.ended == [(0, True)]
    # All of it was reached. Whether progress is sent as well depends on which thread is first.
    assert {"result", "error", "request"} <= seen.keys()


@contextmanager
def whole_server(folder: Path) -> Iterator[tuple[HTTPConnection, dict[str, str]]]:
    """A connection to a server on a new store, with all that a request passes, and the header of a key."""
    settings: dict[str, Any] = {
        "storage.backend": "memory",
        "server.requests_per_minute": 0,
        "mcp.profile": "full",
    }
    with open_world(folder, **settings) as world:
        engine = world.app.engine
        context = ServerContext(
            app=world.app,
            settings=engine.settings,
            registry=registry,
            monotonic=time.monotonic,  # by which it tells sessions in use from others
            entropy=engine.entropy,
            limiter=anyio.CapacityLimiter(8),
        )
        _, key = keys.mint(Call(engine=engine), "a key", ["write"], None, None, None)
        with served(build_app(context, Auth(context, bytes(64)))) as url:
            address = urlsplit(url)
            http = HTTPConnection(str(address.hostname), address.port, timeout=PATIENCE_SECONDS)
            yield http, {"Authorization": f"Bearer {key}"}
            http.close()


def test_over_http(tmp_path: Path) -> None:
    seen: Counter[str] = Counter()
    with whole_server(tmp_path) as (http, key):
        session = _session(http, key)
        modern = {"MCP-Protocol-Version": MODERN_VERSION, "Mcp-Method": "tools/call"}
        kinds = [session, key, {**session, **modern}]

        def exchange(seed: int, number: int) -> None:
            for place, one in enumerate(malformed(seed, number)):
                seen.update(_answers(_post(http, kinds[place % len(kinds)], one)))

        exchange(SEED, OVER_HTTP // 10)
        before = memory_mb()
        exchange(SEED + 2, OVER_HTTP - OVER_HTTP // 10)

        assert memory_mb() - before < MOST_GROWTH_MB
        last = json.dumps({"jsonrpc": "2.0", "id": LAST, "method": "ping"}).encode()
        assert json.loads(_post(http, session, last).read()) == {"jsonrpc": "2.0", "id": LAST, "result": {}}
    assert {"result", "error", "nothing"} <= seen.keys()


def _post(http: HTTPConnection, headers: dict[str, str], body: bytes) -> HTTPResponse:
    both = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
    http.request("POST", "/mcp", body, {**both, **headers})
    return http.getresponse()


def _session(http: HTTPConnection, key: dict[str, str]) -> dict[str, str]:
    hello = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {}}
    body = json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}).encode()
    response = _post(http, key, body)
    response.read()
    return {**key, "Mcp-Session-Id": str(response.headers["mcp-session-id"])}


def _answers(response: HTTPResponse) -> list[str]:
    """What kinds of messages came back."""
    body = response.read()
    assert response.status in (200, 202, 400, 404, 503), response.status
    if response.status == 202:
        assert body == b""
        return ["nothing"]
    if response.headers["content-type"].startswith("text/event-stream"):
        lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
        return [check(json.loads(line)) for line in lines]
    return [check(json.loads(body))]
