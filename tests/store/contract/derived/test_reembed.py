"""Another model: its vectors are made beside those in use, and one moment puts all of them in use."""

from dataclasses import replace

import pytest

from tests.store.support.generators import (
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
from vestige.core.errors import InvalidInput, ModelMismatch
from vestige.core.models import ANYTHING, EVERYTHING, Memory
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import ProfileState
from vestige.store.contract.changes import Add, Revise
from vestige.store.contract.store import MemoryStore

IN_USE, COMING, FORMER = ProfileState


def near(store: MemoryStore, number: int, signature: Signature = SIGNATURE) -> dict[str, float]:
    (answer,) = store.nearest(rows(axis(number)), signature, ANYTHING, access=EVERYTHING, limit=100)
    return {one.memory_id: one.score for one in answer}


def bare(store: MemoryStore, signature: Signature = OTHER_SIGNATURE) -> list[str]:
    return [memory.id for memory in store.unembedded(signature, limit=100)]


def profiles(store: MemoryStore) -> list[tuple[Signature, ProfileState, int, int]]:
    return [(one.signature, one.state, one.memories, one.pieces) for one in store.profiles()]


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


def test_adopting_puts_the_coming_vectors_in_use_and_keeps_the_former_ones_aside(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    assert store.adopt(OTHER_SIGNATURE)
    assert store.signature() == OTHER_SIGNATURE
    assert near(store, 3, OTHER_SIGNATURE) == {"a": 1.0}
    assert held(store, "a").embedded
    assert bare(store, SIGNATURE) == []
    assert profiles(store) == [(OTHER_SIGNATURE, IN_USE, 1, 1), (SIGNATURE, FORMER, 1, 1)]
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


def test_adopting_what_is_in_use_drops_what_was_coming_and_keeps_the_former(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    change_model(store, OTHER_SIGNATURE, a_memory("a"))
    stage(store, a_memory("a"), 3, THIRD_SIGNATURE)
    assert store.adopt(OTHER_SIGNATURE)
    assert near(store, 7, OTHER_SIGNATURE) == {"a": 1.0}
    assert bare(store, THIRD_SIGNATURE) == ["a"]
    assert profiles(store) == [(OTHER_SIGNATURE, IN_USE, 1, 1), (SIGNATURE, FORMER, 1, 1)]


def test_the_signatures_are_told_with_what_there_is_of_them(store: MemoryStore) -> None:
    assert profiles(store) == []
    add_with(store, a_memory("a"), axis(0), axis(1))
    add(store, a_memory("b"))
    assert profiles(store) == [(SIGNATURE, IN_USE, 1, 2)]
    stage(store, a_memory("b"), 3)
    assert profiles(store) == [(SIGNATURE, IN_USE, 1, 2), (OTHER_SIGNATURE, COMING, 1, 1)]
    stage(store, a_memory("a"), 3)
    assert store.adopt(OTHER_SIGNATURE)
    stage(store, a_memory("a"), 4, THIRD_SIGNATURE)
    assert profiles(store) == [
        (OTHER_SIGNATURE, IN_USE, 2, 2),
        (THIRD_SIGNATURE, COMING, 1, 1),
        (SIGNATURE, FORMER, 1, 2),
    ]


def test_a_model_is_taken_back_with_the_vectors_it_had(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    assert near(store, 0) == {"a": 1.0}
    change_model(store, OTHER_SIGNATURE, a_memory("a"))
    assert near(store, 7, OTHER_SIGNATURE) == {"a": 1.0}
    assert store.adopt(SIGNATURE)
    assert near(store, 0) == {"a": 1.0}
    assert profiles(store) == [(SIGNATURE, IN_USE, 1, 1), (OTHER_SIGNATURE, FORMER, 1, 1)]
    assert store.adopt(OTHER_SIGNATURE)
    assert near(store, 7, OTHER_SIGNATURE) == {"a": 1.0}


def test_a_former_model_lacks_what_was_written_since_and_takes_it_before_it_comes_back(
    store: MemoryStore,
) -> None:
    add_with(store, a_memory("a"), axis(0))
    add_with(store, a_memory("changed"), axis(1))
    add_with(store, a_memory("gone"), axis(2))
    change_model(store, OTHER_SIGNATURE, a_memory("a"), a_memory("changed"), a_memory("gone"))
    new = a_memory("new")
    given = embedded(new, axis(4), signature=OTHER_SIGNATURE)
    store.commit([Add(memory=new, embedded=given)], access=EVERYTHING)
    revise(store, replace(a_memory("changed", "another text"), revision=2))
    forget(store, "gone")
    assert sorted(bare(store, SIGNATURE)) == ["changed", "new"]
    assert not store.adopt(SIGNATURE)
    assert store.signature() == OTHER_SIGNATURE
    assert stage(store, new, 5, SIGNATURE) == stage(store, held(store, "changed").memory, 6, SIGNATURE) == 1
    assert profiles(store)[1:] == [(SIGNATURE, FORMER, 3, 3)], "it is not coming, it has the others already"
    assert store.adopt(SIGNATURE)
    assert near(store, 5) == {"a": 0.0, "changed": 0.0, "new": 1.0}
    assert near(store, 6)["changed"] == near(store, 0)["a"] == 1.0


def test_whoever_searched_a_model_before_it_was_left_finds_what_came_since_it_is_back(
    store: MemoryStore,
) -> None:
    add_with(store, a_memory("a"), axis(0))
    add_with(store, a_memory("gone"), axis(1))
    assert near(store, 1) == {"a": 0.0, "gone": 1.0}
    change_model(store, OTHER_SIGNATURE, a_memory("a"), a_memory("gone"))
    forget(store, "gone")
    revise(store, replace(a_memory("a", "another text"), revision=2))
    stage(store, held(store, "a").memory, 2, SIGNATURE)
    assert store.adopt(SIGNATURE)
    assert near(store, 2) == {"a": 1.0}
    assert near(store, 0) == {"a": 0.0}


def test_a_second_change_of_model_lets_the_former_one_go(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    change_model(store, OTHER_SIGNATURE, a_memory("a"))
    change_model(store, THIRD_SIGNATURE, a_memory("a"))
    assert profiles(store) == [(THIRD_SIGNATURE, IN_USE, 1, 1), (OTHER_SIGNATURE, FORMER, 1, 1)]
    assert bare(store, SIGNATURE) == ["a"]
    assert not store.adopt(SIGNATURE)


def test_going_back_gives_up_what_was_coming(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    change_model(store, OTHER_SIGNATURE, a_memory("a"))
    stage(store, a_memory("a"), 3, THIRD_SIGNATURE)
    assert store.adopt(SIGNATURE)
    assert profiles(store) == [(SIGNATURE, IN_USE, 1, 1), (OTHER_SIGNATURE, FORMER, 1, 1)]
    assert bare(store, THIRD_SIGNATURE) == ["a"]


def test_the_former_vectors_are_dropped_and_can_be_made_again(store: MemoryStore) -> None:
    names = [f"m{number}" for number in range(7)]
    for name in names:
        add_with(store, a_memory(name), axis(0), axis(1))
    change_model(store, OTHER_SIGNATURE, *map(a_memory, names))
    store.drop_vectors(SIGNATURE)
    assert profiles(store) == [(OTHER_SIGNATURE, IN_USE, 7, 7)]
    assert sorted(bare(store, SIGNATURE)) == names
    assert near(store, 7, OTHER_SIGNATURE) == dict.fromkeys(names, 1.0)
    store.drop_vectors(SIGNATURE)
    change_model(store, SIGNATURE, *map(a_memory, names))
    assert near(store, 7) == dict.fromkeys(names, 1.0)
    assert near(store, 0) == dict.fromkeys(names, 0.0), "nothing of the first time is left"


def test_what_is_coming_can_be_dropped_too(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stage(store, a_memory("a"), 3)
    store.drop_vectors(OTHER_SIGNATURE)
    assert profiles(store) == [(SIGNATURE, IN_USE, 1, 1)]
    assert bare(store) == ["a"]
    assert near(store, 0) == {"a": 1.0}


def test_what_is_in_use_cannot_be_dropped_and_what_is_unknown_is_nothing(store: MemoryStore) -> None:
    store.drop_vectors(SIGNATURE)
    add_with(store, a_memory("a"), axis(0))
    with pytest.raises(InvalidInput, match="in use"):
        store.drop_vectors(SIGNATURE)
    store.drop_vectors(THIRD_SIGNATURE)
    assert profiles(store) == [(SIGNATURE, IN_USE, 1, 1)]
    assert near(store, 0) == {"a": 1.0}


def test_a_deleted_memory_leaves_no_vectors_of_any_model(store: MemoryStore) -> None:
    for name in ("a", "gone"):
        add_with(store, a_memory(name), axis(0))
    change_model(store, OTHER_SIGNATURE, a_memory("a"), a_memory("gone"))
    for name in ("a", "gone"):
        stage(store, a_memory(name), 3, THIRD_SIGNATURE, tokens=True)
    forget(store, "gone")
    assert [(one.memories, one.pieces) for one in store.profiles()] == [(1, 1)] * 3


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
