"""The lists of the nearest memories: up to date with every write, and the same on every store."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.store.support.generators import (
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    Dice,
    NewStore,
    a_memory,
    add,
    add_with,
    axis,
    between,
    embedded,
    flat,
    forget,
    memory_id,
    revise,
)
from vestige.cognition.graph.neighbour_lists import KEPT, NOTHING, SCALE, rounded, whole_vectors
from vestige.core.models import EVERYTHING, Access, Memory
from vestige.store.contract.answers import NearestMemories
from vestige.store.contract.changes import Add, Revise
from vestige.store.contract.store import MemoryStore

Vectors = NDArray[np.float32]


def neighbours(store: MemoryStore, access: Access = EVERYTHING) -> NearestMemories:
    found = store.neighbours(access=access)
    assert found is not None
    return found


def named(found: NearestMemories) -> dict[str, list[str]]:
    return {
        name: [found.ids[other] for other in found.lists.near[at] if other >= 0]
        for at, name in enumerate(found.ids)
    }


def check_complete(found: NearestMemories, pieces: dict[str, Vectors]) -> None:
    """The lists say what comparing all pairs of these vectors says."""
    assert list(found.ids) == sorted(pieces)
    if not pieces:
        return
    owners = np.repeat(np.arange(len(pieces)), [len(pieces[name]) for name in found.ids])
    whole = rounded(whole_vectors(np.concatenate([pieces[name] for name in found.ids]), owners))
    products = whole.astype(np.int64) @ whole.astype(np.int64).T
    for at in range(len(found.ids)):
        others = [other for other in range(len(found.ids)) if other != at]
        above = [one for one in others if products[at, one] > found.lists.floors[at]]
        above.sort(key=lambda one: (-products[at, one], one))
        listed = found.lists.near[at]
        assert listed[listed >= 0].tolist() == above
        assert found.lists.products[at][listed >= 0].tolist() == [products[at, one] for one in above]
        if len(others) <= KEPT // 2:
            assert found.lists.floors[at] == NOTHING


def present(store: MemoryStore, access: Access = EVERYTHING) -> dict[str, Vectors]:
    ids = [one.memory.id for one in flat(store.stream(access=access))]
    signature = store.signature()
    return {} if signature is None else store.vectors(ids, signature, access=access)


def filled(store: MemoryStore, count: int, seed: int = 1) -> Iterator[Memory]:
    dice = Dice(seed)
    for number in range(count):
        scope = "/user/ada" if number % 3 else "/user/bob"
        memory = replace(a_memory(memory_id(number), f"note {number}"), scope=scope)
        add_with(store, memory, *(dice.unit() for _ in range(1 + number % 5 // 4)))
        yield memory


def test_a_store_without_vectors_has_no_neighbours(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    assert neighbours(store).ids == ()
    assert store.rebuild_neighbours() == 0


def test_neighbours_are_in_the_order_of_their_cosine(store: MemoryStore) -> None:
    add_with(store, a_memory("a"), axis(0))
    add_with(store, a_memory("b"), between(0, 1, 0.5))
    add_with(store, a_memory("c"), between(0, 1, 0.9))
    add(store, a_memory("d"))
    found = neighbours(store)
    assert named(found) == {"a": ["c", "b"], "b": ["c", "a"], "c": ["a", "b"]}
    assert found.lists.products[0][0] / SCALE**2 == pytest.approx(0.9, abs=1e-3)


def test_a_change_of_any_kind_is_in_the_lists_at_once(store: MemoryStore) -> None:
    memories = list(filled(store, 60))
    check_complete(neighbours(store), present(store))
    changed = replace(memories[3], content="other words", revision=2)
    store.commit(
        [Revise(memory=changed, reason="edited", embedded=embedded(changed, axis(2)))], access=EVERYTHING
    )
    check_complete(neighbours(store), present(store))
    bare = replace(memories[4], content="no vectors any more", revision=2)
    revise(store, bare)
    assert memories[4].id not in neighbours(store).ids
    forget(store, memories[5].id)
    check_complete(neighbours(store), present(store))
    store.put_vectors({memories[6].id: embedded(memories[6], axis(5))})
    store.put_vectors({bare.id: embedded(bare, axis(1))})
    check_complete(neighbours(store), present(store))
    assert len(neighbours(store).ids) == 59


def test_many_changes_between_two_calls_are_caught_up_with(store: MemoryStore) -> None:
    memories = list(filled(store, 90))
    neighbours(store)
    for memory in memories[:70]:
        forget(store, memory.id)
    more = [a_memory(f"more {number}", f"text {number}") for number in range(40)]
    dice = Dice(5)
    store.commit(
        [Add(memory=memory, embedded=embedded(memory, dice.unit())) for memory in more], access=EVERYTHING
    )
    check_complete(neighbours(store), present(store))


def test_another_model_has_other_neighbours(store: MemoryStore) -> None:
    memories = list(filled(store, 30))
    neighbours(store)
    dice = Dice(9)
    made = {one.id: embedded(one, dice.unit(), signature=OTHER_SIGNATURE) for one in memories}
    store.put_vectors(made, coming=OTHER_SIGNATURE)
    check_complete(neighbours(store), store.vectors(list(made), SIGNATURE, access=EVERYTHING))
    assert store.adopt(OTHER_SIGNATURE)
    check_complete(neighbours(store), present(store))
    assert store.adopt(SIGNATURE)
    check_complete(neighbours(store), present(store))


def test_vectors_that_come_from_another_store_are_listed(new_store: NewStore) -> None:
    here, there = new_store(), new_store()
    first = list(filled(here, 20))
    neighbours(here)
    for number in range(20):
        memory = replace(a_memory(f"there {number}"), created_at=T0)
        add_with(there, memory, Dice(number).unit())
    here.absorb(flat(there.histories(access=EVERYTHING, vectors=True)), access=EVERYTHING)
    assert len(neighbours(here).ids) == len(first) + 20
    check_complete(neighbours(here), present(here))


def test_a_limited_access_sees_what_a_store_of_only_its_memories_would_show(new_store: NewStore) -> None:
    store, alone = new_store(), new_store()
    ada = Access(scopes=("/user/ada",))
    memories = list(filled(store, 45))
    for memory in memories:
        if memory.scope == "/user/ada":
            add_with(alone, memory, *store.vectors([memory.id], SIGNATURE, access=EVERYTHING)[memory.id])
    limited, own = neighbours(store, ada), neighbours(alone)
    assert limited.ids == own.ids
    assert not {one.id for one in memories if one.scope == "/user/bob"} & set(limited.ids)
    check_complete(limited, present(store, ada))
    for at, name in enumerate(limited.ids):
        ours = named(limited)[name]
        assert ours == named(own)[name][: len(ours)]
        assert len(ours) >= 5 or limited.lists.floors[at] == NOTHING
    assert neighbours(store, Access(domains=("work",))).ids == ()


def test_rebuilding_makes_the_same_lists(store: MemoryStore) -> None:
    list(filled(store, 50))
    before = named(neighbours(store))
    assert store.rebuild_neighbours() == 50
    assert named(neighbours(store)) == before


def test_the_lists_can_be_cancelled(store: MemoryStore) -> None:
    list(filled(store, 5))

    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        store.neighbours(access=EVERYTHING, check=stop)
    assert len(neighbours(store).ids) == 5


def test_more_work_than_was_allowed_is_refused(store: MemoryStore) -> None:
    list(filled(store, 40))
    assert store.neighbours(access=EVERYTHING, most_products=40 * 15) is None
    assert store.neighbours(access=EVERYTHING, most_products=40 * 40) is not None


def test_lists_of_an_earlier_moment_are_not_kept_over_later_ones(store: MemoryStore) -> None:
    """While one reader catches up, another one does so too, after a further write."""
    list(filled(store, 40))
    between_times = iter([True])

    def others_write() -> None:
        if next(between_times, False):
            for number in range(3):
                add_with(store, a_memory(f"later {number}"), Dice(70 + number).unit())
            neighbours(store)

    store.neighbours(access=EVERYTHING, check=others_write)
    check_complete(neighbours(store), present(store))
    assert len(neighbours(store).ids) == 43
