"""A peer's server, started beside ours: mcp-memory-service, whose REST API stores and searches too."""

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.client import Json
from benchmarks.http.load import Remote
from benchmarks.http.ways import Request, json_bytes
from benchmarks.peers.process import Unavailable

NAME = "mcp-memory-service, REST"
SCRIPT = Path(__file__).parent / "memory_service.py"
KEY = "a key for the benchmark only"
START_SECONDS = 120.0
POLL_SECONDS = 0.2
END_SECONDS = 30.0


@contextmanager
def serving(python: Path, folder: Path) -> Iterator[Remote]:
    """Its server on an empty memory, with a key needed, run by an interpreter that has it."""
    folder.mkdir(parents=True, exist_ok=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with (folder / "log").open("wb") as log:
        try:
            process = subprocess.Popen(
                [str(python), str(SCRIPT), str(port)], stdout=log, stderr=log, env=_environment(folder)
            )
        except OSError as exc:
            raise Unavailable(f"{python.name} does not run: {exc.strerror}") from exc
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url, folder / "log")
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        yield Remote(NAME, url, process.pid, headers, request_of)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def request_of(operation: str, arguments: Json) -> Request:
    """The same in the peer's words. Both stores answer with ten memories."""
    if operation == "search":
        body: Json = {"query": arguments["query"], "n_results": 10}
        return Request(method="POST", path="/api/search", body=json_bytes(body), headers={})
    return Request(method="POST", path="/api/memories", body=json_bytes(arguments), headers={})


def _environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "MCP_MEMORY_BASE_DIR": str(folder),
        "MCP_MEMORY_SQLITE_PATH": str(folder / "memories.db"),
        "MCP_MEMORY_STORAGE_BACKEND": "sqlite_vec",
        "MCP_API_KEY": KEY,
        "MCP_OAUTH_ENABLED": "false",
    }


def _wait(process: "subprocess.Popen[bytes]", url: str, log: Path) -> None:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [
                "no reason given"
            ]
            raise Unavailable(f"it did not start: {lines[-1]}")
        try:
            with urllib.request.urlopen(f"{url}/api/health", timeout=START_SECONDS):
                return
        except urllib.error.URLError:
            time.sleep(POLL_SECONDS)
    raise Unavailable(f"it did not answer within {START_SECONDS:g} s")
