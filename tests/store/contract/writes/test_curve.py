"""The curve of forgetting belongs to the whole store."""

from dataclasses import replace

import numpy as np
import pytest

from tests.store.support.generators import DAY, T0, a_memory, add, held, ids, remark
from vestige.cognition.fsrs.formulas import W20
from vestige.cognition.fsrs.strength import after, encode, retention_of, retrieval_of
from vestige.core.errors import Forbidden, InvalidInput, VestigeError
from vestige.core.models import EVERYTHING, Access, Evidence, Filter, LogEvent, Order
from vestige.store.contract.changes import Add, RecordEvidence, Tune
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore

STEEP = 0.5


def tune(store: MemoryStore, w20: float = STEEP) -> list[LogEvent]:
    return store.commit([Tune(w20=w20, at=T0 + DAY)], access=EVERYTHING)


def test_a_store_begins_with_the_curve_of_fsrs(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    assert held(store, "a").strength.curve == W20


def test_another_curve_holds_for_what_is_there_and_for_what_comes(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    before = held(store, "a").strength
    tune(store)
    add(store, a_memory("b"))
    assert held(store, "a").strength == replace(before, curve=STEEP)
    assert held(store, "b").strength == encode(T0, STEEP)


def test_a_new_curve_is_logged_without_a_memory(store: MemoryStore) -> None:
    (event,) = tune(store)
    assert (event.kind, event.memory_id, event.scope) == ("curve.tuned", None, "/")
    assert event.payload == {"w20": STEEP}
    assert store.log(access=EVERYTHING) == [event]
    assert store.log(access=Access(scopes=("/a",))) == []


def test_evidence_is_folded_on_the_curve_of_its_time(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    remark(store, "a", Evidence.GOOD, T0 + 10 * DAY)
    tune(store)
    remark(store, "a", Evidence.GOOD, T0 + 90 * DAY)
    first = after(encode(T0), Evidence.GOOD, T0 + 10 * DAY)
    assert held(store, "a").strength == after(replace(first, curve=STEEP), Evidence.GOOD, T0 + 90 * DAY)


def test_later_changes_of_the_same_commit_see_the_new_curve(store: MemoryStore) -> None:
    add(store, a_memory("old"))
    at = T0 + 30 * DAY
    store.commit(
        [
            Tune(w20=STEEP, at=at),
            Add(memory=a_memory("new")),
            *(RecordEvidence(memory_id=name, evidence=Evidence.GOOD, at=at) for name in ("old", "new")),
        ],
        access=EVERYTHING,
    )
    expected = after(encode(T0, STEEP), Evidence.GOOD, at)
    assert held(store, "new").strength == held(store, "old").strength == expected


def test_filters_orders_counts_and_candidates_fade_on_the_new_curve(store: MemoryStore) -> None:
    add(store, a_memory("fresh", "zinc", at=T0 + 60 * DAY), a_memory("old", "zinc"))
    now = T0 + 60 * DAY
    tune(store)
    level = retention_of(held(store, "old").strength, now)
    assert level < retention_of(encode(T0), now) - 0.1
    within = Filter(min_retention=level - 0.01, max_retention=level + 0.01, now=now)
    assert ids(store.find(within, access=EVERYTHING, order=Order.RETENTION, limit=5)) == ["old"]
    levels = store.levels(access=EVERYTHING, now=now)
    assert min(levels.retentions) == pytest.approx(level, rel=1e-12)
    assert min(levels.retrievals) == pytest.approx(retrieval_of(held(store, "old").strength, now), rel=1e-12)
    pool = store.gather(Probe(terms=("zinc",), where=Filter(now=now), per_arm=10), access=EVERYTHING)
    np.testing.assert_array_equal(pool.traits.curve, [STEEP, STEEP])


def test_replayed_strengths_keep_the_curve_of_the_store(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    position = store.log(access=EVERYTHING)[-1].position
    replayed = replace(held(store, "a").strength, storage=2.0)
    tune(store)
    assert store.put_strengths({"a": replayed}, after=position) == 1
    assert held(store, "a").strength == replace(replayed, curve=STEEP)


@pytest.mark.parametrize("access", [Access(scopes=("/",)), Access(domains=("home",))])
def test_whoever_does_not_reach_the_whole_store_may_not_change_it(store: MemoryStore, access: Access) -> None:
    add(store, a_memory("a"))
    with pytest.raises(Forbidden):
        store.commit([Tune(w20=STEEP, at=T0)], access=access)
    assert held(store, "a").strength.curve == W20


@pytest.mark.parametrize("w20", [0.0, -0.2, float("nan"), float("inf")])
def test_what_is_no_curve_is_refused_with_everything_beside_it(store: MemoryStore, w20: float) -> None:
    with pytest.raises(InvalidInput):
        store.commit([Add(memory=a_memory("a")), Tune(w20=w20, at=T0)], access=EVERYTHING)
    assert store.log(access=EVERYTHING) == []


def test_a_commit_that_fails_leaves_the_curve_as_it_was(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    with pytest.raises(VestigeError):
        store.commit([Tune(w20=STEEP, at=T0), Add(memory=a_memory("a"))], access=EVERYTHING)
    assert held(store, "a").strength.curve == W20
