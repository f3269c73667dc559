"""Those who listen to live events over the network, and what waits for each of them.

Who reaches the same is told the same: events are kept once for each reach, the latest of them, and every
listener has its place among them. One that falls too far behind has missed the oldest and is told how many;
nobody waits for it, neither the others nor who did what is told.
"""

import asyncio
import json
import logging
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from typing import Any

import anyio
from anyio.to_thread import run_sync

from vestige.errors import StoreError
from vestige.events import Happening
from vestige.models import Access
from vestige.transports.http.desk import Desk
from vestige.transports.http.vitals import Vitals

logger = logging.getLogger(__name__)

MOST_WAITING = 1_000
"""Events kept for a listener that does not keep up."""
AT_ONCE = 200
"""Events handed out in one turn of the event loop, which has others to serve."""
RECHECK_SECONDS = 2.5
"""How often it is seen whether listeners may still listen; at every second time they hear how it is going."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a stream ends, with the code of a WebSocket for that."""

    code: int
    reason: str


LOCKED_OUT = Ending(code=4401, reason="The key was revoked or has expired.")
STOPPING = Ending(code=1001, reason="The server stops.")


def as_text(kind: str, data: dict[str, Any]) -> str:
    """A message as listeners get it."""
    # Not orjson: a query may hold half a character, which only an escape can carry.
    return json.dumps({"type": kind, "data": data}, separators=(",", ":"))


class Channel:
    """What those are told who reach the same. Used on the event loop's thread."""

    def __init__(self, access: Access) -> None:
        self.access = access
        self.listeners = 0
        self.told = self.beats = 0
        self.heartbeat = ""
        self._latest: deque[str] = deque(maxlen=MOST_WAITING)
        self._changed = anyio.Event()

    @property
    def oldest(self) -> int:
        """The number of the oldest event that is kept."""
        return self.told - len(self._latest)

    def event(self, number: int) -> str:
        """One of those that are kept."""
        return self._latest[number - self.oldest]

    def tell(self, event: str) -> None:
        """Add an event; `wake` those who wait after the last one."""
        self._latest.append(event)
        self.told += 1

    def beat(self, heartbeat: str) -> None:
        """Let all hear how it is going, whatever else waits for them."""
        self.heartbeat = heartbeat
        self.beats += 1
        self.wake()

    def wake(self) -> None:
        """Let those go on who wait for news."""
        self._changed.set()
        self._changed = anyio.Event()

    async def news(self) -> None:
        """Wait for some."""
        await self._changed.wait()


class Listener:
    """Somebody who listens, from now on. `recheck` says whether he still may."""

    def __init__(self, channel: Channel, recheck: Callable[[], bool]) -> None:
        self.channel, self.recheck = channel, recheck
        self._heard, self._beats = channel.told, channel.beats
        self._ending: Ending | None = None
        self._ended = anyio.Event()

    async def next(self) -> str:
        """What to tell next: that something was missed, how it is going, or the oldest event that waits."""
        channel = self.channel
        while True:
            missed = channel.oldest - self._heard
            if missed > 0:
                self._heard = channel.oldest
                return as_text("Missed", {"count": missed})
            if self._beats != channel.beats:
                self._beats = channel.beats
                return channel.heartbeat
            if self._heard < channel.told:
                self._heard += 1
                return channel.event(self._heard - 1)
            await channel.news()

    def end(self, ending: Ending) -> None:
        """Have the stream end, whatever still waits."""
        self._ending = self._ending or ending
        self._ended.set()

    async def ended(self) -> Ending:
        """Why it ends, as soon as it does."""
        await self._ended.wait()
        assert self._ending is not None
        return self._ending


class Listeners:
    """All who listen. It hears the bus while there are any, on whatever thread, and hands on to the loop."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._most = desk.settings.server.max_listeners
        self._listeners: set[Listener] = set()
        self._channels: dict[Access, Channel] = {}
        self._joining = anyio.Lock()
        self._following = ExitStack()
        self._arriving = threading.Lock()
        self._arrived: deque[Happening] = deque()
        self._events = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._began = desk.monotonic()
        self._vitals = Vitals(desk.app.engine, desk.monotonic)
        # One of its own: a recheck does not wait for the long work of others.
        self._thread = anyio.CapacityLimiter(1)

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        """Whether nobody else may listen now."""
        return len(self._listeners) >= self._most or self._desk.stopping.is_set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve listeners for as long as the block runs."""
        self._loop, self._began = asyncio.get_running_loop(), self._desk.monotonic()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._watch)
            tasks.start_soon(self._say_goodbye)
            try:
                yield
            finally:
                self._following.close()
                tasks.cancel_scope.cancel()

    @asynccontextmanager
    async def joined(self, access: Access, recheck: Callable[[], bool]) -> AsyncIterator[Listener]:
        """Listen for as long as the block runs, to what lies within this access."""
        listener = await self._join(access, recheck)
        try:
            yield listener
        finally:
            self._leave(listener)

    async def _join(self, access: Access, recheck: Callable[[], bool]) -> Listener:
        async with self._joining:
            channel = self._channels.setdefault(access, Channel(access))
            listener = Listener(channel, recheck)
            first = not self._listeners
            self._listeners.add(listener)
            channel.listeners += 1
            try:
                if first:  # in a thread: whoever begins to follow looks into the store
                    await run_sync(self._follow, limiter=self._thread)
            except BaseException:
                self._leave(listener)
                raise
            return listener

    def _leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)
        listener.channel.listeners -= 1
        if not listener.channel.listeners:
            del self._channels[listener.channel.access]
        if not self._listeners:
            self._following.close()

    def _follow(self) -> None:
        self._following.enter_context(self._desk.app.engine.events.listening(self._hear, everywhere=True))

    # -- events ------------------------------------------------------------------------------------------

    def _hear(self, happening: Happening) -> None:
        """On the thread of whoever did it: it only puts the event down."""
        with self._arriving:
            self._arrived.append(happening)
            waiting = len(self._arrived) > 1
        if not waiting and self._loop is not None:
            self._loop.call_soon_threadsafe(self._spread)

    def _spread(self) -> None:
        """On the event loop: hand out what has arrived, a part at a time."""
        with self._arriving:
            batch = [self._arrived.popleft() for _ in range(min(AT_ONCE, len(self._arrived)))]
            more = bool(self._arrived)
        self._events += len(batch)
        for happening in batch:
            within = [one for one in self._channels.values() if happening.within(one.access)]
            if within:
                message = happening.message()
                text = as_text(message["type"], message["data"])
                for channel in within:
                    channel.tell(text)
        for channel in self._channels.values():
            channel.wake()
        if more and self._loop is not None:
            self._loop.call_soon(self._spread)

    # -- as time goes by ---------------------------------------------------------------------------------

    async def _watch(self) -> None:
        for beating in cycle((False, True)):
            await anyio.sleep(RECHECK_SECONDS)
            try:
                await self.recheck()
                if beating:
                    await self.beat()
            except StoreError as exc:  # without the store nothing happens that anybody could hear of
                logger.info("Listeners are not looked after now: %s", exc.message)
            except Exception:  # a bug here must not end the server
                logger.exception("Listeners are not looked after now")

    async def recheck(self) -> None:
        """End the streams of those who may not listen any more."""
        listeners = list(self._listeners)
        allowed = await run_sync(_allowed, listeners, limiter=self._thread)
        for listener in listeners:
            if listener not in allowed:
                listener.end(LOCKED_OUT)

    async def beat(self) -> None:
        """Tell everybody how it is going."""
        self._vitals.forget_others(set(self._channels))
        for channel in list(self._channels.values()):
            numbers = await run_sync(self._vitals.of, channel.access, self._events, limiter=self._thread)
            uptime = round(self._desk.monotonic() - self._began, 1)
            channel.beat(as_text("Heartbeat", {"uptime_secs": uptime, **numbers}))

    async def _say_goodbye(self) -> None:
        await self._desk.stopping.wait()
        for listener in list(self._listeners):
            listener.end(STOPPING)


def _allowed(listeners: list[Listener]) -> set[Listener]:
    return {listener for listener in listeners if listener.recheck()}
