"""An OpenAI-compatible embeddings endpoint on this machine, whose answers a test decides."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

DIMENSION = 8
GIVEN_UP_BYTES = 1 << 30
"""Where an endless answer ends after all, so that a test that reads all of it fails."""


@dataclass(kw_only=True)
class Endpoint:
    """What was asked (`requests`, `keys`), and what is answered: `script` first, then vectors."""

    url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    script: list[tuple[int, dict[str, str], Any]] = field(default_factory=list)
    endless: tuple[bytes, bytes] | None = None
    """How an answer without end begins, and what is repeated then. `sent` counts its bytes."""
    sent: int = 0
    answer: Callable[[list[str]], Any] = field(default_factory=lambda: answered)


def vector_of(text: str) -> list[float]:
    """A vector that belongs to this text alone, of any length but one."""
    rng = np.random.default_rng(list(text.encode("utf-8")) or [0])
    return [float(value) for value in rng.standard_normal(DIMENSION) * 3]


def answered(texts: list[str]) -> Any:
    """The right answer, in the wrong order."""
    data = [{"index": index, "embedding": vector_of(text)} for index, text in enumerate(texts)]
    return {"data": data[::-1], "model": "fake", "usage": {}}


@contextmanager
def serving() -> Iterator[Endpoint]:
    """Serve on a free port of the loopback interface."""
    endpoint = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            endpoint.requests.append(body)
            endpoint.paths.append(self.path)
            endpoint.keys.append(self.headers["authorization"])
            status, headers, content = 200, dict[str, str](), endpoint.answer(body["input"])
            if endpoint.script:
                status, headers, content = endpoint.script.pop(0)
            if endpoint.endless is not None:
                self._send_without_end(*endpoint.endless)
                return
            sent = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def _send_without_end(self, first: bytes, part: bytes) -> None:
            self.close_connection = True
            with suppress(ConnectionError):
                self.wfile.write(first)
                while endpoint.sent < GIVEN_UP_BYTES:
                    endpoint.sent += self.wfile.write(part)

        def log_message(self, *_arguments: object) -> None:
            """Keep the test's output clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    endpoint.url = f"http://127.0.0.1:{server.server_port}/v1"
    try:
        yield endpoint
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
