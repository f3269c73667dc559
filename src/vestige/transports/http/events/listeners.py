"""All clients that listen to live events: their limit, what they are sent, and when their streams end.
Nothing here blocks anything else: the thread that causes an event only queues it. Sending, rechecking keys
and counting for the heartbeat have tasks or threads of their own."""

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import ExitStack, asynccontextmanager
from math import inf
from typing import Any

import anyio
from anyio.to_thread import run_sync

from vestige.core.errors import StoreError
from vestige.core.events import Event
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Access
from vestige.engine.context import Engine
from vestige.transports.http.auth.credentials import Identity
from vestige.transports.http.context import ServerContext
from vestige.transports.http.events.channels import Channel, Ending, Listener, as_text
from vestige.transports.http.workers.group import held_elsewhere

logger = logging.getLogger(__name__)


# -- The numbers of the heartbeat: counted once for all listeners with the same access, at limited cost

SHARE = 0.05
"""The share of time spent on counting, whatever the number of listeners and accesses."""
AT_ONCE_SECONDS = 0.25
"""How much of that time can be saved up while there is nothing to count."""
STALE_SECONDS = 60.0
"""How old the numbers may get when there are no events: memories fade by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Numbers, the time they were counted, and the number of events until then."""

    numbers: dict[str, Any]
    at: float
    events: int


class StatusCounts:
    """The latest numbers of each access. `refresh` reads the store; one thread at a time calls it."""

    def __init__(self, engine: Engine, monotonic: Callable[[], float]) -> None:
        self._engine, self._monotonic = engine, monotonic
        self._counted: dict[Access, _Counted] = {}
        self._may_take, self._looked = AT_ONCE_SECONDS, monotonic()

    def of(self, access: Access) -> dict[str, Any]:
        """The latest numbers of an access; empty before the first count."""
        held = self._counted.get(access)
        return held.numbers if held else {}

    def refresh(self, watched: Collection[Access], events: int) -> None:
        """Count again for these accesses, the oldest numbers first, as far as time allows. `events` is the
        number of events so far. Other accesses are dropped."""
        now = self._monotonic()
        self._may_take = min(AT_ONCE_SECONDS, self._may_take + SHARE * (now - self._looked))
        self._looked = now
        self._counted = {one: self._counted[one] for one in watched if one in self._counted}
        for access in sorted(watched, key=self._counted_at):
            if self._may_take <= 0:
                break
            if self._is_stale(access, events, now):
                self._count(access, events)

    def _counted_at(self, access: Access) -> float:
        held = self._counted.get(access)
        return held.at if held else -inf

    def _is_stale(self, access: Access, events: int, now: float) -> bool:
        held = self._counted.get(access)
        return held is None or events != held.events or now - held.at >= STALE_SECONDS

    def _count(self, access: Access, events: int) -> None:
        started = self._monotonic()
        try:
            stats = self._engine.store.stats(access=access, now=self._engine.now())
            kept = self._engine.store.levels(access=access, now=self._engine.now()).retentions
        finally:  # a failed count takes time, too
            self._may_take -= self._monotonic() - started
        numbers = {
            "memory_count": stats.memories,
            "avg_retention": round(float(kept.mean()), 4) if kept.size else 0.0,
            "suppressed_count": stats.suppressed,
        }
        self._counted[access] = _Counted(numbers=numbers, at=started, events=events)


AT_ONCE = 200
"""Channels handled in one turn of the event loop, before other tasks have theirs."""
RECHECK_SECONDS = 2.5
"""How often the keys of listeners are checked again."""
BEAT_SECONDS = 5.0
"""How often listeners are sent a heartbeat."""
COUNT_SECONDS = 1.0
"""How often the numbers of the heartbeat are checked for age."""

LOCKED_OUT = Ending(code=4401, reason="The key was revoked or has expired, or the login has ended.")
STOPPING = Ending(code=1001, reason="The server is stopping.")


class Listeners:
    """The set of listeners. While there are any it subscribes to the event bus, on any thread, and passes
    events to the loop."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._most = context.settings.server.max_listeners
        self._listeners: set[Listener] = set()
        self._by_key: Counter[str] = Counter()
        self._elsewhere = held_elsewhere(context.group, "listeners")
        self._channels: dict[tuple[Access, bool], Channel] = {}
        self._joining = anyio.Lock()
        self._following = ExitStack()
        self._follows = False
        self._arriving = threading.Lock()
        self._arrived: deque[Event] = deque()
        self._arrival = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events = self._compared = 0
        self._began = context.monotonic()
        self._status = StatusCounts(context.app.engine, context.monotonic)
        # Threads of their own: a revoked key is noticed in time while something counts or runs long.
        self._rechecking, self._counting = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        """Whether no further listener is accepted now."""
        return len(self._listeners) + self._elsewhere.of() >= self._most or self._context.stopping.is_set()

    def full_for(self, key_id: str) -> bool:
        """Whether this key has half of all listeners, its limit. Without authentication there is no such
        limit."""
        half = max(1, self._most // 2)
        return key_id != "" and self._by_key[key_id] + self._elsewhere.of(key_id) >= half

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve listeners for as long as the block runs."""
        self._loop, self._began = asyncio.get_running_loop(), self._context.monotonic()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._spread)
            tasks.start_soon(_every, RECHECK_SECONDS, self.recheck)
            tasks.start_soon(_every, COUNT_SECONDS, self.count)
            tasks.start_soon(_every, BEAT_SECONDS, self.beat)
            tasks.start_soon(self._say_goodbye)
            try:
                yield
            finally:
                self._following.close()
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def joined(
        self, access: Access, identity: Identity, recheck: Callable[[], bool], *, actors: bool = False
    ) -> AsyncIterator[Listener]:
        """Listen to the events of this access while the block runs; with `actors`, it also
        learns of which caller each one is."""
        # Before the first await: a concurrent check for the limit must count this one.
        listener = self._add(Channel(access, actors=actors), identity, recheck)
        try:
            await self._follow()
            yield listener
        finally:
            self._leave(listener)

    def _add(self, new: Channel, identity: Identity, recheck: Callable[[], bool]) -> Listener:
        channel = self._channels.setdefault((new.access, new.actors), new)
        listener = Listener(channel, identity, recheck)
        self._listeners.add(listener)
        self._by_key[identity.key_id] += 1
        channel.listeners += 1
        self._elsewhere.publish(identity.key_id, self._by_key[identity.key_id], len(self._listeners))
        return listener

    def _leave(self, listener: Listener) -> None:
        channel, key_id = listener.channel, listener.identity.key_id
        self._listeners.discard(listener)
        self._by_key[key_id] -= 1
        self._elsewhere.publish(key_id, self._by_key[key_id], len(self._listeners))
        if not self._by_key[key_id]:
            del self._by_key[key_id]
        channel.listeners -= 1
        if not channel.listeners:
            del self._channels[channel.access, channel.actors]
        if not self._listeners:
            self._following.close()
            self._follows = False
            with self._arriving:
                self._arrived.clear()

    async def _follow(self) -> None:
        async with self._joining:
            if not self._follows:  # in a thread, because subscribing reads the store
                await run_sync(self._begin_to_follow, limiter=anyio.CapacityLimiter(1))

    def _begin_to_follow(self) -> None:
        self._following.enter_context(self._context.app.engine.events.listening(self._hear, everywhere=True))
        self._follows = True

    def _hear(self, event: Event) -> None:
        """Queue an event. Called on the thread that caused it."""
        with self._arriving:
            self._arrived.append(event)
            first = len(self._arrived) == 1
        if first and self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: self._arrival.set())

    async def _next(self) -> Event:
        """Wait for the oldest event that has not been sent."""
        while True:
            with self._arriving:
                if self._arrived:
                    return self._arrived.popleft()
            self._arrival = anyio.Event()  # `_hear` sets this one, through the loop
            await self._arrival.wait()

    async def _spread(self) -> None:
        """Send queued events to the channels, on the event loop."""
        while True:
            event = await self._next()
            self._events += 1
            try:
                await self._hand_out(event)
            except Exception:  # a bug here must not end the server
                logger.exception("The event %s was not sent to listeners", type(event).__name__)

    async def _hand_out(self, event: Event) -> None:
        texts: dict[bool, str] = {}
        for channel in list(self._channels.values()):
            self._compared += 1
            if not self._compared % AT_ONCE:
                await anyio.sleep(0)
            if event.within(channel.access):
                if channel.actors not in texts:
                    message = event.message(actor=channel.actors)
                    texts[channel.actors] = as_text(message["type"], message["data"])
                channel.add(texts[channel.actors])

    async def recheck(self) -> None:
        """End the streams of listeners whose key is not valid any more."""
        for listener in await run_sync(_invalid, list(self._listeners), limiter=self._rechecking):
            listener.end(LOCKED_OUT)

    async def count(self) -> None:
        """Refresh the numbers of the heartbeat, as far as time allows."""
        watched = list(dict.fromkeys(access for access, _ in self._channels))
        await run_sync(self._status.refresh, watched, self._events, limiter=self._counting)

    async def beat(self) -> None:
        """Send a heartbeat with the latest numbers to all."""
        uptime = {"uptime_secs": round(self._context.monotonic() - self._began, 1)}
        for number, channel in enumerate(list(self._channels.values()), 1):
            channel.beat(as_text("Heartbeat", {**uptime, **self._status.of(channel.access)}))
            if not number % AT_ONCE:
                await anyio.sleep(0)

    async def _say_goodbye(self) -> None:
        await self._context.stopping.wait()
        for listener in list(self._listeners):
            listener.end(STOPPING)


def _invalid(listeners: list[Listener]) -> list[Listener]:
    """The listeners whose identity is not valid any more. Each identity is checked once."""
    asked = {listener.identity: listener.recheck for listener in listeners}
    valid = {identity for identity, recheck in asked.items() if recheck()}
    return [listener for listener in listeners if listener.identity not in valid]


async def _every(seconds: float, do: Callable[[], Awaitable[None]]) -> None:
    while True:
        await anyio.sleep(seconds)
        try:
            await do()
        except StoreError as exc:  # without the store there are no events either
            logger.info(
                "Keys of listeners or numbers of the heartbeat could not be refreshed: %s", exc.message
            )
        except Exception:  # a bug here must not end the server
            logger.exception("Keys of listeners or numbers of the heartbeat could not be refreshed")
