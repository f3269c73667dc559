"""How many requests are worked on at once, and whose turn it is."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.transports.http.limits.test_bodies_and_rates import OPEN, asked, nothing, nowhere
from tests.transports.http.support.harness import new_site
from vestige.transports.http.auth.gate import public_paths
from vestige.transports.http.context import ServerContext
from vestige.transports.http.limits.fair_queue import (
    WORKED_BODIES,
    BodyBuffer,
    ConcurrencyLimit,
    FairQueue,
    QueueSlot,
    RequestShare,
    SharedBudget,
)


class Crowd:
    """Requests that stay inside until they are let out, sent to a limit of so many at once."""

    def __init__(self, most: int, *, queue_seconds: float, begins: str = "") -> None:
        self.inside, self.most_inside = 0, 0
        self.answers: list[int] = []
        self._out = anyio.Event()
        self._begins = begins
        self.app: ASGIApp = ConcurrencyLimit(self._stay, most, public_paths(()), queue_seconds=queue_seconds)

    async def _stay(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        headers = [(b"content-type", self._begins.encode())]
        start = {"type": "http.response.start", "status": 200, "headers": headers}
        if self._begins:
            await send(start)
        await self._out.wait()
        if not self._begins:
            await send(start)
        self.inside -= 1

    async def send_in(self, count: int, path: str = "/x") -> None:
        """Send requests until each is inside, waiting or refused; then let all out."""
        async with anyio.create_task_group() as tasks:
            for _ in range(count):
                tasks.start_soon(self._send_one, path)
            await anyio.wait_all_tasks_blocked()
            self.entered = self.inside
            self._out.set()

    async def _send_one(self, path: str) -> None:
        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answers.append(message["status"])

        await self.app(asked(path), nothing, note)


def test_so_many_are_served_at_once_as_many_wait_and_the_rest_is_refused() -> None:
    crowd = Crowd(3, queue_seconds=60)
    anyio.run(crowd.send_in, 10)
    assert crowd.entered == 3
    assert crowd.most_inside == 3
    assert sorted(crowd.answers) == [200] * 6 + [503] * 4


def test_nobody_waits_long() -> None:
    async def run() -> list[int]:
        crowd = Crowd(1, queue_seconds=0.01)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(crowd._send_one, "/x")
            await anyio.wait_all_tasks_blocked()
            await crowd._send_one("/x")
            tasks.cancel_scope.cancel()
        return crowd.answers

    assert anyio.run(run) == [503]


@pytest.mark.parametrize("path", ["/health", "/readyz", "/login", "/static/login.js"])
def test_what_everybody_may_see_takes_no_place(path: str) -> None:
    crowd = Crowd(1, queue_seconds=60)
    anyio.run(crowd.send_in, 10, path)
    assert crowd.answers == [200] * 10


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_an_answer_gives_its_place_back_when_it_begins(kind: str) -> None:
    crowd = Crowd(2, queue_seconds=60, begins=kind)
    anyio.run(crowd.send_in, 10)
    assert crowd.answers == [200] * 10


def test_a_request_that_is_cancelled_gives_its_place_back() -> None:
    async def run() -> list[int]:
        crowd = Crowd(1, queue_seconds=0.01)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(crowd._send_one, "/x")
            await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        crowd._out.set()
        await crowd._send_one("/x")
        return crowd.answers

    assert anyio.run(run) == [200]


def test_a_refusal_says_when_to_come_again(tmp_path: Path) -> None:
    held: list[Any] = []

    def holding(context: ServerContext) -> list[BaseRoute]:
        async def ask_for_more(request: Request) -> JSONResponse:
            held.append(await send_inside(request))
            return JSONResponse("done")

        return [Route("/nested", ask_for_more)]

    async def send_inside(request: Request) -> tuple[int, dict[str, str]]:
        """Send a second request while the first one has the only place."""
        answers: list[Message] = []

        async def note(message: Message) -> None:
            answers.append(message)

        await site.http.app(asked("/nested"), nothing, note)
        return answers[0]["status"], {name.decode(): value.decode() for name, value in answers[0]["headers"]}

    with new_site(tmp_path, {"server.max_concurrent": 1, **OPEN}, parts=(holding,)) as site:
        assert site.http.get("/nested").json() == "done"
    status, headers = held[0]
    assert (status, headers["retry-after"]) == (503, "1")


# -- whose turn it is ------------------------------------------------------------------------------


def asking(places: FairQueue, sender: str, size: int = 1) -> QueueSlot:
    place = places.ask(sender, size)
    assert place is not None
    return place


def test_the_next_place_is_for_who_has_fewest() -> None:
    places = FairQueue(2)
    first, second, third, other = (asking(places, sender) for sender in ("many", "many", "many", "other"))
    assert (first.called, second.called, third.called, other.called) == (True, True, False, False)
    first.release()
    assert (third.called, other.called) == (False, True)
    second.release()
    assert third.called


def test_those_who_have_as_many_come_in_turns() -> None:
    places = FairQueue(2)
    working = [asking(places, "a"), asking(places, "a")]
    first, second, other = (asking(places, sender) for sender in ("b", "b", "c"))
    order = []
    for done in (*working, first):
        done.release()
        order.append([one.called for one in (first, other, second)])
    assert order == [[True, False, False], [True, True, False], [True, True, True]]


def test_who_does_not_wait_any_more_takes_nobodys_place() -> None:
    places = FairQueue(1)
    working, gone, waiting = (asking(places, sender) for sender in ("a", "b", "c"))
    gone.release()
    working.release()
    working.release()
    assert (gone.called, waiting.called) == (False, True)
    assert not asking(places, "a").called


def test_a_sender_cannot_fill_the_queue_of_others() -> None:
    places = FairQueue(2)
    assert [places.ask("many") is not None for _ in range(6)] == [True] * 4 + [False] * 2
    assert not asking(places, "other").called


def test_a_large_request_is_not_passed_by_small_ones_for_ever() -> None:
    queue = FairQueue(10)
    working = [asking(queue, "a", 6), asking(queue, "b", 3)]
    large, small = asking(queue, "c", 8), asking(queue, "d", 1)
    assert [one.called for one in working] == [True, True]
    assert (large.called, small.called) == (False, False)
    for one in working:
        one.release()
    assert (large.called, small.called) == (True, True)
    assert not asking(queue, "e", 2).called
    small.release()
    large.release()
    assert asking(queue, "f", 99).size == 10, "nothing needs more than there is"


# -- bodies ----------------------------------------------------------------------------------------


class Dripping:
    """A client whose body comes in two pieces, the second when it is told to."""

    def __init__(self, size: int = 0) -> None:
        self.go_on = anyio.Event()
        self._pieces = [{"body": b"x" * size, "more_body": True}, {"body": b"end", "more_body": False}]

    async def receive(self) -> Message:
        """The next piece."""
        if len(self._pieces) == 1:
            await self.go_on.wait()
        return {"type": "http.request", **self._pieces.pop(0)}


def taking(taken: list[bytes], most_bytes: int) -> BodyBuffer:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        taken.append(await Request(scope, receive).body())
        await JSONResponse("done")(scope, receive, send)

    return BodyBuffer(
        ConcurrencyLimit(app, 1, public_paths(()), queue_seconds=60), most_bytes, public_paths(())
    )


def from_key(key_id: str) -> Scope:
    scope = asked("/x")
    scope["state"]["key_id"] = key_id
    return scope


def test_a_body_that_is_not_whole_keeps_nobody_waiting() -> None:
    taken: list[bytes] = []

    async def run() -> None:
        app, slow = taking(taken, 100), Dripping(4)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(app, from_key("a"), slow.receive, nowhere)
            await anyio.wait_all_tasks_blocked()
            await app(from_key("b"), nothing, nowhere)
            slow.go_on.set()

    anyio.run(run)
    assert taken == [b"", b"xxxxend"]


def test_one_sender_has_half_of_the_room_for_bodies_and_gives_it_back() -> None:
    taken: list[bytes] = []
    statuses: list[int] = []

    async def note(message: Message) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    async def run() -> None:
        app = taking(taken, 10)  # room for 320 bytes
        waiting = [Dripping(70), Dripping(70)]
        async with anyio.create_task_group() as tasks:
            for one in waiting:
                tasks.start_soon(app, from_key("a"), one.receive, note)
            await anyio.wait_all_tasks_blocked()
            for key_id in ("a", "b"):
                more = Dripping(80)
                more.go_on.set()
                await app(from_key(key_id), more.receive, note)
            for one in waiting:
                one.go_on.set()
        late = Dripping(150)
        late.go_on.set()
        await app(from_key("a"), late.receive, note)

    anyio.run(run)
    assert statuses == [503, 200, 200, 200, 200]
    assert [len(body) for body in taken] == [83, 73, 73, 153]


class Working:
    """Requests with large bodies that are worked on until they are let out."""

    def __init__(self, *, work_seconds: float) -> None:
        self.out = anyio.Event()
        self.bytes_in_work = self.most_in_work = 0
        self.answers: list[tuple[int, bytes | None]] = []
        self.app = BodyBuffer(self._work, 100_000, public_paths(()), work_seconds=work_seconds)

    async def _work(self, scope: Scope, receive: Receive, send: Send) -> None:
        size = len(await Request(scope, receive).body())
        self.bytes_in_work += size
        self.most_in_work = max(self.most_in_work, self.bytes_in_work)
        await self.out.wait()
        self.bytes_in_work -= size
        await JSONResponse("done")(scope, receive, send)

    async def send_in(self, size: int, key_id: str = "a") -> None:
        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.answers.append((message["status"], dict(message["headers"]).get(b"retry-after")))

        body = Dripping(size - 3)
        body.go_on.set()
        await self.app(from_key(key_id), body.receive, note)


def test_the_bytes_of_large_bodies_that_are_worked_on_at_once_are_bounded_and_all_get_their_turn() -> None:
    crowd = Working(work_seconds=60)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for number in range(16):
                tasks.start_soon(crowd.send_in, 90_000, f"key {number % 3}")
            await anyio.wait_all_tasks_blocked()
            assert crowd.bytes_in_work == WORKED_BODIES * 90_000
            tasks.start_soon(crowd.send_in, 1_000)
            await anyio.wait_all_tasks_blocked()
            assert crowd.bytes_in_work == WORKED_BODIES * 90_000 + 1_000, (
                "a small one does not wait for large ones"
            )
            crowd.out.set()

    anyio.run(run)
    assert crowd.answers == [(200, None)] * 17
    assert crowd.most_in_work <= WORKED_BODIES * 100_000 + 1_000
    assert crowd.bytes_in_work == 0


def test_a_large_body_whose_turn_does_not_come_is_refused_and_told_when_to_come_back() -> None:
    crowd = Working(work_seconds=0)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(crowd.send_in, 90_000)
            await anyio.wait_all_tasks_blocked()
            assert crowd.answers == [(503, b"10")] * 2
            crowd.out.set()
        await crowd.send_in(90_000)

    anyio.run(run)
    assert crowd.answers[2:] == [(200, None)] * 5


# -- all that are under way ----------------------------------------------------------------------------


def test_even_of_one_there_is_a_share() -> None:
    shares = SharedBudget(1)
    with shares.held("a") as held:
        assert held.take(1)
        assert not held.take(1)
        assert not shares.take("b", 1)
    assert shares.take("b", 1)


def test_one_sender_has_half_of_all_requests_under_way() -> None:
    statuses: dict[str, list[int]] = {"a": [], "b": []}
    out = anyio.Event()

    async def stay(scope: Scope, receive: Receive, send: Send) -> None:
        await out.wait()
        await JSONResponse("done")(scope, receive, send)

    async def come(app: ASGIApp, key_id: str, path: str = "/x") -> None:
        async def note(message: Message) -> None:
            if message["type"] == "http.response.start":
                statuses[key_id].append(message["status"])

        await app({**from_key(key_id), "path": path}, nothing, note)

    async def run() -> None:
        app = RequestShare(stay, 4, {"/health"}.__contains__)
        async with anyio.create_task_group() as tasks:
            for key_id in "aaab":
                tasks.start_soon(come, app, key_id)
                await anyio.wait_all_tasks_blocked()
            tasks.start_soon(come, app, "a", "/health")
            assert statuses == {"a": [503], "b": []}
            out.set()
        await come(app, "a")

    anyio.run(run)
    assert statuses == {"a": [503, 200, 200, 200, 200], "b": [200]}
