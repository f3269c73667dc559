"""A strength that is brought along from another memory system."""

from dataclasses import fields, replace
from datetime import timedelta, timezone

import pytest

from tests.store.support.generators import DAY, HOUR, T0, a_memory, add, held, remark
from vestige.cognition.fsrs.strength import after, encode
from vestige.core.errors import InvalidInput, NotFound
from vestige.core.models import EVERYTHING, Access, Evidence, LearningState, LogEvent, Strength
from vestige.store.contract.changes import Add, Carry, Tune
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.strength_log import Curves, carried_strength

BROUGHT = Strength(
    stability=12.345678901234567,
    difficulty=3.3,
    decay_from=T0 - 3 * DAY,
    due_at=T0 + 9 * DAY,
    last_accessed=T0 - DAY,
    retention=0.7071067811865476,
    retention_at=T0 - HOUR,
    retrieval=0.9,
    storage=4.2,
    learning_state=LearningState.RELEARNING,
    reps=7,
    lapses=2,
    exposed_at=T0 - 2 * DAY,
    times_retrieved=11,
    times_useful=3,
)


def carry(store: MemoryStore, strength: Strength = BROUGHT, access: Access = EVERYTHING) -> LogEvent:
    (event,) = store.commit([Carry(memory_id="a", strength=strength, at=T0)], access=access)
    return event


def test_it_takes_the_place_of_the_one_the_memory_had_to_the_last_bit(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    carry(store)
    assert held(store, "a").strength == BROUGHT


def test_it_comes_with_the_memory_in_one_commit(store: MemoryStore) -> None:
    store.commit(
        [Add(memory=a_memory("a")), Carry(memory_id="a", strength=BROUGHT, at=T0)], access=EVERYTHING
    )
    assert held(store, "a").strength == BROUGHT


def test_the_log_tells_all_of_it_but_the_curve(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    event = carry(store)
    assert (event.kind, event.memory_id, event.at) == ("memory.carried", "a", T0)
    assert set(event.payload["strength"]) == {one.name for one in fields(Strength)} - {"curve"}
    assert carried_strength(event.payload) == BROUGHT
    assert store.log(access=EVERYTHING, memory_id="a")[-1] == event


def test_a_memory_without_an_exposure_has_none_afterwards(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    carry(store, replace(BROUGHT, exposed_at=None))
    assert held(store, "a").strength.exposed_at is None


def test_its_curve_is_the_stores(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    store.commit([Tune(w20=0.4, at=T0)], access=EVERYTHING)
    carry(store, replace(BROUGHT, curve=0.2))
    assert held(store, "a").strength == replace(BROUGHT, curve=0.4)


def test_times_of_another_zone_are_the_same_moments(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    east = timezone(timedelta(hours=5, minutes=30))
    carry(store, replace(BROUGHT, decay_from=BROUGHT.decay_from.astimezone(east)))
    assert held(store, "a").strength == BROUGHT


def test_later_evidence_builds_on_it_and_the_log_explains_the_result(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    remark(store, "a", Evidence.GOOD, T0)
    carry(store)
    remark(store, "a", Evidence.GOOD, T0 + 5 * DAY)
    strength = held(store, "a").strength
    assert strength == after(BROUGHT, Evidence.GOOD, T0 + 5 * DAY)
    log = store.log(access=EVERYTHING, memory_id="a")
    assert Curves().folded(T0, log).strength == strength


def test_a_replay_from_before_it_does_not_undo_it(store: MemoryStore) -> None:
    (created,) = add(store, a_memory("a"))
    carry(store)
    assert store.put_strengths({"a": encode(T0)}, after=created.position) == 0
    assert held(store, "a").strength == BROUGHT


@pytest.mark.parametrize(
    "strength",
    [
        replace(BROUGHT, stability=0.0),
        replace(BROUGHT, stability=float("nan")),
        replace(BROUGHT, difficulty=11.0),
        replace(BROUGHT, retention=1.5),
        replace(BROUGHT, storage=-1.0),
        replace(BROUGHT, reps=-1),
    ],
)
def test_what_is_no_strength_is_refused(store: MemoryStore, strength: Strength) -> None:
    add(store, a_memory("a"))
    before = held(store, "a").strength
    with pytest.raises(InvalidInput):
        carry(store, strength)
    assert held(store, "a").strength == before
    assert len(store.log(access=EVERYTHING)) == 1


def test_an_unknown_memory_and_one_out_of_reach_are_not_found(store: MemoryStore) -> None:
    with pytest.raises(NotFound):
        carry(store)
    add(store, a_memory("a"))
    with pytest.raises(NotFound):
        carry(store, access=Access(scopes=("/other",)))
