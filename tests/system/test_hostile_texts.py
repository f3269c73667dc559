"""A server that is sent hostile texts answers health checks, and stops in its usual time."""

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from benchmarks.process import cpu_seconds
from testbed import patient_http
from testbed.effort import NIGHTLY, effort
from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Running, serving
from vestige.core.models import MAX_CONTENT_BYTES
from vestige.operations.shared.filters import MAX_QUERY_CHARS

pytestmark = pytest.mark.slow

ANSWER_SECONDS = 1.0  # The promise: every health check is answered within this time.
SETTLED = 3  # Attempts: on a busy machine threads of a process may wait for each other this long.
CONTENT_BYTES = effort(100_000, nightly=MAX_CONTENT_BYTES - 100)
SHUTDOWN_SECONDS = 2

PIECES = (" _a", "1,111,", ")", "key=", "A ", "'a ", "\n")


def requests() -> Iterator[tuple[str, dict[str, Any]]]:
    """Hostile requests of every kind that reads a text: to remember twice (the second is compared with the
    first), to search, to set an intention, to weigh."""
    for piece in PIECES:
        content = piece * (CONTENT_BYTES // len(piece))
        yield "/memories", {"content": f"{content} one"}
        yield "/memories", {"content": f"{content} two"}
        yield "/importance", {"content": content}
        query = (piece * MAX_QUERY_CHARS)[:MAX_QUERY_CHARS]
        yield "/search", {"query": query}
        yield "/deep-reference", {"query": query}
        yield "/session-context", {"queries": [query]}
        yield "/intentions", {"description": content[:4000]}
        yield "/intentions", {"description": content}
        yield "/codebase/patterns", {"name": "hostile", "description": content}


class HealthChecks:
    """Asks for the health of a server, over and over, and keeps the longest wait. Time in which the server
    got no processor does not count: then it is the machine that is busy."""

    def __init__(self, server: Running) -> None:
        self._server, self._done = server, threading.Event()
        self.longest, self.answered = 0.0, 0

    @contextmanager
    def asking(self) -> Iterator[None]:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self._ask)
            try:
                yield
            finally:
                self._done.set()
                asked.result()

    def _ask(self) -> None:
        pid = self._server.process.pid
        with httpx.Client(base_url=self._server.local, timeout=PATIENCE_SECONDS) as client:
            while not self._done.wait(0.02):
                before, worked = time.monotonic(), cpu_seconds(pid)
                assert client.get("/health").status_code == 200
                waited, worked = time.monotonic() - before, cpu_seconds(pid) - worked
                self.longest = max(self.longest, min(waited, worked))
                self.answered += 1


def test_health_is_answered_within_a_second_while_hostile_texts_are_read(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth") as server:
        for _ in range(SETTLED):
            checks = HealthChecks(server)
            with checks.asking(), httpx.Client(base_url=f"{server.local}/api/v1", timeout=120) as client:
                statuses = [client.post(path, json=body).status_code for path, body in requests()]
            if checks.longest < ANSWER_SECONDS:
                break

    assert {status // 100 for status in statuses} <= {2, 4}
    assert 200 in statuses  # the texts were read, not refused
    assert checks.longest < ANSWER_SECONDS
    assert checks.answered > len(statuses)


def test_a_server_that_reads_hostile_texts_stops_in_its_usual_time(tmp_path: Path) -> None:
    hostile = [one for one in requests() if one[0] == "/memories"]
    with (
        serving(tmp_path, "--no-auth", VESTIGE_SERVER_SHUTDOWN_SECONDS=str(SHUTDOWN_SECONDS)) as server,
        ThreadPoolExecutor(len(hostile)) as pool,
    ):
        for path, body in hostile:
            pool.submit(httpx.post, f"{server.local}/api/v1{path}", json=body, timeout=PATIENCE_SECONDS)
        assert patient_http.get(f"{server.local}/health").status_code == 200
        server.process.send_signal(signal.SIGTERM)
        # Twice what is promised: the work of a step is finished, and a busy machine is slow.
        assert server.process.wait(PATIENCE_SECONDS if NIGHTLY else 30) == 0
