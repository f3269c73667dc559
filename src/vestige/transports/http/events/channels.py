"""Queues of live events for the clients that listen to them. Clients with the same access get the same
events: the latest ones are kept once for each access, and every listener has its position among them. A
listener that falls too far behind loses the oldest and is sent their number. Nothing waits for it."""

import json
from collections import deque
from collections.abc import Callable
from typing import Any

import anyio

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Access
from vestige.transports.http.auth.credentials import Identity

MOST_WAITING = 1_000
"""Events kept for a listener that falls behind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a stream ends, with the close code for WebSockets."""

    code: int
    reason: str


def as_text(kind: str, data: dict[str, Any]) -> str:
    # Not orjson: a query may hold a lone surrogate, which only an escape can carry.
    return json.dumps({"type": kind, "data": data}, separators=(",", ":"))


class Channel:
    """The events that listeners with one access are sent, with their callers (`actors`) or without. Used on
    the event loop's thread."""

    def __init__(self, access: Access, *, actors: bool) -> None:
        self.access, self.actors = access, actors
        self.listeners = 0
        self.sent = self.beats = 0
        self.heartbeat = ""
        self._latest: deque[str] = deque(maxlen=MOST_WAITING)
        self._changed = anyio.Event()

    @property
    def oldest(self) -> int:
        """The number of the oldest event that is kept."""
        return self.sent - len(self._latest)

    def event(self, number: int) -> str:
        return self._latest[number - self.oldest]

    def add(self, event: str) -> None:
        self._latest.append(event)
        self.sent += 1
        self._changed.set()

    def beat(self, heartbeat: str) -> None:
        """Send a heartbeat to all, before the events that wait."""
        self.heartbeat = heartbeat
        self.beats += 1
        self._changed.set()

    async def news(self) -> None:
        """Wait for the next event or heartbeat."""
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()


class Listener:
    """A client that listens from now on. `recheck` returns whether its identity is still valid; it is the
    same for all listeners with that identity."""

    def __init__(self, channel: Channel, identity: Identity, recheck: Callable[[], bool]) -> None:
        self.channel, self.identity, self.recheck = channel, identity, recheck
        self._heard, self._beats = channel.sent, channel.beats
        self._ending: Ending | None = None
        self._ended = anyio.Event()

    async def next(self) -> str:
        """The next message: a note of lost events, a heartbeat, or the oldest event that waits."""
        channel = self.channel
        while True:
            missed = channel.oldest - self._heard
            if missed > 0:
                self._heard = channel.oldest
                return as_text("Missed", {"count": missed})
            if self._beats != channel.beats:
                self._beats = channel.beats
                return channel.heartbeat
            if self._heard < channel.sent:
                self._heard += 1
                return channel.event(self._heard - 1)
            await channel.news()

    def end(self, ending: Ending) -> None:
        """End the stream; events that wait are not sent."""
        self._ending = self._ending or ending
        self._ended.set()

    async def ended(self) -> Ending:
        """Wait for the end of the stream; why it ended."""
        await self._ended.wait()
        assert self._ending is not None
        return self._ending
