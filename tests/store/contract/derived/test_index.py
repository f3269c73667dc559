"""Index files, for stores that have them and stores that need none."""

import numpy as np

from tests.store.support.generators import SIGNATURE, a_memory, add, add_with, axis, forget, hits
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.store import MemoryStore


def test_the_status_counts_the_vectors_that_live(store: MemoryStore) -> None:
    assert store.index_status().vectors == 0
    add(store, a_memory("words only"))
    add_with(store, a_memory("m1"), axis(0), axis(1))
    add_with(store, a_memory("m2"), axis(2))
    assert store.index_status().vectors == 3
    forget(store, "m1")
    status = store.index_status()
    assert (status.vectors, status.dead, dict(status.problems)) == (1, 0, {})


def test_a_rebuild_of_the_index_changes_no_answer(store: MemoryStore) -> None:
    add_with(store, a_memory("m1"), axis(0))
    add_with(store, a_memory("m2"), axis(1))
    query = np.array([axis(1)])
    before = store.nearest(query, SIGNATURE, ANYTHING, access=EVERYTHING, limit=5)
    assert store.rebuild_index() == store.index_status()
    assert store.nearest(query, SIGNATURE, ANYTHING, access=EVERYTHING, limit=5) == before
    assert hits(before[0]) == ["m2", "m1"]
