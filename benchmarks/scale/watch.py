"""One search taken apart while it runs: what its embedding, its calls to the store and the rest cost."""

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from benchmarks.process import cpu_seconds
from vestige.core.models import Filter
from vestige.embed.background import EmbedderSource
from vestige.embed.protocol import Embedder
from vestige.engine.context import Call, Engine
from vestige.engine.recall.recall import RecallQuery, recall
from vestige.store.contract.store import MemoryStore

LIMIT = 10
EMBEDDING, GATHER, OTHER, RANKING = "embedding", "gather", "other calls", "ranking"
PARTS = (EMBEDDING, GATHER, OTHER, RANKING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds that something took. CPU time is of this process and of the database's processes for it;
    `there` is what those had of it."""

    wall: float = 0.0
    cpu: float = 0.0
    there: float = 0.0

    def __add__(self, other: "Cost") -> "Cost":
        return Cost(wall=self.wall + other.wall, cpu=self.cpu + other.cpu, there=self.there + other.there)

    def __sub__(self, other: "Cost") -> "Cost":
        return Cost(wall=self.wall - other.wall, cpu=self.cpu - other.cpu, there=self.there - other.there)


@dataclass(slots=True)
class Meter:
    """Reads the clocks. `backends` are other processes that work for this one."""

    backends: Sequence[int] = ()

    def read(self) -> Cost:
        there = sum(cpu_seconds(pid) for pid in self.backends)
        return Cost(wall=time.perf_counter(), cpu=time.process_time() + there, there=there)

    def cost(self, work: Callable[[], object]) -> Cost:
        """What a piece of work takes."""
        began = self.read()
        work()
        return self.read() - began


@dataclass(slots=True)
class Watched:
    """Anything whose methods are called, with what each of them has cost so far."""

    _inner: object
    _meter: Meter
    spent: defaultdict[str, Cost] = field(default_factory=lambda: defaultdict(Cost))

    def __getattr__(self, name: str) -> Any:  # Any: whatever the watched thing has under this name
        found = getattr(self._inner, name)
        return partial(self._timed, name, found) if callable(found) else found

    def _timed(self, name: str, method: Callable[..., object], *args: object, **named: object) -> object:
        began = self._meter.read()
        try:
            return method(*args, **named)
        finally:
            self.spent[name] += self._meter.read() - began


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    """What the parts of one search cost."""

    parts: dict[str, Cost]

    @property
    def database(self) -> Cost:
        """All that the store did."""
        return self.parts[GATHER] + self.parts[OTHER]

    @property
    def whole(self) -> Cost:
        return sum(self.parts.values(), Cost())


@dataclass(slots=True)
class Searcher:
    """The read path of an engine, watched; it leaves no trace of what it finds."""

    engine: Engine
    embedder: Embedder
    meter: Meter

    def search(self, text: str, where: Filter) -> Parted:
        """Search once."""
        store, embedder = Watched(self.engine.store, self.meter), Watched(self.embedder, self.meter)
        # Each passes everything on, so it is what it watches; no type checker can see that.
        watched = replace(
            self.engine, store=cast(MemoryStore, store), embedders=EmbedderSource.of(cast(Embedder, embedder))
        )
        query = RecallQuery(text=text, where=where, limit=LIMIT)
        call = Call(engine=watched)
        whole = self.meter.cost(lambda: recall(call, query))
        embedding = sum(embedder.spent.values(), Cost())
        gather = store.spent.pop("gather")
        other = sum(store.spent.values(), Cost())
        ranking = whole - embedding - gather - other
        return Parted(parts={EMBEDDING: embedding, GATHER: gather, OTHER: other, RANKING: ranking})


def milliseconds(costs: Sequence[Cost], *, cpu: bool = False) -> NDArray[np.float64]:
    """The wall times of some costs, or their CPU times."""
    return 1000 * np.array([cost.cpu if cpu else cost.wall for cost in costs])
