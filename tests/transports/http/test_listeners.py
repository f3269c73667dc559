"""Those who listen: what waits for each, in which order, and that nobody waits for anybody."""

import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.world import World, open_world
from vestige.events import MemoryDeleted, Place
from vestige.models import EVERYTHING, Access, StoreStats
from vestige.operations.all import registry
from vestige.store.inmemory import InMemoryStore
from vestige.transports.http.desk import Desk
from vestige.transports.http.listeners import (
    AT_ONCE,
    LOCKED_OUT,
    MOST_WAITING,
    STOPPING,
    Listener,
    Listeners,
)
from vestige.transports.http.vitals import SHARE, STALE_SECONDS, Vitals

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TEA, DIARY = Access(scopes=("/tea",)), Access(scopes=("/diary",))
LONG = 30.0
"""A limit no passing test reaches."""


def event(name: object, scope: str = "/tea") -> MemoryDeleted:
    return MemoryDeleted(timestamp=NOON, places=(Place(scope=scope),), id=str(name))


def always() -> bool:
    return True


def listening(world: World, act: Callable[[Listeners], Awaitable[None]], desk: Desk | None = None) -> None:
    """Act while listeners are served."""

    async def run() -> None:
        listeners = Listeners(desk or desk_of(world))
        with anyio.fail_after(LONG):
            async with listeners.running():
                await act(listeners)

    anyio.run(run)


def desk_of(world: World) -> Desk:
    engine = world.app.engine
    return Desk(
        app=world.app,
        settings=engine.settings,
        registry=registry,
        monotonic=engine.monotonic,
        entropy=engine.entropy,
        limiter=anyio.CapacityLimiter(1),
    )


async def told(listener: Listener, count: int) -> list[Any]:
    """The next things it is told: ids of events, and other messages whole."""
    messages = [json.loads(await listener.next()) for _ in range(count)]
    return [one["data"].get("id", one) for one in messages]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    settings: dict[str, Any] = {"storage.backend": "memory"}
    with open_world(tmp_path, **settings) as opened:
        yield opened


def test_a_listener_is_told_what_lies_within_its_reach_in_the_order_in_which_it_happened(
    world: World,
) -> None:
    bus = world.app.engine.events

    async def act(listeners: Listeners) -> None:
        bus.emit(event("before"))
        async with (
            listeners.joined(TEA, always) as tea,
            listeners.joined(DIARY, always) as diary,
            listeners.joined(EVERYTHING, always) as everything,
        ):
            bus.emit(event(1), event(2, "/diary"), event(3, "/tea/green"))
            bus.emit(replace(event("all"), places=None), event(4), event(5, "/diary"))
            assert await told(tea, 3) == ["1", "3", "4"]
            assert await told(diary, 2) == ["2", "5"]
            assert await told(everything, 6) == ["1", "2", "3", "all", "4", "5"]

    listening(world, act)


def test_events_of_many_threads_arrive_each_once_and_in_the_order_of_their_thread(world: World) -> None:
    bus, count = world.app.engine.events, AT_ONCE + 50
    scopes = [f"/tea/{number}" for number in range(3)]

    def emit(scope: str) -> None:
        for number in range(count):
            bus.emit(event(number, scope))

    async def act(listeners: Listeners) -> None:
        reaches = [Access(scopes=(scope,)) for scope in scopes]
        async with (
            listeners.joined(reaches[0], always) as one,
            listeners.joined(reaches[1], always) as two,
            listeners.joined(reaches[2], always) as three,
        ):
            threads = [threading.Thread(target=emit, args=(scope,)) for scope in scopes]
            for thread in threads:
                thread.start()
            for listener in (one, two, three):
                assert await told(listener, count) == [str(number) for number in range(count)]
            for thread in threads:
                thread.join()

    listening(world, act)


def test_one_that_does_not_keep_up_is_told_how_much_it_missed_and_gets_the_latest(world: World) -> None:
    bus = world.app.engine.events

    async def act(listeners: Listeners) -> None:
        async with (
            listeners.joined(TEA, always) as slow,
            listeners.joined(TEA, always) as quick,
            listeners.joined(DIARY, always) as other,
        ):
            bus.emit(*(event(number) for number in range(MOST_WAITING + 3)))
            bus.emit(event("last", "/diary"))
            assert await told(other, 1) == ["last"]  # whose own events were few
            assert await told(quick, 2) == [{"type": "Missed", "data": {"count": 3}}, "3"]
            bus.emit(event("newest"), event("after it", "/diary"))
            assert await told(other, 1) == ["after it"]
            missed, *rest = await told(slow, 1 + MOST_WAITING)
            assert missed == {"type": "Missed", "data": {"count": 4}}
            assert (rest[0], rest[-1]) == ("4", "newest")
            assert (await told(quick, MOST_WAITING))[-1] == "newest"

    listening(world, act)


def test_how_it_is_going_is_told_before_what_waits_and_counts_what_lies_in_reach(world: World) -> None:
    world.remember("Ada prefers green tea.", scope="/tea")
    secret = world.remember("The diary is under the bed.", scope="/diary")
    world.call("suppress", id=secret)

    async def act(listeners: Listeners) -> None:
        async with listeners.joined(TEA, always) as tea, listeners.joined(EVERYTHING, always) as everything:
            world.app.engine.events.emit(event(1))
            world.clock.advance(hours=1)
            await listeners.beat()
            beat, first = await told(tea, 2)
            assert first == "1"
            assert beat["type"] == "Heartbeat"
            assert beat["data"].pop("avg_retention") == pytest.approx(0.73, abs=0.1)
            assert beat["data"] == {"uptime_secs": 3600.0, "memory_count": 1, "suppressed_count": 0}
            (beat, _) = await told(everything, 2)
            assert (beat["data"]["memory_count"], beat["data"]["suppressed_count"]) == (2, 1)

    listening(world, act)


def test_who_may_not_listen_any_more_is_ended_and_nobody_else(world: World) -> None:
    allowed = True

    async def act(listeners: Listeners) -> None:
        nonlocal allowed
        async with listeners.joined(TEA, lambda: allowed) as one, listeners.joined(TEA, always) as other:
            await listeners.recheck()
            allowed = False
            await listeners.recheck()
            assert await one.ended() == LOCKED_OUT
            with anyio.move_on_after(0.01) as waiting:
                await other.ended()
            assert waiting.cancelled_caught

    listening(world, act)


def test_a_server_that_stops_ends_all_and_takes_nobody(world: World) -> None:
    desk = desk_of(world)

    async def act(listeners: Listeners) -> None:
        async with listeners.joined(TEA, always) as one:
            assert not listeners.full
            desk.stopping.set()
            assert await one.ended() == STOPPING
            assert listeners.full

    listening(world, act, desk)


def test_other_processes_are_listened_to_only_while_somebody_listens(world: World) -> None:
    bus = world.app.engine.events

    async def act(listeners: Listeners) -> None:
        assert not bus.followed
        for _ in range(2):
            async with listeners.joined(TEA, always):
                async with listeners.joined(DIARY, always):
                    assert (bus.followed, len(listeners)) == (True, 2)
                assert bus.followed
            assert (bus.followed, len(listeners)) == (False, 0)

    listening(world, act)


class Counting(InMemoryStore):
    """A store that counts how often it was asked for its numbers."""

    asked = 0

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        self.asked += 1
        return super().stats(access=access, now=now)


def test_the_numbers_are_counted_once_for_a_reach_until_something_happens_or_a_minute_has_passed(
    world: World,
) -> None:
    store, clock = Counting(node="counting"), [0.0]
    vitals = Vitals(replace(world.app.engine, store=store), lambda: clock[0])
    for _ in range(500):
        assert vitals.of(TEA, 7)["memory_count"] == 0
    assert store.asked == 1
    vitals.of(DIARY, 7)
    assert store.asked == 2
    vitals.of(TEA, 8)
    assert store.asked == 3
    clock[0] += STALE_SECONDS
    vitals.of(TEA, 8)
    assert store.asked == 4
    vitals.forget_others({TEA})
    vitals.of(TEA, 8)
    vitals.of(DIARY, 8)
    assert store.asked == 5


def test_numbers_that_take_long_to_count_are_counted_less_often(world: World) -> None:
    store, clock = Counting(node="counting"), [0.0]

    def monotonic() -> float:
        clock[0] += 1.0  # whatever is asked in between takes a second
        return clock[0]

    vitals = Vitals(replace(world.app.engine, store=store), monotonic)
    for number in range(SHARE - 1):
        vitals.of(TEA, number)
    assert store.asked == 1
    vitals.of(TEA, SHARE)
    vitals.of(TEA, SHARE + 1)
    assert store.asked == 2
