"""Connections on real sockets: slow clients, floods of tiny pieces, and too many connections."""

import ast
import asyncio
import gc
import logging
import socket
import subprocess
import sys
import time
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import pytest
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from vestige.settings.settings import load_settings
from vestige.transports.http.limits.connections import (
    MAX_TINY_CHUNKS,
    TINY_CHUNK_BYTES,
    TINY_CHUNKS,
    TOO_MANY,
    ConnectionLimits,
    Connections,
    LimitedListener,
)
from vestige.transports.http.run import SignalledServer, server_config

SHORT, LONG = 0.05, 60.0
"""Seconds that pass in a test, and seconds that do not."""
CHECK_SECONDS = SHORT / 10


def limits(
    most: int = 100,
    *,
    header_seconds: float = LONG,
    idle_seconds: float = LONG,
    unread_seconds: float = LONG,
    stuck_seconds: float = LONG,
) -> ConnectionLimits:
    return ConnectionLimits(
        most=most,
        header_seconds=header_seconds,
        idle_seconds=idle_seconds,
        unread_seconds=unread_seconds,
        stuck_seconds=stuck_seconds,
        check_seconds=CHECK_SECONDS,
    )


PATIENT = limits()
SHORT_HEADERS = limits(header_seconds=SHORT, idle_seconds=4 * SHORT)
SHORT_READS = limits(unread_seconds=SHORT)
ASKED = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
UPGRADE = (
    b"GET / HTTP/1.1\r\nHost: here\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
MUCH = bytes(30_000_000)
"""More than any kernel keeps for a client."""


@dataclass(kw_only=True)
class Here:
    """A server in this event loop."""

    connections: Connections
    address: tuple[str, int]

    async def connect(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client; what it sends is there before the server has seen it."""
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        opened.connect(self.address)
        opened.sendall(sent)
        return await asyncio.open_connection(sock=opened, limit=1_024)

    async def open(self, count: int) -> None:
        """Wait until this number of connections is open."""
        while len(self.connections) != count:
            await anyio.sleep(0.001)


@asynccontextmanager
async def serving(app: ASGIApp, limits: ConnectionLimits, proxy: str = "") -> AsyncIterator[Here]:
    connections = Connections(limits=limits)
    settings = load_settings({"server.trusted_proxies": proxy}, environ={})
    config = server_config(app, settings, connections, ws="websockets-sansio", end_seconds=1)
    config.lifespan = "off"
    server = SignalledServer(config, lambda: None)
    with LimitedListener(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as opened:
        opened.bind(("127.0.0.1", 0))
        opened.listen()
        opened.connections = connections
        here = Here(connections=connections, address=opened.getsockname())
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: server.serve([opened]))
            with anyio.fail_after(LONG):
                yield here
            server.should_exit = server.force_exit = True


async def rest_of(reader: asyncio.StreamReader) -> bytes:
    """What comes until the connection ends, in whatever way."""
    with suppress(ConnectionError):
        return await reader.read()
    return b""


class SteadyLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock does not jump: time in which the machine did something else does not count.

    A server and its clients share it, so no limit of the server ends while it cannot look what a client has
    sent. The limits are checked more often than the clock may advance at once.
    """

    def __init__(self) -> None:
        self._now, self._looked = 0.0, time.monotonic()
        super().__init__()

    def time(self) -> float:
        looked = time.monotonic()
        self._now += min(looked - self._looked, 2 * CHECK_SECONDS)
        self._looked = looked
        return self._now


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test. One that waits for what does not come fails, instead of waiting for ever."""

    async def patient() -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            await test()

    anyio.run(patient, backend_options={"loop_factory": SteadyLoop})


async def small(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    size = (b"content-length", str(len(MUCH)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [size]})
    await send({"type": "http.response.body", "body": MUCH})


async def by_path(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["path"] == "/never":
        await anyio.sleep_forever()
    await (large if scope["path"] == "/large" else small)(scope, receive, send)


async def talkative(scope: Scope, receive: Receive, send: Send) -> None:
    """A WebSocket that tells without end."""
    await send({"type": "websocket.accept"})
    while True:
        await send({"type": "websocket.send", "text": "x" * 100_000})


async def silent(scope: Scope, receive: Receive, send: Send) -> None:
    """A WebSocket that only hears."""
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


# -- headers that do not come ------------------------------------------------------------------------


@pytest.mark.parametrize("sent", [b"", b"G", b"GET / HTTP/1.1\r\nHost: here\r\n"])
def test_a_client_that_never_says_what_it_wants_is_hung_up_on(sent: bytes) -> None:
    async def test() -> None:
        async with serving(small, SHORT_HEADERS) as here:
            reader, writer = await here.connect(sent)
            assert await rest_of(reader) == b""
            await here.open(0)
            writer.close()

    run(test)


def test_headers_that_come_byte_by_byte_have_no_more_time_than_others() -> None:
    async def test() -> None:
        async with serving(small, SHORT_HEADERS) as here:
            _, writer = await here.connect(b"GET / HTTP/1.1\r\nX: ")
            await here.open(1)
            while here.connections:
                writer.write(b"x")
                await anyio.sleep(SHORT / 10)
            writer.close()

    run(test)


def test_a_request_that_is_answered_slowly_is_not_cut_off() -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await anyio.sleep(4 * SHORT)
        await small(scope, receive, send)

    async def test() -> None:
        async with serving(slow, SHORT_HEADERS) as here:
            reader, writer = await here.connect(ASKED)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()

    run(test)


def test_a_request_of_a_trusted_proxy_is_one_of_its_connection() -> None:
    clients: list[str] = []

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        clients.append(scope["client"][0])
        await anyio.sleep(4 * SHORT)
        await small(scope, receive, send)

    async def test() -> None:
        async with serving(slow, SHORT_HEADERS, proxy="127.0.0.1") as here:
            forwarded = b"X-Forwarded-For: 203.0.113.9\r\n\r\n"
            reader, writer = await here.connect(ASKED.removesuffix(b"\r\n") + forwarded)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()

    run(test)
    assert clients == ["203.0.113.9"]


def test_the_next_request_must_come_within_the_time_for_idle_connections() -> None:
    async def test() -> None:
        async with serving(small, SHORT_HEADERS) as here:
            reader, writer = await here.connect(ASKED)
            await reader.readuntil(b"ok")
            await anyio.sleep(2 * SHORT)  # longer than the first may take
            writer.write(ASKED)
            await reader.readuntil(b"ok")
            writer.write(b"G")
            assert await rest_of(reader) == b""
            writer.close()

    run(test)


def test_a_body_that_nobody_wants_is_not_taken_for_ever() -> None:
    async def test() -> None:
        async with serving(small, SHORT_HEADERS) as here:
            reader, writer = await here.connect(
                b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"
            )
            await reader.readuntil(b"ok")
            writer.write(b"x")
            assert await rest_of(reader) == b""
            writer.close()

    run(test)


# -- tiny pieces --------------------------------------------------------------------------------------------

TINY = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5_000


def test_a_body_in_tiny_chunks_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    taken = 0

    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal taken
        try:
            while (message := await receive())["type"] != "http.disconnect":
                taken += len(message["body"])
        except HTTPException as exc:
            await send({"type": "http.response.start", "status": exc.status_code, "headers": []})
            await send({"type": "http.response.body", "body": exc.detail.encode()})

    async def test() -> None:
        async with serving(taking, PATIENT) as here:
            reader, writer = await here.connect(TINY)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 400")
            assert b"connection: close" in answer.lower()
            assert TINY_CHUNKS.encode() in answer
            await here.open(0)
            writer.close()

    run(test)
    assert taken < 3 * MAX_TINY_CHUNKS
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("first", [0, len(TINY)], ids=["after the answer", "with the request"])
def test_tiny_chunks_that_no_one_reads_end_the_connection(
    caplog: pytest.LogCaptureFixture, first: int
) -> None:
    async def test() -> None:
        async with serving(small, PATIENT) as here:
            head, rest = TINY.split(b"\r\n\r\n", 1)
            reader, writer = await here.connect(head + b"\r\n\r\n" + rest[:first])
            await reader.readuntil(b"ok")
            with suppress(ConnectionError):
                while here.connections:
                    writer.write(rest)
                    await anyio.sleep(0.001)
            writer.close()

    run(test)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_a_body_in_many_pieces_of_some_size_is_taken() -> None:
    size = 0

    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal size
        more = True
        while more:
            message = await receive()
            size, more = size + len(message["body"]), message["more_body"]
        await small(scope, receive, send)

    async def test() -> None:
        async with serving(taking, PATIENT) as here:
            piece = 2 * TINY_CHUNK_BYTES
            pieces = (b"%x\r\n" % piece + b"x" * piece + b"\r\n") * (2 * MAX_TINY_CHUNKS)
            head = TINY.split(b"\r\n\r\n")[0] + b"\r\n\r\n"
            reader, writer = await here.connect(head + pieces + b"0\r\n\r\n")
            await reader.readuntil(b"ok")
            writer.close()

    run(test)
    assert size == 4 * MAX_TINY_CHUNKS * TINY_CHUNK_BYTES


@pytest.mark.parametrize("frame", [b"\x89\x80" + bytes(4), b"\x81\x80" + bytes(4)], ids=["ping", "text"])
def test_a_websocket_that_sends_many_messages_is_cut_off(frame: bytes) -> None:
    async def test() -> None:
        async with serving(silent, PATIENT) as here:
            reader, writer = await here.connect(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(frame * 50_000)
            await here.open(0)
            writer.transport.abort()

    run(test)


@pytest.mark.parametrize(
    "request_",
    [UPGRADE[:-2] + b"Content-Length: 1\r\n\r\n", UPGRADE.replace(b"GET", b"POST")],
    ids=["body", "post"],
)
def test_a_false_handshake_is_closed_when_the_time_for_headers_is_over(request_: bytes) -> None:
    async def test() -> None:
        async with serving(silent, SHORT_HEADERS) as here:
            reader, writer = await here.connect(request_)
            assert b" 101 " not in await reader.read()
            await here.open(0)
            writer.close()

    run(test)


def test_sending_to_a_websocket_that_is_closed_is_an_error_of_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[type[BaseException]] = []

    async def late(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close"})
        try:
            await send({"type": "websocket.send", "text": "late"})
        except OSError as exc:
            heard.append(type(exc))

    async def test() -> None:
        async with serving(late, PATIENT) as here:
            reader, writer = await here.connect(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
            while not heard:
                await anyio.sleep(0)
            writer.transport.abort()

    run(test)
    assert len(heard) == 1
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


# -- answers that are not taken ------------------------------------------------------------------------


@pytest.mark.parametrize("more", [b"", b"Connection: close\r\n"])
def test_a_client_that_does_not_take_its_answer_is_cut_off(more: bytes) -> None:
    async def test() -> None:
        async with serving(large, SHORT_READS) as here:
            _, writer = await here.connect(b"GET / HTTP/1.1\r\nHost: here\r\n" + more + b"\r\n")
            await here.open(1)
            await here.open(0)
            writer.close()

    run(test)


def test_a_client_that_takes_its_answer_gets_all_of_it() -> None:
    async def test() -> None:
        async with serving(large, PATIENT) as here:
            reader, writer = await here.connect(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            taken = 0
            while piece := await reader.read(1_000_000):
                taken += len(piece)
            assert taken == len(MUCH)
            writer.close()

    run(test)


def test_a_websocket_that_does_not_read_is_cut_off() -> None:
    async def test() -> None:
        async with serving(talkative, SHORT_READS) as here:
            _, writer = await here.connect(UPGRADE)
            await here.open(1)
            await here.open(0)
            writer.close()

    run(test)


def test_a_websocket_that_pings_and_does_not_read_is_cut_off() -> None:
    pings = (b"\x89\xfd" + bytes(4) + bytes(125)) * 500

    async def test() -> None:
        async with serving(silent, PATIENT) as here:
            reader, writer = await here.connect(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
            sent = 0
            while here.connections and sent < 500:
                writer.write(pings)
                sent += 1
                await anyio.sleep(0)
            assert sent < 500
            writer.transport.abort()

    run(test)


def test_a_websocket_that_is_refused_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def refusing(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.http.response.start", "status": 401, "headers": []})
        await send({"type": "websocket.http.response.body", "body": b"no"})

    async def test() -> None:
        async with serving(refusing, PATIENT) as here:
            reader, writer = await here.connect(UPGRADE)
            assert (await reader.read()).startswith(b"HTTP/1.1 401")
            writer.close()

    run(test)
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.WARNING] == []


def test_a_websocket_that_reads_outlives_the_time_for_headers() -> None:
    async def greeting(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await anyio.sleep(4 * SHORT)
        await send({"type": "websocket.send", "text": "still here"})
        await receive()

    async def test() -> None:
        async with serving(greeting, SHORT_HEADERS) as here:
            reader, writer = await here.connect(UPGRADE)
            await reader.readuntil(b"still here")
            writer.close()

    run(test)


def test_a_client_that_reads_slowly_has_its_time_for_each_part() -> None:
    async def test() -> None:
        seconds = 10 * SHORT
        async with serving(large, limits(unread_seconds=seconds)) as here:
            reader, writer = await here.connect(b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
            taken, paused, began = 0, 0, anyio.current_time()
            while piece := await reader.read(1_000_000):
                taken += len(piece)
                if taken // 1_000_000 > paused:
                    paused += 1
                    await anyio.sleep(SHORT / 2)
            assert taken == len(MUCH)
            assert anyio.current_time() - began > seconds
            writer.close()

    run(test)


# -- too many ------------------------------------------------------------------------------------------


class Slowly:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked, self.now = 0, anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.asked += 1
        await self.now.wait()
        await small(scope, receive, send)

    async def busy(self, count: int) -> None:
        """Wait until so many requests are under way."""
        while self.asked != count:
            await anyio.sleep(0.001)


def test_silent_strangers_keep_nobody_out() -> None:
    async def test() -> None:
        async with serving(small, limits(20)) as here:
            strangers = [await here.connect(sent) for sent in [b"", b"GET / HTTP/1.1\r\nX: "] * 10]
            await here.open(20)
            clients = [await here.connect(ASKED) for _ in range(5)]
            for reader, _ in clients:
                await reader.readuntil(b"ok")
            for gone, _ in strangers[:5]:  # those who have been idle longest had to go, and nobody else
                assert await rest_of(gone) == b""
            assert len(here.connections) == 20
            assert not any(kept.at_eof() for kept, _ in strangers[5:])
            for _, writer in strangers + clients:
                writer.close()

    run(test)


def test_when_every_connection_has_a_request_under_way_the_next_is_refused() -> None:
    async def test() -> None:
        app = Slowly()
        async with serving(app, limits(20)) as here:
            clients = [await here.connect(ASKED) for _ in range(20)]
            await app.busy(20)
            refused, late = await here.connect()
            assert await refused.read() == TOO_MANY
            app.now.set()
            for reader, _ in clients:
                await reader.readuntil(b"ok")
            again, writer = await here.connect(ASKED)  # now there are idle ones
            await again.readuntil(b"ok")
            assert await rest_of(clients[0][0]) == b""
            for one in (late, writer, *(client for _, client in clients)):
                one.close()

    run(test)


def test_a_client_that_still_takes_its_answer_is_not_idle() -> None:
    async def test() -> None:
        async with serving(large, limits(1)) as here:
            reader, writer = await here.connect(ASKED)
            await reader.readuntil(b"\r\n\r\n")
            refused, second = await here.connect()
            assert await refused.read() == TOO_MANY
            taken = 0
            while taken < len(MUCH):
                taken += len(await reader.read(1_000_000))
            third, fourth = await here.connect(ASKED)
            assert await third.readline() == b"HTTP/1.1 200 OK\r\n"
            assert await rest_of(reader) == b""
            for one in (writer, second, fourth):
                one.close()

    run(test)


def test_whoever_does_not_take_its_answer_makes_room_for_others() -> None:
    async def test() -> None:
        async with serving(by_path, limits(2, stuck_seconds=SHORT)) as here:
            unread, writer = await here.connect(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
            await unread.readuntil(b"\r\n\r\n")
            busy, second = await here.connect(b"GET /never HTTP/1.1\r\nHost: here\r\n\r\n")
            while here.connections.requests < 2:
                await anyio.sleep(0.001)
            answer = b""
            while not answer.endswith(b"ok"):  # as soon as it has been stuck for a while
                third, client = await here.connect(ASKED)
                answer = await third.read(1_000)
                client.close()
            taken = 0
            with suppress(ConnectionError):
                while piece := await unread.read(1_000_000):
                    taken += len(piece)
            assert taken < len(MUCH)
            assert not busy.at_eof()
            for one in (writer, second):
                one.close()

    run(test)


def test_a_websocket_is_not_idle() -> None:
    async def quiet(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await receive()

    async def test() -> None:
        async with serving(quiet, limits(1)) as here:
            reader, writer = await here.connect(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
            refused, second = await here.connect()
            assert await refused.read() == TOO_MANY
            for one in (writer, second):
                one.close()

    run(test)


def test_whoever_begins_its_next_request_again_and_again_has_been_idle_all_the_time() -> None:
    async def test() -> None:
        async with serving(small, limits(2)) as here:
            (dripping, first), (quiet, second) = await here.connect(b"G"), await here.connect()
            await here.open(2)
            first.write(b"E")
            third, fourth = await here.connect(ASKED)
            await third.readuntil(b"ok")
            assert await rest_of(dripping) == b""
            second.write(ASKED)
            await quiet.readuntil(b"ok")
            for one in (first, second, fourth):
                one.close()

    run(test)


def test_nothing_is_kept_of_a_client_that_is_gone() -> None:
    async def test() -> None:
        async with serving(small, PATIENT) as here:
            _, writer = await here.connect()
            await here.open(1)
            (connection,) = here.connections._open.values()
            kept = weakref.ref(connection)
            del connection
            writer.close()
            await here.open(0)
            await anyio.sleep(0)
            gc.collect()
            assert kept() is None

    run(test)


def test_the_log_says_once_a_minute_that_the_server_is_full(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        app = Slowly()
        async with serving(app, limits(1)) as here:
            _, busy = await here.connect(ASKED)
            await app.busy(1)
            for _ in range(3):
                refused, writer = await here.connect()
                assert await refused.read() == TOO_MANY
                writer.close()
            app.now.set()
            busy.close()

    run(test)
    full = [record.message.split(" (")[0] for record in caplog.records]
    assert full == ["1 connections are open, which is the limit"]


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
from vestige.transports.http.limits.connections import affordable
print(affordable(2_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


def test_no_module_uses_private_parts_of_the_web_server() -> None:
    allowed = {
        "h11",  # a client of our own, between workers
        "uvicorn",
        "uvicorn.middleware.proxy_headers",
        "websockets.sync.client",
        "websockets.exceptions",
    }
    used = set()
    for file in (PROJECT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                used.add(node.module)
            elif isinstance(node, ast.Import):
                used.update(one.name for one in node.names)
    assert {one for one in used if one.split(".")[0] in ("uvicorn", "websockets", "h11")} <= allowed


@pytest.mark.slow  # processes, whose limits cannot be raised again
@pytest.mark.parametrize(
    ("soft", "hard", "told"), [(256, 4_096, "2000 2400"), (256, 1_024, "624 1024"), (256, 256, "128 256")]
)
def test_there_are_never_more_connections_than_descriptors(soft: int, hard: int, told: str) -> None:
    command = [sys.executable, "-c", LIMITED, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONG)
    assert done.stdout.strip() == told
    assert ("ulimit" in done.stderr) is (hard < 2_400)
