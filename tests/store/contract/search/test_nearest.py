from dataclasses import replace

import numpy as np
import pytest

from tests.store.support.generators import (
    OTHER_SIGNATURE,
    SIGNATURE,
    a_memory,
    add,
    add_with,
    axis,
    between,
    embedded,
    forget,
    hits,
    memory_id,
    rows,
)
from vestige.core.errors import InvalidInput, ModelMismatch
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Add
from vestige.store.contract.store import MemoryStore


def near(store: MemoryStore, number: int, where: Filter = ANYTHING, limit: int = 100) -> list[Scored]:
    (answer,) = store.nearest(rows(axis(number)), SIGNATURE, where, access=EVERYTHING, limit=limit)
    return answer


def test_the_score_is_the_cosine_best_first(store: MemoryStore) -> None:
    add_with(store, a_memory("far"), axis(1))
    add_with(store, a_memory("close"), between(0, 2, 0.9))
    add_with(store, a_memory("same"), axis(0))
    add_with(store, a_memory("opposite"), -axis(0))
    answer = near(store, 0)
    assert hits(answer) == ["same", "close", "far", "opposite"]
    assert [one.score for one in answer] == pytest.approx([1.0, 0.9, 0.0, -1.0], abs=1e-6)


def test_a_memory_is_as_near_as_its_best_piece_and_appears_once(store: MemoryStore) -> None:
    add_with(store, a_memory("long"), axis(1), between(0, 1, 0.8), between(0, 2, 0.6))
    add_with(store, a_memory("short"), between(0, 3, 0.7))
    long, short = near(store, 0)
    assert (long.memory_id, long.start, long.end) == ("long", 1, 2)
    assert (short.memory_id, short.start, short.end) == ("short", 0, 1)
    assert [long.score, short.score] == pytest.approx([0.8, 0.7], abs=1e-6)
    assert hits(near(store, 0, limit=1)) == ["long"]


def test_of_equal_pieces_the_first_is_named(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(1), axis(0), axis(0))
    assert [(one.start, one.end) for one in near(store, 0)] == [(1, 2)]


def test_ties_go_by_id_also_at_the_limit(store: MemoryStore) -> None:
    for number in (5, 3, 1, 4, 2):
        add_with(store, a_memory(memory_id(number)), axis(0), axis(1))
    assert hits(near(store, 0, limit=3)) == [memory_id(1), memory_id(2), memory_id(3)]
    assert hits(near(store, 1)) == [memory_id(number) for number in range(1, 6)]


def test_the_filter_is_applied_before_the_limit(store: MemoryStore) -> None:
    for number in range(20):
        add_with(store, a_memory(memory_id(number)), axis(0))
    add_with(store, replace(a_memory("tagged"), tags=("red",)), axis(1))
    assert hits(near(store, 0, Filter(tags_any=("red",)), limit=1)) == ["tagged"]
    assert near(store, 0, Filter(tags_any=("blue",)), limit=1) == []


def test_memories_without_vectors_are_not_near_anything(store: MemoryStore) -> None:
    add(store, a_memory("bare"))
    add_with(store, a_memory("a"), axis(0))
    assert hits(near(store, 0)) == ["a"]


def test_a_store_without_vectors_answers_each_query_with_nothing(store: MemoryStore) -> None:
    queries = rows(axis(0), axis(1))
    assert store.nearest(queries, SIGNATURE, ANYTHING, access=EVERYTHING, limit=5) == [[], []]
    add(store, a_memory("bare"))
    assert store.nearest(queries, SIGNATURE, ANYTHING, access=EVERYTHING, limit=5) == [[], []]


def test_no_queries_get_no_answers(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    none = np.empty((0, SIGNATURE.dimension), dtype=np.float32)
    assert store.nearest(none, SIGNATURE, ANYTHING, access=EVERYTHING, limit=5) == []


def test_a_batch_of_queries_answers_as_each_alone(store: MemoryStore) -> None:
    rng = np.random.default_rng(7)
    for number in range(60):
        vectors = rng.normal(size=(1 + number % 3, SIGNATURE.dimension))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        add_with(store, a_memory(memory_id(number)), *vectors.astype(np.float32))
    queries = rng.normal(size=(9, SIGNATURE.dimension)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    batch = store.nearest(queries, SIGNATURE, ANYTHING, access=EVERYTHING, limit=10)
    for row, answer in zip(queries, batch, strict=True):
        (alone,) = store.nearest(rows(row), SIGNATURE, ANYTHING, access=EVERYTHING, limit=10)
        assert hits(answer) == hits(alone)
        assert [one.score for one in answer] == pytest.approx([one.score for one in alone], abs=1e-6)
        assert len(answer) == 10


def test_another_signature_is_refused_in_searches_and_writes(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    with pytest.raises(ModelMismatch) as refused:
        store.nearest(rows(axis(0)), OTHER_SIGNATURE, ANYTHING, access=EVERYTHING, limit=5)
    assert refused.value.hint
    foreign = embedded(a_memory("b"), axis(0), signature=OTHER_SIGNATURE)
    with pytest.raises(ModelMismatch):
        store.commit([Add(memory=a_memory("b"), embedded=foreign)], access=EVERYTHING)
    with pytest.raises(ModelMismatch):
        store.put_vectors({"a": replace(foreign, text_hash=embedded(a_memory("a")).text_hash)})
    assert store.get_many(["b"], access=EVERYTHING) == []
    assert hits(near(store, 0)) == ["a"]


@pytest.mark.parametrize("dimension", [SIGNATURE.dimension - 1, SIGNATURE.dimension + 1])
def test_a_vector_of_the_wrong_dimension_is_refused(store: MemoryStore, dimension: int) -> None:
    add_with(store, a_memory("a"), axis(0))
    wrong = axis(0, dimension)
    with pytest.raises(InvalidInput):
        store.nearest(rows(wrong), SIGNATURE, ANYTHING, access=EVERYTHING, limit=5)
    with pytest.raises(InvalidInput):
        add_with(store, a_memory("b"), axis(0), wrong)
    with pytest.raises(InvalidInput):
        store.put_vectors({"a": embedded(a_memory("a"), wrong)})
    assert store.get_many(["b"], access=EVERYTHING) == []
    assert hits(near(store, 0)) == ["a"]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_vector_that_is_not_finite_is_refused(store: MemoryStore, bad: float) -> None:
    vector = axis(0) * np.float32(1)
    vector[3] = bad
    with pytest.raises(InvalidInput):
        add_with(store, a_memory("a"), vector)
    add_with(store, a_memory("a"), axis(0))
    with pytest.raises(InvalidInput):
        store.nearest(rows(vector), SIGNATURE, ANYTHING, access=EVERYTHING, limit=5)


def test_what_the_caller_does_to_its_vector_later_does_not_reach_the_store(store: MemoryStore) -> None:
    vector = axis(0).copy()
    add_with(store, a_memory("a"), vector)
    vector[:] = 0
    assert [one.score for one in near(store, 0)] == [1.0]


def test_a_deleted_memory_is_not_near_anything(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0), axis(1))
    add_with(store, a_memory("b"), axis(0))
    assert hits(near(store, 0)) == ["a", "b"]
    forget(store, "a")
    assert hits(near(store, 0)) == ["b"]
    assert hits(near(store, 1)) == ["b"]
