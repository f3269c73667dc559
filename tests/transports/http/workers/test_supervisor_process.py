"""A server of two workers, as real processes: sessions, events, limits, restarts, crashes and the end."""

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import httpx2
import pytest

from testbed import patient_http
from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Running, bearer, key_in, listening, serving
from tests.transports.http.support.mcp_requests import (
    ACCEPT,
    PATH,
    Headers,
    call,
    message,
    open_session,
    post,
)
from tests.transports.http.test_run_process import SlowRequest, at_a_terminal, wait_until_closed
from tests.transports.mcp.harness import STDIO_MODES, sdk_remote

pytestmark = pytest.mark.slow

TWO = ("--workers", "2")
SERVING = "serving"


def workers(server: Running, seconds: float = PATIENCE_SECONDS) -> dict[str, str]:
    """The workers and their states."""
    found: dict[str, str] = httpx.get(f"{server.url}/readyz", timeout=seconds).json()["workers"]
    return found


def poll(done: Callable[[], bool]) -> None:
    until, soon = time.monotonic() + PATIENCE_SECONDS, threading.Event()
    while not done():
        assert time.monotonic() < until
        soon.wait(0.05)


def patient(server: Running) -> httpx2.Client:
    """A client that waits for a server that stands still for a while."""
    return httpx2.Client(base_url=server.url, timeout=PATIENCE_SECONDS)


def both_serve(server: Running) -> bool:
    return list(workers(server).values()) == [SERVING, SERVING]


def children(server: Running) -> list[int]:
    """The process ids of the workers."""
    found = Path(f"/proc/{server.process.pid}/task/{server.process.pid}/children").read_text()
    return [int(pid) for pid in found.split()]


def is_alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


@contextmanager
def two_workers(folder: Path, *words: str, **more: str) -> Iterator[Running]:
    """A server whose two workers serve."""
    with serving(folder, *TWO, *words, **more) as server:
        poll(lambda: both_serve(server))
        yield server
        server.stop()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """One server of two workers for the tests that change none of its settings."""
    with two_workers(tmp_path_factory.mktemp("pair")) as server:
        yield server


@pytest.fixture(scope="module")
def headers(pair: Running) -> Headers:
    return bearer(key_in(pair.stderr.parent))


@contextmanager
def on_both(
    server: Running, headers: Headers
) -> Iterator[tuple[httpx2.Client, httpx2.Client, Headers, Headers]]:
    """Two clients, each with a connection to another worker, and their sessions."""
    with patient(server) as first, patient(server) as second:
        sessions = open_session(first, headers=headers), open_session(second, headers=headers)
        numbers = {session["Mcp-Session-Id"].partition("-")[0] for session in sessions}
        assert len(numbers) == 2, numbers
        yield first, second, *sessions


@pytest.mark.parametrize("mode", STDIO_MODES)
def test_the_official_client_works_on_two_workers(pair: Running, headers: Headers, mode: str) -> None:
    with ExitStack() as stack:
        clients = [
            stack.enter_context(sdk_remote(pair.url + PATH, mode=mode, headers=headers)) for _ in range(2)
        ]
        stored = clients[0].tool("smart_ingest", {"content": f"The heron of {mode} stands in the pond."})
        assert isinstance(stored.structured_content, dict)
        for client in clients * 3:
            found = client.tool("search", {"query": f"heron of {mode}"}).structured_content
            assert isinstance(found, dict)
            assert found["results"][0]["id"] == stored.structured_content["nodeId"]


def test_a_session_is_found_from_a_connection_to_the_other_worker(pair: Running, headers: Headers) -> None:
    with on_both(pair, headers) as (first, second, session, _):
        direct = post(first, session, call("search", query="heron")).json()
        passed_on = post(second, session, call("search", query="heron"))
        assert passed_on.status_code == 200
        assert passed_on.json()["result"]["isError"] is direct["result"]["isError"] is False
        with second.stream("GET", PATH, headers={**ACCEPT, **session}) as listening:
            lines = listening.iter_lines()
            assert next(lines).startswith(":")
            taken = first.get(PATH, headers={**ACCEPT, **session})
            assert taken.status_code == 409
            assert first.delete(PATH, headers=session).status_code == 204
            assert [line for line in lines if line] == []
        assert post(second, session, message("ping")).status_code == 404
        assert post(first, session, message("ping")).status_code == 404


def test_a_session_of_another_key_does_not_exist_on_any_worker(pair: Running, headers: Headers) -> None:
    stranger = bearer(key_in(pair.stderr.parent, "read"))
    with on_both(pair, headers) as (first, second, session, _):
        for client in (first, second):
            assert post(client, {**session, **stranger}, message("ping")).status_code == 404
            assert (
                post(client, {**session, "Authorization": "Bearer vst_wrong"}, message("ping")).status_code
                == 401
            )
        unknown = {**session, "Mcp-Session-Id": "w77-AAAA"}
        assert post(first, unknown, message("ping")).status_code == 404


def test_nobody_else_can_claim_to_be_a_worker(pair: Running) -> None:
    told = "x " + json.dumps({"client": ["127.0.0.1", 1], "scheme": "http", "server": None})
    for path in ("/workers/sessions", "/metrics"):
        refused = patient_http.post(f"{pair.url}{path}", headers={"x-vestige-peer": told}, json=[])
        assert refused.status_code == 401


def test_what_one_worker_stores_is_heard_and_found_on_the_other(pair: Running, headers: Headers) -> None:
    with on_both(pair, headers) as (first, second, _, _), ExitStack() as stack:
        watchers = [stack.enter_context(listening(pair.url, headers)) for _ in range(2)]
        for watcher in watchers:
            assert json.loads(watcher.recv(PATIENCE_SECONDS))["type"] == "Connected"
        stored = first.post("/api/v1/memories", json={"content": "Ada keeps bees."}, headers=headers)
        assert stored.status_code in (200, 201), stored.text
        for watcher in watchers:
            while (told := json.loads(watcher.recv(PATIENCE_SECONDS)))["type"] != "MemoryCreated":
                pass
            assert told["data"]["id"] == stored.json()["nodeId"]
        answers = [
            client.post("/api/v1/search", json={"query": "bees"}, headers=headers).json()["results"][0]["id"]
            for client in (first, second)
        ]
        assert answers == [stored.json()["nodeId"]] * 2


def test_a_cookie_of_one_worker_is_good_on_the_other_until_it_logs_out(
    pair: Running, headers: Headers
) -> None:
    key = headers["Authorization"].removeprefix("Bearer ")
    with on_both(pair, headers) as (first, second, _, _):
        login = first.post("/login", json={"api_key": key})
        cookie = {"Cookie": login.headers["set-cookie"].partition(";")[0]}
        assert second.get("/login/session", headers=cookie).status_code == 200
        assert second.post("/logout", headers=cookie).status_code == 204
        assert first.get("/login/session", headers=cookie).status_code == 401


def test_metrics_have_every_worker_and_the_store_once(pair: Running, headers: Headers) -> None:
    text = patient_http.get(f"{pair.url}/metrics", headers=headers).text
    samples = [line for line in text.splitlines() if not line.startswith("#")]
    for name in ("vestige_threads", "vestige_mcp_sessions", "vestige_background_leader"):
        found = [line for line in samples if line.startswith(f"{name}{{")]
        assert [line.partition("}")[0] for line in found] == [f'{name}{{worker="{one}"' for one in (0, 1)]
    leaders = [float(line.split()[-1]) for line in samples if line.startswith("vestige_background_leader")]
    assert sum(leaders) == 1
    assert [line for line in samples if line.startswith("vestige_memories")] == [
        next(line for line in samples if line.startswith("vestige_memories "))
    ]
    heads = [line for line in text.splitlines() if line.startswith("# HELP")]
    assert len(heads) == len(set(heads))


def test_limits_are_those_of_the_whole_server(tmp_path: Path) -> None:
    small = {
        "VESTIGE_SERVER_MAX_LISTENERS": "4",
        "VESTIGE_SERVER_MAX_SESSIONS": "4",
        "VESTIGE_SERVER_REQUESTS_PER_MINUTE": "60",
        "VESTIGE_STORAGE_EXCLUSIVE": "true",
    }
    with two_workers(tmp_path, **small) as server, ExitStack() as stack:
        http = [stack.enter_context(patient(server)) for _ in range(2)]
        one, other, third, counted = (bearer(key_in(tmp_path)) for _ in range(4))
        for client in http:
            client.get("/health")  # one connection to each worker
        opened = [open_session(client, headers=one) for client in http]
        opened += [open_session(client, headers=other) for client in http]
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {}}
        for client in http:
            assert post(client, third, message("initialize", hello)).status_code == 503
        assert post(http[0], one, message("initialize", hello)).status_code == 200  # for its idle one
        alive = [post(http[0], session, message("ping")).status_code for session in opened]
        assert sorted(alive) == [200, 200, 200, 404]

        streams = [(http[0], one), (http[1], one), (http[0], other), (http[1], other)]
        for number, (client, key) in enumerate(streams):
            heard = stack.enter_context(patient(server).stream("GET", "/api/v1/events", headers=key))
            assert heard.status_code == 200
            if number == 1:
                full = client.get("/api/v1/events", headers=one)
                assert (full.status_code, "this key" in full.text) == (503, True)
        for client in http:
            assert client.get("/api/v1/events", headers=third).status_code == 503

        began, answered = time.monotonic(), list[int]()
        while answered.count(429) < 3:
            answered.append(http[len(answered) % 2].get("/api/v1/events/none", headers=counted).status_code)
        seconds = time.monotonic() - began  # in each of which another one is let in
        assert 60 <= len(answered) - 3 <= 67 + seconds, "60 at once of the key, on both workers together"

        wrong = {"Authorization": "Bearer vst_00000000000000000000000000"}
        failures = [http[number % 2].get("/metrics", headers=wrong).status_code for number in range(15)]
        assert failures[-1] == 429, "15 failures of an address lock it, wherever they were"
        assert [client.get("/metrics", headers=wrong).status_code for client in http] == [429, 429]


class Load:
    """Clients that search, store and use an MCP session all the time, each over connections that it keeps."""

    def __init__(self, server: Running, headers: Headers, clients: int) -> None:
        self._server, self._headers, self._over = server, headers, threading.Event()
        self.answers: list[str] = []
        self.stored: list[str] = []
        self._threads = [
            threading.Thread(target=self._work, args=(work,)) for work in [self._rest, self._mcp] * clients
        ]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join(PATIENCE_SECONDS)

    def _work(self, work: Callable[[httpx2.Client], None]) -> None:
        try:
            with patient(self._server) as http:
                work(http)
        except (httpx2.HTTPError, AssertionError) as exc:
            self.answers.append(repr(exc))

    def _rest(self, http: httpx2.Client) -> None:
        number = 0
        while not self._over.is_set():
            number += 1
            text = {"content": f"Note {number} of {threading.get_ident()}."}
            stored = http.post("/api/v1/memories", json=text, headers=self._headers)
            self.answers.append(str(stored.status_code))
            if stored.is_success:
                self.stored.append(stored.json()["nodeId"])
            found = http.post("/api/v1/search", json={"query": "note"}, headers=self._headers)
            self.answers.append(str(found.status_code))

    def _mcp(self, http: httpx2.Client) -> None:
        session = open_session(http, headers=self._headers)
        while not self._over.is_set():
            self.answers.append(str(post(http, session, call("search", query="note")).status_code))

    def failures(self) -> set[str]:
        return set(self.answers) - {"200", "201"}


def test_a_rolling_restart_under_load_loses_no_request_and_no_session(tmp_path: Path) -> None:
    with two_workers(tmp_path, "--no-auth") as server:
        before = set(children(server))
        with Load(server, {}, clients=2) as load:
            poll(lambda: len(load.answers) > 20)
            server.process.send_signal(signal.SIGUSR1)
            server.logged("The rolling restart is complete")
            answered = len(load.answers)
            poll(lambda: len(load.answers) > answered + 20)
        assert load.failures() == set()
        assert not before & set(children(server))
        poll(lambda: both_serve(server))


def test_a_worker_that_is_killed_while_it_is_replaced_is_replaced_once(tmp_path: Path) -> None:
    with two_workers(tmp_path, "--no-auth") as server:
        before = children(server)
        server.process.send_signal(signal.SIGUSR1)
        server.logged("Rolling restart of 2 workers")
        os.kill(before[0], signal.SIGKILL)
        server.logged(f"(pid {before[0]}) ended unexpectedly")
        server.logged("The rolling restart is complete")
        poll(lambda: both_serve(server))
        assert not set(before) & set(children(server))


def test_a_killed_worker_is_replaced_and_no_acknowledged_write_is_lost(tmp_path: Path) -> None:
    with two_workers(tmp_path, "--no-auth") as server:
        with Load(server, {}, clients=1) as load:
            poll(lambda: len(load.stored) > 5)
            victim = children(server)[0]
            os.kill(victim, signal.SIGKILL)
            assert "SIGKILL" in server.logged(f"(pid {victim}) ended unexpectedly")[0]
        poll(lambda: both_serve(server))
        assert victim not in children(server)
        for memory_id in load.stored:
            assert patient_http.get(f"{server.url}/api/v1/memories/{memory_id}").status_code == 200
        assert "Traceback" not in server.log()


def test_a_worker_that_stands_still_is_named_and_gets_no_more_connections(tmp_path: Path) -> None:
    with two_workers(tmp_path, "--no-auth") as server:
        os.kill(children(server)[1], signal.SIGSTOP)

        def is_named() -> bool:
            try:
                return "stands still" in workers(server, seconds=1).values()
            except httpx.TimeoutException:  # it got this connection before it was noticed
                return False

        poll(is_named)
        for _ in range(4):
            assert patient_http.get(f"{server.url}/health").status_code == 200
        os.kill(children(server)[1], signal.SIGCONT)
        poll(lambda: both_serve(server))


def test_a_signal_lets_what_runs_on_the_workers_finish(tmp_path: Path) -> None:
    with two_workers(tmp_path, "--no-auth") as server, SlowRequest(server.url) as request:
        pids = children(server)
        server.process.send_signal(signal.SIGTERM)
        wait_until_closed(server.url)
        request.finish()
        assert request.status() == 200
        assert server.process.wait(PATIENCE_SECONDS) == 0
        assert not any(map(is_alive, pids))


def test_without_their_parent_workers_end(tmp_path: Path) -> None:
    with two_workers(tmp_path, "--no-auth") as server:
        pids = children(server)
        server.process.kill()
        server.process.wait(PATIENCE_SECONDS)
        poll(lambda: not any(map(is_alive, pids)))


def test_a_store_that_cannot_be_opened_ends_the_server_with_one_error(tmp_path: Path) -> None:
    with (
        two_workers(tmp_path, "--no-auth", VESTIGE_STORAGE_EXCLUSIVE="true"),
        pytest.raises(AssertionError, match="Another server uses this store"),
        serving(tmp_path, *TWO, "--no-auth"),
    ):
        pass


def test_at_a_terminal_the_first_worker_shows_the_key_once(tmp_path: Path) -> None:
    screen = at_a_terminal(tmp_path, *TWO)
    keys = {word for word in screen.split() if word.startswith("vst_") and len(word) == 34}
    assert len(keys) == 1
    assert screen.count("Vestige listens on") == 1
