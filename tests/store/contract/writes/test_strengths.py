from dataclasses import replace
from itertools import pairwise

import pytest

from tests.store.support.generators import (
    DAY,
    HOUR,
    T0,
    a_memory,
    add,
    forget,
    held,
    ids,
    link,
    remark,
    revise,
)
from vestige.cognition.fsrs.strength import StrengthLine, after, encode, fold
from vestige.core.models import EVERYTHING, Evidence, Filter, Order, Strength
from vestige.store.contract.changes import RecordEvidence
from vestige.store.contract.store import MemoryStore

EVIDENCE = [evidence for evidence in Evidence if evidence is not Evidence.ENCODED]


def replayed(store: MemoryStore, name: str) -> Strength:
    """The strength as `rebuild` derives it: from the log alone."""
    created, *events = store.log(access=EVERYTHING, memory_id=name)
    assert created.kind == "memory.created"
    return fold(
        created.at,
        [
            StrengthLine(evidence=Evidence(event.payload["evidence"]), at=event.at)
            for event in events
            if event.kind == "memory.remarked"
        ],
    )


def end_of_log(store: MemoryStore) -> int:
    return store.log(access=EVERYTHING)[-1].position


def test_a_new_memory_is_encoded_at_its_creation(store: MemoryStore) -> None:
    add(store, a_memory("a", at=T0.replace(microsecond=999_999)))
    assert held(store, "a").strength == encode(T0.replace(microsecond=999_999))


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_evidence_folds_the_strength_forward(store: MemoryStore, evidence: Evidence) -> None:
    add(store, a_memory("a"), a_memory("b"))
    remark(store, "a", evidence, T0 + 3 * DAY)
    assert held(store, "a").strength == after(encode(T0), evidence, T0 + 3 * DAY)
    assert held(store, "b").strength == encode(T0)


def test_evidence_in_one_commit_adds_up_in_order(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    at = [T0 + DAY, T0 + 2 * DAY, T0 + HOUR]
    kinds = [Evidence.GOOD, Evidence.DEMOTED, Evidence.EXPOSED]
    store.commit(
        [RecordEvidence(memory_id="a", evidence=kind, at=when) for kind, when in zip(kinds, at, strict=True)],
        access=EVERYTHING,
    )
    expected = encode(T0)
    for kind, when in zip(kinds, at, strict=True):
        expected = after(expected, kind, when)
    assert held(store, "a").strength == expected


def test_replaying_the_log_gives_the_stored_strength(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b", at=T0 + DAY))
    for number, evidence in enumerate(EVIDENCE * 3):
        remark(store, "ab"[number % 2], evidence, T0 + (number * 7 % 11) * DAY)
    revise(store, replace(a_memory("a", "changed"), revision=2, updated_at=T0 + 40 * DAY))
    remark(store, "a", Evidence.EASY, T0 + 50 * DAY)
    for name in "ab":
        assert held(store, name).strength == replayed(store, name)


def test_a_revision_leaves_the_strength_alone(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    before = held(store, "a").strength
    revise(store, replace(a_memory("a", "changed"), revision=2, updated_at=T0 + 9 * DAY))
    assert held(store, "a").strength == before


def test_strengths_can_be_overwritten_by_replayed_ones(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"), a_memory("gone"))
    forget(store, "gone")
    strong = after(encode(T0), Evidence.EASY, T0 + DAY)
    odd = replace(strong, stability=1 / 3, retrieval=0.1 + 0.2, exposed_at=T0.replace(microsecond=1))
    assert store.put_strengths({"a": odd, "unknown": strong, "gone": strong}, after=end_of_log(store)) == 1
    assert held(store, "a").strength == odd
    assert held(store, "b").strength == encode(T0)
    assert store.put_strengths({}, after=0) == 0


def test_overwritten_strengths_count_in_orders_filters_and_further_evidence(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    late = replace(encode(T0), due_at=T0 + 90 * DAY, stability=90.0)
    store.put_strengths({"a": late}, after=end_of_log(store))
    assert ids(store.find(Filter(), access=EVERYTHING, order=Order.DUE, limit=5)) == ["b", "a"]
    assert store.count(Filter(due_by=T0 + 89 * DAY), access=EVERYTHING) == 1
    remark(store, "a", Evidence.GOOD, T0 + 30 * DAY)
    assert held(store, "a").strength == after(late, Evidence.GOOD, T0 + 30 * DAY)


def test_evidence_logged_after_the_replay_is_not_overwritten(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    position = end_of_log(store)
    replay = {name: replace(replayed(store, name), stability=5.0) for name in "ab"}
    remark(store, "a", Evidence.EASY, T0 + 2 * DAY)
    present = held(store, "a").strength
    assert store.put_strengths(replay, after=position) == 1
    assert held(store, "a").strength == present
    assert held(store, "b").strength == replay["b"]
    assert store.put_strengths(replay, after=end_of_log(store)) == 2
    assert held(store, "a").strength == replay["a"]


def test_only_evidence_keeps_a_strength_from_being_overwritten(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    position = end_of_log(store)
    revise(store, replace(a_memory("a", "changed"), revision=2, updated_at=T0 + DAY))
    link(store, "a", "b")
    remark(store, "b", Evidence.GOOD, T0 + DAY)
    strong = after(encode(T0), Evidence.EASY, T0 + DAY)
    assert store.put_strengths({"a": strong}, after=position) == 1
    assert held(store, "a").strength == strong


def test_the_retention_snapshot_carries_its_time(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    moments = []
    for days in (1, 5, 20):
        remark(store, "a", Evidence.GOOD, T0 + days * DAY)
        moments.append(held(store, "a").strength.retention_at)
    assert all(earlier < later for earlier, later in pairwise(moments))
    assert moments[-1] == T0 + 20 * DAY
