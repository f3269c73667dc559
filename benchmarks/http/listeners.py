"""500 WebSocket listeners: how soon all of them are told, before and after one among them stops reading."""

import asyncio
import json
import socket
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import urlsplit

import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.client import Json
from benchmarks.http.serving import Serving
from benchmarks.http.ways import Request, json_bytes, rest
from benchmarks.http.wire import Connection
from benchmarks.process import own_memory
from benchmarks.report import Cell, Target

LISTENERS = 500
WRITES = 20
BUSY = 500
"""Memories that each round of noise tells of; only the listener that does not read is told of them."""
ROUNDS = 8
LONG = "\N{TEAPOT}" * 120
"""Makes a message long, so that no kernel keeps all of them for a listener that does not read."""
PROMPT_MS = 1_000.0
TOLD = ("MemoryCreated", "MemoryUpdated")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listened:
    """Milliseconds from sending a write until each listener was told of it; what the one that did not read
    was told of afterwards, and what it was told that it had missed."""

    alone_ms: Sequence[float]
    beside_ms: Sequence[float]
    noise: int
    seen: int
    missed: int
    memory_mb: float

    def rows(self) -> list[dict[str, Cell]]:
        return [
            {
                "": name,
                "p50 ms": float(np.percentile(taken, 50)),
                "p95 ms": float(np.percentile(taken, 95)),
                "slowest ms": max(taken),
            }
            for name, taken in (("all read", self.alone_ms), ("one does not", self.beside_ms))
        ]

    def stalled_row(self) -> dict[str, Cell]:
        return {
            "events that happened": self.noise,
            "it was told of": self.seen,
            "it was told that it missed": self.missed,
            "memory of the server, MB": self.memory_mb,
        }

    def targets(self) -> list[Target]:
        slowest = max(self.beside_ms)
        unaccounted = abs(self.noise - self.seen - self.missed)
        return [
            Target(name="listeners: the last is told of a write, beside one that does not read, ms",
                   value=slowest, limit=PROMPT_MS, at_least=False),
            Target(name="listeners: events that one was neither told of nor told that it missed",
                   value=unaccounted, limit=0, at_least=False),
        ]  # fmt: skip


def run(server: Serving, *, listeners: int = LISTENERS, writes: int = WRITES) -> Listened:
    """Listen and write."""
    return asyncio.run(_run(server, listeners, writes))


async def _run(server: Serving, listeners: int, writes: int) -> Listened:
    async with AsyncExitStack() as stack:
        asking = Connection(server.url, server.headers)
        stack.push_async_callback(asking.close)
        narrow_key: Json = {"label": "calm", "permissions": ["read"], "scopes": ["/calm"]}
        answer = await _post("/keys", narrow_key).sent(asking)
        calm = {"Authorization": f"Bearer {json.loads(answer.body)['key']}"}
        everywhere = {"Authorization": server.headers["Authorization"]}
        await _remember(asking, "/busy", *(f"{number} {LONG}" for number in range(BUSY)))
        watching = [await stack.enter_async_context(_stream(server, calm)) for _ in range(listeners)]
        alone = await _delays(asking, watching, writes, "alone")

        narrow = _stream(server, everywhere, sock=_narrow(server), max_queue=1)
        stalled = await stack.enter_async_context(narrow)
        for number in range(ROUNDS):
            renamed = {"tag": f"round{number}", "to": f"round{number + 1}", "scope": "/busy"}
            await _post("/tags/rename", renamed).sent(asking)
        beside = await _delays(asking, watching, writes, "beside")
        memory = own_memory(server.pid).megabytes
        (last,) = await _remember(asking, "/calm", "The last of all.")
        seen, missed = await _catch_up(stalled, last)
    return Listened(
        alone_ms=alone,
        beside_ms=beside,
        noise=ROUNDS * BUSY + writes + 1,
        seen=seen,
        missed=missed,
        memory_mb=memory,
    )


async def _delays(
    asking: Connection, watching: Sequence[ClientConnection], writes: int, name: str
) -> list[float]:
    delays: list[float] = []

    async def until(stream: ClientConnection, text: str, began: float) -> None:
        while text not in str(await stream.recv()):
            pass
        delays.append(1000 * (time.perf_counter() - began))

    for number in range(writes):
        text = f"All is calm {name} {number}."
        began = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for stream in watching:
                tasks.create_task(until(stream, text, began))
            await _remember(asking, "/calm", text)
    return delays


async def _catch_up(stream: ClientConnection, last: str) -> tuple[int, int]:
    """Read at last; how many events came, and how many were told to be missing."""
    seen = missed = 0
    while True:
        told = json.loads(await stream.recv())
        if told["type"] == "Missed":
            missed += told["data"]["count"]
        elif told["type"] in TOLD:
            seen += 1
            if told["data"]["id"] == last:
                return seen, missed


async def _remember(asking: Connection, scope: str, *texts: str) -> list[str]:
    items = [{"content": one, "force_create": True, "tags": ["round0"], "scope": scope} for one in texts]
    answer = await rest("smart_ingest", {"items": items}).sent(asking)
    return [one["nodeId"] for one in json.loads(answer.body)["results"]]


def _stream(
    server: Serving, headers: dict[str, str], *, sock: socket.socket | None = None, max_queue: int = 16
) -> connect:
    address = server.url.replace("http", "ws", 1) + "/ws"
    return connect(address, additional_headers=headers, sock=sock, max_queue=max_queue, compression=None)


def _narrow(server: Serving) -> socket.socket:
    """A connection whose kernel keeps as little as possible for who does not read."""
    parts = urlsplit(server.url)
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect((parts.hostname, parts.port))
    opened.setblocking(False)
    return opened


def _post(path: str, body: Json) -> Request:
    return Request(method="POST", path=f"/api/v1{path}", body=json_bytes(body), headers={})
