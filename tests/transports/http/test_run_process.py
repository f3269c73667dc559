"""`vestige serve` as a real process: where it listens, what it says, and how it ends."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

import httpx
import pytest

from testbed import patient_http
from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Running, bearer, environment, key_in, serving

pytestmark = pytest.mark.slow

TOKEN = "correct horse battery staple"
SERVE = [sys.executable, "-m", "vestige", "serve"]


def refused(folder: Path, *words: str, **more: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*SERVE, *words],
        capture_output=True,
        encoding="utf-8",
        env=environment(folder, **more),
        timeout=PATIENCE_SECONDS,
        check=False,
    )


WATCHED = """
import sys
calls = []
def watch(event, args):
    if event.startswith("socket.") and event not in ("socket.gethostname",):
        calls.append(event)
sys.addaudithook(watch)
from vestige.app.console import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    print(calls)
    raise
"""


@pytest.mark.parametrize("bind", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "example.org:0"])
def test_without_keys_it_never_listens_where_others_could_reach_it(tmp_path: Path, bind: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, "serve", "--no-auth", "--bind", bind],
        capture_output=True,
        encoding="utf-8",
        env=environment(tmp_path),
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 2
    assert f"refusing to bind {bind}" in done.stderr
    assert done.stdout.strip() == "[]"  # not a socket was made, nor a name looked up
    assert not (tmp_path / "vestige.db").exists()


def test_the_setting_is_no_way_around_it(tmp_path: Path) -> None:
    done = refused(tmp_path, VESTIGE_AUTH_ENABLED="false", VESTIGE_HTTP_BIND="0.0.0.0:0")
    assert done.returncode == 2
    assert "refusing to bind" in done.stderr


@pytest.mark.parametrize("bind", ["nonsense", "127.0.0.1", "127.0.0.1:99999", "http://[::1]:80", "[::zz]:80"])
def test_what_is_no_address_is_refused(tmp_path: Path, bind: str) -> None:
    done = refused(tmp_path, "--bind", bind)
    assert done.returncode == 2
    assert json.loads(done.stderr)["error"]["details"] == {"setting": "server.bind"}


def test_a_port_in_use_is_told_before_the_store_is_opened(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = refused(tmp_path, "--bind", f"127.0.0.1:{port}")
    assert done.returncode == 1
    told = json.loads(done.stderr)["error"]
    assert told["message"] == f"Another program already listens on 127.0.0.1:{port}."
    assert "--bind" in told["hint"]
    assert not (tmp_path / "vestige.db").exists()


def test_a_weak_session_secret_is_refused_and_not_repeated(tmp_path: Path) -> None:
    done = refused(tmp_path, "--bind", "127.0.0.1:0", VESTIGE_SESSION_SECRET="hunter2")
    assert done.returncode == 2
    assert "auth.session_secret" in done.stderr
    assert "hunter2" not in done.stderr


def test_it_serves_who_has_a_key_and_nobody_else(running: Running) -> None:
    assert patient_http.get(f"{running.url}/health").json()["status"] == "ok"
    assert patient_http.get(f"{running.url}/readyz").status_code == 200
    assert patient_http.get(f"{running.url}/metrics").status_code == 401
    key = key_in(running.stderr.parent)  # made by another process while the server runs
    assert "vestige_store_up 1" in patient_http.get(f"{running.url}/metrics", headers=bearer(key)).text


def test_who_looks_at_no_terminal_is_told_how_to_make_a_key_and_gets_none(running: Running) -> None:
    assert f"--data-dir {running.stderr.parent} keys create --label NAME" in running.log()
    assert "vst_" not in running.log()


def test_another_machine_gets_in_with_a_key_only(tmp_path: Path) -> None:
    with serving(tmp_path, bind="0.0.0.0:0") as server:
        other = server.local.replace("127.0.0.1", "127.0.0.2")  # no address it was bound to by name
        assert patient_http.get(f"{other}/metrics").status_code == 401
        assert patient_http.get(f"{other}/metrics", headers=bearer(key_in(tmp_path))).status_code == 200
        stranger = {"Host": "evil.example"}
        assert patient_http.get(f"{other}/health", headers=stranger).status_code == 421


def test_it_listens_on_ipv6(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth", bind="[::1]:0") as server:
        assert server.url.startswith("http://[::1]:")
        assert patient_http.get(f"{server.url}/metrics").status_code == 200


@pytest.mark.parametrize(("proxies", "believed"), [("127.0.0.1", True), ("", False)])
def test_only_a_proxy_that_is_trusted_tells_how_the_client_came(
    tmp_path: Path, proxies: str, believed: bool
) -> None:
    key = key_in(tmp_path)
    with serving(tmp_path, VESTIGE_SERVER_TRUSTED_PROXIES=proxies) as server:
        told = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.9"}
        response = patient_http.post(f"{server.url}/login", json={"api_key": key}, headers=told)
        assert ("Secure" in response.headers["set-cookie"]) is believed


def test_it_has_so_many_connections_and_refuses_others_unless_some_are_idle(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth", VESTIGE_SERVER_MAX_CONNECTIONS="2") as server:
        with (
            connected(server.url) as first,
            connected(server.url) as second,
            connected(server.url, source="127.0.0.2") as third,  # one address may use half of them
        ):
            assert first.makefile("rb").readline() == b""
            for one in (second, third):
                one.sendall(b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                assert one.makefile("rb").readline() == b"HTTP/1.1 200 OK\r\n"
            with connected(server.url) as fourth:
                assert fourth.makefile("rb").readline() == b"HTTP/1.1 503 Service Unavailable\r\n"
        assert "server.max_connections" in server.log()


def test_the_deprecated_token_works_and_warns(tmp_path: Path) -> None:
    with serving(tmp_path, VESTIGE_AUTH_TOKEN=TOKEN) as server:
        assert patient_http.get(f"{server.url}/metrics", headers=bearer(TOKEN)).status_code == 200
        assert "deprecated" in server.log()
        assert TOKEN not in server.log()


def test_at_a_terminal_the_first_start_shows_a_key_once(tmp_path: Path) -> None:
    first = at_a_terminal(tmp_path)
    key = next(word for word in first.split() if word.startswith("vst_") and len(word) == 34)
    assert "claude mcp add --scope user --transport http vestige http://127.0.0.1:" in first
    assert key not in at_a_terminal(tmp_path)
    with serving(tmp_path) as server:
        assert patient_http.get(f"{server.url}/metrics", headers=bearer(key)).status_code == 200


def test_no_secret_is_logged_at_any_level(tmp_path: Path) -> None:
    key, canary = key_in(tmp_path), "canary-77a1"
    with serving(tmp_path, VESTIGE_LOG_LEVEL="debug", VESTIGE_AUTH_TOKEN=TOKEN) as server:
        patient_http.get(f"{server.url}/metrics?q={canary}", headers=bearer(key))
        patient_http.get(f"{server.url}/metrics", headers={"X-API-Key": TOKEN, "X-Other": canary})
        patient_http.post(f"{server.url}/login", json={"api_key": key})
        patient_http.post(f"{server.url}/login", json={"api_key": canary})
        websocket_handshake(server.url, f"/ws?q={canary}", key)
        assert server.stop() == 0
        log = server.log()
    assert [secret for secret in (key, TOKEN, canary) if secret in log] == []
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert [line["route"] for line in lines if "route" in line][:2] == ["/metrics", "/metrics"]


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_what_runs_finish(tmp_path: Path, sig: int) -> None:
    with serving(tmp_path, "--no-auth") as server, SlowRequest(server.url) as request:
        server.process.send_signal(sig)
        wait_until_closed(server.url)
        request.finish()
        assert request.status() == 200
        assert server.process.wait(PATIENCE_SECONDS) == 0


def test_what_does_not_finish_in_time_is_cut_off(tmp_path: Path) -> None:
    def seconds_to_the_end() -> float:
        with (
            serving(tmp_path, "--no-auth", VESTIGE_SERVER_SHUTDOWN_SECONDS="0.2") as server,
            SlowRequest(server.url),
        ):
            began = time.monotonic()
            assert server.stop() == 0
            return time.monotonic() - began

    assert any(seconds_to_the_end() < 10 for _ in range(3))  # once at least, if the machine is busy


def test_a_second_signal_ends_it_at_once(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth") as server, SlowRequest(server.url):
        server.process.send_signal(signal.SIGTERM)
        wait_until_closed(server.url)
        server.process.send_signal(signal.SIGTERM)
        assert server.process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM


class SlowRequest:
    """A search whose body is not all sent yet: under way for as long as the test likes."""

    BODY = b'{"query": "tea"}'

    def __init__(self, url: str) -> None:
        self._socket = connected(url)
        head = f"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {len(self.BODY)}\r\n"
        self._socket.sendall(f"{head}Content-Type: application/json\r\n\r\n".encode() + self.BODY[:5])
        # The request that asks is under way itself.
        poll(lambda: in_flight(url) == 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def finish(self) -> None:
        self._socket.sendall(self.BODY[5:])

    def status(self) -> int:
        answer = self._socket.makefile("rb").readline()
        return int(answer.split()[1])


def in_flight(url: str) -> float:
    """The requests under way on all workers; a question of one worker to another does not count."""
    lines = patient_http.get(f"{url}/metrics").text.splitlines()
    found = [line for line in lines if line.startswith("vestige_http_in_flight")]
    return sum(float(line.split()[-1]) for line in found) - (len(found) - 1)


def connected(url: str, source: str = "127.0.0.1") -> socket.socket:
    there = httpx.URL(url)
    assert there.port is not None
    return socket.create_connection((there.host, there.port), PATIENCE_SECONDS, (source, 0))


def wait_until_closed(url: str) -> None:
    def closed() -> bool:
        try:
            connected(url).close()
        except ConnectionError:
            return True
        return False

    poll(closed)


def poll(done: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < until


def websocket_handshake(url: str, path: str, key: str) -> None:
    """Ask for a WebSocket, with a key that is good, as a client would; what is answered does not matter."""
    lines = (
        f"GET {path} HTTP/1.1",
        "Host: 127.0.0.1",
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
        f"Authorization: Bearer {key}",
    )
    with connected(url) as opened:
        opened.sendall("".join(f"{line}\r\n" for line in (*lines, "")).encode())
        assert opened.recv(12).startswith(b"HTTP/1.1 ")


def at_a_terminal(folder: Path, *words: str) -> str:
    """Start a server at a terminal and end it when it listens; the whole screen."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [*SERVE, "--bind", "127.0.0.1:0", *words],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        env=environment(folder, TERM="dumb"),
    ) as process:
        os.close(follower)
        screen = b""
        while b"/api/v1/docs" not in screen and (piece := read(leader)):
            screen += piece
        process.terminate()
        while piece := read(leader):
            screen += piece
    os.close(leader)
    return screen.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4_096)
    except OSError:  # Linux tells the end of a terminal so
        return b""
