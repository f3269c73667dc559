"""The official Inspector, on its command line, against real processes: over stdio and HTTP, in both eras."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.transports.conformance.node import NODE, packages
from tests.transports.http.support.harness import environment, key_in, serving
from vestige.transports.http.mcp.endpoint import PATH

pytestmark = pytest.mark.slow

INSPECTOR = Path("@modelcontextprotocol") / "inspector" / "clients" / "cli" / "build" / "index.js"
COMMAND = str(Path(sys.executable).with_name("vestige-mcp"))
RUN_SECONDS = 120.0

Inspect = Callable[..., dict[str, Any]]


@pytest.fixture(params=["stdio", "http"])
def inspect(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Inspect]:
    """Runs the Inspector against a server on a new store; what it prints."""

    def run(server: list[str], *words: str) -> dict[str, Any]:
        # What it is told about the server comes before anything that takes several words.
        command = [str(NODE), str(packages() / INSPECTOR), *server, "--quiet", *words]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=RUN_SECONDS, env=environment(tmp_path)
        )
        assert done.returncode == 0, done.stderr
        printed: dict[str, Any] = json.loads(done.stdout)
        return printed

    if request.param == "stdio":
        variables = [f"{name}={value}" for name, value in environment(tmp_path).items()]
        server = [COMMAND, *(word for one in variables for word in ("-e", one))]
        yield lambda *words: run(server, *words)
    else:
        with serving(tmp_path) as started:
            key = f"Authorization: Bearer {key_in(tmp_path)}"
            server = ["--server-url", started.url + PATH, "--transport", "http", "--header", key]
            yield lambda *words: run(server, *words)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_inspector_lists_tools_and_calls_them(inspect: Inspect, era: str) -> None:
    tools = inspect("--protocol-era", era, "--method", "tools/list", "--strict")["tools"]
    stored = _call(inspect, era, "smart_ingest", content=f"The heron stands in the pond, said {era}.")
    found = _call(inspect, era, "search", query="heron")

    assert {"search", "smart_ingest"} <= {tool["name"] for tool in tools}
    assert stored["decision"] == "create"
    assert [hit["id"] for hit in found["results"]] == [stored["nodeId"]]


def _call(inspect: Inspect, era: str, tool: str, **arguments: str) -> dict[str, Any]:
    given = ("--tool-name", tool, "--tool-args-json", json.dumps(arguments))
    result = inspect("--protocol-era", era, "--method", "tools/call", *given)
    assert not result["isError"]
    answer: dict[str, Any] = result["structuredContent"]
    return answer
