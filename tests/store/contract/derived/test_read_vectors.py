"""Reading back the vectors of memories."""

from dataclasses import replace

import numpy as np
import pytest

from tests.store.support.generators import OTHER_SIGNATURE, SIGNATURE, a_memory, add, add_with, axis, revise
from vestige.core.errors import ModelMismatch
from vestige.core.models import EVERYTHING, Access
from vestige.store.contract.store import MemoryStore


def test_vectors_come_back_piece_by_piece(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0), axis(3))
    add_with(store, a_memory("b"), axis(1))

    found = store.vectors(["b", "a", "b"], SIGNATURE, access=EVERYTHING)

    assert sorted(found) == ["a", "b"]
    assert np.array_equal(found["a"], np.array([axis(0), axis(3)]))
    assert np.array_equal(found["b"], np.array([axis(1)]))
    assert found["a"].dtype == np.float32


def test_memories_without_vectors_are_left_out(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    add_with(store, a_memory("changed"), axis(1))
    revise(store, replace(a_memory("changed", "another text"), revision=2))
    add(store, a_memory("bare"))

    found = store.vectors(["a", "changed", "bare", "unknown"], SIGNATURE, access=EVERYTHING)

    assert list(found) == ["a"]
    assert store.vectors([], SIGNATURE, access=EVERYTHING) == {}


def test_vectors_out_of_reach_are_left_out(store: MemoryStore) -> None:
    add_with(store, replace(a_memory("mine"), scope="/mine"), axis(0))
    add_with(store, replace(a_memory("other"), scope="/other"), axis(1))

    found = store.vectors(["mine", "other"], SIGNATURE, access=Access(scopes=("/mine",)))

    assert list(found) == ["mine"]


def test_vectors_of_another_signature_are_refused(store: MemoryStore) -> None:
    assert store.vectors(["a"], SIGNATURE, access=EVERYTHING) == {}
    add_with(store, a_memory("a"), axis(0))

    with pytest.raises(ModelMismatch):
        store.vectors(["a"], OTHER_SIGNATURE, access=EVERYTHING)
