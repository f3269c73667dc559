"""A bare MCP client over stdio that costs next to nothing, so that it measures only the server."""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from benchmarks.process import cpu_seconds

Json = dict[str, Any]  # Any: messages as they come and go

OURS = "vestige-mcp"
PROTOCOL = "2025-11-25"
TIMEOUT_SECONDS = 300.0


def console_script() -> str:
    """Our server as it is installed in this environment."""
    script = Path(sys.executable).parent / OURS
    if not script.exists():
        raise SystemExit(f"{script} is not there: install the project into this environment first.")
    return str(script)


class Client:
    """A server started as a client would start it, spoken to one request at a time."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._command = command
        self._last_id = 0
        self._started = time.perf_counter()
        # What the server logs goes to our own stderr: a failure should show.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env={**os.environ, **(environment or {})}
        )
        self._watch = threading.Timer(timeout_seconds, self._process.kill)
        self._watch.daemon = True
        self._watch.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def wall_seconds(self) -> float:
        """Time since the server was started."""
        return time.perf_counter() - self._started

    def cpu_seconds(self) -> float:
        """CPU time of the server since it was started, all threads."""
        return cpu_seconds(self.pid)

    def initialize(self) -> Json:
        """Shake hands."""
        about = {"name": "benchmark", "version": "1"}
        answer = self.ask("initialize", protocolVersion=PROTOCOL, capabilities={}, clientInfo=about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def tool(self, name: str, arguments: Json) -> Json:
        """Call a tool; its structured answer."""
        answer = self.ask("tools/call", name=name, arguments=arguments)
        if answer.get("isError"):
            raise RuntimeError(f"{name} failed: {answer['content']}")
        structured: Json = answer["structuredContent"]
        return structured

    def ask(self, method: str, **params: object) -> Json:
        """Send a request and wait for its result."""
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            message = json.loads(line)
            if message.get("id") == self._last_id:
                if "error" in message:
                    raise RuntimeError(f"{method} failed: {message['error']}")
                result: Json = message["result"]
                return result
        raise self._ended()

    def close(self) -> None:
        """End the server the way clients do: close its stdin and wait."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            with suppress(BrokenPipeError):  # it went away by itself
                self._process.stdin.close()
            self._process.wait()
        finally:
            self._watch.cancel()
            self._process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _send(self, message: Json) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError as error:
            raise self._ended() from error

    def _ended(self) -> RuntimeError:
        return RuntimeError(f"{' '.join(self._command)} ended before it answered")
