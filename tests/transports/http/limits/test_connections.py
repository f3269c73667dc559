"""Connections on real sockets: clients that keep a server waiting, and those that are too many."""

import asyncio
import gc
import logging
import socket
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import anyio
import pytest
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.server import ServerState

from vestige.transports.http.limits.connections import (
    CRUMB_BYTES,
    CRUMBS_TOLD,
    MOST_CRUMBS,
    TOO_MANY,
    Door,
    Patience,
    Unread,
    http_protocol,
    websocket_protocol,
)

SHORT, LONG = 0.05, 60.0
"""Seconds that pass in a test, and seconds that do not."""
PATIENT = Patience(most=100, header_seconds=LONG, unread_seconds=LONG)
HASTY_FOR_HEADERS = Patience(most=100, header_seconds=SHORT, unread_seconds=LONG)
HASTY_FOR_READERS = Patience(most=100, header_seconds=LONG, unread_seconds=SHORT)
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

    state: ServerState
    address: tuple[str, int]

    async def connect(self, sent: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A client; what it sends is there before the server has seen it."""
        opened = socket.socket()
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        opened.connect(self.address)
        opened.sendall(sent)
        return await asyncio.open_connection(sock=opened, limit=1_024)

    async def open(self, count: int) -> None:
        """Wait until so many connections are open."""
        while len(self.state.connections) != count:
            await anyio.sleep(0.001)


@asynccontextmanager
async def serving(app: ASGIApp, patience: Patience) -> AsyncIterator[Here]:
    made = http_protocol(patience)
    config = uvicorn.Config(
        app,
        http=made,
        ws=websocket_protocol(patience),
        log_config=None,
        access_log=False,
        timeout_keep_alive=60,
    )
    config.load()
    state = ServerState()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: made(config=config, server_state=state, app_state={}), "127.0.0.1", 0
    )
    async with server:
        with anyio.fail_after(LONG):
            yield Here(state=state, address=server.sockets[0].getsockname())
        for connection in list(state.connections):
            connection.transport.abort()
        await Here(state=state, address=("", 0)).open(0)


def run(test: Callable[[], Awaitable[None]]) -> None:
    anyio.run(test)


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
        async with serving(small, HASTY_FOR_HEADERS) as here:
            reader, writer = await here.connect(sent)
            assert await reader.read() == b""
            await here.open(0)
            writer.close()

    run(test)


def test_headers_that_come_byte_by_byte_have_no_more_time_than_others() -> None:
    async def test() -> None:
        async with serving(small, HASTY_FOR_HEADERS) as here:
            _, writer = await here.connect(b"GET / HTTP/1.1\r\nX: ")
            await here.open(1)
            while here.state.connections:
                writer.write(b"x")
                await anyio.sleep(SHORT / 10)
            writer.close()

    run(test)


def test_a_request_that_is_answered_slowly_is_not_cut_off() -> None:
    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await anyio.sleep(4 * SHORT)
        await small(scope, receive, send)

    async def test() -> None:
        async with serving(slow, HASTY_FOR_HEADERS) as here:
            reader, writer = await here.connect(ASKED)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            writer.close()

    run(test)


def test_the_next_request_has_its_time_from_its_first_byte() -> None:
    async def test() -> None:
        async with serving(small, HASTY_FOR_HEADERS) as here:
            reader, writer = await here.connect(ASKED)
            await reader.readuntil(b"ok")
            await anyio.sleep(2 * SHORT)  # between requests it has the time of keep-alive
            writer.write(ASKED)
            await reader.readuntil(b"ok")
            writer.write(b"G")
            assert await reader.read() == b""
            writer.close()

    run(test)


def test_a_body_that_nobody_wants_is_not_taken_for_ever() -> None:
    async def test() -> None:
        async with serving(small, HASTY_FOR_HEADERS) as here:
            reader, writer = await here.connect(
                b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 1000\r\n\r\n"
            )
            await reader.readuntil(b"ok")
            writer.write(b"x")
            assert await reader.read() == b""
            writer.close()

    run(test)


# -- crumbs --------------------------------------------------------------------------------------------

CRUMBS = b"POST / HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 5_000


@pytest.mark.parametrize("reads", [True, False])
def test_a_body_in_crumbs_is_refused(caplog: pytest.LogCaptureFixture, *, reads: bool) -> None:
    taken = 0

    async def taking(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal taken
        while reads and (message := await receive())["type"] != "http.disconnect":
            taken += len(message["body"])
        await small(scope, receive, send)  # nobody is there any more

    async def test() -> None:
        async with serving(taking, PATIENT) as here:
            reader, writer = await here.connect(CRUMBS)
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 400")
            assert CRUMBS_TOLD.encode() in answer
            await here.open(0)
            writer.close()

    run(test)
    assert taken <= MOST_CRUMBS
    assert [one.getMessage() for one in caplog.records if one.levelno >= logging.ERROR] == []


def test_crumbs_after_the_answer_end_the_connection(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with serving(small, PATIENT) as here:
            head, rest = CRUMBS.split(b"\r\n\r\n", 1)
            reader, writer = await here.connect(head + b"\r\n\r\n")
            await reader.readuntil(b"ok")
            writer.write(rest)
            await here.open(0)
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
            piece = 2 * CRUMB_BYTES
            pieces = (b"%x\r\n" % piece + b"x" * piece + b"\r\n") * (2 * MOST_CRUMBS)
            head = CRUMBS.split(b"\r\n\r\n")[0] + b"\r\n\r\n"
            reader, writer = await here.connect(head + pieces + b"0\r\n\r\n")
            await reader.readuntil(b"ok")
            writer.close()

    run(test)
    assert size == 4 * MOST_CRUMBS * CRUMB_BYTES


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
def test_a_handshake_that_is_none_is_refused(request_: bytes) -> None:
    async def test() -> None:
        async with serving(silent, PATIENT) as here:
            reader, writer = await here.connect(request_)
            assert (await reader.readline()).split()[1] in (b"400", b"405", b"426")
            await here.open(0)
            writer.close()

    run(test)


def test_what_is_told_after_the_goodbye_of_the_server_is_told_to_nobody(
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
        async with serving(large, HASTY_FOR_READERS) as here:
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
        async with serving(talkative, HASTY_FOR_READERS) as here:
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
            while here.state.connections and sent < 500:
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
        async with serving(greeting, HASTY_FOR_HEADERS) as here:
            reader, writer = await here.connect(UPGRADE)
            await reader.readuntil(b"still here")
            writer.close()

    run(test)


class Slow(asyncio.Transport):
    """A transport whose client takes what it is told to."""

    def __init__(self, *sizes: int) -> None:
        super().__init__()
        self._sizes = iter(sizes)
        self.aborted, self.tells_of = anyio.Event(), 65_536

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        assert high is not None
        self.tells_of = high

    def get_write_buffer_size(self) -> int:
        return next(self._sizes)

    def abort(self) -> None:
        self.aborted.set()


def test_whoever_takes_a_little_has_time_again_and_whoever_takes_nothing_has_none() -> None:
    async def test() -> None:
        transport = Slow(100, 90, 80, 80)
        Unread(asyncio.get_running_loop(), transport, 0.001).begin()
        with anyio.fail_after(LONG):
            await transport.aborted.wait()
        with pytest.raises(StopIteration):
            transport.get_write_buffer_size()  # it was cut off at the last look, not before
        assert transport.tells_of == 0  # or a few bytes that nobody takes would keep it open

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
        async with serving(small, Patience(most=20)) as here:
            strangers = [await here.connect(sent) for sent in [b"", b"GET / HTTP/1.1\r\nX: "] * 10]
            await here.open(20)
            clients = [await here.connect(ASKED) for _ in range(5)]
            for reader, _ in clients:
                await reader.readuntil(b"ok")
            for gone, _ in strangers[:5]:  # those who have been idle longest had to go, and nobody else
                assert await gone.read() == b""
            assert len(here.state.connections) == 20
            assert not any(kept.at_eof() for kept, _ in strangers[5:])
            for _, writer in strangers + clients:
                writer.close()

    run(test)


def test_when_every_connection_has_a_request_under_way_the_next_is_refused() -> None:
    async def test() -> None:
        app = Slowly()
        async with serving(app, Patience(most=20)) as here:
            clients = [await here.connect(ASKED) for _ in range(20)]
            await app.busy(20)
            refused, late = await here.connect()
            assert await refused.read() == TOO_MANY
            app.now.set()
            for reader, _ in clients:
                await reader.readuntil(b"ok")
            again, writer = await here.connect(ASKED)  # now there are idle ones
            await again.readuntil(b"ok")
            assert await clients[0][0].read() == b""
            for one in (late, writer, *(client for _, client in clients)):
                one.close()

    run(test)


def test_a_client_that_still_takes_its_answer_is_not_idle() -> None:
    async def test() -> None:
        async with serving(large, Patience(most=1)) as here:
            reader, writer = await here.connect(ASKED)
            await reader.readuntil(b"\r\n\r\n")
            refused, second = await here.connect()
            assert await refused.read() == TOO_MANY
            taken = 0
            while taken < len(MUCH):
                taken += len(await reader.read(1_000_000))
            third, fourth = await here.connect(ASKED)
            assert await third.readline() == b"HTTP/1.1 200 OK\r\n"
            assert await reader.read() == b""
            for one in (writer, second, fourth):
                one.close()

    run(test)


def test_whoever_does_not_take_its_answer_makes_room_for_others() -> None:
    async def test() -> None:
        patience = Patience(most=2, header_seconds=LONG, unread_seconds=LONG, stuck_seconds=SHORT)
        async with serving(by_path, patience) as here:
            unread, writer = await here.connect(b"GET /large HTTP/1.1\r\nHost: here\r\n\r\n")
            await unread.readuntil(b"\r\n\r\n")
            busy, second = await here.connect(b"GET /never HTTP/1.1\r\nHost: here\r\n\r\n")
            await here.open(2)
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
        async with serving(quiet, Patience(most=1)) as here:
            reader, writer = await here.connect(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
            refused, second = await here.connect()
            assert await refused.read() == TOO_MANY
            for one in (writer, second):
                one.close()

    run(test)


def test_whoever_begins_its_next_request_again_and_again_has_been_idle_all_the_time() -> None:
    async def test() -> None:
        async with serving(small, Patience(most=2)) as here:
            (dripping, first), (quiet, second) = await here.connect(b"G"), await here.connect()
            await here.open(2)
            first.write(b"E")
            third, fourth = await here.connect(ASKED)
            await third.readuntil(b"ok")
            assert await dripping.read() == b""
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
            (connection,) = here.state.connections
            kept = weakref.ref(connection.transport), weakref.ref(connection)
            del connection
            writer.close()
            await here.open(0)
            await anyio.sleep(0)
            gc.collect()
            assert [one() for one in kept] == [None, None]

    run(test)


def test_the_log_tells_it_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    door, gone = Door(2, LONG), []
    assert [door.admits(inside, now) for inside, now in [(1, 0), (2, 0), (2, 30), (2, 61), (1, 62)]] == [
        True,
        False,
        False,
        False,
        True,
    ]
    door.idle("somebody", lambda: gone.append("somebody"))
    assert [door.admits(2, now) for now in (63, 122)] == [True, False]
    assert gone == ["somebody"]
    assert [record.message.split(" (")[0] for record in caplog.records] == [
        "2 connections are open, as many as may be"
    ] * 3


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (int(sys.argv[1]), int(sys.argv[2])))
from vestige.transports.http.limits.connections import affordable
print(affordable(2_000), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""


@pytest.mark.slow  # processes, whose limits cannot be raised again
@pytest.mark.parametrize(
    ("soft", "hard", "told"), [(256, 4_096, "2000 2400"), (256, 1_024, "624 1024"), (256, 256, "128 256")]
)
def test_there_are_never_more_connections_than_descriptors(soft: int, hard: int, told: str) -> None:
    command = [sys.executable, "-c", LIMITED, str(soft), str(hard)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=LONG)
    assert done.stdout.strip() == told
    assert ("ulimit" in done.stderr) is (hard < 2_400)
