"""What waits for those who listen to live events.

Who reaches the same is told the same: events are kept once for each reach, the latest of them, and every
listener has its place among them. One that falls too far behind has missed the oldest and is told how many;
nobody waits for it.
"""

import json
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import anyio

from vestige.core.models import Access
from vestige.transports.http.auth.credentials import Identity

MOST_WAITING = 1_000
"""Events kept for a listener that does not keep up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """Why a stream ends, with the code of a WebSocket for that."""

    code: int
    reason: str


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
        """Add an event."""
        self._latest.append(event)
        self.told += 1
        self._changed.set()

    def beat(self, heartbeat: str) -> None:
        """Let all hear how it is going, whatever else waits for them."""
        self.heartbeat = heartbeat
        self.beats += 1
        self._changed.set()

    async def news(self) -> None:
        """Wait for what comes after all that there is now."""
        if self._changed.is_set():
            self._changed = anyio.Event()
        await self._changed.wait()


class Listener:
    """Somebody who listens, from now on. `recheck` says whether he still may, and the same for whoever came
    in as the same."""

    def __init__(self, channel: Channel, identity: Identity, recheck: Callable[[], bool]) -> None:
        self.channel, self.identity, self.recheck = channel, identity, recheck
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
