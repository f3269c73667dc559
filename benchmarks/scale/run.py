"""The whole benchmark: stores that grow from size to size, searched side by side at each."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.engine import InProcess
from benchmarks.progress import say, track
from benchmarks.report import Report
from benchmarks.scale import measure, sentences, tables
from benchmarks.scale.backends import NAMES, Backend, Maker, makers, opened
from benchmarks.scale.measure import FILTERS, Query
from benchmarks.scale.recipe import BLOCK, Recipe, fidelity, prepare
from benchmarks.scale.tables import Grown
from vestige.core.models import EVERYTHING
from vestige.embed.protocol import Embedder

SIZES = (1_000, 10_000, 100_000)
MILLION = 1_000_000
QUERIES = 100
INGESTED = 500
PORTION = 100
COMPARED = 100
"""Memories whose composed vector is held against the model's own."""


def run(
    *,
    sizes: Sequence[int] = SIZES,
    queries: int = QUERIES,
    data: Path | None,
    stores: tuple[str, ...] = NAMES,
    ingested: int = INGESTED,
) -> Report:
    """Measure every store at every size, the smallest first."""
    with tempfile.TemporaryDirectory(prefix="vestige-scale-") as name:
        folder = Path(name)
        with InProcess(folder / "model") as model, makers(stores) as kinds:
            material = sentences.load(data, queries)
            recipe = prepare(material, model.embedder)
            if max(sizes) > recipe.most:
                raise SystemExit(f"These sentences make only {recipe.most:,} different memories.")
            asked = measure.read(material.questions, model.embedder)
            bench = Bench(
                recipe=recipe,
                embedder=model.embedder,
                queries=asked,
                backends=[make(folder) for make in kinds],
            )
            rates = bench.ingest(ingested, kinds, folder / "ingest")
            grown = [one for size in sorted(sizes) for one in bench.grow(size)]
            return Report(
                benchmark="scale",
                settings={
                    "texts": material.origin,
                    "queries": len(asked),
                    "model": model.embedder.signature.name,
                    "cosine of composed and real vectors": round(
                        fidelity(recipe, model.embedder, COMPARED), 3
                    ),
                },
                tables=tables.tables(grown, rates),
                targets=tables.targets(grown),
                notes=tables.NOTES,
                plots=tables.plots(grown),
            )


@dataclass(slots=True)
class Bench:
    """What stays the same from size to size, and how far the stores are filled."""

    recipe: Recipe
    embedder: Embedder
    queries: Sequence[Query]
    backends: Sequence[Backend]
    filled: int = 0

    def ingest(self, count: int, kinds: Sequence[Maker], folder: Path) -> dict[str, float]:
        """Memories per second through `smart_ingest`, by 100, with the model; into stores of their own."""
        items = [self._item(number) for number in range(count)]
        rates = {}
        for backend in (make(folder) for make in kinds):
            with InProcess(backend.data_dir, embedder=self.embedder) as engine:
                began = time.perf_counter()
                for at in track(range(0, count, PORTION), f"{backend.name}: remembering"):
                    engine.ingest(items[at : at + PORTION])
                rates[backend.name] = count / (time.perf_counter() - began)
        return rates

    def grow(self, size: int) -> list[Grown]:
        """Fill every store up to a size and measure all of them."""
        vectors = self.recipe.vectors(0, size)
        made = {backend.name: self._fill(backend, size) for backend in self.backends}
        self.filled = size
        with ExitStack() as stack:
            lanes = [stack.enter_context(self._lane(backend, vectors)) for backend in self.backends]
            timed = measure.compare(lanes, self.queries, f"searching among {size:,}")
        recall = {
            lane.backend.name: {
                name: float(np.mean([one.recall for one in lane.scouted[name]])) for name in FILTERS
            }
            for lane in lanes
        }
        return [
            Grown(
                store=backend.name,
                memories=size,
                added_per_second=made[backend.name].per_second,
                settled_seconds=made[backend.name].settled_seconds,
                timed=timed[backend.name],
                recall=recall[backend.name],
                served=measure.serve(backend, self.queries),
                disk=backend.disk(),
            )
            for backend in self.backends
        ]

    def _item(self, number: int) -> dict[str, str | int]:
        memory = self.recipe.memory(number)
        told: Mapping[str, str | int | None] = {
            "content": memory.content,
            "scope": memory.scope,
            "author": memory.author,
            "thread": memory.thread,
            "position": memory.position,
        }
        return {name: value for name, value in told.items() if value is not None}

    def _fill(self, backend: Backend, size: int) -> "Filled":
        store = opened(backend)
        spent = 0.0
        try:
            starts = range(self.filled, size, BLOCK)
            for at in track(starts, f"{backend.name}: writing up to {size:,} by {BLOCK:,}"):
                changes = list(self.recipe.additions(at, min(at + BLOCK, size)))
                began = time.perf_counter()
                store.commit(changes, access=EVERYTHING)
                spent += time.perf_counter() - began
            began = time.perf_counter()
            store.rebuild_index()
            backend.settle()
            settled = time.perf_counter() - began
        finally:
            store.close()
        added = size - self.filled
        say(f"{backend.name}: {added / spent:,.0f} per second, its indexes in {settled:.1f} s")
        return Filled(per_second=added / spent, settled_seconds=settled)

    @contextmanager
    def _lane(self, backend: Backend, vectors: NDArray[np.float32]) -> Iterator[measure.Lane]:
        hand = backend.by_hand(vectors)
        try:
            with InProcess(backend.data_dir, embedder=self.embedder) as engine:
                now = engine.engine.now()
                scouted = measure.scout(backend, self.queries, vectors, hand.keys(), now)
                yield measure.lane(backend, engine, hand, scouted)
        finally:
            hand.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """Memories written per second by `commit`, and the seconds that indexes took afterwards."""

    per_second: float
    settled_seconds: float
