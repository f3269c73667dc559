"""How much the server takes: bodies, and requests of one sender."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import Message, Receive, Scope, Send

from testbed.world import HandClock
from tests.transports.http.support.harness import Site, bearer, new_site, whoami
from vestige.core.errors import TooLarge
from vestige.transports.http.context import ServerContext
from vestige.transports.http.limits.bodies_and_rates import BodyLimit, Buckets
from vestige.transports.http.workers.table import LocalRows

OPEN = {"auth.enabled": False}


def echo(context: ServerContext) -> list[BaseRoute]:
    async def size(request: Request) -> JSONResponse:
        return JSONResponse(len(await request.body()))

    return [Route("/echo", size, methods=["POST"])]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Site]:
    with new_site(tmp_path, {"server.max_body_bytes": 2_000, **OPEN}, parts=(echo,)) as site:
        yield site


def test_a_body_up_to_the_limit_is_taken_and_a_larger_one_refused(small: Site) -> None:
    assert small.http.post("/echo", content=b"x" * 2_000).json() == 2_000
    response = small.http.post("/echo", content=b"x" * 2_001)
    assert (response.status_code, response.json()["code"]) == (413, "too_large")
    assert response.json()["details"] == {"limit": 2_000}


def test_a_body_that_does_not_tell_its_length_is_counted_as_it_comes(small: Site) -> None:
    def pieces(count: int) -> Iterator[bytes]:
        for _ in range(count):
            yield b"x" * 500

    assert small.http.post("/echo", content=pieces(4)).json() == 2_000
    response = small.http.post("/echo", content=pieces(5))
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


def test_a_refused_body_has_the_headers_of_every_answer(small: Site) -> None:
    told = small.http.post("/echo", content=b"x" * 3_000)
    counted = small.http.post("/echo", content=iter([b"x" * 3_000]))
    assert (told.status_code, counted.status_code) == (413, 413)
    assert {name for name in told.headers if name != "x-request-id"} <= set(counted.headers)


def test_a_body_that_lies_about_its_length_is_counted_too() -> None:
    taken: list[int] = []

    async def greedy(scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            taken.append(len((await receive())["body"]))

    async def endless() -> Message:
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    async def run() -> None:
        await BodyLimit(greedy, 1_000)(asked("/x", (b"content-length", b"5")), endless, nowhere)

    with pytest.raises(TooLarge):
        anyio.run(run)
    assert sum(taken) == 1_000


def test_a_body_that_stops_coming_is_given_up(tmp_path: Path) -> None:
    async def silent() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()

    async def run() -> None:
        await BodyLimit(reading, 1_000, body_seconds=0.01)(asked("/x"), silent, nowhere)

    with pytest.raises(Exception, match="408"):
        anyio.run(run)


def test_a_body_that_comes_in_ever_more_pieces_is_given_up_too() -> None:
    pieces = 0

    async def dripping() -> Message:
        nonlocal pieces
        pieces += 1
        if pieces > 2:  # two come at once, however late this process gets its turn
            await anyio.sleep(0.005)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def reading(scope: Scope, receive: Receive, send: Send) -> None:
        while True:
            await receive()

    async def run() -> None:
        limit = BodyLimit(reading, 1_000_000, body_seconds=60, whole_seconds=0.05)
        await limit(asked("/x"), dripping, nowhere)

    with pytest.raises(Exception, match="408"):
        anyio.run(run)
    assert pieces > 1


def test_a_request_that_tells_two_lengths_is_refused_and_the_connection_ended() -> None:
    answers: list[Message] = []

    async def note(message: Message) -> None:
        answers.append(message)

    two = asked("/x", (b"content-length", b"5"), (b"transfer-encoding", b"chunked"))
    anyio.run(BodyLimit(nothing_here, 10), two, nothing, note)
    assert (answers[0]["status"], (b"connection", b"close") in answers[0]["headers"]) == (400, True)


async def nothing_here(scope: Scope, receive: Receive, send: Send) -> None:
    raise AssertionError("It was let in.")


def test_waiting_for_a_client_to_leave_is_no_slow_body() -> None:
    left = anyio.Event()
    heard: list[str] = []

    async def receive() -> Message:
        if not heard:
            return {"type": "http.request", "body": b"all", "more_body": False}
        await left.wait()
        return {"type": "http.disconnect"}

    async def waiting(scope: Scope, receive: Receive, send: Send) -> None:
        heard.append((await receive())["type"])
        heard.append((await receive())["type"])

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(BodyLimit(waiting, 10, body_seconds=0.01), asked("/x"), receive, nowhere)
            await anyio.sleep(0.05)
            left.set()

    anyio.run(run)
    assert heard == ["http.request", "http.disconnect"]


# -- in a minute -----------------------------------------------------------------------------------


def test_a_bucket_is_emptied_by_requests_and_filled_by_time() -> None:
    clock = HandClock()
    buckets = Buckets(60, clock.parts().monotonic)
    assert [buckets.take("a") for _ in range(60)] == [0.0] * 60
    assert buckets.take("a") == pytest.approx(1.0)
    assert buckets.take("b") == 0.0
    clock.sleep(2.5)
    assert [buckets.take("a") == 0.0 for _ in range(3)] == [True, True, False]
    clock.sleep(3_600)
    assert [buckets.take("a") for _ in range(60)] == [0.0] * 60
    assert buckets.take("a") > 0


def test_what_counts_as_several_takes_several_tokens() -> None:
    buckets = Buckets(60, HandClock().parts().monotonic)
    assert buckets.take("a", 20) == 0.0
    assert buckets.take("a", 30) == 0.0
    assert buckets.take("a", 20) == pytest.approx(10.0)
    assert [buckets.take("a") == 0.0 for _ in range(11)] == [True] * 10 + [False]


def test_what_is_more_than_a_bucket_gets_in_and_is_paid_for_afterwards() -> None:
    clock = HandClock()
    buckets = Buckets(60, clock.parts().monotonic)
    assert buckets.take("a", 100) == 0.0
    assert buckets.take("a") == pytest.approx(41.0)
    clock.sleep(41)
    assert buckets.take("a") == 0.0


def test_only_so_many_senders_are_counted() -> None:
    rows = LocalRows(100)
    buckets = Buckets(60, HandClock().parts().monotonic, rows)
    for number in range(1_000):
        buckets.take(str(number))
    assert len(rows) == 100


def test_each_key_has_its_own_limit(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.requests_per_minute": 3}, parts=(whoami,)) as site:
        mine, yours = site.key(label="mine"), site.key(label="yours")
        answers = [site.http.get("/whoami", headers=bearer(mine)) for _ in range(4)]
        assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
        assert answers[-1].headers["retry-after"] == "20"
        assert answers[-1].json()["code"] == "rate_limited"
        assert site.http.get("/whoami", headers=bearer(yours)).status_code == 200
        site.world.clock.sleep(20)
        assert site.http.get("/whoami", headers=bearer(mine)).status_code == 200


@pytest.mark.parametrize(("path", "answers"), [("/login", [200, 200, 429]), ("/health", [200, 200, 200])])
def test_without_a_key_the_address_has_the_limit(tmp_path: Path, path: str, answers: Sequence[int]) -> None:
    with new_site(tmp_path, {"server.requests_per_minute": 2}, parts=()) as site:
        assert [site.http.get(path).status_code for _ in range(3)] == answers


def test_no_limit_is_none(tmp_path: Path) -> None:
    with new_site(tmp_path, {"server.requests_per_minute": 0, **OPEN}, parts=(whoami,)) as site:
        assert {site.http.get("/whoami").status_code for _ in range(50)} == {200}


def asked(path: str, *headers: tuple[bytes, bytes]) -> Scope:
    host = (b"host", b"127.0.0.1:3927")
    return {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "query_string": b"",
        "headers": [host, *headers],
        "state": {"request_id": "test", "key_id": ""},
    }


async def nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


async def nowhere(message: Message) -> None:
    pass
