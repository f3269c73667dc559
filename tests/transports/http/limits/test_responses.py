"""How large an answer may be, and how much waits for clients that do not read."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from testbed.patience import PATIENCE_SECONDS
from tests.transports.http.limits.test_bodies_and_rates import nothing
from tests.transports.http.limits.test_fair_queue import from_key
from tests.transports.http.support.harness import CLIENT, Site, new_site
from tests.transports.http.support.mcp_requests import ask, call, message, open_session, post
from tests.transports.http.support.pauses import holding
from vestige.transports.http import context
from vestige.transports.http.limits.fair_queue import SharedBudget
from vestige.transports.http.limits.responses import SMALL_BYTES, UnreadLimit

SMALL: dict[str, Any] = {"server.max_body_bytes": 20_000, "auth.enabled": False}
"""Answers may have twice as much."""
ROOMY: dict[str, Any] = {"server.max_body_bytes": 200_000, "auth.enabled": False}
LARGE = SMALL_BYTES + 1
MUCH = "Much: " + "word " * 20_000


@pytest.fixture(autouse=True)
def _no_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "MIN_BODY_BYTES", 0)


def many(site: Site, count: int) -> list[str]:
    return [site.world.remember(f"Text {n}: " + f"word{n} " * 2_500, force_create=True) for n in range(count)]


# -- one answer ----------------------------------------------------------------------------------------


def test_an_answer_that_is_too_large_is_refused_over_rest(tmp_path: Path) -> None:
    with new_site(tmp_path, SMALL) as site:
        ids = many(site, 3)
        fits = site.http.get("/api/v1/memories/batch", params={"ids": ids[:2]})
        refused = site.http.get("/api/v1/memories/batch", params={"ids": ids})
    assert (fits.status_code, fits.json()["found"]) == (200, 2)
    told = refused.json()
    assert (refused.status_code, told["code"], told["details"]["limit"]) == (413, "too_large", 40_000)
    assert len(fits.content) < told["details"]["limit"]


def test_what_becomes_too_large_as_json_is_refused_too(tmp_path: Path) -> None:
    with new_site(tmp_path, SMALL) as site:
        one = site.world.remember("Quotes: " + '"' * 15_000)
        two = site.world.remember("More quotes: " + '"' * 15_000, force_create=True)
        fits = site.http.get("/api/v1/memories/batch", params={"ids": [one]})
        refused = site.http.get("/api/v1/memories/batch", params={"ids": [one, two]})
    assert (fits.status_code, refused.status_code) == (200, 413)


def test_an_answer_that_is_too_large_is_refused_over_mcp(tmp_path: Path) -> None:
    with new_site(tmp_path, SMALL) as site:
        arguments = {"action": "get_batch", "ids": many(site, 3)}
        refused = ask(site.http, "tools/call", {"name": "memory", "arguments": arguments})
    result = refused.json()["result"]
    assert result["isError"]
    assert result["structuredContent"]["error"]["code"] == "too_large"


def test_answers_to_one_request_are_counted_together(tmp_path: Path) -> None:
    with new_site(tmp_path, SMALL) as site:
        ids = many(site, 4)
        session = open_session(site.http, "2025-03-26")
        calls = [call("memory", n, action="get_batch", ids=[one]) for n, one in enumerate(ids)]
        replies = post(site.http, session, calls).json()
        again = post(site.http, session, calls[-1]).json()
    failed = [reply["id"] for reply in replies if reply["result"]["isError"]]
    assert failed == [2, 3]
    assert not again["result"]["isError"]  # what was sent does not count any more


def test_a_message_with_too_many_values_is_refused_in_the_words_of_the_protocol(tmp_path: Path) -> None:
    with new_site(tmp_path, {"auth.enabled": False}) as site:
        arguments = {"action": "get_batch", "ids": ["x" * 60] * 2_000}
        refused = ask(site.http, "tools/call", {"name": "memory", "arguments": arguments})
    assert refused.status_code == 413
    assert refused.json()["error"]["data"]["error"]["code"] == "too_large"


def test_a_call_that_ends_after_its_client_has_left_keeps_no_room(tmp_path: Path) -> None:
    with (
        new_site(tmp_path, ROOMY) as site,
        ThreadPoolExecutor(1) as threads,
        holding("memory.get_batch", deaf=True) as held,
    ):
        ids = [site.world.remember(MUCH)]
        session = open_session(site.http)
        asked = threads.submit(post, site.http, session, call("memory", 7, action="get_batch", ids=ids))
        held.wait(1)
        cancelled = message("notifications/cancelled", {"requestId": 7}, None)
        assert post(site.http, session, cancelled).status_code == 202
        held.let_go()
        assert asked.result(PATIENCE_SECONDS).status_code == 202
        assert not site.context.unsent._taken


def test_what_was_done_is_not_said_to_be_refused(tmp_path: Path) -> None:
    with new_site(tmp_path, ROOMY) as site:
        ids = [site.world.remember(MUCH)]
        assert site.context.unsent.take(
            CLIENT, 3_200_000 - SMALL_BYTES
        )  # as if so much waited for this client
        arguments = {"action": "get_batch", "ids": ids}
        refused = ask(site.http, "tools/call", {"name": "memory", "arguments": arguments})
        note = {"content": "The kettle whistles in C sharp."}
        stored = ask(site.http, "tools/call", {"name": "smart_ingest", "arguments": note})
    error = refused.json()["result"]["structuredContent"]["error"]
    assert (error["code"], error["message"].split(",")[0]) == ("overloaded", "The request was carried out")
    assert not stored.json()["result"]["isError"]  # what is small has room in any case


# -- all that wait -------------------------------------------------------------------------------------


class Reader:
    """A client that takes a large piece of its answer when it is told to."""

    def __init__(self, *, reads: bool = False) -> None:
        self.taken = anyio.Event()
        self.status, self.messages = 0, list[Message]()
        self._waits = False
        if reads:
            self.taken.set()

    async def send(self, message: Message) -> None:
        """As a server does it: what comes after a large piece waits until that is taken."""
        if self._waits:
            await self.taken.wait()
        self.status = message.get("status", self.status)
        self._waits = len(message.get("body", b"")) > SMALL_BYTES
        self.messages.append(message)

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages)


async def large(scope: Scope, receive: Receive, send: Send) -> None:
    await Response(b"x" * LARGE)(scope, receive, send)


def keeping(app: ASGIApp, most: int) -> UnreadLimit:
    return UnreadLimit(app, SharedBudget(most))


def test_one_sender_has_half_of_the_room_for_answers_until_they_are_taken() -> None:
    async def run() -> None:
        app, unread = keeping(large, 4 * LARGE), [Reader(), Reader()]
        refused, other, late = Reader(reads=True), Reader(reads=True), Reader(reads=True)
        async with anyio.create_task_group() as tasks:
            for one in unread:
                tasks.start_soon(app, from_key("a"), nothing, one.send)
            await anyio.wait_all_tasks_blocked()
            await app(from_key("a"), nothing, refused.send)
            await app(from_key("b"), nothing, other.send)
            for one in unread:
                one.taken.set()
        await app(from_key("a"), nothing, late.send)
        assert [one.status for one in (*unread, refused, other, late)] == [200, 200, 503, 200, 200]
        assert [len(one.body) for one in (*unread, other, late)] == [LARGE] * 4
        assert b"The request was carried out" in refused.body

    anyio.run(run)


def test_small_answers_are_not_counted() -> None:
    async def little(scope: Scope, receive: Receive, send: Send) -> None:
        await Response(b"x" * SMALL_BYTES)(scope, receive, send)

    reader = Reader()
    anyio.run(keeping(little, 0), from_key("a"), nothing, reader.send)
    assert (reader.status, len(reader.body)) == (200, SMALL_BYTES)


def test_a_stream_goes_on_as_its_pieces_are_taken() -> None:
    async def pouring(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(10):
            await send({"type": "http.response.body", "body": b"x" * LARGE, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    reader = Reader(reads=True)
    anyio.run(keeping(pouring, 2 * LARGE), from_key("a"), nothing, reader.send)
    assert len(reader.body) == 10 * LARGE
    assert not reader.messages[-1].get("more_body", False)


def test_a_stream_without_room_ends() -> None:
    unsent, reader = SharedBudget(2 * LARGE), Reader(reads=True)

    async def pouring(scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"first", "more_body": True})
        assert unsent.take("a", LARGE)
        await send({"type": "http.response.body", "body": b"x" * LARGE, "more_body": True})
        await send({"type": "http.response.body", "body": b"never sent", "more_body": True})

    anyio.run(UnreadLimit(pouring, unsent), from_key("a"), nothing, reader.send)
    assert reader.body == b"first"
    assert not reader.messages[-1].get("more_body", False)
