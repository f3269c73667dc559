"""The server in this process, on an app of a test's own, and as a real process on a free port.

with open_site(world) as site:
    site.http.get("/metrics", headers=bearer(site.key("read")))

with serving(folder) as server:
    patient_http.get(f"{server.url}/health")
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import anyio
from starlette.requests import HTTPConnection, Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket
from websockets.sync.client import ClientConnection, connect

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World, open_world
from tests.transports.cli.harness import ENVIRONMENT
from vestige.app.app import open_app
from vestige.core.api_key import ApiKey
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.operations.registry.groups import registry
from vestige.transports.http.app import PARTS, Part, build_app
from vestige.transports.http.auth.gate import Auth
from vestige.transports.http.context import ServerContext, caller_of, key_of, recheck_of

URL = "http://127.0.0.1:3927"
WS = "ws://127.0.0.1:3927"
CLIENT = "203.0.113.7"
SECRET = b"s" * 64
MANY = ("read", "write", "admin")


@dataclass(kw_only=True)
class Site:
    """A server in this process."""

    world: World
    context: ServerContext
    auth: Auth
    http: TestClient
    slept: list[float] = field(default_factory=list)

    def mint(
        self,
        *permissions: str,
        label: str = "a key",
        scopes: Sequence[str] | None = None,
        domains: Sequence[str] | None = None,
        expires_at: datetime | None = None,
    ) -> tuple[ApiKey, str]:
        """A new key of the store and its text."""
        call = Call(engine=self.world.app.engine)
        return keys.mint(call, label, permissions or MANY, scopes, domains, expires_at)

    def key(self, *permissions: str, **filters: Any) -> str:
        """The text of a new key."""
        return self.mint(*permissions, **filters)[1]

    def revoke(self, key: ApiKey) -> None:
        """Revoke one."""
        keys.revoke(Call(engine=self.world.app.engine), key.id)

    def log_in(self, key: str) -> dict[str, Any]:
        """Begin a session, whose cookie the client keeps; what the server tells about it."""
        response = self.http.post("/login", json={"api_key": key})
        assert response.status_code == 200, response.text
        told: dict[str, Any] = response.json()
        return told


def bearer(key: str) -> dict[str, str]:
    """The header that shows a key."""
    return {"Authorization": f"Bearer {key}"}


def whoami(context: ServerContext) -> list[BaseRoute]:
    """A part that only says who came in and what he may reach, by HTTP and by WebSocket."""

    def told(connection: HTTPConnection) -> dict[str, Any]:
        caller = caller_of(connection)
        return {
            "name": caller.name,
            "permissions": sorted(caller.permissions),
            "scopes": caller.access.scopes,
            "domains": caller.access.domains,
            "home": caller.home("/elsewhere"),
            "via": connection.state.via,
            "key": key_of(connection),
            "valid": recheck_of(connection)(),
        }

    async def answer(request: Request) -> JSONResponse:
        return JSONResponse(told(request))

    async def talk(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_json(told(socket))
        await socket.receive()
        await socket.send_json(told(socket))
        await socket.close()

    return [Route("/whoami", answer, methods=["GET", "POST"]), WebSocketRoute("/whoami/ws", talk)]


@contextmanager
def open_site(world: World, *, parts: Sequence[Part] = PARTS, client: str = CLIENT) -> Iterator[Site]:
    """A server on a world. Its failures are answered without the wait, which is written down instead."""
    engine, slept = world.app.engine, []

    async def pause(seconds: float) -> None:
        slept.append(seconds)

    context = ServerContext(
        app=world.app,
        settings=engine.settings,
        registry=registry,
        monotonic=engine.monotonic,
        entropy=engine.entropy,
        limiter=anyio.CapacityLimiter(8),
    )
    auth = Auth(context, SECRET, pause=pause)
    http = TestClient(
        build_app(context, auth, parts),
        base_url=URL,
        raise_server_exceptions=False,
        follow_redirects=False,
        client=(client, 50_000),
    )
    with http:
        yield Site(world=world, context=context, auth=auth, http=http, slept=slept)


@contextmanager
def new_site(
    folder: Path, settings: Mapping[str, Any] | None = None, *, parts: Sequence[Part] = PARTS
) -> Iterator[Site]:
    """A server on a new store in memory, with these settings."""
    with (
        open_world(folder, **{"storage.backend": "memory", **(settings or {})}) as world,
        open_site(world, parts=parts) as site,
    ):
        yield site


@dataclass(kw_only=True)
class Running:
    """A server that is a process: at `url` for everybody, and at `local` for this machine."""

    url: str
    local: str
    process: "subprocess.Popen[str]"
    stderr: Path

    def log(self) -> str:
        """What it wrote to standard error so far."""
        return self.stderr.read_text(encoding="utf-8")

    def logged(self, text: str) -> list[str]:
        """The lines of its log with this text. A line is written after the answer, so it is waited for."""
        soon = threading.Event()
        for _ in range(round(PATIENCE_SECONDS / 0.01)):
            if lines := [line for line in self.log().splitlines() if text in line]:
                return lines
            soon.wait(0.01)
        raise AssertionError(f"{text} was not logged")

    def stop(self, sig: int = signal.SIGTERM) -> int:
        """End it; its exit code."""
        self.process.send_signal(sig)
        return self.process.wait(PATIENCE_SECONDS)


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a process whose memories are in this folder. A server has one worker, however many
    cores there are: tests of several say how many."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "VESTIGE_DATA_DIR": str(folder),
        "VESTIGE_SERVER_WORKERS": "1",
        **ENVIRONMENT,
        **more,
    }


def listening(url: str, headers: Mapping[str, str] | None = None) -> ClientConnection:
    """A WebSocket for the events of the server at a URL, with headers such as the key's. It waits for one
    that stands still for a while."""
    return connect(
        f"{url.replace('http', 'ws', 1)}/ws",
        additional_headers=headers,
        open_timeout=PATIENCE_SECONDS,
        ping_interval=None,
    )


@contextmanager
def serving(
    folder: Path, *words: str, bind: str = "127.0.0.1:0", within: Sequence[str] = (), **more: str
) -> Iterator[Running]:
    """`vestige serve` on a data directory, with these options and variables; started by the command
    `within`, if there is one."""
    folder.mkdir(parents=True, exist_ok=True)
    stderr = folder / f"stderr-{len(list(folder.glob('stderr-*')))}"
    with (
        stderr.open("w") as written,
        subprocess.Popen(
            [*within, sys.executable, "-m", "vestige", "serve", "--bind", bind, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=written,
            encoding="utf-8",
            env=environment(folder, **more),
        ) as process,
    ):
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, stderr.read_text(encoding="utf-8")
            told = json.loads(line)
            yield Running(url=told["url"], local=told["local"], process=process, stderr=stderr)
        finally:
            process.kill()


def key_in(folder: Path, *permissions: str, **filters: Any) -> str:
    """The text of a new key of the store in a data directory, which a server may be at work on."""
    options = {"data_dir": str(folder), "embeddings.provider": "hashing"}
    with open_app(options, environ={"HOME": str(folder)}) as app:
        return keys.mint(Call(engine=app.engine), "a key", permissions or MANY, **filters)[1]
