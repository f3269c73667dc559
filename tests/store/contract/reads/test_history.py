from dataclasses import replace
from datetime import datetime

import pytest

from tests.store.support.generators import DAY, HOUR, T0, a_memory, add, forget, held, remark, revise
from vestige.core.errors import NotFound
from vestige.core.models import EVERYTHING, Evidence, Memory
from vestige.store.contract.store import MemoryStore


def test_a_new_memory_has_no_history(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    assert store.history("a", access=EVERYTHING) == []


def test_the_history_of_an_unknown_memory_is_not_found(store: MemoryStore) -> None:
    with pytest.raises(NotFound):
        store.history("unknown", access=EVERYTHING)


def test_each_revision_is_kept_whole_with_its_times_and_the_reason_it_ended(store: MemoryStore) -> None:
    first = replace(a_memory("a", "first"), tags=("red",), metadata={"n": [1]}, phrasings=("one",))
    second = replace(first, content="second", updated_at=T0 + DAY, revision=2, scope="/project", pinned=True)
    third = replace(second, tags=(), updated_at=T0 + 2 * DAY, revision=3)
    add(store, first)
    revise(store, second, "corrected")
    revise(store, third, "untagged")
    past = store.history("a", access=EVERYTHING)
    assert [one.memory for one in past] == [first, second]
    assert [(one.recorded_at, one.ended_at) for one in past] == [(T0, T0 + DAY), (T0 + DAY, T0 + 2 * DAY)]
    assert [one.reason for one in past] == ["corrected", "untagged"]
    assert held(store, "a").memory == third


def test_what_the_store_knew_at_a_moment_can_be_told(store: MemoryStore) -> None:
    first = a_memory("a", "first")
    second = replace(first, content="second", updated_at=T0 + DAY, revision=2)
    third = replace(second, content="third", updated_at=T0 + 2 * DAY, revision=3)
    add(store, first)
    revise(store, second)
    revise(store, third)

    def known_at(moment: datetime) -> Memory | None:
        for past in store.history("a", access=EVERYTHING):
            if past.recorded_at <= moment < past.ended_at:
                return past.memory
        present = held(store, "a").memory
        return present if present.updated_at <= moment else None

    assert known_at(T0 - HOUR) is None
    assert known_at(T0) == first
    assert known_at(T0 + DAY - HOUR) == first
    assert known_at(T0 + DAY) == second
    assert known_at(T0 + 9 * DAY) == third


def test_evidence_is_no_revision(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    assert store.history("a", access=EVERYTHING) == []
    assert held(store, "a").memory == a_memory("a")


def test_the_history_goes_with_the_memory(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    revise(store, replace(a_memory("a", "second"), revision=2))
    forget(store, "a")
    with pytest.raises(NotFound):
        store.history("a", access=EVERYTHING)


def test_a_revision_that_changes_nothing_still_counts(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    (event,) = revise(store, replace(a_memory("a"), revision=2, updated_at=T0 + DAY), "touched")
    assert event.payload["fields"] == []
    assert len(store.history("a", access=EVERYTHING)) == 1
