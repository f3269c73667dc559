"""Those who listen to live events over the network: who they are, what reaches them, when they have to go.

Nobody waits for another here: who did what is told only puts it down, and telling it, asking whether somebody
may still listen, and counting how it is going each have a task or a thread of their own.
"""

import asyncio
import logging
import threading
from collections import Counter, deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager

import anyio
from anyio.to_thread import run_sync

from vestige.core.errors import StoreError
from vestige.core.events import Happening
from vestige.core.models import Access
from vestige.transports.http.auth.credentials import Identity
from vestige.transports.http.context import Desk
from vestige.transports.http.events.channels import Channel, Ending, Listener, as_text
from vestige.transports.http.events.heartbeat import Vitals

logger = logging.getLogger(__name__)

AT_ONCE = 200
"""Reaches looked at in one turn of the event loop, which has others to serve."""
RECHECK_SECONDS = 2.5
"""How often it is seen whether listeners may still listen."""
BEAT_SECONDS = 5.0
"""How often they hear how it is going."""
COUNT_SECONDS = 1.0
"""How often it is looked whether what they hear then has to be counted again."""

LOCKED_OUT = Ending(code=4401, reason="The key was revoked or has expired, or the login is over.")
STOPPING = Ending(code=1001, reason="The server stops.")


class Listeners:
    """All who listen. It hears the bus while there are any, on whatever thread, and hands on to the loop."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._most = desk.settings.server.max_listeners
        self._listeners: set[Listener] = set()
        self._by_key: Counter[str] = Counter()
        self._channels: dict[Access, Channel] = {}
        self._joining = anyio.Lock()
        self._following = ExitStack()
        self._follows = False
        self._arriving = threading.Lock()
        self._arrived: deque[Happening] = deque()
        self._arrival = anyio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._events = self._compared = 0
        self._began = desk.monotonic()
        self._vitals = Vitals(desk.app.engine, desk.monotonic)
        # Threads of their own: nobody is locked out later because somebody counts, or works long.
        self._rechecking, self._counting = anyio.CapacityLimiter(1), anyio.CapacityLimiter(1)

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        """Whether nobody else may listen now."""
        return len(self._listeners) >= self._most or self._desk.stopping.is_set()

    def full_for(self, key_id: str) -> bool:
        """Whether nobody else may listen with this key now: it has half of all places. Where no keys are
        needed, who comes without has no such limit."""
        return key_id != "" and self._by_key[key_id] >= max(1, self._most // 2)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve listeners for as long as the block runs."""
        self._loop, self._began = asyncio.get_running_loop(), self._desk.monotonic()
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
        self, access: Access, identity: Identity, recheck: Callable[[], bool]
    ) -> AsyncIterator[Listener]:
        """Listen for as long as the block runs, to what lies within this access."""
        # Before anything is waited for: whoever asks from now on whether there is a place knows of this one.
        listener = self._add(access, identity, recheck)
        try:
            await self._follow()
            yield listener
        finally:
            self._leave(listener)

    def _add(self, access: Access, identity: Identity, recheck: Callable[[], bool]) -> Listener:
        channel = self._channels.setdefault(access, Channel(access))
        listener = Listener(channel, identity, recheck)
        self._listeners.add(listener)
        self._by_key[identity.key_id] += 1
        channel.listeners += 1
        return listener

    def _leave(self, listener: Listener) -> None:
        channel, key_id = listener.channel, listener.identity.key_id
        self._listeners.discard(listener)
        self._by_key[key_id] -= 1
        if not self._by_key[key_id]:
            del self._by_key[key_id]
        channel.listeners -= 1
        if not channel.listeners:
            del self._channels[channel.access]
        if not self._listeners:
            self._following.close()
            self._follows = False
            with self._arriving:
                self._arrived.clear()

    async def _follow(self) -> None:
        async with self._joining:
            if not self._follows:  # in a thread: whoever begins to follow looks into the store
                await run_sync(self._begin_to_follow, limiter=anyio.CapacityLimiter(1))

    def _begin_to_follow(self) -> None:
        self._following.enter_context(self._desk.app.engine.events.listening(self._hear, everywhere=True))
        self._follows = True

    # -- events ------------------------------------------------------------------------------------------

    def _hear(self, happening: Happening) -> None:
        """On the thread of whoever did it: it only puts the event down."""
        with self._arriving:
            self._arrived.append(happening)
            first = len(self._arrived) == 1
        if first and self._loop is not None:
            self._loop.call_soon_threadsafe(lambda: self._arrival.set())

    async def _next(self) -> Happening:
        """What happened first of what was not handed out yet."""
        while True:
            with self._arriving:
                if self._arrived:
                    return self._arrived.popleft()
            self._arrival = anyio.Event()  # who puts something down meanwhile lets the loop set this one
            await self._arrival.wait()

    async def _spread(self) -> None:
        """On the event loop: hand out what has arrived, a part at a time."""
        while True:
            happening = await self._next()
            self._events += 1
            try:
                await self._hand_out(happening)
            except Exception:  # a bug here must not end the server
                logger.exception("Nobody was told of %s", type(happening).__name__)

    async def _hand_out(self, happening: Happening) -> None:
        text = ""
        for channel in list(self._channels.values()):
            self._compared += 1
            if not self._compared % AT_ONCE:
                await anyio.sleep(0)
            if happening.within(channel.access):
                if not text:
                    message = happening.message()
                    text = as_text(message["type"], message["data"])
                channel.tell(text)

    # -- as time goes by ---------------------------------------------------------------------------------

    async def recheck(self) -> None:
        """End the streams of those who may not listen any more."""
        for listener in await run_sync(_unwelcome, list(self._listeners), limiter=self._rechecking):
            listener.end(LOCKED_OUT)

    async def count(self) -> None:
        """Count again how it is going, as far as there is time for that."""
        await run_sync(self._vitals.refresh, list(self._channels), self._events, limiter=self._counting)

    async def beat(self) -> None:
        """Tell everybody how it is going, as it was counted last: nobody waits for the numbers."""
        uptime = {"uptime_secs": round(self._desk.monotonic() - self._began, 1)}
        for number, channel in enumerate(list(self._channels.values()), 1):
            channel.beat(as_text("Heartbeat", {**uptime, **self._vitals.of(channel.access)}))
            if not number % AT_ONCE:
                await anyio.sleep(0)

    async def _say_goodbye(self) -> None:
        await self._desk.stopping.wait()
        for listener in list(self._listeners):
            listener.end(STOPPING)


def _unwelcome(listeners: list[Listener]) -> list[Listener]:
    """Who of them may not listen any more. Each credential is looked at once, however many came with it."""
    asked = {listener.identity: listener.recheck for listener in listeners}
    welcome = {identity for identity, recheck in asked.items() if recheck()}
    return [listener for listener in listeners if listener.identity not in welcome]


async def _every(seconds: float, do: Callable[[], Awaitable[None]]) -> None:
    while True:
        await anyio.sleep(seconds)
        try:
            await do()
        except StoreError as exc:  # without the store nothing happens that anybody could hear of
            logger.info("Listeners are not looked after now: %s", exc.message)
        except Exception:  # a bug here must not end the server
            logger.exception("Listeners are not looked after now")
