"""deploy/nginx/vestige.conf, read and run by a real nginx in front of a real server."""

import json
import select
import shutil
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from testbed import nginx, patient_http
from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.support.harness import Running, listening, serving

pytestmark = pytest.mark.slow  # starts processes

TLS = """    listen 443 ssl;
    server_name memory.example.org;                 # yours
    ssl_certificate     /etc/ssl/vestige.pem;       # yours
    ssl_certificate_key /etc/ssl/vestige.key;       # yours
    ssl_protocols TLSv1.2 TLSv1.3;
"""
SHORT_TIMES = {"send_timeout 60s": "send_timeout 1s", "keepalive_timeout 30s;": "keepalive_timeout 1s;"}
SHORT_TIMES_TO_ASK = {
    **SHORT_TIMES,
    "client_header_timeout 20s": "client_header_timeout 1s",
    "client_body_timeout 30s": "client_body_timeout 1s",
}
"""For clients that never ask: one that does may stand still meanwhile, on a busy machine."""
HANDSHAKE = (
    b"Host: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
)
SEARCH = b"POST /api/v1/search HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A server with nginx in front of it."""

    server: Running
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def connect(self, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
        opened = socket.socket()
        opened.settimeout(PATIENCE_SECONDS)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        opened.bind((source, 0))
        opened.connect(("127.0.0.1", self.port))
        opened.sendall(sent)
        return opened

    def answer(self, sent: bytes) -> bytes:
        """All that comes until the connection is closed or reset."""
        got = b""
        with self.connect(sent) as opened, suppress(ConnectionResetError):
            while piece := opened.recv(65_536):
                got += piece
        return got


@contextmanager
def in_front_of(server: Running, folder: Path, changes: Mapping[str, str]) -> Iterator[Edge]:
    folder.mkdir()
    with socket.socket() as reserved:  # nobody else can take its port before nginx does
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind(("127.0.0.1", 0))
        port = reserved.getsockname()[1]
        local = {
            TLS: f"    listen 127.0.0.1:{port} reuseport sndbuf=4k;\n",
            "server 127.0.0.1:3927;": f"server {httpx.URL(server.local).netloc.decode()};",
        }
        with nginx.running(nginx.site({**local, **changes}), folder, ("127.0.0.1", port)):
            yield Edge(server=server, port=port)


@pytest.fixture(scope="module", autouse=True)
def _nginx() -> None:
    if nginx.program() is None:
        pytest.skip(nginx.NOT_TESTED)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("server")
    with serving(folder, "--no-auth", VESTIGE_SERVER_TRUSTED_PROXIES="127.0.0.1") as running:
        yield running


@pytest.fixture(scope="module")
def edge(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    with in_front_of(server, tmp_path_factory.mktemp("edge") / "nginx", SHORT_TIMES) as edge:
        yield edge


@pytest.fixture(scope="module")
def hasty_edge(server: Running, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edge]:
    with in_front_of(server, tmp_path_factory.mktemp("hasty") / "nginx", SHORT_TIMES_TO_ASK) as edge:
        yield edge


def test_the_file_is_good_as_it_is_but_for_a_certificate(tmp_path: Path) -> None:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("THE TLS LINES OF THE NGINX CONFIGURATION ARE NOT TESTED: there is no openssl here")
    certificate, key = tmp_path / "vestige.pem", tmp_path / "vestige.key"
    made = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=memory.example.org"]
    subprocess.run([*made, "-keyout", str(key), "-out", str(certificate)], check=True, capture_output=True)
    text = nginx.site({"/etc/ssl/vestige.pem": str(certificate), "/etc/ssl/vestige.key": str(key)})
    assert "test is successful" in nginx.check(text, tmp_path)


def test_requests_pass_and_a_client_cannot_state_another_address(edge: Edge) -> None:
    forged = {"X-Forwarded-For": "203.0.113.9", "X-Request-Id": "forged-1"}
    answer = patient_http.post(f"{edge.url}/api/v1/search", json={"query": "tea"}, headers=forged)
    assert answer.status_code == 200
    lines = [json.loads(line) for line in edge.server.logged("forged-1")]
    assert [line["client"] for line in lines] == ["127.0.0.1"]


# -- slow and idle clients -----------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_connections_without_a_whole_request_are_closed(hasty_edge: Edge, sent: bytes) -> None:
    assert hasty_edge.answer(sent) == b""


def test_an_idle_connection_is_closed_after_a_request(edge: Edge) -> None:
    assert edge.answer(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_body_that_stops_never_reaches_the_server(hasty_edge: Edge) -> None:
    head = SEARCH + b"X-Request-Id: stopped-1\r\nContent-Length: 16\r\n\r\n"
    hasty_edge.answer(head + b'{"que')
    assert "stopped-1" not in hasty_edge.server.log()


def test_tiny_chunks_are_joined(edge: Edge) -> None:
    body = b'{"query": "tea"}'.ljust(20_000)
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
    head = SEARCH + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert edge.answer(head + chunks + b"0\r\n\r\n").startswith(b"HTTP/1.1 200")


def test_a_client_that_does_not_read_holds_nothing_in_the_server(edge: Edge) -> None:
    with edge.connect(b"GET /api/v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") as unread:
        assert unread.recv(12) == b"HTTP/1.1 200"
        # The request that asks is under way itself.
        while "vestige_http_in_flight 1.0\n" not in patient_http.get(f"{edge.server.local}/metrics").text:
            pass
        poll = select.poll()
        poll.register(unread, select.POLLHUP | select.POLLERR)
        assert poll.poll(PATIENCE_SECONDS * 1_000)  # nginx has reset the connection


def test_a_large_body_is_refused_before_it_is_sent(edge: Edge) -> None:
    answer = edge.answer(SEARCH + b"Content-Length: 5000000\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 413")


# -- streams -------------------------------------------------------------------------------------------


def test_events_pass_at_once_and_for_longer_than_a_connection_may_be_idle(edge: Edge) -> None:
    with httpx.stream("GET", f"{edge.url}/api/v1/events", timeout=PATIENCE_SECONDS) as events:
        lines = (json.loads(line.removeprefix("data: ")) for line in events.iter_lines() if line)
        kinds = [next(lines)["type"], next(lines)["type"]]  # the second comes after 5 s
    assert kinds == ["Connected", "Heartbeat"]


def test_a_websocket_passes(edge: Edge) -> None:
    with listening(edge.url) as websocket:
        assert json.loads(websocket.recv(PATIENCE_SECONDS))["type"] == "Connected"


def test_a_false_handshake_is_refused_at_once_or_made_a_true_one(edge: Edge) -> None:
    posted = edge.answer(b"POST /ws HTTP/1.1\r\n" + HANDSHAKE + b"Content-Length: 0\r\n\r\n")
    assert posted.startswith(b"HTTP/1.1 403")
    elsewhere = edge.answer(b"POST /api/v1/search HTTP/1.1\r\n" + HANDSHAKE + b"Content-Length: 0\r\n\r\n")
    assert not elsewhere.startswith(b"HTTP/1.1 101")
    with edge.connect(b"GET /ws HTTP/1.1\r\n" + HANDSHAKE + b"Content-Length: 1\r\n\r\nx") as opened:
        assert opened.recv(12) == b"HTTP/1.1 101"


# -- many connections and requests of one address ------------------------------------------------------


def test_one_address_has_a_limit_of_connections_and_others_are_served(
    server: Running, tmp_path: Path
) -> None:
    stream = b"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    few = {"limit_conn vestige_connections 1000": "limit_conn vestige_connections 3"}
    with in_front_of(server, tmp_path / "nginx", few) as edge, ExitStack() as stack:
        mine = [stack.enter_context(edge.connect(stream)) for _ in range(3)]
        assert [one.recv(12) for one in mine] == [b"HTTP/1.1 200"] * 3
        fourth = stack.enter_context(edge.connect(stream))
        assert fourth.recv(12) == b"HTTP/1.1 503"
        other = stack.enter_context(edge.connect(stream, source="127.0.0.2"))
        assert other.recv(12) == b"HTTP/1.1 200"


def test_one_address_has_a_limit_of_requests_and_others_are_served(server: Running, tmp_path: Path) -> None:
    slow = {"rate=100r/s": "rate=1r/m", "burst=1000": "burst=2"}
    with in_front_of(server, tmp_path / "nginx", slow) as edge:
        statuses = [patient_http.get(f"{edge.url}/health").status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        with edge.connect(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", source="127.0.0.2") as other:
            assert other.recv(12) == b"HTTP/1.1 200"
