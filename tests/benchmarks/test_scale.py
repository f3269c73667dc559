"""The benchmark of growth, tiny: the recipe is held to what it says, the report to its shape."""

from datetime import UTC, datetime
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from benchmarks.scale import sentences
from benchmarks.scale.backends import NAMES
from benchmarks.scale.measure import BY_SCOPE, BY_TAG, FILTERS, Served, Timed, read
from benchmarks.scale.recipe import FILTERED, Recipe, number_of, prepare
from benchmarks.scale.run import run
from benchmarks.scale.tables import Grown, tables, targets
from benchmarks.scale.watch import EMBEDDING, GATHER, OTHER, RANKING, Cost, Meter, Parted, Watched
from vestige.embed.hashing import HashingEmbedder
from vestige.store.inmemory import InMemoryStore

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SIZES = (100, 200)
QUERIES = 4


@pytest.fixture(scope="module")
def recipe() -> Recipe:
    return prepare(sentences.load(None, QUERIES), HashingEmbedder())


def test_the_recipe_makes_different_memories_and_always_the_same(recipe: Recipe) -> None:
    made = [recipe.memory(number) for number in range(3_000)]
    assert len({memory.content for memory in made}) == len(made)
    again = prepare(sentences.load(None, QUERIES), HashingEmbedder())
    assert [again.memory(number) for number in range(0, 3_000, 100)] == made[::100]
    assert [number_of(memory.id) for memory in made] == list(range(3_000))


def test_a_vector_is_near_to_both_of_its_sentences_and_does_not_depend_on_the_portion(recipe: Recipe) -> None:
    vectors = recipe.vectors(0, 1_500)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-5)
    assert np.array_equal(recipe.vectors(990, 1_010), vectors[990:1_010])
    (added,) = recipe.additions(1_203, 1_204)
    assert added.embedded is not None
    (piece,) = added.embedded.pieces
    assert np.array_equal(piece.vector, vectors[1_203])
    every = np.array([one.vector for one in (*recipe.said, *recipe.written)])
    first, second, *others = np.sort(every @ piece.vector)[::-1].tolist()
    assert second > 0.4
    assert first > max(others)


@pytest.mark.parametrize("name", [BY_SCOPE, BY_TAG])
def test_a_filter_lets_one_memory_in_a_hundred_through(recipe: Recipe, name: str) -> None:
    made = [recipe.memory(number) for number in range(10 * FILTERED)]
    for query in read(["Who?", "Where?", "When?"], HashingEmbedder()):
        where = query.where(name, NOW)
        passed = [
            where.scope in (None, memory.scope) and set(where.tags_any) <= set(memory.tags) for memory in made
        ]
        assert sum(passed) == len(made) // FILTERED
        assert query.passing(name, len(made)).tolist() == passed


def test_what_is_watched_answers_as_it_did_and_its_calls_are_counted() -> None:
    store = InMemoryStore(node="here")
    watched = Watched(store, Meter())
    assert watched.node == "here"
    assert watched.signature() is None
    with pytest.raises(TypeError):
        watched.gather()
    assert watched.spent.keys() == {"signature", "gather"}
    assert min(cost.wall for cost in watched.spent.values()) > 0


def test_only_a_large_store_is_judged_and_what_it_misses_is_told() -> None:
    small, large, slow = _grown(99_999), _grown(100_000), _grown(100_000, gather=0.061)
    assert targets([small]) == []
    assert all(target.met for target in targets([large]))
    missed = [target.name for target in targets([slow]) if not target.met]
    assert len(missed) == 2 * len(FILTERS)
    assert {name.rpartition(": ")[2] for name in missed} == {"database p95, ms", "gather ÷ by hand"}


def test_the_growth_exponent_is_the_power_of_the_size() -> None:
    grown = [_grown(size, gather=1e-4 * size**0.5 - 0.001) for size in (1_000, 10_000, 100_000)]
    rows = tables(grown, {})["Growth exponent (slope of log p50 over log n)"]
    assert [row["database"] for row in rows] == pytest.approx([0.5] * len(FILTERS))


@pytest.mark.slow
@pytest.mark.nightly
def test_the_scale_benchmark_measures_every_store_at_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VESTIGE_EMBEDDINGS_PROVIDER", "hashing")
    report = run(sizes=SIZES, queries=QUERIES, data=None, ingested=10)
    rows = report.tables["Search, wall ms"]
    assert [(row["memories"], row["store"], row["filter"]) for row in rows] == [
        (size, store, name) for size in SIZES for store in NAMES for name in FILTERS
    ]
    for row in rows:
        parts = [float(str(row[f"{part} p50"])) for part in ("embedding", "database", "ranking")]
        assert min(parts) > 0
        assert float(str(row["whole p95"])) >= max(parts)
    for row in report.tables["Dense recall@10 of gather"]:
        assert [row[name] for name in FILTERS] == [1.0, 1.0, 1.0]
    for table in ("Gather beside the same statements by hand, wall ms", "Storing", "A server of the store"):
        for row in report.tables[table]:
            assert all(cell >= 0 for cell in row.values() if isinstance(cell, float))
    assert {row["store"] for row in report.tables["Remembering through the engine, with the model"]} == {
        *NAMES
    }
    for store in NAMES:
        assert all(
            float(str(row["all"])) > 1_000 for row in report.tables[f"{store}: disk, bytes per memory"]
        )
    for plot in report.plots.values():
        ET.fromstring(plot)


def _grown(memories: int, *, gather: float = 0.02) -> Grown:
    parts = {EMBEDDING: 0.003, GATHER: gather, OTHER: 0.001, RANKING: 0.01}
    search = Parted(parts={name: Cost(wall=seconds, cpu=seconds) for name, seconds in parts.items()})
    timed = Timed(searches=[search, search], by_hand=[Cost(wall=0.018, cpu=0.018)])
    return Grown(
        store="a store",
        memories=memories,
        added_per_second=1.0,
        settled_seconds=1.0,
        timed=dict.fromkeys(FILTERS, timed),
        recall=dict.fromkeys(FILTERS, 0.99),
        served=Served(first_seconds=1.0, kind="RSS", megabytes=1.0, backends=0.0),
        disk={"text": 1},
    )
