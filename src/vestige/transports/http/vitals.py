"""How a memory is doing, for those who watch: counted once for all who reach the same, and not too often."""

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from vestige.engine.context import Engine
from vestige.models import Access

SHARE = 20
"""Counting again waits so many times as long as it took: watching a large memory costs little of one core."""
STALE_SECONDS = 60.0
"""How old the numbers may become although nothing happened: memories fade by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """Numbers, with when they were counted, how long that took, and what had happened by then."""

    numbers: dict[str, Any]
    at: float
    took: float
    events: int


class Vitals:
    """The numbers of each reach. Plain code that reads the store: one thread at a time calls it."""

    def __init__(self, engine: Engine, monotonic: Callable[[], float]) -> None:
        self._engine, self._monotonic = engine, monotonic
        self._counted: dict[Access, _Counted] = {}

    def of(self, access: Access, events: int) -> dict[str, Any]:
        """The numbers of what an access reaches, after so many events."""
        held = self._counted.get(access)
        if held is None or self._is_stale(held, events):
            held = self._counted[access] = self._count(access, events)
        return held.numbers

    def forget_others(self, watched: set[Access]) -> None:
        """Keep the numbers of those reaches only."""
        self._counted = {access: held for access, held in self._counted.items() if access in watched}

    def _is_stale(self, held: _Counted, events: int) -> bool:
        age = self._monotonic() - held.at
        return age >= SHARE * held.took and (events != held.events or age >= STALE_SECONDS)

    def _count(self, access: Access, events: int) -> _Counted:
        started = self._monotonic()
        stats = self._engine.store.stats(access=access, now=self._engine.now())
        numbers = {
            "memory_count": stats.memories,
            "avg_retention": round(fmean(stats.retentions), 4) if stats.retentions else 0.0,
            "suppressed_count": stats.suppressed,
        }
        now = self._monotonic()
        return _Counted(numbers=numbers, at=now, took=now - started, events=events)
