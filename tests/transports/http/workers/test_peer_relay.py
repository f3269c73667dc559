"""A request for a session of another worker, while that worker ends."""

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from starlette.types import Message, Receive, Scope, Send

from testbed.patience import PATIENCE_SECONDS
from vestige.transports.http.workers.group import WorkerGroup, socket_of
from vestige.transports.http.workers.peer_relay import Forwarding
from vestige.transports.http.workers.table import WorkerState, shared_table

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a server has one process there")

BODY = [b"first half, ", b"second half"]
ENDING, HEIR = 1, 2


@pytest.fixture
def group(tmp_path: Path) -> Iterator[WorkerGroup]:
    with shared_table(time.monotonic) as table:
        table.take_seat(0, ENDING, 1000)
        table.take_seat(1, HEIR, 1001)
        table.set_state(0, WorkerState.SERVING)
        yield WorkerGroup(
            table=table, folder=tmp_path, index=2, number=3, workers=3, monotonic=time.monotonic
        )


async def here(scope: Scope, receive: Receive, send: Send) -> None:
    """What this worker answers itself: 404, with the body that it received."""
    await send({"type": "http.response.start", "status": 404, "headers": []})
    await send({"type": "http.response.body", "body": b"here: " + (await receive())["body"]})


async def request(group: WorkerGroup, second_half: threading.Event | None = None) -> tuple[int, bytes]:
    """The status and body of the answer to a request for a session of the ending worker. The second half of
    its body follows when `second_half` is set; until then nothing else is read."""
    sent: list[Message] = []
    parts = iter(BODY)

    async def receive() -> Message:
        part = next(parts, None)
        if part is BODY[1] and second_half is not None:
            assert second_half.wait(PATIENCE_SECONDS)
        if part is None:
            await anyio.sleep_forever()
        return {"type": "http.request", "body": part, "more_body": part is not BODY[-1]}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [
        (b"mcp-session-id", f"w{ENDING}-session".encode()),
        (b"host", b"localhost"),
        (b"transfer-encoding", b"chunked"),
    ]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    with anyio.fail_after(PATIENCE_SECONDS):
        await Forwarding(here, group, "/mcp")(scope, receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


async def heir(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    received = await reader.readuntil(b"\r\n0\r\n\r\n")
    whole = all(part in received for part in BODY)
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\n" + (b"all" if whole else b"cut"))
    writer.close()


def test_a_request_that_an_ending_worker_had_not_begun_goes_to_the_one_that_takes_over(
    group: WorkerGroup,
) -> None:
    async def run() -> tuple[int, bytes]:
        async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(BODY[0])
            group.table.set_state(0, WorkerState.DRAINING)
            group_of_the_ending.point_to(next(one for one in group.others() if one.number == HEIR))
            group.table.clear_seat(0)
            writer.transport.abort()

        group_of_the_ending = WorkerGroup(
            table=group.table,
            folder=group.folder,
            index=0,
            number=ENDING,
            workers=3,
            monotonic=time.monotonic,
        )
        async with (
            await asyncio.start_unix_server(end, socket_of(group.folder, ENDING)),
            await asyncio.start_unix_server(heir, socket_of(group.folder, HEIR)),
        ):
            return await request(group)

    assert asyncio.run(run()) == (200, b"all")


def test_a_request_that_a_killed_worker_may_have_begun_is_not_repeated(group: WorkerGroup) -> None:
    async def run() -> tuple[int, bytes]:
        async def end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(BODY[0])
            writer.transport.abort()

        async with await asyncio.start_unix_server(end, socket_of(group.folder, ENDING)):
            return await request(group)

    status, body = asyncio.run(run())
    assert (status, b"Session not found" in body) == (404, True)


def test_a_worker_that_answers_before_it_has_read_the_body_is_heard(group: WorkerGroup) -> None:
    closed = threading.Event()

    def refuse(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(PATIENCE_SECONDS)
            received = b""
            while BODY[0] not in received:
                received += connection.recv(1 << 16)
            connection.sendall(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\nno")
        closed.set()

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(socket_of(group.folder, ENDING)))
        listener.listen()
        worker = threading.Thread(target=refuse, args=(listener,))
        worker.start()
        answered = asyncio.run(request(group, second_half=closed))
        worker.join()
    assert answered == (401, b"no")


@pytest.mark.parametrize("left", ["nothing", "a link to nothing"])
def test_without_its_worker_a_request_is_answered_here_with_its_body(group: WorkerGroup, left: str) -> None:
    if left == "a link to nothing":
        socket_of(group.folder, ENDING).symlink_to("2.sock")
    assert asyncio.run(request(group)) == (404, b"here: " + BODY[0])
