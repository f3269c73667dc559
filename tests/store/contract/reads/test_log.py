from dataclasses import replace

import orjson

from tests.store.support.generators import (
    DAY,
    HOUR,
    SIGNATURE,
    T0,
    NewStore,
    a_memory,
    add,
    axis,
    embedded,
    flat,
    forget,
    held,
    link,
    memory_id,
    remark,
    revise,
)
from vestige.core.models import EVERYTHING, Evidence
from vestige.store.contract.changes import RecordEvidence
from vestige.store.contract.store import MemoryStore


def test_every_change_is_logged_with_its_kind_time_scope_and_payload(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), scope="/project"), a_memory("b"))
    later = replace(a_memory("a", "changed"), tags=("t",), updated_at=T0 + DAY, revision=2)
    revise(store, later, "corrected")
    store.commit(
        [RecordEvidence(memory_id="a", evidence=Evidence.GOOD, at=T0 + 2 * DAY, details={"by": ["test"]})],
        access=EVERYTHING,
    )
    link(store, "b", "a", kind="cause", weight=0.5)
    forget(store, "a", at=T0 + 3 * DAY)
    log = store.log(access=EVERYTHING)
    assert [(event.kind, event.memory_id, event.scope, event.at) for event in log] == [
        ("memory.created", "a", "/project", T0),
        ("memory.created", "b", "/", T0),
        ("memory.revised", "a", "/", T0 + DAY),
        ("memory.remarked", "a", "/", T0 + 2 * DAY),
        ("edge.linked", "b", "/", T0),
        ("memory.deleted", "a", "/", T0 + 3 * DAY),
    ]
    revised, remarked, linked, deleted = (event.payload for event in log[2:])
    assert set(revised["fields"]) == {"content", "scope", "tags"}
    assert revised["reason"] == "corrected"
    assert remarked["evidence"] == "good"
    assert remarked["details"] == {"by": ["test"]}
    assert (linked["target"], linked["kind"], linked["weight"]) == ("a", "cause", 0.5)
    assert deleted["reason"] == "asked to"


def test_a_commit_returns_the_events_it_logged(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    events = add(store, a_memory("b"), a_memory("c"))
    assert events == store.log(access=EVERYTHING)[1:]
    assert all(event.node == store.node for event in events)


def test_no_event_holds_any_text_of_a_memory(store: MemoryStore) -> None:
    memory = replace(
        a_memory("a", "xylophone"), phrasings=("xylophone two",), tags=("xylophone",), source="xylophone"
    )
    add(store, replace(memory, metadata={"xylophone": "xylophone"}))
    revise(store, replace(memory, content="xylophone again", revision=2))
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    forget(store, "a")
    for event in store.log(access=EVERYTHING):
        assert b"xylophone" not in orjson.dumps(dict(event.payload))


def test_sequence_numbers_have_no_gap_and_positions_rise(store: MemoryStore) -> None:
    for number in range(5):
        add(store, a_memory(memory_id(number)), a_memory(memory_id(100 + number)))
    log = store.log(access=EVERYTHING)
    assert [event.seq for event in log] == list(range(1, 11))
    positions = [event.position for event in log]
    assert positions == sorted(set(positions))
    assert positions[0] > 0


def test_the_clock_carries_the_time_in_milliseconds(store: MemoryStore) -> None:
    first, second = add(store, a_memory("a"), a_memory("b"))
    (third,) = add(store, a_memory("c", at=T0 + HOUR))
    milliseconds = int(T0.timestamp()) * 1000
    assert (first.clock, second.clock) == (milliseconds << 16, (milliseconds << 16) + 1)
    assert third.clock == (milliseconds + 3_600_000) << 16


def test_the_clock_rises_even_when_times_go_backwards(store: MemoryStore) -> None:
    for number, days in enumerate([0, 5, -400, 2, 5, -400_000, 0]):
        add(store, a_memory(memory_id(number), at=T0 + days * DAY))
    log = store.log(access=EVERYTHING)
    clocks = [event.clock for event in log]
    assert clocks == sorted(set(clocks))
    assert [event.at for event in log][2] == T0 - 400 * DAY
    assert clocks[-1] >> 16 == int((T0 + 5 * DAY).timestamp()) * 1000


def test_the_clock_stays_within_64_bits_for_times_in_the_far_future(store: MemoryStore) -> None:
    first, second = add(
        store, a_memory("a", at=T0.replace(year=9998)), a_memory("b", at=T0.replace(year=9999))
    )
    assert 0 < first.clock < second.clock < 2**63
    assert store.log(access=EVERYTHING) == [first, second]


def test_the_log_can_be_read_in_pages_by_position(store: MemoryStore) -> None:
    for number in range(7):
        add(store, a_memory(memory_id(number)))
    whole = store.log(access=EVERYTHING)
    after, pages = 0, []
    for _ in range(3):
        pages.append(store.log(access=EVERYTHING, after=after, limit=3))
        after = pages[-1][-1].position
    assert [len(page) for page in pages] == [3, 3, 1]
    assert flat(pages) == whole
    assert store.log(access=EVERYTHING, after=whole[-1].position) == []


def test_the_log_of_one_memory_holds_only_its_own_events(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    remark(store, "a", Evidence.GOOD, T0 + DAY)
    link(store, "b", "a")
    forget(store, "a")
    kinds = [event.kind for event in store.log(access=EVERYTHING, memory_id="a")]
    assert kinds == ["memory.created", "memory.remarked", "memory.deleted"]
    assert [event.kind for event in store.log(access=EVERYTHING, memory_id="a", limit=1)] == [
        "memory.created"
    ]
    assert store.log(access=EVERYTHING, memory_id="unknown") == []


def test_derived_data_is_not_logged(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    store.put_vectors({"a": embedded(a_memory("a"), axis(0))})
    store.put_strengths({"a": held(store, "a").strength}, after=1)
    store.rebuild_words()
    store.adopt(SIGNATURE)
    assert len(store.log(access=EVERYTHING)) == 1


def test_two_stores_have_nodes_of_their_own(new_store: NewStore) -> None:
    assert new_store().node != new_store().node
