"""What was measured, as tables, targets and plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.plot import bars
from benchmarks.report import Cell, Target
from benchmarks.scale.measure import FILTERS, FREE, Served, Timed
from benchmarks.scale.watch import EMBEDDING, GATHER, RANKING, Cost, Parted, milliseconds

JUDGED = 100_000
"""From this size on the targets hold."""
DATABASE_MS = 60.0
LEAST_RECALL = 0.98
MOST_BY_HAND = 1.5
MEGABYTE = 1_000_000

NOTES = (
    "A memory is two real sentences with other names and numbers in them. The model embeds the sentences and "
    "the questions; the vector of a memory is the normalised sum of its sentences' vectors with a little "
    "noise, its token bits are theirs. The settings tell how near that is to the model's own vectors.",
    "Database is everything that the store does for one search, `gather` and all other calls; ranking is the "
    "rest of the search, without its embedding. Searches leave no trace.",
    "By hand are the statements of `gather` on a bare connection: the filter, frequencies and postings of "
    "the same terms, the nearest vectors, traits and token bits of the same candidates. Nothing is scored "
    "there, and nothing is cached. SQLite searches no vectors by SQL; a float32 product stands for that.",
    "CPU is of this process and of the database's processes for it.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Grown:
    """Everything about one store at one size."""

    store: str
    memories: int
    added_per_second: float
    settled_seconds: float
    timed: Mapping[str, Timed]
    recall: Mapping[str, float]
    served: Served
    disk: Mapping[str, int]

    def quantile(self, name: str, part: Callable[[Parted], Cost], share: int, *, cpu: bool = False) -> float:
        """Milliseconds of a part of the searches under a filter."""
        costs = [part(one) for one in self.timed[name].searches]
        return float(np.percentile(milliseconds(costs, cpu=cpu), share))

    def beside_hand(self, name: str, *, cpu: bool = False) -> float:
        """How many times as long `gather` takes as its statements do by hand, at the median."""
        gather = self.quantile(name, lambda one: one.parts[GATHER], 50, cpu=cpu)
        return gather / float(np.median(milliseconds(self.timed[name].by_hand, cpu=cpu)))


def database(one: Parted) -> Cost:
    """All that the store did."""
    return one.database


def tables(grown: Sequence[Grown], rates: Mapping[str, float]) -> dict[str, list[dict[str, Cell]]]:
    """The tables of the report."""
    made: dict[str, list[dict[str, Cell]]] = {
        "Search, wall ms": [_search(one, name) for one in grown for name in FILTERS],
        "Database part, CPU ms": [_processor(one, name) for one in grown for name in FILTERS],
        "Gather beside the same statements by hand, wall ms": [
            _beside(one, name) for one in grown for name in FILTERS
        ],
        "Dense recall@10 of gather": [
            {"store": one.store, "memories": one.memories, **one.recall} for one in grown
        ],
        "Growth exponent (slope of log p50 over log n)": _growth(grown),
        "Storing": [_storing(one) for one in grown],
        "Remembering through the engine, with the model": [
            {"store": store, "memories per s": rate} for store, rate in rates.items()
        ],
        "A server of the store": [_serving(one) for one in grown],
    }
    return made | _disk(grown)


def targets(grown: Sequence[Grown]) -> list[Target]:
    """What must hold from JUDGED memories on."""
    made = []
    for one in grown:
        if one.memories < JUDGED:
            continue
        for name in FILTERS:
            at = f"{one.store}, {one.memories:,}, {name}"
            p95 = one.quantile(name, database, 95)
            made.append(Target(name=f"{at}: database p95, ms", value=p95, limit=DATABASE_MS, at_least=False))
            made.append(
                Target(
                    name=f"{at}: dense recall@10", value=one.recall[name], limit=LEAST_RECALL, at_least=True
                )
            )
            ratio = one.beside_hand(name)
            made.append(
                Target(name=f"{at}: gather ÷ by hand", value=ratio, limit=MOST_BY_HAND, at_least=False)
            )
    return made


def plots(grown: Sequence[Grown]) -> dict[str, str]:
    """The parts of a search, and its database part under every filter, by size."""
    stores = list(dict.fromkeys(one.store for one in grown))
    sizes = list(dict.fromkeys(one.memories for one in grown))
    at = {(one.store, one.memories): one for one in grown}
    parts: dict[str, Callable[[Parted], Cost]] = {
        "embedding": lambda one: one.parts[EMBEDDING],
        "database": database,
        "ranking": lambda one: one.parts[RANKING],
    }
    groups = [f"{store}, {size:,}" for size in sizes for store in stores]
    order = [at[store, size] for size in sizes for store in stores]
    return {
        "search": bars(
            "A search, median ms, by part",
            groups,
            {name: [one.quantile(FREE, part, 50) for one in order] for name, part in parts.items()},
        ),
        "database": bars(
            "Database part of a search, p95 ms, by filter",
            groups,
            {name: [one.quantile(name, database, 95) for one in order] for name in FILTERS},
        ),
    }


def _search(one: Grown, name: str) -> dict[str, Cell]:
    row: dict[str, Cell] = {"store": one.store, "memories": one.memories, "filter": name}
    parts: dict[str, Callable[[Parted], Cost]] = {
        "embedding": lambda each: each.parts[EMBEDDING],
        "database": database,
        "ranking": lambda each: each.parts[RANKING],
        "whole": lambda each: each.whole,
    }
    for label, part in parts.items():
        row[f"{label} p50"] = one.quantile(name, part, 50)
        row[f"{label} p95"] = one.quantile(name, part, 95)
    return row


def _processor(one: Grown, name: str) -> dict[str, Cell]:
    searches = one.timed[name].searches
    return {
        "store": one.store,
        "memories": one.memories,
        "filter": name,
        "p50": one.quantile(name, database, 50, cpu=True),
        "p95": one.quantile(name, database, 95, cpu=True),
        "in the database's processes": 1000 * float(np.median([each.database.there for each in searches])),
    }


def _beside(one: Grown, name: str) -> dict[str, Cell]:
    hand = milliseconds(one.timed[name].by_hand)
    return {
        "store": one.store,
        "memories": one.memories,
        "filter": name,
        "gather p50": one.quantile(name, lambda each: each.parts[GATHER], 50),
        "gather p95": one.quantile(name, lambda each: each.parts[GATHER], 95),
        "by hand p50": float(np.percentile(hand, 50)),
        "by hand p95": float(np.percentile(hand, 95)),
        "ratio": one.beside_hand(name),
        "ratio, CPU": one.beside_hand(name, cpu=True),
    }


def _growth(grown: Sequence[Grown]) -> list[dict[str, Cell]]:
    """The exponent of the power that the database part and the whole search grow by; none for one size."""
    stores = list(dict.fromkeys(one.store for one in grown))
    rows: list[dict[str, Cell]] = []
    for store in stores:
        mine = [one for one in grown if one.store == store]
        if len(mine) < 2:
            continue
        for name in FILTERS:
            rows.append(
                {
                    "store": store,
                    "filter": name,
                    "database": _slope(mine, name, database),
                    "database, CPU": _slope(mine, name, database, cpu=True),
                    "whole search": _slope(mine, name, lambda each: each.whole),
                }
            )
    return rows


def _slope(grown: Sequence[Grown], name: str, part: Callable[[Parted], Cost], *, cpu: bool = False) -> float:
    sizes = np.log([one.memories for one in grown])
    times = np.log([one.quantile(name, part, 50, cpu=cpu) for one in grown])
    return float(np.polyfit(sizes, times, 1)[0])


def _storing(one: Grown) -> dict[str, Cell]:
    return {
        "store": one.store,
        "memories": one.memories,
        "written per s": one.added_per_second,
        "indexes afterwards, s": one.settled_seconds,
        "MB on disk": sum(one.disk.values()) / MEGABYTE if one.disk else None,
    }


def _serving(one: Grown) -> dict[str, Cell]:
    return {
        "store": one.store,
        "memories": one.memories,
        "start to first answer, s": one.served.first_seconds,
        f"server's {one.served.kind} MB": one.served.megabytes,
        f"database's {one.served.kind} MB": one.served.backends,
    }


def _disk(grown: Sequence[Grown]) -> dict[str, list[dict[str, Cell]]]:
    """A table per store, because they keep different things."""
    made: dict[str, list[dict[str, Cell]]] = {}
    for store in dict.fromkeys(one.store for one in grown):
        mine = [one for one in grown if one.store == store and one.disk]
        kinds = sorted({kind for one in mine for kind in one.disk})
        made[f"{store}: disk, bytes per memory"] = [
            {
                "memories": one.memories,
                **{kind: one.disk.get(kind, 0) / one.memories for kind in kinds},
                "all": sum(one.disk.values()) / one.memories,
            }
            for one in mine
        ]
    return made
