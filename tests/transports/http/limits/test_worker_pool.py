"""Threads for long work and for short calls, and the time that calls have."""

import json
import time
import tracemalloc
from collections.abc import Callable, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import HandClock, open_world
from tests.transports.http.support.harness import Site, bearer, new_site, open_site
from tests.transports.http.support.mcp_requests import ask, call, message, modern, open_session, post, watched
from tests.transports.http.support.pauses import holding
from vestige.app.app import Clock
from vestige.transports.http import rest
from vestige.transports.http.limits import worker_pool
from vestige.transports.http.limits.worker_pool import PoolFull, PoolTimeout, WorkerPools

LONG, SHORT = "contradictions", "search"
ROOM = {"server.max_concurrent": 16}
"""Room for four long calls at once, two of them of one key."""


# -- turns ---------------------------------------------------------------------------------------------


class Road:
    """Lanes with long work on them that goes on until it is ended."""

    def __init__(self, max_concurrent: int) -> None:
        self.pools = WorkerPools(anyio.CapacityLimiter(1), max_concurrent)
        self.running: list[str] = []
        self._over = {key: anyio.Event() for key in "abc"}

    async def drive(self, key: str) -> None:
        async with self.pools.turn(key, long=True, seconds=PATIENCE_SECONDS):
            self.running.append(key)
            await self._over[key].wait()
            self.running.remove(key)

    async def end(self, key: str) -> None:
        """End all of a key, and those after them."""
        self._over[key].set()
        await anyio.wait_all_tasks_blocked()


def test_one_key_leaves_half_of_the_long_lane_to_others_who_come_in_order() -> None:
    async def run() -> None:
        road = Road(16)
        async with anyio.create_task_group() as tasks:
            for key in "aaaabccc":
                tasks.start_soon(road.drive, key)
                await anyio.wait_all_tasks_blocked()
            assert road.running == ["a", "a", "b", "c"]
            await road.end("b")
            assert road.running == ["a", "a", "c", "c"]
            await road.end("a")
            await road.end("c")
        assert not road.pools._running
        assert not road.pools._waiting

    anyio.run(run)


def test_there_is_always_room_for_one() -> None:
    async def run() -> None:
        road = Road(1)
        async with anyio.create_task_group() as tasks:
            for key in "ab":
                tasks.start_soon(road.drive, key)
                await anyio.wait_all_tasks_blocked()
            assert road.running == ["a"]
            await road.end("a")
            assert road.running == ["b"]
            await road.end("b")

    anyio.run(run)


def test_whoever_stops_waiting_leaves_no_trace() -> None:
    async def run() -> None:
        road = Road(4)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(road.drive, "a")
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(PoolTimeout):
                async with road.pools.turn("b", long=True, seconds=0.001):
                    raise AssertionError
            with anyio.move_on_after(0.001):
                await road.drive("b")
            assert not road.pools._waiting
            async with road.pools.turn("b", long=False, seconds=0.001):
                await road.end("a")  # short work does not wait

    anyio.run(run)


def test_so_many_wait_at_most_with_one_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "MAX_WAITING", 2)

    async def run() -> None:
        road = Road(16)
        async with anyio.create_task_group() as tasks:
            for key in "aaaa":
                tasks.start_soon(road.drive, key)
            await anyio.wait_all_tasks_blocked()
            with pytest.raises(PoolFull):
                await road.drive("a")
            tasks.start_soon(road.drive, "b")
            await anyio.wait_all_tasks_blocked()
            assert sorted(road.running) == ["a", "a", "b"]
            await road.end("a")
            await road.end("b")

    anyio.run(run)


# -- over HTTP -----------------------------------------------------------------------------------------


def until(done: Callable[[], bool]) -> None:
    latest = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < latest


def work(site: Site, key: str) -> httpx2.Response:
    return site.http.get(f"/api/v1/{LONG}", headers=bearer(key) if key else {})


def found(site: Site, key: str) -> int:
    return site.http.post("/api/v1/search", headers=bearer(key), json={"query": "tea"}).status_code


def test_long_calls_over_rest_are_refused_when_there_is_no_turn_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "QUEUE_SECONDS", 0.01)
    with holding(LONG) as held, new_site(tmp_path, ROOM) as site, ThreadPoolExecutor(4) as threads:
        keys = [site.key(label=str(number)) for number in range(3)]
        began = [threads.submit(work, site, keys[0]) for _ in range(2)]
        held.wait(2)
        refused = work(site, keys[0])
        began += [threads.submit(work, site, keys[1]) for _ in range(2)]
        held.wait(4)
        full = work(site, keys[2])
        short = [found(site, key) for key in keys]
        held.let_go()
        answers = [one.result(PATIENCE_SECONDS) for one in began]

    for response in (refused, full):
        assert (response.status_code, response.json()["code"]) == (503, "overloaded")
        assert response.headers["retry-after"] == "1"
    assert short == [200, 200, 200]
    assert [answer.status_code for answer in answers] == [200] * 4


def test_a_batch_of_long_tools_has_its_share_of_threads_and_all_are_answered(tmp_path: Path) -> None:
    with new_site(tmp_path, ROOM) as site, ThreadPoolExecutor(1) as threads, holding(LONG) as held:
        mine = site.key()
        session = open_session(site.http, "2025-03-26", headers=bearer(mine))
        batch = [call(LONG, number) for number in range(20)]
        asked = threads.submit(post, site.http, session, batch)
        held.wait(2)
        short = found(site, mine)
        held.let_go()
        replies = asked.result(PATIENCE_SECONDS).json()

    assert short == 200
    assert held.most_inside == 2
    assert sorted(reply["id"] for reply in replies) == list(range(20))
    assert not any(reply["result"].get("isError") for reply in replies)


def test_tools_that_too_many_wait_before_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_pool, "MAX_WAITING", 1)
    with new_site(tmp_path, ROOM) as site, ThreadPoolExecutor(1) as threads, holding(LONG) as held:
        session = open_session(site.http, "2025-03-26", headers=bearer(site.key()))
        batch = [call(LONG, number) for number in range(5)]
        asked = threads.submit(post, site.http, session, batch)
        held.wait(2)
        held.let_go()
        results = [reply["result"]["structuredContent"] for reply in asked.result(PATIENCE_SECONDS).json()]

    assert [result.get("error", {}).get("code") for result in results].count("overloaded") == 2


def test_a_long_tool_that_is_taken_back_while_it_waits_is_gone_at_once(tmp_path: Path) -> None:
    with (
        new_site(tmp_path, {"server.max_concurrent": 4}) as site,
        ThreadPoolExecutor(2) as threads,
        holding(LONG) as held,
    ):
        session = open_session(site.http, headers=bearer(site.key()))
        first = threads.submit(post, site.http, session, call(LONG, 1))
        held.wait(1)
        second = threads.submit(post, site.http, session, call(LONG, 2))
        until(lambda: len(site.context.pools._waiting) == 1)
        post(site.http, session, message("notifications/cancelled", {"requestId": 2}, None))
        taken_back = second.result(PATIENCE_SECONDS)
        assert not first.done()
        held.let_go()
        assert first.result(PATIENCE_SECONDS).json()["id"] == 1

    assert taken_back.content == b""


# -- places --------------------------------------------------------------------------------------------


def tool(site: Site, key: str) -> httpx2.Response:
    headers, body = modern("tools/call", {"name": LONG, "arguments": {}})
    return post(site.http, {**headers, **bearer(key)}, body)


@pytest.mark.parametrize("way", [tool, work])
def test_long_calls_that_wait_for_their_turn_take_no_place_from_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[Site, str], httpx2.Response]
) -> None:
    monkeypatch.setattr(rest, "QUEUE_SECONDS", PATIENCE_SECONDS)
    with holding(LONG) as held, new_site(tmp_path, ROOM) as site, ThreadPoolExecutor(16) as threads:
        mine, yours = site.key(label="mine"), site.key(label="yours")
        asked = [threads.submit(way, site, mine) for _ in range(16)]
        held.wait(2)
        until(lambda: len(site.context.pools._waiting) == 14)
        found_by_others = found(site, yours)
        held.let_go()
        answers = [one.result(PATIENCE_SECONDS).status_code for one in asked]

    assert found_by_others == 200
    assert answers == [200] * 16
    assert held.most_inside == 2


def test_calls_that_wait_for_others_of_their_session_take_no_place_from_another_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = watched(monkeypatch)
    with (
        new_site(tmp_path, {"server.max_concurrent": 4}) as site,
        ThreadPoolExecutor(4) as threads,
        holding(SHORT) as held,
    ):
        mine, yours = site.key(label="mine"), site.key(label="yours")
        session = open_session(site.http, headers=bearer(mine))
        asked = [threads.submit(post, site.http, session, call(SHORT, n, query="tea")) for n in range(4)]
        held.wait(1)
        until(lambda: conversations[0]._order.statistics().tasks_waiting == 3)
        worked = work(site, yours)
        held.let_go()
        answers = [one.result(PATIENCE_SECONDS).json() for one in asked]

    assert worked.status_code == 200
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3]
    assert not any(answer["result"].get("isError") for answer in answers)
    assert held.most_inside == 1


def test_a_call_whose_key_is_revoked_while_it_waits_is_not_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversations = watched(monkeypatch)
    with new_site(tmp_path) as site, ThreadPoolExecutor(2) as threads, holding(SHORT) as held:
        minted, text = site.mint("read", "write")
        session = open_session(site.http, headers=bearer(text))
        first = threads.submit(post, site.http, session, call(SHORT, 1, query="tea"))
        held.wait(1)
        late = call("smart_ingest", 2, content="The kettle whistles in C sharp.")
        second = threads.submit(post, site.http, session, late)
        until(lambda: conversations[0]._order.statistics().tasks_waiting == 1)
        site.revoke(minted)
        site.world.clock.sleep(1)
        held.let_go()
        begun, result = (one.result(PATIENCE_SECONDS).json()["result"] for one in (first, second))
        assert not begun["isError"]
        assert result["structuredContent"]["error"]["code"] == "unauthenticated"
        assert site.world.find("kettle") == []


def test_a_call_that_waits_keeps_what_it_was_given_and_not_the_text_of_it(tmp_path: Path) -> None:
    spaces = 3_000_000
    with (
        new_site(tmp_path, {"server.max_concurrent": 4, "auth.enabled": False}) as site,
        ThreadPoolExecutor(2) as threads,
        holding(LONG) as held,
    ):
        first = threads.submit(ask, site.http, "tools/call", {"name": LONG, "arguments": {}})
        held.wait(1)
        headers, body = modern("tools/call", {"name": LONG, "arguments": {}})
        assert site.http.portal
        tracemalloc.start()
        try:
            second = site.http.portal.start_task_soon(asked_with_spaces, site, headers, body, spaces)
            until(lambda: len(site.context.pools._waiting) == 1)
            until(lambda: 10 * tracemalloc.get_traced_memory()[0] < spaces)
            most = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        held.let_go()
        assert (first.result(PATIENCE_SECONDS).status_code, second.result(PATIENCE_SECONDS)) == (200, 200)

    assert most > spaces


async def asked_with_spaces(site: Site, headers: dict[str, str], body: dict[str, Any], spaces: int) -> int:
    """Send a request that is mostly spaces, of which the client keeps nothing; its status."""
    sent = {"Host": "127.0.0.1:3927", "Content-Type": "application/json", **headers}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "query_string": b"",
        "headers": [(name.lower().encode(), value.encode()) for name, value in sent.items()],
        "server": ("127.0.0.1", 3927),
        "client": ("127.0.0.1", 50_000),
        "scheme": "http",
    }
    statuses: list[int] = []
    pieces = iter([True])

    async def receive() -> dict[str, Any]:
        for _ in pieces:
            return {"type": "http.request", "body": b" " * spaces + json.dumps(body).encode()}
        await anyio.sleep_forever()
        raise AssertionError("never")

    async def send(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            statuses.append(event["status"])

    await site.http.app(scope, receive, send)
    return statuses[0]


# -- the time that calls have --------------------------------------------------------------------------


class Running(HandClock):
    """Time that goes on by a second whenever somebody looks."""

    def parts(self) -> Clock:
        def tick() -> float:
            self.now += timedelta(seconds=1)
            return self.now.timestamp()

        return replace(super().parts(), monotonic=tick)


def by_rest(site: Site, name: str) -> tuple[int, str]:
    asked = site.http.post("/api/v1/search", json={"query": "tea"}) if name == SHORT else work(site, "")
    return asked.status_code, asked.json()["code"]


def by_mcp(site: Site, name: str) -> tuple[int, str]:
    arguments = {"query": "tea"} if name == SHORT else {}
    response = ask(site.http, "tools/call", {"name": name, "arguments": arguments})
    result = response.json()["result"]
    assert result["isError"]
    return 504, result["structuredContent"]["error"]["code"]


@pytest.mark.parametrize("name", [SHORT, LONG])
@pytest.mark.parametrize("way", [by_rest, by_mcp])
def test_what_goes_on_for_ever_is_ended_when_its_time_is_up(
    tmp_path: Path, name: str, way: Callable[[Site, str], tuple[int, str]]
) -> None:
    settings: dict[str, Any] = {"auth.enabled": False, "server.long_request_seconds": 200}
    with open_world(tmp_path, clock=Running(), **settings) as world, holding(name), open_site(world) as site:
        began = world.clock.now
        assert way(site, name) == (504, "deadline_exceeded")
        took = (world.clock.now - began).total_seconds()

    assert (60 if name == SHORT else 200) <= took < (150 if name == SHORT else 400)


def test_waiting_for_a_turn_is_part_of_the_time_of_a_tool(tmp_path: Path) -> None:
    settings = {"server.max_concurrent": 4, "auth.enabled": False, "server.long_request_seconds": 0.05}
    with new_site(tmp_path, settings) as site, ThreadPoolExecutor(1) as threads, holding(LONG) as held:
        threads.submit(ask, site.http, "tools/call", {"name": LONG})
        held.wait(1)  # the clock of this site stands still, so the first one stays
        late = ask(site.http, "tools/call", {"name": LONG})
        held.let_go()

    assert late.json()["result"]["structuredContent"]["error"]["code"] == "deadline_exceeded"
