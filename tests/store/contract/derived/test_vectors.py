"""The life of vectors: guarded by the hash of their text, kept under one signature."""

from dataclasses import replace

import pytest

from tests.store.support.generators import (
    DAY,
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    a_memory,
    add,
    add_with,
    axis,
    embedded,
    forget,
    held,
    revise,
    rows,
)
from vestige.core.errors import Conflict, ModelMismatch
from vestige.core.models import ANYTHING, EVERYTHING, Memory
from vestige.embed.protocol import Signature
from vestige.store.contract.changes import Add, Forget, Revise
from vestige.store.contract.store import MemoryStore


def near(store: MemoryStore, number: int, signature: Signature = SIGNATURE) -> dict[str, float]:
    (answer,) = store.nearest(rows(axis(number)), signature, ANYTHING, access=EVERYTHING, limit=100)
    return {one.memory_id: one.score for one in answer}


def bare(store: MemoryStore, signature: Signature = SIGNATURE, limit: int = 100) -> list[str]:
    return [memory.id for memory in store.unembedded(signature, limit=limit)]


def test_the_first_vectors_decide_the_signature(store: MemoryStore) -> None:
    add(store, a_memory("bare"))
    assert store.signature() is None
    add_with(store, a_memory("a"), axis(0))
    assert store.signature() == SIGNATURE


def test_a_failed_commit_decides_no_signature(store: MemoryStore) -> None:
    memory = a_memory("a")
    twice = Add(memory=memory, embedded=embedded(memory, axis(0)))
    with pytest.raises(Conflict):
        store.commit([twice, twice], access=EVERYTHING)
    assert store.signature() is None


def test_vectors_that_do_not_outlive_their_commit_decide_no_signature(store: MemoryStore) -> None:
    memory = a_memory("a")
    given = Add(memory=memory, embedded=embedded(memory, axis(0)))
    store.commit([given, Forget(memory_id="a", at=T0, reason="mistake")], access=EVERYTHING)
    assert store.signature() is None


def test_the_signature_stays_when_the_last_vectors_go(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    forget(store, "a")
    assert store.signature() == SIGNATURE


def test_two_signatures_in_the_first_commit_are_refused(store: MemoryStore) -> None:
    first, second = a_memory("a"), a_memory("b")
    with pytest.raises(ModelMismatch):
        store.commit(
            [
                Add(memory=first, embedded=embedded(first, axis(0))),
                Add(memory=second, embedded=embedded(second, axis(0), signature=OTHER_SIGNATURE)),
            ],
            access=EVERYTHING,
        )
    assert store.count(ANYTHING, access=EVERYTHING) == 0


def test_a_revision_with_the_same_text_keeps_the_vectors(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    revise(store, replace(a_memory("a"), tags=("red",), scope="/project", pinned=True, revision=2))
    assert near(store, 0) == {"a": 1.0}
    assert held(store, "a").embedded
    assert bare(store) == []


@pytest.mark.parametrize(
    "changed", [a_memory("a", "other text"), replace(a_memory("a"), phrasings=("more",))]
)
def test_a_revision_with_another_text_drops_the_vectors(store: MemoryStore, changed: Memory) -> None:
    add_with(store, a_memory("a"), axis(0))
    revise(store, replace(changed, revision=2))
    assert near(store, 0) == {}
    assert not held(store, "a").embedded
    assert bare(store) == ["a"]


def test_a_revision_can_bring_the_vectors_of_its_new_text(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0), axis(1))
    new = replace(a_memory("a", "other text"), revision=2)
    store.commit([Revise(memory=new, reason="r", embedded=embedded(new, axis(2)))], access=EVERYTHING)
    assert near(store, 2) == {"a": 1.0}
    assert near(store, 0) == near(store, 1) == {"a": 0.0}
    assert bare(store) == []


def test_vectors_of_another_text_are_dropped_on_arrival(store: MemoryStore) -> None:
    stale = embedded(a_memory("a", "an earlier draft"), axis(0))
    store.commit([Add(memory=a_memory("a"), embedded=stale)], access=EVERYTHING)
    assert not held(store, "a").embedded
    assert bare(store) == ["a"]
    assert near(store, 0) == {}


def test_a_revision_with_stale_vectors_keeps_good_ones(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    stale = embedded(a_memory("a", "an earlier draft"), axis(1))
    tagged = replace(a_memory("a"), tags=("red",), revision=2)
    store.commit([Revise(memory=tagged, reason="r", embedded=stale)], access=EVERYTHING)
    assert near(store, 0) == {"a": 1.0}


def test_going_back_to_an_earlier_text_does_not_bring_its_vectors_back(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    revise(store, replace(a_memory("a", "other"), revision=2))
    revise(store, replace(a_memory("a"), revision=3))
    assert near(store, 0) == {}
    assert bare(store) == ["a"]


def test_vectors_can_be_added_after_the_fact(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    given = {
        name: embedded(a_memory(name), axis(number)) for number, name in enumerate(["a", "b", "unknown"])
    }
    assert store.put_vectors(given) == 2
    assert near(store, 0) == {"a": 1.0, "b": 0.0}
    assert store.signature() == SIGNATURE
    assert store.put_vectors({}) == 0


def test_vectors_added_again_replace_the_earlier_ones(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0), axis(1))
    assert store.put_vectors({"a": embedded(a_memory("a"), axis(2))}) == 1
    assert (near(store, 0), near(store, 2)) == ({"a": 0.0}, {"a": 1.0})


def test_vectors_that_come_too_late_are_ignored(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("gone"))
    late = {name: embedded(a_memory(name), axis(0)) for name in ("a", "gone")}
    revise(store, replace(a_memory("a", "changed meanwhile"), revision=2))
    forget(store, "gone")
    assert store.put_vectors(late) == 0
    assert near(store, 0) == {}
    assert bare(store) == ["a"]


def test_the_unembedded_come_oldest_first(store: MemoryStore) -> None:
    add(store, a_memory("new", at=T0 + DAY), a_memory("b"), a_memory("a"), a_memory("old", at=T0 - DAY))
    add_with(store, a_memory("done", at=T0 - 2 * DAY), axis(0))
    assert bare(store) == ["old", "a", "b", "new"]
    assert bare(store, limit=2) == ["old", "a"]
    assert store.unembedded(SIGNATURE, limit=1) == [a_memory("old", at=T0 - DAY)]


def test_for_another_signature_everything_is_unembedded(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    assert bare(store, OTHER_SIGNATURE) == ["a"]
    assert bare(store) == []
