"""What any store says of itself."""

from dataclasses import replace

import pytest

from tests.store.support.generators import (
    DAY,
    T0,
    NewStore,
    a_memory,
    a_turn,
    add,
    add_with,
    axis,
    flat,
    forget,
    link,
    remark,
    revise,
)
from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, StoreError
from vestige.core.models import EVERYTHING, Evidence
from vestige.store.contract.changes import Put, Tune, Unlink
from vestige.store.contract.store import MemoryStore


def use(store: MemoryStore) -> None:
    """Do everything that leaves a trace."""
    add_with(store, replace(a_memory("a", "zinc and cobalt"), tags=("red", "red", "blue")), axis(0), axis(1))
    add_with(store, a_memory("b", "granite"), axis(2))
    add(store, a_turn("c", "Who is it?", 1), a_turn("d", "It is I.", 2), a_memory("gone", "slate"))
    link(store, "a", "b")
    link(store, "a", "gone")
    link(store, "b", "c", weight=0.5)
    link(store, "b", "c", weight=0.7)
    link(store, "c", "d")
    store.commit([Unlink(source_id="c", target_id="d", kind="related", at=T0)], access=EVERYTHING)
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    store.commit([Tune(w20=0.2, at=T0 + DAY)], access=EVERYTHING)
    remark(store, "b", Evidence.EXPOSED, T0 + 2 * DAY)
    revise(store, replace(a_memory("b", "marble"), revision=2, updated_at=T0 + DAY, phrasings=("stone",)))
    noted = Document(kind="note", id="n", cites=("a", "b"), created_at=T0, updated_at=T0)
    store.commit([Put(document=noted)], access=EVERYTHING)
    forget(store, "gone")


def test_a_new_store_is_well(store: MemoryStore) -> None:
    assert store.examine(T0.replace(year=2030)) == []


def test_a_store_that_was_used_in_every_way_is_well(store: MemoryStore) -> None:
    use(store)
    assert store.examine(T0.replace(year=2030)) == []
    assert store.examine(T0.replace(year=2030), deep=True) == []


def test_a_store_that_took_in_another_is_well(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    use(one)
    add(other, a_memory("e", "basalt"))
    other.absorb(flat(one.histories(access=EVERYTHING, vectors=True)), access=EVERYTHING)
    assert other.examine(T0.replace(year=2030), deep=True) == []


def test_mending_the_words_of_a_store_that_is_well_changes_nothing(store: MemoryStore) -> None:
    use(store)
    before = flat(store.histories(access=EVERYTHING, vectors=True))
    store.repair("words", T0)
    assert len(flat(store.histories(access=EVERYTHING, vectors=True))) == len(before)
    assert store.examine(T0.replace(year=2030)) == []


def test_a_repair_that_nobody_knows_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput, match="no repair called 'everything'"):
        store.repair("everything", T0)


def test_a_closed_store_cannot_be_examined(store: MemoryStore) -> None:
    store.close()
    with pytest.raises(StoreError):
        store.examine(T0.replace(year=2030))
