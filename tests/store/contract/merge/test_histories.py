"""Everything canonical, told entity by entity."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    add,
    axis,
    embedded,
    flat,
    forget,
    held,
    link,
    remark,
    revise,
    some_tokens,
)
from vestige.cognition.text.analyser import text_hash
from vestige.core.documents import LOCAL, Document
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING, Access, Evidence, Filter
from vestige.store.contract.changes import Add, Change, Drop, Forget, Put, Tune, Unlink
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.absorb import check
from vestige.store.merge.histories import (
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    MemoryHistory,
    stamp,
)
from vestige.store.merge.union import Key, key_of


def told(
    store: MemoryStore, where: Filter | None = None, access: Access = EVERYTHING
) -> dict[Key, EntityHistory]:
    lives = flat(store.histories(where, access=access))
    found = {key_of(life): life for life in lives}
    assert len(found) == len(lives)
    return found


def the_memory(store: MemoryStore, name: str, *, vectors: bool = False) -> MemoryHistory:
    lives = flat(store.histories(access=EVERYTHING, vectors=vectors))
    (life,) = (one for one in lives if isinstance(one, MemoryHistory) and one.memory_id == name)
    return life


def a_document(name: str, *, kind: str = "note", cites: tuple[str, ...] = (), scope: str = "/") -> Document:
    return Document(
        kind=kind, id=name, body={"n": [1]}, cites=cites, scope=scope, created_at=T0, updated_at=T0
    )


BODIES: dict[str, dict[str, Any]] = {
    "domain_centroids": {"profile": "p", "rows": []},
    "domain_moves": {"rows": []},
    "domain_run": {"run": 1},
    "domain_proposal": {
        "kind": "merge",
        "targets": ["a", "b"],
        "status": "pending",
        "parts": [],
        "confidence": 0.5,
        "seen": 1,
        "run": 1,
    },
    "review_policy": {"scopes": {}},
    "bulk": {"change": "pin", "memories": {"a": 1}, "at": T0.isoformat(), "terms": {}},
}
"""Valid bodies of local documents; others may be empty."""


def put(store: MemoryStore, *documents: Document, logged: bool = True) -> None:
    store.commit([Put(document=one, logged=logged) for one in documents], access=EVERYTHING)


def do(store: MemoryStore, *changes: Change) -> None:
    store.commit(changes, access=EVERYTHING)


@pytest.fixture
def full(store: MemoryStore) -> MemoryStore:
    """A store with everything in it that can be."""
    add(store, a_memory("b"), replace(a_memory("a", "copper"), tags=("red",), scope="/p"), a_memory("gone"))
    revise(store, replace(a_memory("b", "zinc, revised"), revision=2, updated_at=T0 + DAY))
    remark(store, "b", Evidence.GOOD, T0 + 2 * DAY)
    for source, target in (("b", "a"), ("a", "b"), ("b", "gone")):
        link(store, source, target)
    do(store, Unlink(source_id="a", target_id="b", kind="related", at=T0))
    do(store, Tune(w20=0.3, at=T0))
    put(
        store,
        a_document("two", cites=("b",)),
        a_document("one", scope="/p", cites=("a",)),
        a_document("free"),
    )
    put(store, a_document("quiet", kind="sample"), logged=False)
    put(store, *(replace(a_document("mine"), kind=kind, body=BODIES.get(kind, {})) for kind in LOCAL))
    put(store, a_document("dropped"), a_document("lost", cites=("gone",)))
    do(store, Drop(kind="note", id="dropped", at=T0))
    forget(store, "gone")
    return store


def test_the_curve_comes_first_then_memories_edges_and_documents_each_in_order(full: MemoryStore) -> None:
    assert list(told(full)) == [
        ("curve",),
        ("memory", "a"),
        ("memory", "b"),
        ("memory", "gone"),
        ("edge", "a", "b", "related"),
        ("edge", "b", "a", "related"),
        ("edge", "b", "gone", "related"),
        ("document", "note", "dropped"),
        ("document", "note", "free"),
        ("document", "note", "lost"),
        ("document", "note", "one"),
        ("document", "note", "two"),
        ("document", "sample", "quiet"),
    ]


def test_every_event_is_told_once_with_its_name_and_time_but_without_its_position(full: MemoryStore) -> None:
    log = [event for event in full.log(access=EVERYTHING) if event.payload.get("kind") not in LOCAL]
    events = [event for life in told(full).values() for event in life.events]
    assert sorted(events, key=stamp) == [replace(event, position=0) for event in log]
    for life in told(full).values():
        assert list(life.events) == sorted(life.events, key=stamp)


def test_every_life_could_be_true(full: MemoryStore) -> None:
    for life in told(full).values():
        check(life)


def test_a_memory_has_a_version_for_each_write_and_the_last_is_the_present_one(full: MemoryStore) -> None:
    life = the_memory(full, "b")
    assert [event.kind for event in life.events] == ["memory.created", "memory.revised", "memory.remarked"]
    assert [one.content for one in life.versions] == ["zinc and cobalt", "zinc, revised"]
    assert life.versions[-1] == held(full, "b").memory


def test_a_deleted_memory_is_told_by_its_events_alone(full: MemoryStore) -> None:
    life = the_memory(full, "gone")
    assert [event.kind for event in life.events] == ["memory.created", "memory.deleted"]
    assert life.versions == ()


def test_a_document_has_the_stamp_of_its_last_put_and_a_gone_one_none(full: MemoryStore) -> None:
    lives = {life.id: life for life in told(full).values() if isinstance(life, DocumentHistory)}
    (event,) = lives["one"].events
    assert (lives["one"].clock, lives["one"].node) == (event.clock, event.node)
    assert lives["one"].document == a_document("one", scope="/p", cites=("a",))
    assert lives["quiet"].events == ()
    assert lives["quiet"].node == full.node
    for name in ("dropped", "lost"):
        assert (lives[name].document, lives[name].clock, lives[name].node) == (None, 0, "")


def test_the_stamps_of_documents_grow_though_the_clock_is_set_back_by_a_year(store: MemoryStore) -> None:
    put(store, a_document("a"))
    back = T0 - 365 * DAY
    clocks = []
    for version in range(2, 5):
        document = replace(a_document("a"), version=version, updated_at=back)
        put(store, document, logged=version % 2 == 0)
        (life,) = told(store).values()
        assert isinstance(life, DocumentHistory)
        clocks.append(life.clock)
    assert clocks == sorted(set(clocks))
    (event,) = add(store, a_memory("m", at=back))
    assert event.clock > clocks[-1]


def test_an_empty_store_tells_nothing(store: MemoryStore) -> None:
    assert list(store.histories(access=EVERYTHING)) == []


def test_batches_have_the_size_asked_for_and_nothing_is_lost_between_them(full: MemoryStore) -> None:
    batches = list(full.histories(access=EVERYTHING, batch=2))
    assert {len(batch) for batch in batches[:-1]} == {2}
    assert flat(batches) == flat(full.histories(access=EVERYTHING))
    with pytest.raises(InvalidInput):
        next(full.histories(access=EVERYTHING, batch=0))


def test_what_is_written_while_it_is_told_is_not_told(full: MemoryStore) -> None:
    expected = flat(full.histories(access=EVERYTHING))
    lives = full.histories(access=EVERYTHING, batch=1)
    first = next(lives)
    add(full, a_memory("aa", "new"))
    forget(full, "b")
    do(full, Tune(w20=0.9, at=T0))
    assert flat([first, *lives]) == expected


def test_a_filter_tells_what_passes_and_what_lies_between(full: MemoryStore) -> None:
    everything = told(full)
    assert told(full, Filter()) == {
        key: everything[key]
        for key in (
            ("memory", "a"),
            ("memory", "b"),
            ("edge", "b", "a", "related"),
            ("document", "note", "one"),
            ("document", "note", "two"),
        )
    }
    red = told(full, Filter(tags_any=("red",)))
    assert list(red) == [("memory", "a"), ("document", "note", "one")]
    assert red["memory", "a"] == everything["memory", "a"]
    assert told(full, Filter(tags_any=("none",))) == {}


def test_a_limited_access_tells_what_is_in_reach(full: MemoryStore) -> None:
    put(full, a_document("project", scope="/p/q"))
    assert list(told(full, access=Access(scopes=("/p",)))) == [
        ("memory", "a"),
        ("document", "note", "one"),
        ("document", "note", "project"),
    ]
    assert told(full, access=Access(domains=("home",))) == {}
    assert list(told(full, Filter(), access=Access(scopes=("/p",)))) == [
        ("memory", "a"),
        ("document", "note", "one"),
    ]


def test_what_was_once_out_of_reach_is_not_told_to_who_may_not_read_there(store: MemoryStore) -> None:
    private = replace(a_memory("a", "zinc"), scope="/user/me")
    add(store, private, replace(a_memory("b", "iron"), scope="/p"))
    revise(store, replace(private, scope="/p", content="tin", revision=2))
    link(store, "a", "b")
    put(store, a_document("one", cites=("a",), scope="/p"))
    everything = [
        ("memory", "a"),
        ("memory", "b"),
        ("edge", "a", "b", "related"),
        ("document", "note", "one"),
    ]
    assert list(told(store, access=Access(scopes=("/p",)))) == [("memory", "b")]
    assert list(told(store, access=Access(scopes=("/p", "/user")))) == everything
    assert list(told(store, Filter(scope="/p"))) == everything  # the user's own: with its whole past


def test_archived_memories_are_told_unless_a_filter_leaves_them_out(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), archived_at=T0))
    assert list(told(store)) == [("memory", "a")]
    assert list(told(store, access=Access(scopes=("/",)))) == [("memory", "a")]
    assert told(store, Filter()) == {}


def test_vectors_are_told_when_asked_for_with_all_tokens_at_the_first_piece(store: MemoryStore) -> None:
    memory = a_memory("a")
    tokens = [some_tokens(1, 2, asked=True), some_tokens(3)]
    given = embedded(memory, axis(0), axis(3), tokens=tokens)
    do(store, Add(memory=memory, embedded=given), Add(memory=a_memory("bare", "iron")))
    assert the_memory(store, "a").embedded is None
    assert the_memory(store, "bare", vectors=True).embedded is None
    found = the_memory(store, "a", vectors=True).embedded
    assert found is not None
    assert (found.signature, found.text_hash) == (SIGNATURE, text_hash(memory))
    np.testing.assert_array_equal([piece.vector for piece in found.pieces], [axis(0), axis(3)])
    assert [(piece.start, piece.end) for piece in found.pieces] == [(0, 1), (1, 2)]
    first, second = (piece.tokens for piece in found.pieces)
    assert first is not None
    assert first.bits.tolist() == [[1], [2], [3]]
    assert first.asked.tolist() == [True, True, False]
    assert second is None


def test_a_reader_cannot_change_what_is_stored(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), metadata={"deep": {"n": 1}}))
    life = the_memory(store, "a")
    life.versions[0].metadata["deep"]["n"] = 2
    assert held(store, "a").memory.metadata == {"deep": {"n": 1}}


def test_edges_are_told_with_all_that_happened_to_them(full: MemoryStore) -> None:
    life = told(full)["edge", "a", "b", "related"]
    assert isinstance(life, EdgeHistory)
    assert [event.kind for event in life.events] == ["edge.linked", "edge.unlinked"]
    curve = told(full)[("curve",)]
    assert isinstance(curve, CurveHistory)
    assert [event.payload["w20"] for event in curve.events] == [0.3]


def test_what_was_added_and_deleted_in_one_commit_is_told_as_deleted(store: MemoryStore) -> None:
    do(store, Add(memory=a_memory("a")), Forget(memory_id="a", at=T0, reason="at once"))
    life = the_memory(store, "a")
    assert life.versions == ()
    assert len(life.events) == 2


def test_ids_are_ordered_by_their_characters(store: MemoryStore) -> None:
    names = ("é", "z", "a-", "B", "a", "𝒜", "ﬁ")
    add(store, *(a_memory(name) for name in names))
    assert [key[1] for key in told(store)] == sorted(names)
