from dataclasses import replace
from types import MappingProxyType

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
from vestige.cognition.text.analyser import fingerprint
from vestige.core.errors import Conflict, IdempotencyConflict, InvalidInput, NotFound, VestigeError
from vestige.core.models import ANYTHING, EVERYTHING, Edge, Evidence, Memory
from vestige.store.contract.changes import Add, Change, Claim, Forget, Link, RecordEvidence, Revise
from vestige.store.contract.store import MemoryStore

FULL = Memory(
    id="full",
    content="  Zinc\tand\r\ncobalt 🦀 日本語  ",
    created_at=T0.replace(microsecond=123456),
    updated_at=T0.replace(microsecond=654321),
    node_type="decision",
    tags=("b", "a", "tag with spaces", "日本"),
    scope="/project/vestige",
    source="paper.pdf",
    author="ada",
    agent_id="agent-1",
    session_id="session-1",
    thread="thread-1",
    position=-3,
    occurred_at=T0.replace(year=1, microsecond=1),
    valid_from=T0.replace(year=999),
    valid_until=T0.replace(year=9999),
    superseded_by="another",
    pinned=True,
    suppression_count=2,
    suppressed_at=T0 + DAY,
    archived_at=T0 + 2 * DAY,
    phrasings=("Cobalt and zinc", "Both metals"),
    domains=("work", "läb"),
    domain_scores={"work": 0.1, "läb": 1 / 3},
    metadata={"nested": {"list": [1, 2.5, None, True, "é"]}, "": ""},
)


def test_a_memory_comes_back_with_every_field_as_it_was_given(store: MemoryStore) -> None:
    add(store, FULL)
    assert held(store, "full").memory == FULL


def test_a_memory_with_only_the_required_fields_comes_back_equal(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    assert held(store, "a").memory == a_memory("a")
    assert not held(store, "a").embedded


def test_what_the_caller_does_to_its_metadata_later_does_not_reach_the_store(store: MemoryStore) -> None:
    inner = {"list": [1]}
    add(store, replace(a_memory("a"), metadata={"inner": inner}))
    inner["list"].append(2)
    held(store, "a").memory.metadata["inner"]["list"].append(3)
    assert held(store, "a").memory.metadata == {"inner": {"list": [1]}}


def test_metadata_may_hold_mappings_of_any_type(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), metadata={"inner": MappingProxyType({"n": 1})}))
    assert held(store, "a").memory.metadata == {"inner": {"n": 1}}


def test_metadata_that_json_cannot_hold_is_refused(store: MemoryStore) -> None:
    with pytest.raises(InvalidInput):
        add(store, replace(a_memory("a"), metadata={"set": {1, 2}}))
    assert store.count(ANYTHING, access=EVERYTHING) == 0


def test_adding_an_id_that_exists_is_a_conflict_and_keeps_the_first(store: MemoryStore) -> None:
    add(store, a_memory("a", "first"))
    with pytest.raises(Conflict):
        add(store, a_memory("a", "second"))
    assert held(store, "a").memory.content == "first"


def test_adding_the_same_id_twice_in_one_commit_is_a_conflict(store: MemoryStore) -> None:
    with pytest.raises(Conflict):
        add(store, a_memory("a"), a_memory("a"))
    assert store.get_many(["a"], access=EVERYTHING) == []


def test_a_revision_replaces_every_field_but_the_time_of_creation(store: MemoryStore) -> None:
    add(store, a_memory("full"))
    revise(store, replace(FULL, revision=2))
    assert held(store, "full").memory == replace(FULL, revision=2, created_at=T0)


@pytest.mark.parametrize("revision", [1, 3])
def test_a_revision_that_does_not_follow_the_present_one_is_a_conflict(
    store: MemoryStore, revision: int
) -> None:
    add(store, a_memory("a", "kept"))
    with pytest.raises(Conflict):
        revise(store, replace(a_memory("a", "lost"), revision=revision))
    assert held(store, "a").memory.content == "kept"
    assert store.history("a", access=EVERYTHING) == []


def test_a_later_change_of_a_commit_sees_the_earlier_ones(store: MemoryStore) -> None:
    first, second = a_memory("a", "first"), a_memory("b")
    edge = Edge(source_id="a", target_id="b", kind="related", created_at=T0)
    events = store.commit(
        [
            Add(memory=first),
            Revise(memory=replace(first, content="second", revision=2), reason="one"),
            Revise(memory=replace(first, content="third", revision=3), reason="two"),
            RecordEvidence(memory_id="a", evidence=Evidence.GOOD, at=T0 + DAY),
            Add(memory=second),
            Link(edge=edge),
            Forget(memory_id="b", at=T0 + DAY, reason="asked to"),
        ],
        access=EVERYTHING,
    )
    assert [event.kind for event in events] == [
        "memory.created",
        "memory.revised",
        "memory.revised",
        "memory.remarked",
        "memory.created",
        "edge.linked",
        "memory.deleted",
    ]
    assert held(store, "a").memory.content == "third"
    assert held(store, "a").strength.reps == 1
    assert [past.memory.content for past in store.history("a", access=EVERYTHING)] == ["first", "second"]
    assert store.get_many(["b"], access=EVERYTHING) == []
    assert store.edges(["a"], access=EVERYTHING) == []


def test_a_link_can_be_made_in_the_commit_that_adds_its_ends_but_not_before_them(store: MemoryStore) -> None:
    edge = Link(edge=Edge(source_id="a", target_id="b", kind="related", created_at=T0))
    both = [Add(memory=a_memory("a")), Add(memory=a_memory("b"))]
    with pytest.raises(NotFound):
        store.commit([both[0], edge, both[1]], access=EVERYTHING)
    store.commit([*both, edge], access=EVERYTHING)
    assert store.edges(["b"], access=EVERYTHING) == [edge.edge]


FAILURES: list[tuple[Change, type[VestigeError]]] = [
    (Add(memory=a_memory("old")), Conflict),
    (Revise(memory=a_memory("unknown"), reason="r"), NotFound),
    (Revise(memory=replace(a_memory("old"), revision=9), reason="r"), Conflict),
    (RecordEvidence(memory_id="unknown", evidence=Evidence.GOOD, at=T0), NotFound),
    (Link(edge=Edge(source_id="old", target_id="unknown", kind="k", created_at=T0)), NotFound),
    (Link(edge=Edge(source_id="unknown", target_id="old", kind="k", created_at=T0)), NotFound),
    (Link(edge=Edge(source_id="old", target_id="old", kind="k", created_at=T0)), InvalidInput),
    (Forget(memory_id="unknown", at=T0, reason="r"), NotFound),
]


@pytest.mark.parametrize(("failing", "error"), FAILURES)
def test_a_commit_that_fails_at_its_last_change_leaves_nothing_behind(
    store: MemoryStore, failing: Change, error: type[VestigeError]
) -> None:
    add(store, a_memory("old", "cobalt"), a_memory("end"))
    link(store, "old", "end", weight=0.5)
    log = store.log(access=EVERYTHING)
    strength = held(store, "old").strength
    changes: list[Change] = [
        Add(memory=a_memory("new", "quartz")),
        Revise(memory=replace(a_memory("old", "quartz"), revision=2), reason="r"),
        RecordEvidence(memory_id="old", evidence=Evidence.EASY, at=T0 + DAY),
        Link(edge=Edge(source_id="old", target_id="end", kind="related", weight=0.9, created_at=T0)),
        Forget(memory_id="end", at=T0, reason="r"),
        replace(failing, memory=replace(failing.memory, revision=4))
        if isinstance(failing, Revise) and failing.memory.id == "old"
        else failing,
    ]
    claim = Claim(key="k", digest="d", answer="a", at=T0)
    with pytest.raises(error):
        store.commit(changes, access=EVERYTHING, claim=claim)
    assert held(store, "old").memory == a_memory("old", "cobalt")
    assert held(store, "old").strength == strength
    assert store.count(ANYTHING, access=EVERYTHING) == 2
    assert [edge.weight for edge in store.edges(["old"], access=EVERYTHING)] == [0.5]
    assert store.history("old", access=EVERYTHING) == []
    assert store.log(access=EVERYTHING) == log
    assert store.lexical(["quartz"], ANYTHING, access=EVERYTHING, limit=5) == []
    assert store.same_text([fingerprint("quartz")], scope="/", valid_at=T0, access=EVERYTHING) == {}
    assert store.tombstone("end", access=EVERYTHING) is None
    assert store.claimed("k") is None


def test_after_a_failed_commit_the_sequence_goes_on_without_a_gap(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    with pytest.raises(NotFound):
        store.commit(
            [Add(memory=a_memory("b")), Forget(memory_id="unknown", at=T0, reason="r")], access=EVERYTHING
        )
    add(store, a_memory("b"))
    assert [event.seq for event in store.log(access=EVERYTHING)] == [1, 2]


def test_an_empty_commit_logs_nothing(store: MemoryStore) -> None:
    assert store.commit([], access=EVERYTHING) == []
    assert store.log(access=EVERYTHING) == []


def test_linking_again_gives_the_edge_a_new_weight_and_no_twin(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"))
    link(store, "a", "b", weight=0.25)
    later = Edge(source_id="a", target_id="b", kind="related", weight=0.75, created_at=T0 + HOUR)
    store.commit([Link(edge=later)], access=EVERYTHING)
    assert store.edges(["a"], access=EVERYTHING) == [replace(later, created_at=T0)]


@pytest.mark.parametrize("weight", [float("nan"), float("inf")])
def test_an_edge_whose_weight_is_no_number_is_refused(store: MemoryStore, weight: float) -> None:
    add(store, a_memory("a"), a_memory("b"))
    with pytest.raises(InvalidInput):
        link(store, "a", "b", weight=weight)
    assert store.edges(["a"], access=EVERYTHING) == []


def test_edges_of_another_kind_or_direction_are_edges_of_their_own(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b"), a_memory("c"))
    link(store, "b", "a")
    link(store, "a", "c", kind="cause")
    link(store, "a", "b", kind="later")
    link(store, "a", "b", kind="earlier")
    edges = store.edges(["a"], access=EVERYTHING)
    assert [(edge.source_id, edge.target_id, edge.kind) for edge in edges] == [
        ("a", "b", "earlier"),
        ("a", "b", "later"),
        ("a", "c", "cause"),
        ("b", "a", "related"),
    ]
    assert store.edges(["c", "c", "unknown"], access=EVERYTHING) == [edges[2]]
    assert store.edges([], access=EVERYTHING) == []


def test_a_claim_is_kept_with_its_answer(store: MemoryStore) -> None:
    claim = Claim(key="k", digest="d", answer='{"id":"a"}', at=T0.replace(microsecond=7))
    store.commit([Add(memory=a_memory("a"))], access=EVERYTHING, claim=claim)
    assert store.claimed("k") == claim
    assert store.claimed("K") is None


def test_a_claim_without_changes_is_kept_too(store: MemoryStore) -> None:
    claim = Claim(key="k", digest="d", answer="", at=T0)
    store.commit([], access=EVERYTHING, claim=claim)
    assert store.claimed("k") == claim


@pytest.mark.parametrize("digest", ["d", "another"])
def test_a_claim_whose_key_exists_writes_nothing(store: MemoryStore, digest: str) -> None:
    first = Claim(key="k", digest="d", answer="first", at=T0)
    store.commit([Add(memory=a_memory("a"))], access=EVERYTHING, claim=first)
    with pytest.raises(IdempotencyConflict):
        store.commit(
            [Add(memory=a_memory("b"))],
            access=EVERYTHING,
            claim=Claim(key="k", digest=digest, answer="second", at=T0),
        )
    assert store.claimed("k") == first
    assert ids(store.get_many(["a", "b"], access=EVERYTHING)) == ["a"]


def test_writing_about_a_deleted_memory_is_not_found(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    forget(store, "a")
    with pytest.raises(NotFound):
        remark(store, "a", Evidence.GOOD, T0 + DAY)
    with pytest.raises(NotFound):
        revise(store, replace(a_memory("a"), revision=2))
    with pytest.raises(NotFound):
        forget(store, "a")
