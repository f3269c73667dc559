"""Many requests of every kind at once, while listeners come and go: what the server holds must not grow.

The store is kept at one size, or memory would rightly grow with it: it is filled before, and for each memory
that is stored one that was stored earlier is deleted.
"""

import asyncio
import json
import random
import time
from collections import Counter, deque
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from websockets.asyncio.client import connect

from benchmarks.conversation import generated
from benchmarks.engine import FILL_BATCH
from benchmarks.http.serving import Serving
from benchmarks.http.ways import Request, mcp, mcp_session, rest
from benchmarks.http.wire import Connection
from benchmarks.process import cpu_seconds, own_memory
from benchmarks.report import Cell, Target

REQUESTS = 50_000
CLIENTS = 16
LISTENERS = 8
KEPT = 500
"""Memories that the soak holds in the store."""
SAMPLES = 40
WARM_SHARE = 0.3
"""Of the samples the first are not judged: threads and caches are still being filled."""
SEED = 5
MIX = {"search": 40, "store": 20, "get": 15, "list": 10, "mcp": 10, "session": 5}
HEARD = 20
"""Messages after which a listener leaves."""
HELD = ("memory MB", "tasks", "threads", "descriptors")
MEMORY_SLOPE_MB = 2.0
"""Most that memory may grow in 10,000 requests, by a line through the samples."""
COUNT_SLOPE = 2.0
"""Most that tasks, threads and descriptors may."""
PER = 10_000
REST_SECONDS = 10.0
"""How soon the server must know that everybody has left."""
LOOK_SECONDS = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What the server held after so many requests."""

    requests: int
    held: dict[str, float]


@dataclass(kw_only=True)
class Soaked:
    """What came of it."""

    requests: Counter[str] = field(default_factory=Counter)
    listeners: int = 0
    heard: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    samples: list[Sample] = field(default_factory=list)
    at_rest: dict[str, float] = field(default_factory=dict)
    """What the server held when all had left."""

    @property
    def count(self) -> int:
        """Requests in all."""
        return self.requests.total()

    def slope(self, name: str) -> float:
        """Growth in 10,000 requests, by the line that fits the later samples best."""
        judged = self.samples[int(WARM_SHARE * len(self.samples)) :]
        at = [sample.requests / PER for sample in judged]
        return float(np.polyfit(at, [sample.held[name] for sample in judged], 1)[0])

    def rows(self) -> list[dict[str, Cell]]:
        """What the server held at the start, after a tenth, and so on."""
        step = max(1, len(self.samples) // 10)
        return [{"requests": one.requests, **one.held} for one in self.samples[::step]]

    def targets(self) -> list[Target]:
        """That nothing grows."""
        limits = {name: MEMORY_SLOPE_MB if name == "memory MB" else COUNT_SLOPE for name in HELD}
        return [
            Target(
                name=f"soak: {name} per {PER:,} requests", value=self.slope(name), limit=most, at_least=False
            )
            for name, most in limits.items()
        ]


def run(server: Serving, *, requests: int = REQUESTS, kept: int = KEPT) -> Soaked:
    """Send so many requests to a server whose store holds so many memories meanwhile."""
    return asyncio.run(_Soak(server, requests, kept).run())


class _Soak:
    def __init__(self, server: Serving, requests: int, kept: int) -> None:
        self._server, self._left, self._every = server, requests, max(1, requests // SAMPLES)
        self._rng = random.Random(SEED)
        self._texts = [turn.content for turn in generated(kept, seed=SEED)]
        self._stored: deque[str] = deque()
        self._number = 0
        self._deleting = asyncio.Lock()  # one at a time has the store alone; others would be told to wait
        self._done = Soaked()

    async def run(self) -> Soaked:
        await self._fill()
        began, used = time.perf_counter(), cpu_seconds(self._server.pid)
        async with asyncio.TaskGroup() as tasks:
            listening = [tasks.create_task(self._listen()) for _ in range(LISTENERS)]
            async with asyncio.TaskGroup() as asking:
                for _ in range(CLIENTS):
                    asking.create_task(self._ask())
            for one in listening:
                one.cancel()
        self._done.seconds = time.perf_counter() - began
        self._done.cpu_seconds = cpu_seconds(self._server.pid) - used
        self._done.at_rest = await self._rest()
        return self._done

    async def _fill(self) -> None:
        connection = Connection(self._server.url, self._server.headers)
        for at in range(0, len(self._texts), FILL_BATCH):
            items = [{"content": text, "force_create": True} for text in self._texts[at : at + FILL_BATCH]]
            answer = await rest("smart_ingest", {"items": items}).sent(connection)
            self._stored.extend(one["nodeId"] for one in json.loads(answer.body)["results"])
        await connection.close()

    async def _ask(self) -> None:
        connection = Connection(self._server.url, self._server.headers)
        kinds, weights = list(MIX), list(MIX.values())
        while self._left > 0:
            (kind,) = self._rng.choices(kinds, weights)
            before = self._done.count // self._every
            sent = await self._one(kind, connection)
            self._left -= sent
            self._done.requests[kind] += sent
            if self._done.count // self._every > before:
                held, _ = await self._held()
                self._done.samples.append(Sample(requests=self._done.count, held=held))
            if self._rng.random() < 0.01:
                await connection.close()  # clients come and go too
        await connection.close()

    async def _one(self, kind: str, connection: Connection) -> int:
        """Do one thing; how many requests that took."""
        query = " ".join(self._rng.choice(self._texts).split()[:8])
        match kind:
            case "search":
                await rest("search", {"query": query}).sent(connection)
            case "store":
                return await self._store(connection)
            case "get":
                await _get(f"/memories/{self._stored[-1]}/state").sent(connection)
            case "mcp":
                await mcp("search", {"query": query}).sent(connection)
            case "session":
                return await mcp_session(connection, "search", {"query": query})
            case _:
                await _get("/memories?limit=20").sent(connection)
        return 1

    async def _store(self, connection: Connection) -> int:
        self._number += 1
        text = f"{self._texts[self._number % len(self._texts)]} ({self._number})"
        answer = await rest("smart_ingest", {"content": text, "force_create": True}).sent(connection)
        self._stored.append(json.loads(answer.body)["nodeId"])
        path = f"/api/v1/memories/{self._stored.popleft()}"
        async with self._deleting:
            await Request(method="DELETE", path=path, headers={}).sent(connection)
        return 2

    async def _listen(self) -> None:
        address = self._server.url.replace("http", "ws", 1) + "/ws"
        headers = {"Authorization": self._server.headers["Authorization"]}
        while True:
            async with connect(address, additional_headers=headers, compression=None) as stream:
                self._done.listeners += 1
                for _ in range(HEARD):
                    await stream.recv()
                    self._done.heard += 1

    async def _rest(self) -> dict[str, float]:
        """What the server holds as soon as nobody listens any more."""
        async with asyncio.timeout(REST_SECONDS):
            while True:
                held, listeners = await self._held()
                if not listeners:
                    return held
                await asyncio.sleep(LOOK_SECONDS)

    async def _held(self) -> tuple[dict[str, float], int]:
        """What the server holds now, and how many listen."""
        connection = Connection(self._server.url, self._server.headers)
        text = (await Request(method="GET", path="/metrics", headers={}).sent(connection)).body.decode()
        await connection.close()
        gauges = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
        held = {
            "memory MB": own_memory(self._server.pid).megabytes,
            "tasks": float(gauges["vestige_tasks"]),
            "threads": float(gauges["vestige_threads"]),
            "descriptors": float(len(list(Path(f"/proc/{self._server.pid}/fd").iterdir()))),
        }
        return held, int(float(gauges["vestige_listeners"]))


def _get(path: str) -> Request:
    return Request(method="GET", path=f"/api/v1{path}", headers={})
