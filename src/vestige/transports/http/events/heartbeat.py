"""The numbers of the heartbeat: counted once for all listeners with the same access, at limited cost."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Any

from vestige.core.models import Access
from vestige.engine.context import Engine

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
        finally:  # a failed count takes time, too
            self._may_take -= self._monotonic() - started
        numbers = {
            "memory_count": stats.memories,
            "avg_retention": round(fmean(stats.retentions), 4) if stats.retentions else 0.0,
            "suppressed_count": stats.suppressed,
        }
        self._counted[access] = _Counted(numbers=numbers, at=started, events=events)
