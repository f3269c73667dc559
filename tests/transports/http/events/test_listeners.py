"""Those who listen: what waits for each, in which order, and that nobody waits for anybody."""

import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.to_thread import run_sync

from testbed.patience import PATIENCE_SECONDS
from testbed.world import World, open_world
from vestige.core.events import EventScope, MemoryDeleted
from vestige.core.models import EVERYTHING, Access, StoreStats
from vestige.operations.registry.groups import registry
from vestige.store.inmemory import InMemoryStore
from vestige.transports.http.auth.credentials import ANYONE, Identity
from vestige.transports.http.context import ServerContext
from vestige.transports.http.events import listeners as module
from vestige.transports.http.events.channels import MOST_WAITING, Listener
from vestige.transports.http.events.listeners import (
    AT_ONCE,
    AT_ONCE_SECONDS,
    LOCKED_OUT,
    SHARE,
    STALE_SECONDS,
    STOPPING,
    Listeners,
    StatusCounts,
)

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
TEA, DIARY = Access(scopes=("/tea",)), Access(scopes=("/diary",))
SOMEBODY = Identity(caller=ANYONE, via="open")


def event(name: object, scope: str = "/tea") -> MemoryDeleted:
    return MemoryDeleted(timestamp=NOON, scopes=(EventScope(scope=scope),), id=str(name))


def always() -> bool:
    return True


def holder(key_id: str) -> Identity:
    return replace(SOMEBODY, via="bearer", key_id=key_id)


def listening(
    world: World, act: Callable[[Listeners], Awaitable[None]], context: ServerContext | None = None
) -> None:
    """Act while listeners are served."""

    async def run() -> None:
        listeners = Listeners(context or desk_of(world))
        with anyio.fail_after(PATIENCE_SECONDS):
            async with listeners.running():
                await act(listeners)

    anyio.run(run)


def desk_of(world: World) -> ServerContext:
    engine = world.app.engine
    return ServerContext(
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
            listeners.joined(TEA, SOMEBODY, always) as tea,
            listeners.joined(DIARY, SOMEBODY, always) as diary,
            listeners.joined(EVERYTHING, SOMEBODY, always) as everything,
        ):
            bus.emit(event(1), event(2, "/diary"), event(3, "/tea/green"))
            bus.emit(replace(event("all"), scopes=None), event(4), event(5, "/diary"))
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
            listeners.joined(reaches[0], SOMEBODY, always) as one,
            listeners.joined(reaches[1], SOMEBODY, always) as two,
            listeners.joined(reaches[2], SOMEBODY, always) as three,
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
            listeners.joined(TEA, SOMEBODY, always) as slow,
            listeners.joined(TEA, SOMEBODY, always) as quick,
            listeners.joined(DIARY, SOMEBODY, always) as other,
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
        async with (
            listeners.joined(TEA, SOMEBODY, always) as tea,
            listeners.joined(EVERYTHING, SOMEBODY, always) as everything,
        ):
            world.app.engine.events.emit(event(1))
            world.clock.advance(hours=1)
            await listeners.count()
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
        async with (
            listeners.joined(TEA, holder("revoked"), lambda: allowed) as one,
            listeners.joined(TEA, SOMEBODY, always) as other,
        ):
            await listeners.recheck()
            allowed = False
            await listeners.recheck()
            assert await one.ended() == LOCKED_OUT
            with anyio.move_on_after(0.01) as waiting:
                await other.ended()
            assert waiting.cancelled_caught

    listening(world, act)


def test_a_credential_is_asked_about_once_however_many_listen_with_it(world: World) -> None:
    asked: list[str] = []

    def recheck(key_id: str) -> bool:
        asked.append(key_id)
        return key_id == "good"

    async def act(listeners: Listeners) -> None:
        async with AsyncExitStack() as stack:
            joined = [
                await stack.enter_async_context(
                    listeners.joined(access, holder(key_id), partial(recheck, key_id))
                )
                for key_id in ("good", "bad")
                for access in (TEA, DIARY, DIARY)
            ]
            await listeners.recheck()
            assert sorted(asked) == ["bad", "good"]
            for one in joined[3:]:
                assert await one.ended() == LOCKED_OUT

    listening(world, act)


def test_a_server_that_stops_ends_all_and_takes_nobody(world: World) -> None:
    context = desk_of(world)

    async def act(listeners: Listeners) -> None:
        async with listeners.joined(TEA, SOMEBODY, always) as one:
            assert not listeners.full
            context.stopping.set()
            assert await one.ended() == STOPPING
            assert listeners.full

    listening(world, act, context)


def test_other_processes_are_listened_to_only_while_somebody_listens(world: World) -> None:
    bus = world.app.engine.events

    async def act(listeners: Listeners) -> None:
        assert not bus.followed
        for _ in range(2):
            async with listeners.joined(TEA, SOMEBODY, always):
                async with listeners.joined(DIARY, SOMEBODY, always):
                    assert (bus.followed, len(listeners)) == (True, 2)
                assert bus.followed
            assert (bus.followed, len(listeners)) == (False, 0)

    listening(world, act)


def test_what_nobody_was_left_to_hear_is_not_told_to_whoever_comes_next(world: World) -> None:
    bus = world.app.engine.events

    async def act(listeners: Listeners) -> None:
        async with listeners.joined(TEA, SOMEBODY, always):
            bus.emit(event("before"))  # and the event loop has no turn before the last one leaves
        async with listeners.joined(TEA, SOMEBODY, always) as next_one:
            bus.emit(event("after"))
            assert await told(next_one, 1) == ["after"]

    listening(world, act)


# -- places ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("most", "for_one"), [(1, 1), (2, 1), (5, 2), (6, 3)])
def test_half_of_the_places_are_for_one_key_at_most(tmp_path: Path, most: int, for_one: int) -> None:
    settings: dict[str, Any] = {"storage.backend": "memory", "server.max_listeners": most}

    async def act(listeners: Listeners) -> None:
        async with AsyncExitStack() as stack:
            for _ in range(for_one):
                assert not listeners.full_for("greedy")
                await stack.enter_async_context(listeners.joined(TEA, holder("greedy"), always))
            assert listeners.full_for("greedy")
            assert not listeners.full_for("modest")
            assert listeners.full == (most == for_one)
        assert not listeners.full_for("greedy")

    with open_world(tmp_path, **settings) as world:
        listening(world, act)


def test_where_no_keys_are_needed_nobody_has_a_part_of_the_places(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"storage.backend": "memory", "server.max_listeners": 2}

    async def act(listeners: Listeners) -> None:
        async with listeners.joined(TEA, SOMEBODY, always):
            assert not listeners.full_for(SOMEBODY.key_id)
            async with listeners.joined(TEA, SOMEBODY, always):
                assert listeners.full

    with open_world(tmp_path, **settings) as world:
        listening(world, act)


def test_who_still_waits_to_listen_has_a_place_already(world: World) -> None:
    bus, ready = world.app.engine.events, threading.Event()

    def slowly() -> None:  # the store takes its time
        ready.wait(PATIENCE_SECONDS)

    bus.on_followed(slowly)

    async def act(listeners: Listeners) -> None:
        async def join() -> None:
            async with listeners.joined(TEA, SOMEBODY, always) as one:
                assert await told(one, 1) == ["1"]

        try:
            async with anyio.create_task_group() as tasks:
                for _ in range(3):
                    tasks.start_soon(join)
                await anyio.wait_all_tasks_blocked()
                assert len(listeners) == 3
                ready.set()
                while not bus.followed:
                    await anyio.sleep(0)
                await anyio.wait_all_tasks_blocked()
                bus.emit(event(1))
        finally:
            ready.set()

    listening(world, act)


# -- turns -------------------------------------------------------------------------------------------


class Compared(MemoryDeleted):
    """An event that counts how often it is asked who reaches it."""

    times = 0

    def within(self, access: Access) -> bool:
        Compared.times += 1
        return super().within(access)


def test_many_reaches_and_many_events_keep_the_event_loop_for_a_short_while_at_a_time(world: World) -> None:
    reaches, happened, turns, Compared.times = 1_000, 50, [0], 0
    scopes = (EventScope(scope=f"/tea/{reaches - 1}"),)

    async def turn() -> None:
        while True:
            before = Compared.times
            await anyio.sleep(0)
            turns.append(Compared.times - before)

    async def act(listeners: Listeners) -> None:
        async with AsyncExitStack() as stack:
            for number in range(reaches):
                one = await stack.enter_async_context(
                    listeners.joined(Access(scopes=(f"/tea/{number}",)), SOMEBODY, always)
                )
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(turn)
                world.app.engine.events.emit(
                    *(Compared(timestamp=NOON, scopes=scopes, id=str(number)) for number in range(happened))
                )
                assert len(await told(one, happened)) == happened
                tasks.cancel_scope.cancel()

    listening(world, act)
    assert Compared.times == reaches * happened
    assert max(turns) <= AT_ONCE


def test_all_reaches_hear_how_it_is_going_a_part_of_them_in_each_turn(world: World) -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await anyio.sleep(0)
            turns += 1

    async def act(listeners: Listeners) -> None:
        async with AsyncExitStack() as stack:
            joined = [
                await stack.enter_async_context(
                    listeners.joined(Access(scopes=(f"/tea/{number}",)), SOMEBODY, always)
                )
                for number in range(5 * AT_ONCE)
            ]
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(turn)
                await listeners.beat()
                tasks.cancel_scope.cancel()
            for one in joined:
                assert (await told(one, 1))[0]["type"] == "Heartbeat"

    listening(world, act)
    assert turns >= 4


def test_an_event_that_cannot_be_told_is_left_out(world: World, caplog: pytest.LogCaptureFixture) -> None:
    bus = world.app.engine.events

    async def act(listeners: Listeners) -> None:
        async with listeners.joined(TEA, SOMEBODY, always) as tea:
            bus.emit(replace(event(1), id=object()), event(2))  # type: ignore[arg-type]  # a bug of ours
            assert await told(tea, 1) == ["2"]

    listening(world, act)
    assert "The event MemoryDeleted was not sent to listeners" in caplog.text


# -- numbers -----------------------------------------------------------------------------------------


class Stuck(InMemoryStore):
    """A store that does not come to an end with counting."""

    def __init__(self) -> None:
        super().__init__(node="stuck")
        self.asked, self.go_on = threading.Event(), threading.Event()

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        self.asked.set()
        self.go_on.wait(PATIENCE_SECONDS)
        return super().stats(access=access, now=now)


def test_while_the_numbers_are_counted_nobody_is_locked_out_later_and_heartbeats_come_without_them(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RECHECK_SECONDS", "COUNT_SECONDS", "BEAT_SECONDS"):
        monkeypatch.setattr(module, name, 0.001)
    store, allowed = Stuck(), True
    monkeypatch.setattr(world.app, "engine", replace(world.app.engine, store=store))

    async def act(listeners: Listeners) -> None:
        nonlocal allowed
        try:
            async with listeners.joined(TEA, holder("revoked"), lambda: allowed) as one:
                assert await run_sync(store.asked.wait, PATIENCE_SECONDS)
                allowed = False
                assert await one.ended() == LOCKED_OUT
                assert await told(one, 1) == [{"type": "Heartbeat", "data": {"uptime_secs": 0.0}}]
        finally:
            store.go_on.set()

    listening(world, act)


class Counting(InMemoryStore):
    """A store that notes for whom its numbers were counted, which takes so many seconds each time."""

    def __init__(self, takes: float = 0.0) -> None:
        super().__init__(node="counting")
        self.asked: list[Access] = []
        self.now, self.takes = 0.0, takes

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        self.asked.append(access)
        self.now += self.takes
        return super().stats(access=access, now=now)

    def vitals(self, world: World) -> StatusCounts:
        """The numbers of this store."""
        return StatusCounts(replace(world.app.engine, store=self), lambda: self.now)


def test_the_numbers_are_counted_once_for_a_reach_until_something_happens_or_a_minute_has_passed(
    world: World,
) -> None:
    store = Counting()
    vitals = store.vitals(world)
    assert vitals.of(TEA) == {}
    for _ in range(500):
        vitals.refresh([TEA], 7)
    assert vitals.of(TEA) == {"memory_count": 0, "avg_retention": 0.0, "suppressed_count": 0}
    assert store.asked == [TEA]
    vitals.refresh([TEA, DIARY], 7)
    assert store.asked == [TEA, DIARY]
    vitals.refresh([TEA], 8)
    assert store.asked == [TEA, DIARY, TEA]
    assert vitals.of(DIARY) == {}  # nobody asks any more
    store.now += STALE_SECONDS
    vitals.refresh([TEA], 8)
    assert store.asked == [TEA, DIARY, TEA, TEA]


@pytest.mark.parametrize("takes", [0.02, 3.0])
def test_counting_takes_its_share_of_the_time_however_many_are_to_be_counted(
    world: World, takes: float
) -> None:
    store = Counting(takes)
    vitals, reaches = store.vitals(world), [Access(scopes=(f"/{number}",)) for number in range(20)]
    for event_number in range(2_000):
        vitals.refresh(reaches, event_number)
        store.now += 1.0
    spent = takes * len(store.asked)
    assert spent <= SHARE * store.now + AT_ONCE_SECONDS + takes
    assert spent >= 0.9 * SHARE * store.now
    rounds = [store.asked[start : start + 20] for start in range(0, len(store.asked), 20)]
    assert all(one == reaches[: len(one)] for one in rounds)  # the turn of each comes before the next of any


def test_numbers_for_which_there_was_no_time_stay_what_they_were(world: World) -> None:
    store = Counting(takes=3.0)
    vitals = store.vitals(world)
    vitals.refresh([TEA, DIARY], 1)
    assert (bool(vitals.of(TEA)), vitals.of(DIARY)) == (True, {})
    store.now += 2 * 3.0 / SHARE
    vitals.refresh([TEA, DIARY], 2)
    assert store.asked == [TEA, DIARY]
    assert vitals.of(TEA)["memory_count"] == 0
