"""Another model: its vectors are made beside those in use, and one moment puts all of them in use."""

from dataclasses import replace

import pytest

from tests.store.generators import (
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    THIRD_SIGNATURE,
    a_memory,
    add,
    add_with,
    axis,
    change_model,
    embedded,
    forget,
    held,
    revise,
    rows,
    some_tokens,
)
from vestige.embed.protocol import Signature
from vestige.errors import ModelMismatch
from vestige.models import ANYTHING, EVERYTHING, Memory
from vestige.store.changes import Add, Revise
from vestige.store.protocol import MemoryStore


def near(store: MemoryStore, number: int, signature: Signature = SIGNATURE) -> dict[str, float]:
    (answer,) = store.nearest(rows(axis(number)), signature, ANYTHING, access=EVERYTHING, limit=100)
    return {one.memory_id: one.score for one in answer}


def bare(store: MemoryStore, signature: Signature = OTHER_SIGNATURE) -> list[str]:
    return [memory.id for memory in store.unembedded(signature, limit=100)]


def stage(
    store: MemoryStore,
    memory: Memory,
    number: int,
    signature: Signature = OTHER_SIGNATURE,
    tokens: bool = False,
) -> int:
    told = [some_tokens(3)] if tokens else []
    made = embedded(memory, axis(number), signature=signature, tokens=told)
    return store.put_vectors({memory.id: made}, coming=signature)


def test_until_it_is_adopted_nothing_finds_the_vectors_that_are_coming(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    add(store, a_memory("b"))
    assert stage(store, a_memory("a"), 3, tokens=True) == stage(store, a_memory("b"), 4) == 1
    assert store.signature() == SIGNATURE
    assert near(store, 0) == {"a": 1.0}
    assert store.vectors(["a", "b"], SIGNATURE, access=EVERYTHING)["a"].tolist() == [axis(0).tolist()]
    assert not held(store, "b").embedded
    assert store.stats(access=EVERYTHING, now=T0).embedded == store.index_status().vectors == 1
    assert bare(store, SIGNATURE) == ["b"]
    assert bare(store) == []
    with pytest.raises(ModelMismatch):
        near(store, 3, OTHER_SIGNATURE)


def test_adopting_puts_the_coming_vectors_in_use_and_drops_the_others(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    assert store.adopt(OTHER_SIGNATURE)
    assert store.signature() == OTHER_SIGNATURE
    assert near(store, 3, OTHER_SIGNATURE) == {"a": 1.0}
    assert held(store, "a").embedded
    assert bare(store, SIGNATURE) == ["a"]
    assert store.index_status().vectors == 1
    with pytest.raises(ModelMismatch):
        near(store, 0)


def test_nothing_is_adopted_while_a_memory_lacks_vectors_of_it(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    add_with(store, a_memory("meanwhile"), axis(1))
    assert bare(store) == ["meanwhile"]
    assert not store.adopt(OTHER_SIGNATURE)
    assert near(store, 0) == {"a": 1.0, "meanwhile": 0.0}
    stage(store, a_memory("meanwhile"), 4)
    assert store.adopt(OTHER_SIGNATURE)
    assert near(store, 4, OTHER_SIGNATURE) == {"a": 0.0, "meanwhile": 1.0}


def test_a_signature_nobody_made_vectors_of_is_not_adopted(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    assert not store.adopt(THIRD_SIGNATURE)
    assert bare(store) == [], "what was made for the other one is still there"
    assert near(store, 0) == {"a": 1.0}


def test_a_text_that_changes_takes_its_coming_vectors_along(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    revise(store, replace(a_memory("a", "another text"), revision=2))
    assert bare(store) == ["a"]
    assert not store.adopt(OTHER_SIGNATURE)
    assert stage(store, a_memory("a"), 3) == 0, "they were made from the text before"
    assert stage(store, held(store, "a").memory, 4) == 1
    assert store.adopt(OTHER_SIGNATURE)
    assert near(store, 4, OTHER_SIGNATURE) == {"a": 1.0}


def test_other_changes_and_vectors_of_the_model_in_use_leave_the_coming_ones(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    tagged = replace(a_memory("a"), tags=("red",), revision=2)
    changed = Revise(memory=tagged, reason="r", embedded=embedded(tagged, axis(1)))
    store.commit([changed], access=EVERYTHING)
    store.put_vectors({"a": embedded(tagged, axis(2))})
    assert near(store, 2) == {"a": 1.0}
    assert bare(store) == []


def test_a_deleted_memory_is_not_waited_for(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    add_with(store, a_memory("gone"), axis(1))
    stage(store, a_memory("a"), 3)
    forget(store, "gone")
    assert store.adopt(OTHER_SIGNATURE)
    assert near(store, 3, OTHER_SIGNATURE) == {"a": 1.0}


def test_one_signature_is_coming_at_a_time(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    stage(store, a_memory("a"), 4, THIRD_SIGNATURE)
    assert bare(store) == ["a"]
    assert not store.adopt(OTHER_SIGNATURE)
    assert store.adopt(THIRD_SIGNATURE)
    assert near(store, 4, THIRD_SIGNATURE) == {"a": 1.0}
    assert store.index_status().vectors == 1


def test_adopting_what_is_in_use_keeps_it_and_drops_what_was_coming(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    assert store.adopt(SIGNATURE)
    assert near(store, 0) == {"a": 1.0}
    assert bare(store) == ["a"]


def test_a_model_can_come_back(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    change_model(store, OTHER_SIGNATURE, a_memory("a"))
    assert bare(store, SIGNATURE) == ["a"]
    change_model(store, SIGNATURE, a_memory("a"))
    assert near(store, 7) == {"a": 1.0}
    assert near(store, 0) == {"a": 0.0}


def test_vectors_made_again_for_the_coming_model_replace_the_earlier_ones(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3, tokens=True)
    stage(store, a_memory("a"), 4, tokens=True)
    assert store.adopt(OTHER_SIGNATURE)
    assert near(store, 4, OTHER_SIGNATURE) == {"a": 1.0}
    assert store.index_status().vectors == 1


def test_what_comes_must_be_of_the_signature_that_is_named(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    other = {"a": embedded(a_memory("a"), axis(1), signature=THIRD_SIGNATURE)}
    with pytest.raises(ModelMismatch):
        store.put_vectors(other, coming=OTHER_SIGNATURE)
    with pytest.raises(ModelMismatch):
        store.put_vectors(other)
    assert bare(store, THIRD_SIGNATURE) == ["a"]


def test_without_any_vectors_those_that_come_are_the_first(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    assert stage(store, a_memory("a"), 3, SIGNATURE) == 1
    assert store.signature() == SIGNATURE
    assert near(store, 3) == {"a": 1.0}


def test_an_empty_store_can_adopt_a_signature_before_its_first_vector(store: MemoryStore) -> None:
    assert store.adopt(SIGNATURE)
    assert store.signature() == SIGNATURE
    foreign = embedded(a_memory("a"), axis(0), signature=OTHER_SIGNATURE)
    with pytest.raises(ModelMismatch):
        store.commit([Add(memory=a_memory("a"), embedded=foreign)], access=EVERYTHING)


def test_a_signature_of_another_dimension_can_be_adopted(store: MemoryStore) -> None:
    wide = replace(SIGNATURE, name="wide", dimension=16)
    add_with(store, a_memory("a"), axis(0))
    assert near(store, 0) == {"a": 1.0}
    store.put_vectors({"a": embedded(a_memory("a"), axis(12, 16), signature=wide)}, coming=wide)
    assert store.adopt(wide)
    (answer,) = store.nearest(rows(axis(12, 16)), wide, ANYTHING, access=EVERYTHING, limit=5)
    assert [one.memory_id for one in answer] == ["a"]
