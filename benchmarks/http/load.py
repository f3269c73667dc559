"""Clients that ask all the time: how soon each answer comes, how many come in a second, what they cost."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.client import Json
from benchmarks.http.ways import Request
from benchmarks.http.wire import Connection
from benchmarks.process import cpu_seconds, family_of
from benchmarks.report import Cell
from vestige.app.app import App
from vestige.core.caller import Invocation

ARGUMENTS = {"search": "query", "smart_ingest": "content"}
"""The operations that are measured, and what each is given."""
LOOK_SECONDS = 0.1
IDLE_SHARE = 0.05
"""Whoever uses less of a core than this is idle."""
SETTLE_SECONDS = 30.0
"""How long is waited for one who never is."""


def arguments_of(operation: str, text: str) -> Json:
    """What an operation is asked."""
    return {ARGUMENTS[operation]: text}


@dataclass(slots=True, kw_only=True)
class Took:
    """What the answers of one way took, in seconds."""

    each: list[float] = field(default_factory=list)
    wall: float = 0.0
    cpu: float = 0.0

    @property
    def per_second(self) -> float:
        """Answers in a second."""
        return len(self.each) / self.wall

    @property
    def cpu_ms(self) -> float:
        """CPU time of the answering process for one answer."""
        return 1000 * self.cpu / len(self.each)

    def percentile_ms(self, share: float) -> float:
        """So many of a hundred answers came sooner."""
        return 1000 * float(np.percentile(self.each, share))

    def row(self) -> dict[str, Cell]:
        """The numbers for a table."""
        return {
            "per s": self.per_second,
            "p50 ms": self.percentile_ms(50),
            "p95 ms": self.percentile_ms(95),
            "CPU ms": self.cpu_ms,
        }


class Way(Protocol):
    """A way to ask."""

    name: str

    def cpu_seconds(self) -> float:
        """CPU time of the process that answers."""

    def ask(self, operation: str, texts: Sequence[str], clients: int) -> list[float]:
        """Have so many clients do an operation with all of these; the seconds of each."""


def measure(way: Way, operation: str, texts: Sequence[str], clients: int, took: Took) -> None:
    """Add what these take to what was measured before; to the CPU also what comes of it in the background."""
    began, used = time.perf_counter(), way.cpu_seconds()
    took.each += way.ask(operation, texts, clients)
    took.wall += time.perf_counter() - began
    _wait_until_idle(way)
    took.cpu += way.cpu_seconds() - used


def _wait_until_idle(way: Way) -> None:
    until = time.perf_counter() + SETTLE_SECONDS
    before = way.cpu_seconds()
    while time.perf_counter() < until:
        time.sleep(LOOK_SECONDS)
        now = way.cpu_seconds()
        if now - before < IDLE_SHARE * LOOK_SECONDS:
            return
        before = now


class Inside:
    """Calls in this process, by as many threads as there are clients."""

    def __init__(self, app: App) -> None:
        self.name = "in process"
        self._app = app

    def cpu_seconds(self) -> float:
        return time.process_time()

    def ask(self, operation: str, texts: Sequence[str], clients: int) -> list[float]:
        def one(text: str) -> float:
            began = time.perf_counter()
            self._app.call_tool(Invocation(name=operation, arguments=arguments_of(operation, text)))
            return time.perf_counter() - began

        with ThreadPoolExecutor(clients) as threads:
            return list(threads.map(one, texts))


class Remote:
    """Requests to a server, on as many connections as there are clients."""

    def __init__(
        self,
        name: str,
        url: str,
        pid: int,
        headers: dict[str, str],
        request_of: Callable[[str, Json], Request],
    ) -> None:
        self.name = name
        self._url, self._pid, self._headers, self._request_of = url, pid, headers, request_of

    def cpu_seconds(self) -> float:
        return sum(map(cpu_seconds, family_of(self._pid)))

    def ask(self, operation: str, texts: Sequence[str], clients: int) -> list[float]:
        requests = iter([self._request_of(operation, arguments_of(operation, text)) for text in texts])
        return asyncio.run(self._ask(requests, clients))

    async def _ask(self, requests: Iterator[Request], clients: int) -> list[float]:
        taken: list[float] = []

        async def client() -> None:
            connection = Connection(self._url, self._headers)
            for request in requests:  # which all clients share
                began = time.perf_counter()
                await request.sent(connection)
                taken.append(time.perf_counter() - began)
            await connection.close()

        async with asyncio.TaskGroup() as tasks:
            for _ in range(clients):
                tasks.create_task(client())
        return taken
