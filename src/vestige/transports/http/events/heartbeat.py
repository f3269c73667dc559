"""How a memory is doing, for those who watch: counted once for all who reach the same, and not too often."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf
from statistics import fmean
from typing import Any

from vestige.core.models import Access
from vestige.engine.context import Engine

SHARE = 0.05
"""Of the time that passes, how much is spent on counting, however many watch, and whatever they reach."""
AT_ONCE_SECONDS = 0.25
"""What is saved up of it at most, while there is nothing to count."""
STALE_SECONDS = 60.0
"""How old the numbers may become although nothing happened: memories fade by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Numbers, with when they were counted, and how many events there had been by then."""

    numbers: dict[str, Any]
    at: float
    events: int


class Vitals:
    """The numbers of each reach. `refresh` reads the store: one thread at a time calls it."""

    def __init__(self, engine: Engine, monotonic: Callable[[], float]) -> None:
        self._engine, self._monotonic = engine, monotonic
        self._counted: dict[Access, _Counted] = {}
        self._may_take, self._looked = AT_ONCE_SECONDS, monotonic()

    def of(self, access: Access) -> dict[str, Any]:
        """The numbers of what an access reaches as they were counted last; empty before the first time."""
        held = self._counted.get(access)
        return held.numbers if held else {}

    def refresh(self, watched: Collection[Access], events: int) -> None:
        """Count again for these reaches, after so many events: what was counted longest ago comes first, what
        there is no time for now comes later. Others are forgotten."""
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
        finally:  # what fails takes time too
            self._may_take -= self._monotonic() - started
        numbers = {
            "memory_count": stats.memories,
            "avg_retention": round(fmean(stats.retentions), 4) if stats.retentions else 0.0,
            "suppressed_count": stats.suppressed,
        }
        self._counted[access] = _Counted(numbers=numbers, at=started, events=events)
