"""Token bits: written, replaced and gone with the vectors, and sketched with those of the neighbours."""

from dataclasses import replace

import numpy as np
import pytest

from tests.store.support.compare import sketched
from tests.store.support.generators import (
    OTHER_SIGNATURE,
    SIGNATURE,
    a_memory,
    a_turn,
    add,
    axis,
    change_model,
    embedded,
    forget,
    revise,
    some_tokens,
)
from vestige.core.candidates import OFFSETS, CandidatePool
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING, Memory
from vestige.embed.protocol import Signature
from vestige.store.contract.changes import Add, Tokens
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore

MEANT = Probe(vector=axis(0), signature=SIGNATURE, per_arm=100)


def gather(store: MemoryStore, probe: Probe) -> CandidatePool:
    return store.gather(probe, access=EVERYTHING)


def with_tokens(store: MemoryStore, memory: Memory, *tokens: Tokens | None) -> None:
    given = embedded(memory, *(axis(0) for _ in tokens), tokens=tokens)
    store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)


def test_the_tokens_of_all_pieces_stand_one_after_the_other(store: MemoryStore) -> None:
    with_tokens(store, a_memory("a"), some_tokens(1, 2), None, some_tokens(3, asked=True))
    with_tokens(store, a_memory("b"), None)
    pool = gather(store, MEANT)
    own = ([[1], [2], [3]], [False, False, True])
    assert sketched(pool) == [[own, None, None, None, None], [None] * 5]


def test_neighbours_two_places_to_each_side_bring_their_tokens(store: MemoryStore) -> None:
    for number in range(6):
        with_tokens(store, a_turn(f"m{number}", "iron", number), some_tokens(number))
    memory = a_turn("m6", "zinc", 6)
    with_tokens(store, memory, None)
    pool = gather(store, replace(MEANT, vector=axis(1), terms=("zinc",), least_cosine=0.5))
    assert pool.ids == ("m5", "m6")

    def told(*numbers: int | None) -> list[tuple[list[list[int]], list[bool]] | None]:
        return [None if number is None else ([[number]], [False]) for number in numbers]

    assert OFFSETS == (0, -1, 1, -2, 2)
    assert sketched(pool) == [told(5, 4, None, 3, None), told(None, 5, None, 4, None)]
    revise(store, replace(memory, position=-1, revision=2))
    pool = gather(store, replace(MEANT, vector=axis(1), terms=("zinc",), least_cosine=0.5))
    assert pool.ids == ("m0", "m6")
    assert sketched(pool) == [told(0, None, 1, None, 2), told(None, None, 0, None, 1)]


def test_vectors_without_tokens_are_lacking_where_tokens_are_asked_for(store: MemoryStore) -> None:
    with_tokens(store, a_memory("a"), some_tokens(1))
    with_tokens(store, a_memory("b"), None, None)
    with_tokens(store, a_memory("c"), some_tokens())
    with_tokens(store, a_memory("d"), None, some_tokens(2))
    add(store, a_memory("e"))

    def lacking(*, tokens: bool) -> list[str]:
        return [memory.id for memory in store.unembedded(SIGNATURE, limit=9, tokens=tokens)]

    assert lacking(tokens=False) == ["e"]
    assert lacking(tokens=True) == ["b", "e"]
    store.put_vectors({"b": embedded(a_memory("b"), axis(0), tokens=[some_tokens()])})
    assert lacking(tokens=True) == ["e"]
    assert [row[0] for row in sketched(gather(store, MEANT))] == [
        ([[1]], [False]),
        None,
        None,
        ([[2]], [False]),
    ]


def test_without_any_tokens_there_is_no_sketch(store: MemoryStore) -> None:
    with_tokens(store, a_memory("a"), None)
    assert gather(store, MEANT).sketch is None
    with_tokens(store, a_memory("b"), some_tokens(1))
    assert gather(store, MEANT).sketch is not None
    assert gather(store, Probe(terms=("zinc",), per_arm=9)).sketch is None


def tokens_of(
    store: MemoryStore, name: str = "a", signature: Signature = SIGNATURE
) -> list[list[int]] | None:
    pool = gather(store, replace(MEANT, signature=signature))
    if pool.sketch is None or name not in pool.ids:
        return None
    own = sketched(pool)[pool.ids.index(name)][0]
    return None if own is None else own[0]


def test_tokens_go_with_the_text_they_were_made_from(store: MemoryStore) -> None:
    memory = a_memory("a", "zinc")
    with_tokens(store, memory, some_tokens(1))
    with_tokens(store, a_memory("b"), some_tokens(7))
    assert tokens_of(store) == [[1]]
    revise(store, replace(memory, tags=("new",), revision=2))
    assert tokens_of(store) == [[1]]
    changed = replace(memory, content="iron", revision=3)
    revise(store, changed)
    assert tokens_of(store) is None
    store.put_vectors({"a": embedded(changed, axis(0), tokens=[some_tokens(2, 3)])})
    assert tokens_of(store) == [[2], [3]]
    store.put_vectors({"a": embedded(changed, axis(0), tokens=[some_tokens(4)])})
    assert tokens_of(store) == [[4]]
    store.put_vectors({"a": embedded(changed, axis(0))})
    assert tokens_of(store) is None
    assert tokens_of(store, "b") == [[7]]
    forget(store, "a")
    assert gather(store, MEANT).ids == ("b",)


def test_tokens_are_those_of_the_model_in_use_after_each_change_of_it(store: MemoryStore) -> None:
    memory = a_memory("a", "zinc")
    with_tokens(store, memory, some_tokens(1))
    assert tokens_of(store) == [[1]]
    coming = embedded(memory, axis(0), signature=OTHER_SIGNATURE, tokens=[some_tokens(9)])
    store.put_vectors({"a": coming}, coming=OTHER_SIGNATURE)
    assert tokens_of(store) == [[1]]
    assert store.adopt(OTHER_SIGNATURE)
    assert tokens_of(store, signature=OTHER_SIGNATURE) == [[9]]
    assert store.adopt(SIGNATURE)
    assert tokens_of(store) == [[1]]


def test_tokens_of_another_model_are_gone(store: MemoryStore) -> None:
    memory = a_memory("a", "zinc")
    with_tokens(store, memory, some_tokens(1))
    assert tokens_of(store) == [[1]]
    change_model(store, OTHER_SIGNATURE, memory)
    change_model(store, SIGNATURE, memory)
    assert tokens_of(store) is None
    store.put_vectors({"a": embedded(memory, axis(0), tokens=[some_tokens(2)])})
    assert tokens_of(store) == [[2]]


def test_forgotten_neighbours_leave_no_tokens(store: MemoryStore) -> None:
    with_tokens(store, a_turn("a", "zinc", 1), some_tokens(1))
    with_tokens(store, a_turn("b", "iron", 2), some_tokens(2))
    with_tokens(store, a_turn("c", "iron", 3), some_tokens(3))
    assert sketched(gather(store, MEANT))[0][2] == ([[2]], [False])
    forget(store, "b")
    assert sketched(gather(store, MEANT))[0][2] == ([[3]], [False])


@pytest.mark.parametrize(
    "wrong",
    [
        Tokens(bits=np.zeros((2, 2), dtype=np.uint8), asked=np.zeros(2, dtype=np.bool_)),
        Tokens(bits=np.zeros((2, 1), dtype=np.uint8), asked=np.zeros(3, dtype=np.bool_)),
        Tokens(bits=np.zeros(2, dtype=np.uint8), asked=np.zeros(2, dtype=np.bool_)),
    ],
)
def test_tokens_of_the_wrong_shape_are_refused(store: MemoryStore, wrong: Tokens) -> None:
    memory = a_memory("a")
    given = embedded(memory, axis(0), tokens=[wrong])
    with pytest.raises(InvalidInput):
        store.commit([Add(memory=memory, embedded=given)], access=EVERYTHING)
    add(store, memory)
    with pytest.raises(InvalidInput):
        store.put_vectors({"a": given})
