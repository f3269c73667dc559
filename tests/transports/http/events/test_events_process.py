"""Live events of a real server: from other processes, to many at once, past one that does not read."""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from testbed import patient_http
from testbed.patience import PATIENCE_SECONDS, until
from tests.transports.http.support.harness import Running, bearer, environment, key_in, listening, serving

pytestmark = pytest.mark.slow  # starts processes

LISTENERS = 499
BUSY = 500
"""Memories of which each round tells."""
ROUNDS = 8
KETTLES = "\N{TEAPOT}" * 120
"""A text that is long on its way, so that no kernel keeps all that is told of it."""
PROMPT_SECONDS = 5.0
TRIES = 3
"""What comes in time once can do so; on a busy machine it may be late for other reasons."""


def connected(server: Running, headers: dict[str, str], **more: Any) -> connect:
    """A connection that stays, however long either side stands still."""
    url = server.url.replace("http", "ws", 1) + "/ws"
    return connect(url, additional_headers=headers, open_timeout=PATIENCE_SECONDS, ping_interval=None, **more)


def vestige(folder: Path, *words: str) -> Any:
    command = [sys.executable, "-m", "vestige", *words, "--json"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment(folder), timeout=PATIENCE_SECONDS
    )
    return json.loads(done.stdout)


def test_what_another_process_does_is_heard_until_the_key_is_revoked(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        made = vestige(tmp_path, "keys", "create", "--label", "watcher", "--permissions", "read")
        with listening(server.url, bearer(made["key"])) as watcher:
            assert json.loads(watcher.recv(PATIENCE_SECONDS))["type"] == "Connected"
            memory_id = vestige(tmp_path, "ingest", "Ada prefers tea.")["nodeId"]
            while (told := json.loads(watcher.recv(PATIENCE_SECONDS)))["type"] != "MemoryCreated":
                pass
            assert told["data"]["id"] == memory_id
            while json.loads(watcher.recv(PATIENCE_SECONDS))["type"] != "Heartbeat":
                pass
            vestige(tmp_path, "keys", "revoke", "watcher")
            with pytest.raises(ConnectionClosed) as ended:
                everything(lambda: watcher.recv(PATIENCE_SECONDS))
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 4401


def test_a_revoked_key_hears_nothing_more_after_a_few_seconds(tmp_path: Path) -> None:
    def seconds_until_the_end(server: Running, label: str) -> float:
        made = vestige(tmp_path, "keys", "create", "--label", label, "--permissions", "read")
        with listening(server.url, bearer(made["key"])) as watcher:
            assert json.loads(watcher.recv(PATIENCE_SECONDS))["type"] == "Connected"
            vestige(tmp_path, "keys", "revoke", label)
            revoked = time.monotonic()
            with pytest.raises(ConnectionClosed):
                everything(lambda: watcher.recv(PATIENCE_SECONDS))
            return time.monotonic() - revoked

    with serving(tmp_path) as server:
        assert any(seconds_until_the_end(server, f"try {n}") < PROMPT_SECONDS for n in range(TRIES))


def everything(receive: Callable[[], object]) -> None:
    """Receive until it fails."""
    while True:
        receive()


def anybody_listens(server: Running, headers: dict[str, str]) -> bool:
    """Whether anybody listens."""
    return "\nvestige_listeners 0" not in patient_http.get(f"{server.url}/metrics", headers=headers).text


def test_a_server_that_is_stopped_says_goodbye_to_every_stream(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        headers = bearer(key_in(tmp_path, "read"))
        with httpx.stream(
            "GET", f"{server.url}/api/v1/events", headers=headers, timeout=PATIENCE_SECONDS
        ) as stream:
            lines = stream.iter_lines()  # which ends the stream when nobody holds it
            assert '"Connected"' in next(lines)
            assert anybody_listens(server, headers)
        until(lambda: not anybody_listens(server, headers))  # who left is forgotten
        with (
            listening(server.url, headers) as watcher,
            httpx.stream(
                "GET", f"{server.url}/api/v1/events", headers=headers, timeout=PATIENCE_SECONDS
            ) as stream,
        ):
            lines = (line for line in stream.iter_lines() if line)
            assert '"Connected"' in next(lines)
            assert server.stop() == 0
            with pytest.raises(ConnectionClosed) as ended:
                everything(lambda: watcher.recv(PATIENCE_SECONDS))
            assert ended.value.rcvd is not None
            assert ended.value.rcvd.code == 1001
            assert '"code":1001' in list(lines)[-1]


class Watcher:
    """A listener that notes the ids it was told of, and when it was told of the last one."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.seen: list[str] = []
        self.missed = 0

    async def until(self, memory_id: str) -> float:
        """Read until it is told of a memory; when that was."""
        while not self.seen or self.seen[-1] != memory_id:
            message = json.loads(await asyncio.wait_for(self._connection.recv(), PATIENCE_SECONDS))
            if message["type"] == "Missed":
                self.missed += message["data"]["count"]
            elif message["type"] in ("MemoryCreated", "MemoryUpdated"):
                self.seen.append(message["data"]["id"])
        return time.monotonic()


def narrow_socket(server: Running) -> socket.socket:
    """A connection whose kernel keeps as little as possible for who does not read."""
    parts = urlsplit(server.url)
    opened = socket.socket()
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect((parts.hostname, parts.port))
    opened.setblocking(False)
    return opened


def test_one_that_does_not_read_delays_none_of_500_and_is_told_what_it_missed(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        everywhere = bearer(key_in(tmp_path))
        calm = bearer(key_in(tmp_path, "read", scopes=["/calm"]))
        asyncio.run(watching(server, everywhere, calm))


async def watching(server: Running, everywhere: dict[str, str], calm: dict[str, str]) -> None:
    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(
            httpx.AsyncClient(base_url=f"{server.url}/api/v1", headers=everywhere, timeout=PATIENCE_SECONDS)
        )
        await remember(http, *(f"{number} {KETTLES}" for number in range(BUSY)), scope="/busy")
        opened = [stack.enter_async_context(connected(server, calm)) for _ in range(LISTENERS)]
        watchers = [Watcher(await one) for one in opened]
        # Last: a server ends the connection of one that does not read for long.
        narrow = connected(server, everywhere, sock=narrow_socket(server), max_queue=1)
        stalled = Watcher(await stack.enter_async_context(narrow))
        for number in range(ROUNDS):  # each time, all of the busy ones are told of, and nobody reads that
            response = await http.post(
                "/tags/rename", json={"tag": f"round{number}", "to": f"round{number + 1}", "scope": "/busy"}
            )
            assert response.status_code == 200, response.text
        told: list[str] = []
        for number in range(TRIES):
            began = time.monotonic()
            told += await remember(http, f"All is calm, number {number}.", scope="/calm")
            heard = await asyncio.gather(*(one.until(told[-1]) for one in watchers))
            if prompt := max(heard) - began < PROMPT_SECONDS:
                break
        assert prompt
        assert all(one.seen == told for one in watchers)

        await stalled.until(told[-1])
        assert stalled.missed > 0
        assert len(stalled.seen) + stalled.missed == ROUNDS * BUSY + len(told)


async def remember(http: httpx.AsyncClient, *texts: str, scope: str) -> list[str]:
    """Store new memories; their ids."""
    items = [{"content": text, "force_create": True, "tags": ["round0"], "scope": scope} for text in texts]
    response = await http.post("/memories", json={"items": items})
    assert response.status_code == 201, response.text
    return [one["nodeId"] for one in response.json()["results"]]
