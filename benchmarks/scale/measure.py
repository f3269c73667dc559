"""One store at one size: searches taken apart, beside the statements by hand, and what is found."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import islice
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.client import Client, console_script
from benchmarks.engine import InProcess
from benchmarks.process import own_memory
from benchmarks.progress import track
from benchmarks.scale import recipe
from benchmarks.scale.backends import Backend, megabytes_of, opened
from benchmarks.scale.by_hand import PER_ARM, ByHand, Wanted
from benchmarks.scale.watch import LIMIT, Cost, Meter, Parted, Searcher
from vestige.cognition.query.analyse import Asked, analyse
from vestige.cognition.ranking.bm25 import considered
from vestige.core.candidates import NEARBY, CandidatePool
from vestige.core.models import EVERYTHING, Filter
from vestige.embed.protocol import Embedder
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore

T = TypeVar("T")
Vectors = NDArray[np.float32]

RUN = 10
"""Searches that one arm does in a row: long enough to have the caches to itself."""
SERVED = 50
FREE, BY_SCOPE, BY_TAG = "no filter", "1 % by scope", "1 % by tag"
FILTERS = (FREE, BY_SCOPE, BY_TAG)


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question as the read path sees it, with the memories that each filter lets it find."""

    number: int
    text: str
    asked: Asked
    vector: Vectors

    def where(self, name: str, now: datetime) -> Filter:
        """A filter, as `search` sets it."""
        place = self.number % recipe.FILTERED
        return Filter(
            valid_at=now,
            scope=recipe.scope_of(place) if name == BY_SCOPE else None,
            tags_any=(recipe.tag_of(place),) if name == BY_TAG else (),
        )

    def passing(self, name: str, memories: int) -> NDArray[np.bool_]:
        """By number, which memories such a filter lets through."""
        numbers, place = np.arange(memories), self.number % recipe.FILTERED
        if name == BY_SCOPE:
            return np.equal(numbers // recipe.PER_THREAD % recipe.FILTERED, place)
        if name == BY_TAG:
            return np.equal(recipe.topic_of(numbers), recipe.topic_of(place))
        return np.ones(memories, dtype=np.bool_)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scouted:
    """What a search that is not timed found: its share of the exactly nearest, and its candidates."""

    recall: float
    wanted: Wanted


@dataclass(slots=True, kw_only=True)
class Timed:
    """What every search of one store under one filter cost, and the same statements by hand."""

    searches: list[Parted]
    by_hand: list[Cost]


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A `vestige-mcp` on the store: seconds until its first answer, and its own memory after some searches,
    with that of the database's processes for it."""

    first_seconds: float
    kind: str
    megabytes: float
    backends: float


def read(texts: Sequence[str], embedder: Embedder) -> list[Query]:
    """The questions, analysed and embedded."""
    return [
        Query(number=number, text=text, asked=analyse(text), vector=embedder.encode_query(text).vector)
        for number, text in enumerate(texts)
    ]


def scout(
    backend: Backend, queries: Sequence[Query], vectors: Vectors, keys: Mapping[str, int], now: datetime
) -> dict[str, list[Scouted]]:
    """Look at every search through a store opened apart: the one that is timed has then seen none of them."""
    store = opened(backend)
    try:
        return {
            name: [
                _scouted(store, query, name, vectors, keys, now)
                for query in track(queries, f"{backend.name}: what is found, {name}")
            ]
            for name in FILTERS
        }
    finally:
        store.close()


def _scouted(
    store: MemoryStore, query: Query, name: str, vectors: Vectors, keys: Mapping[str, int], now: datetime
) -> Scouted:
    where = query.where(name, now)
    pool = store.gather(
        Probe(
            terms=query.asked.terms,
            date_terms=query.asked.date_terms,
            names=query.asked.names,
            literals=query.asked.literals,
            vector=query.vector,
            signature=store.signature(),
            where=where,
            per_arm=PER_ARM,
        ),
        access=EVERYTHING,
    )
    numbers = [recipe.number_of(one) for one in pool.ids]
    around = sorted({other for number in numbers for other in _surrounding(number, len(vectors))})
    nearest = _nearest(vectors, query.vector, query.passing(name, len(vectors)))
    return Scouted(
        recall=_recall(pool, numbers, nearest),
        wanted=Wanted(
            terms=considered(query.asked.terms),
            vector=query.vector,
            where=where,
            near=NEARBY + 1 if len(vectors) > NEARBY else PER_ARM,
            candidates=[keys[one] for one in pool.ids],
            surrounded=[keys[recipe.memory_id(number)] for number in around],
        ),
    )


def _nearest(vectors: Vectors, query: Vectors, passing: NDArray[np.bool_]) -> set[int]:
    """The numbers of the nearest memories, exactly."""
    scores = np.where(passing, vectors @ query, -np.inf)
    close = np.argpartition(-scores, min(3 * LIMIT, len(scores) - 1))[: 3 * LIMIT]
    exact = vectors[close].astype(np.float64) @ query.astype(np.float64)
    exact[~passing[close]] = -np.inf
    best = np.argsort(-exact)[:LIMIT]
    return {int(close[at]) for at in best if exact[at] > -np.inf}


def _recall(pool: CandidatePool, numbers: Sequence[int], nearest: set[int]) -> float:
    """The share of the nearest that the dense arm puts into its first places."""
    cosine = np.where(pool.by_meaning, pool.cosine, -np.inf)
    found = {numbers[at] for at in np.argsort(-cosine)[:LIMIT] if cosine[at] > -np.inf}
    return len(found & nearest) / len(nearest)


def _surrounding(number: int, memories: int) -> range:
    """The numbers up to two places away in the same talk."""
    if not recipe.is_said(number):
        return range(number, number + 1)
    first = number - number % recipe.PER_THREAD
    return range(max(first, number - 2), min(first + recipe.PER_THREAD, number + 3, memories))


@dataclass(slots=True, kw_only=True)
class Lane:
    """A store under measurement: its engine with a meter, the statements by hand, and what they fetch."""

    backend: Backend
    searcher: Searcher
    hand: ByHand
    scouted: Mapping[str, Sequence[Scouted]]


def lane(
    backend: Backend, opened_: InProcess, hand: ByHand, scouted: Mapping[str, Sequence[Scouted]]
) -> Lane:
    """A lane whose caches hold what a running server has: all places and vectors, and one search."""
    searcher = Searcher(engine=opened_.engine, embedder=opened_.embedder, meter=Meter())
    first = scouted[FREE][0].wanted
    searcher.search("Where do we begin?", first.where)
    hand.fetch(first)
    return Lane(backend=backend, searcher=searcher, hand=hand, scouted=scouted)


def compare(lanes: Sequence[Lane], queries: Sequence[Query], label: str) -> dict[str, dict[str, Timed]]:
    """Every search on every store under every filter, by store and filter.

    All take the first few questions, then all take the next few; which one goes first changes. What else the
    machine does falls on all of them alike.
    """
    made = {one.backend.name: {name: Timed(searches=[], by_hand=[]) for name in FILTERS} for one in lanes}
    for turn, at in enumerate(track(range(0, len(queries), RUN), label)):
        some = queries[at : at + RUN]
        for one in _turned(lanes, turn):
            one.searcher.meter.backends = one.backend.pids()
            for name in FILTERS:
                timed, meter = made[one.backend.name][name], one.searcher.meter
                wanted = [one.scouted[name][query.number].wanted for query in some]
                for by_hand in _turned((False, True), turn):
                    if by_hand:
                        timed.by_hand += [meter.cost(partial(one.hand.fetch, each)) for each in wanted]
                    else:
                        timed.searches += [
                            one.searcher.search(query.text, each.where)
                            for query, each in zip(some, wanted, strict=True)
                        ]
    return made


def _turned(items: Sequence[T], turn: int) -> list[T]:
    start = turn % len(items)
    return [*items[start:], *items[:start]]


def serve(backend: Backend, queries: Sequence[Query]) -> Served:
    """Search through a server of the store, as an agent does."""
    with Client([console_script(), "--data-dir", str(backend.data_dir)], timeout_seconds=3600) as client:
        client.initialize()
        first = 0.0
        for query in islice(queries, SERVED):
            client.tool("search", {"query": query.text, "scope": "/", "limit": LIMIT, "record": False})
            first = first or client.wall_seconds()
        memory = own_memory(client.pid)
        return Served(
            first_seconds=first,
            kind=memory.kind,
            megabytes=memory.megabytes,
            backends=megabytes_of(backend.pids()),
        )
