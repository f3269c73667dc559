"""Two servers on one PostgreSQL, behind a proxy that gives each connection to the next of them."""

import base64
import json
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from anyio.abc import ByteStream, SocketAttribute, SocketStream
from anyio.from_thread import start_blocking_portal
from websockets.sync.client import ClientConnection

from testbed import patient_http, ticking_server
from testbed.fresh_databases import FreshDatabases
from testbed.patience import PATIENCE_SECONDS
from testbed.world import on_postgres
from tests.store.support.postgres_stores import SCHEMA
from tests.transports.http.support.harness import MANY, Running, bearer, listening, serving
from tests.transports.mcp.harness import sdk_remote
from vestige.app.app import open_app
from vestige.engine.care import keys
from vestige.engine.context import Call
from vestige.transports.http.auth.cookies import COOKIE

pytestmark = pytest.mark.slow  # starts processes

POLL_SECONDS = 0.05
SECRET = base64.urlsafe_b64encode(b"shared by both servers, " * 3).decode().rstrip("=")
EACH_ANEW = {"Connection": "close"}
"""Makes a client connect for every request, so that the next one goes to the other server."""
ERAS = ("2026-07-28", "auto")
TICKING = (sys.executable, str(Path(ticking_server.__file__)))


@dataclass(kw_only=True)
class Proxy:
    """Passes bytes on: each connection to the next server that takes it."""

    url: str
    behind: list[str]
    taken: dict[str, int] = field(default_factory=dict)
    _turn: int = 0

    async def pass_on(self, client: SocketStream) -> None:
        with suppress(OSError, anyio.BrokenResourceError):  # either side may be killed
            async with client, await self._next() as server, anyio.create_task_group() as tasks:
                tasks.start_soon(_copy, server, client)
                await _copy(client, server)

    async def _next(self) -> SocketStream:
        for _ in self.behind:
            url = self.behind[self._turn % len(self.behind)]
            self._turn += 1
            parts = urlsplit(url)
            with suppress(OSError):
                stream = await anyio.connect_tcp(parts.hostname or "", parts.port or 0)
                self.taken[url] = self.taken.get(url, 0) + 1
                return stream
        raise ConnectionRefusedError


async def _copy(source: ByteStream, target: ByteStream) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for piece in source:
            await target.send(piece)
        await target.send_eof()


@contextmanager
def proxy(*urls: str) -> Iterator[Proxy]:
    """A proxy of these servers."""
    with start_blocking_portal() as portal:
        listener = portal.call(_listener)
        port = listener.extra(SocketAttribute.local_port)
        passing = Proxy(url=f"http://127.0.0.1:{port}", behind=list(urls))
        serving_all = portal.start_task_soon(listener.serve, passing.pass_on)
        try:
            yield passing
        finally:
            serving_all.cancel()
            portal.call(listener.aclose)


async def _listener() -> Any:
    return await anyio.create_tcp_listener(local_host="127.0.0.1")


@dataclass(kw_only=True)
class Pair:
    """Two servers, the proxy before them, a key that may do everything, and what both were started with."""

    one: Running
    other: Running
    proxy: Proxy
    key: str
    variables: dict[str, str]

    def client(self, url: str | None = None, **headers: str) -> httpx.Client:
        """A client of one server, or of both in turn."""
        base = f"{url or self.proxy.url}/api/v1"
        return httpx.Client(
            base_url=base, headers={**bearer(self.key), **EACH_ANEW, **headers}, timeout=PATIENCE_SECONDS
        )

    def leads(self, server: Running) -> bool:
        """Whether a server says that it does the background work."""
        with self.client(server.url) as http:
            return bool(good(http.get("/stats"))["autopilot"]["leader"])


@contextmanager
def two_servers(url: str, folder: Path, *, within: tuple[str, ...] = (), **more: str) -> Iterator[Pair]:
    """Each has a data directory of its own, as on a machine of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    settings = {"data_dir": str(folder / "here"), "embeddings.provider": "hashing", **on_postgres(url)}
    with open_app(settings, environ={"HOME": str(folder)}) as app:
        key = keys.mint(Call(engine=app.engine), "both", MANY, None, None, None)[1]
    shared = {
        "VESTIGE_STORAGE_BACKEND": "postgres",
        "VESTIGE_STORAGE_POSTGRES_URL": url,
        "VESTIGE_STORAGE_POSTGRES_SCHEMA": SCHEMA,
        "VESTIGE_SESSION_SECRET": SECRET,
        **more,
    }
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(serving(folder / name, within=within, **shared)) for name in ("one", "other")
        )
        passing = stack.enter_context(proxy(one.url, other.url))
        yield Pair(one=one, other=other, proxy=passing, key=key, variables=shared)


@pytest.fixture(scope="module")
def pair(postgres_databases: FreshDatabases, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    url = postgres_databases.take()
    with two_servers(url, tmp_path_factory.mktemp("pair")) as started:
        yield started
    postgres_databases.give_back(url)


@pytest.fixture
def mortal_pair(postgres_databases: FreshDatabases, tmp_path: Path) -> Iterator[Pair]:
    """They do what a leader does from time to time when they are told to, and all of it every time."""
    url = postgres_databases.take()
    with two_servers(url, tmp_path, within=TICKING, VESTIGE_BACKUP_EVERY_HOURS="0.00001") as started:
        yield started
    postgres_databases.give_back(url)


def good(response: httpx.Response) -> dict[str, Any]:
    assert response.is_success, response.text
    answer: dict[str, Any] = response.json()
    return answer


def both_took_part(proxy: Proxy, before: dict[str, int]) -> bool:
    return all(proxy.taken.get(url, 0) > before.get(url, 0) for url in proxy.behind)


def heard(listener: ClientConnection, kind: str) -> dict[str, Any]:
    """What the next event of a kind tells."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        told = json.loads(listener.recv(PATIENCE_SECONDS))
        if told["type"] == kind:
            data: dict[str, Any] = told["data"]
            return data
    raise AssertionError(f"no {kind}")


@pytest.mark.parametrize("mode", ERAS)
def test_an_agent_works_across_both(pair: Pair, mode: str) -> None:
    before = dict(pair.proxy.taken)
    headers = {**bearer(pair.key), **EACH_ANEW}
    with sdk_remote(f"{pair.proxy.url}/mcp", mode=mode, headers=headers) as agent:
        assert agent.version == "2026-07-28"
        for number in range(6):
            text = f"In {mode} lighthouse {number} has a lamp of {number + 3} wicks."
            made = agent.tool("smart_ingest", {"content": text}).structured_content
            assert made is not None
            found = agent.tool("memory", {"action": "get", "id": made["nodeId"]}).structured_content
            assert found is not None
            assert found["node"]["content"] == text
        listed = agent.tool("search", {"query": f"{mode} lighthouse wicks", "limit": 20}).structured_content
        assert listed is not None
        assert sum(f"In {mode} lighthouse" in hit["content"] for hit in listed["results"]) == 6
    assert both_took_part(pair.proxy, before)


def test_a_session_of_the_handshake_era_is_unknown_at_the_other_which_says_so(pair: Pair) -> None:
    headers = {**bearer(pair.key), "Accept": "application/json, text/event-stream"}
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}}
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    begun = patient_http.post(f"{pair.one.url}/mcp", json=hello, headers=headers)
    headers |= {"Mcp-Session-Id": begun.headers["mcp-session-id"], "MCP-Protocol-Version": "2025-11-25"}
    ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
    assert patient_http.post(f"{pair.one.url}/mcp", json=ping, headers=headers).status_code == 200
    # On which clients shake hands anew, as the protocol has it.
    assert patient_http.post(f"{pair.other.url}/mcp", json=ping, headers=headers).status_code == 404


def test_what_rest_writes_at_one_is_read_at_the_other_at_once(pair: Pair) -> None:
    before = dict(pair.proxy.taken)
    with pair.client() as http:
        for number in range(6):
            text = f"Harbour {number} freezes in month {number + 1}."
            memory_id = good(http.post("/memories", json={"content": text}))["nodeId"]
            assert good(http.get(f"/memories/{memory_id}"))["node"]["content"] == text
            changed = good(http.put(f"/memories/{memory_id}", json={"content": f"{text} Not always."}))
            assert changed["action"]
            assert good(http.get(f"/memories/{memory_id}"))["node"]["content"].endswith("Not always.")
        again = {"content": "Sent twice, kept once.", "idempotency_key": "across"}
        assert len({good(http.post("/memories", json=again))["nodeId"] for _ in range(2)}) == 1
    assert both_took_part(pair.proxy, before)


def test_events_of_each_reach_listeners_of_the_other(pair: Pair) -> None:
    for here, there in ((pair.one, pair.other), (pair.other, pair.one)):
        with listening(there.url, bearer(pair.key)) as listener, pair.client(here.url) as http:
            assert json.loads(listener.recv(PATIENCE_SECONDS))["type"] == "Connected"
            memory_id = good(http.post("/memories", json={"content": f"Told at {here.url}."}))["nodeId"]
            assert heard(listener, "MemoryCreated")["id"] == memory_id


def test_a_key_made_at_one_works_at_the_other_until_it_is_revoked_there(pair: Pair) -> None:
    for here, there in ((pair.one, pair.other), (pair.other, pair.one)):
        with pair.client(here.url) as http:
            made = good(http.post("/keys", json={"label": f"of {here.url}", "permissions": ["read"]}))
            with pair.client(there.url, **bearer(made["key"])) as holder:
                assert holder.get("/memories").status_code == 200
                good(http.delete(f"/keys/{made['id']}"))
                assert holder.get("/memories").status_code == 401


def test_who_logged_in_at_one_is_logged_in_at_the_other(pair: Pair) -> None:
    with httpx.Client(timeout=PATIENCE_SECONDS) as browser:  # whose cookies go to the host, whatever the port
        told = good(browser.post(f"{pair.one.url}/login", json={"api_key": pair.key}))
        assert good(browser.get(f"{pair.other.url}/login/session"))["label"] == "both"
        write = {"content": "A person wrote this in a browser."}
        address = f"{pair.other.url}/api/v1/memories"
        assert browser.post(address, json=write).status_code == 403
        assert browser.post(address, json=write, headers={"X-CSRF-Token": told["csrf"]}).status_code == 201


def test_who_logs_out_at_one_is_logged_out_at_the_other_and_at_one_that_starts_later(
    pair: Pair, tmp_path: Path
) -> None:
    answers = [patient_http.post(f"{pair.one.url}/login", json={"api_key": pair.key}) for _ in range(2)]
    gone, kept = ({"Cookie": f"{COOKIE}={answer.cookies[COOKIE]}"} for answer in answers)
    assert patient_http.post(f"{pair.one.url}/logout", headers=gone).status_code == 204
    with serving(tmp_path, **pair.variables) as restarted:
        for server in (pair.one, pair.other, restarted):
            assert patient_http.get(f"{server.url}/login/session", headers=gone).status_code == 401
            assert good(patient_http.get(f"{server.url}/login/session", headers=kept))["label"] == "both"


def leader_of(pair: Pair, servers: list[Running]) -> Running:
    """The server that leads, as soon as one does; never more than one."""
    until = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < until:
        leading = [server for server in servers if pair.leads(server)]
        assert len(leading) <= 1
        if leading:
            return leading[0]
        time.sleep(POLL_SECONDS)
    raise AssertionError("nobody leads")


def backups_of(server: Running) -> int:
    """How many backups a server has made, each into the data directory that is its own."""
    return len(list(server.stderr.parent.glob("backups/vestige-auto-*.db")))


def tick(*servers: Running) -> None:
    """Have each do its part of the background work now, at the same time, and wait until it is done."""
    before = [server.log().count(ticking_server.DONE) for server in servers]
    for server in servers:
        server.process.send_signal(signal.SIGUSR1)
    until = time.monotonic() + PATIENCE_SECONDS
    while any(
        server.log().count(ticking_server.DONE) == n for server, n in zip(servers, before, strict=True)
    ):
        assert time.monotonic() < until, "the background work does not end"
        time.sleep(POLL_SECONDS)


def test_one_does_the_background_work_and_when_it_is_killed_the_other_does_and_agents_go_on(
    mortal_pair: Pair,
) -> None:
    pair = mortal_pair
    leader = leader_of(pair, [pair.one, pair.other])
    survivor = pair.other if leader is pair.one else pair.one
    with pair.client() as http, listening(survivor.url, bearer(pair.key)) as listener:
        kept = [good(http.post("/memories", json={"content": f"Before {n}."}))["nodeId"] for n in range(2)]
        for _ in range(3):
            made = backups_of(leader)
            tick(pair.one, pair.other)
            assert backups_of(leader) > made
        assert backups_of(survivor) == 0
        leader.process.kill()
        leader.process.wait(PATIENCE_SECONDS)
        assert leader_of(pair, [survivor]) is survivor
        tick(survivor)
        assert backups_of(survivor) > 0
        after = [good(http.post("/memories", json={"content": f"After {n}."}))["nodeId"] for n in range(2)]
        found = [good(http.get(f"/memories/{one}"))["node"]["id"] for one in (*kept, *after)]
        assert found == [*kept, *after]
        while heard(listener, "MemoryCreated")["id"] != after[-1]:
            pass
