"""Many requests of every kind at once, while listeners come and go: what the server holds must not grow.

They are sent in rounds. After each, the server may finish what it does in the background, which would pile
up while all clients ask as fast as they can, and give back what was only needed meanwhile. Then it is looked
at: what is held in the middle of the work differs from moment to moment, by more than a leak would add.

The store is kept at one size, or memory would rightly grow with it: it is filled before, and for each memory
that is stored one that was stored earlier is deleted. The log of what happened grows all the same, and with
it what a connection to the database keeps of it: so the store is larger than that cache from the beginning.
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
from benchmarks.progress import say
from benchmarks.report import Cell, Target
from vestige.transports.http.limits import malloc

REQUESTS = 50_000
CLIENTS = 16
LISTENERS = 8
KEPT = 3_000
"""Memories that the soak holds in the store."""
ROUNDS = 24
"""How often what the server holds is looked at, at most."""
LEAST = 50
"""Requests of a round."""
TOLD = 12
"""How often it says how far it is, and rows of what was held."""
SEED = 5
MIX = {"search": 40, "store": 20, "get": 15, "list": 10, "mcp": 10, "session": 5}
HEARD = 20
"""Messages after which a listener leaves."""
LIMITS = {"memory MB": 2.0, "tasks": 2.0, "threads": 2.0, "descriptors": 2.0}
"""What the server holds, and how much it may grow in 10,000 requests, by the line that fits the samples of
the second half best: in the first, threads and caches are still being filled."""
PER = 10_000
JUDGED = 2 * PER
"""So many requests at least. Who sends a few thousand only sees pools and caches being filled."""
REST_SECONDS = 10.0
"""How soon the server must know that everybody has left."""
SETTLE_SECONDS = 120.0
"""How soon it must have done what it does in the background."""
PAUSE_SECONDS = malloc.EVERY_SECONDS + 1.0
"""How long it has to give memory back."""
BUSY = "memory MB while busy"
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

    @property
    def later(self) -> list[Sample]:
        """The samples of the second half."""
        return [sample for sample in self.samples if sample.requests >= self.samples[-1].requests / 2]

    def slope(self, name: str) -> float:
        """Growth in 10,000 requests of the second half."""
        at = [sample.requests / PER for sample in self.later]
        grows = np.polyfit(at, [sample.held[name] for sample in self.later], 1)[0]
        return round(float(grows), 3) + 0.0  # less is the arithmetic's, and so is a minus before nothing

    def rows(self) -> list[dict[str, Cell]]:
        """What the server held at the start, after a tenth, and so on."""
        step = max(1, len(self.samples) // TOLD)
        return [{"requests": one.requests, **one.held} for one in self.samples[::step]]

    def growth(self) -> list[dict[str, Cell]]:
        """How what it held grew in the second half, and how it may."""
        first, last = self.later[0], self.later[-1]
        return [
            {
                "held": name,
                f"after {first.requests:,}": first.held[name],
                f"after {last.requests:,}": last.held[name],
                f"grows per {PER:,} requests by": self.slope(name),
                "at most": most,
                "when all have left": self.at_rest[name],
            }
            for name, most in LIMITS.items()
        ]

    def targets(self) -> list[Target]:
        """That nothing grows."""
        if self.count < JUDGED:
            return []
        return [
            Target(
                name=f"soak: {name} per {PER:,} requests", value=self.slope(name), limit=most, at_least=False
            )
            for name, most in LIMITS.items()
        ]


def run(server: Serving, *, requests: int = REQUESTS, kept: int = KEPT) -> Soaked:
    """Send so many requests to a server whose store holds so many memories meanwhile."""
    return asyncio.run(_Soak(server, requests, kept).run())


class _Soak:
    def __init__(self, server: Serving, requests: int, kept: int) -> None:
        self._server, self._requests = server, requests
        self._rng = random.Random(SEED)
        self._texts = [turn.content for turn in generated(kept, seed=SEED)]
        self._stored: deque[str] = deque()
        self._number = 0
        self._done = Soaked()

    async def run(self) -> Soaked:
        await self._fill()
        used = cpu_seconds(self._server.pid)
        async with asyncio.TaskGroup() as tasks:
            listening = [tasks.create_task(self._listen()) for _ in range(LISTENERS)]
            rounds = max(4, min(ROUNDS, self._requests // LEAST))
            for number in range(1, rounds + 1):
                await self._round(number * self._requests // rounds)
                if number * TOLD % rounds < TOLD:
                    held = self._done.samples[-1].held["memory MB"]
                    say(f"soak: {self._done.count:,} of {self._requests:,} requests, {held:.0f} MB")
            for one in listening:
                one.cancel()
        self._done.cpu_seconds = cpu_seconds(self._server.pid) - used
        self._done.at_rest = await self._rest()
        return self._done

    async def _round(self, until: int) -> None:
        """Ask until there were so many requests in all, and look."""
        began = time.perf_counter()
        async with asyncio.TaskGroup() as asking:
            for _ in range(CLIENTS):
                asking.create_task(self._ask(until))
        busy, _ = await self._held()
        connection = Connection(self._server.url, self._server.headers)
        async with asyncio.timeout(SETTLE_SECONDS):
            while json.loads((await _get("/stats").sent(connection)).body)["autopilot"]["waiting"]:
                await asyncio.sleep(LOOK_SECONDS)
        await connection.close()
        self._done.seconds += time.perf_counter() - began
        if self._requests >= JUDGED:
            await asyncio.sleep(PAUSE_SECONDS)
        held, _ = await self._held()
        # Idle threads end after a while: how many there are is told of the moment when they were needed.
        held = {BUSY: busy["memory MB"], **held, "threads": busy["threads"]}
        self._done.samples.append(Sample(requests=self._done.count, held=held))

    async def _fill(self) -> None:
        connection = Connection(self._server.url, self._server.headers)
        for at in range(0, len(self._texts), FILL_BATCH):
            items = [{"content": text, "force_create": True} for text in self._texts[at : at + FILL_BATCH]]
            answer = await rest("smart_ingest", {"items": items}).sent(connection)
            self._stored.extend(one["nodeId"] for one in json.loads(answer.body)["results"])
        await connection.close()

    async def _ask(self, until: int) -> None:
        connection = Connection(self._server.url, self._server.headers)
        kinds, weights = list(MIX), list(MIX.values())
        while self._done.count < until:
            (kind,) = self._rng.choices(kinds, weights)
            sent = await self._one(kind, connection)  # apart: += would read the count before it waits
            self._done.requests[kind] += sent
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
        # Another text each time, of the same few words: caches of words are to be full some time.
        text = f"{self._texts[self._number % len(self._texts)]} ({' '.join(str(self._number))})"
        answer = await rest("smart_ingest", {"content": text, "force_create": True}).sent(connection)
        self._stored.append(json.loads(answer.body)["nodeId"])
        path = f"/api/v1/memories/{self._stored.popleft()}"
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
