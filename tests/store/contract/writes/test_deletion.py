from dataclasses import replace

import pytest

from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    add,
    add_with,
    axis,
    embedded,
    forget,
    found,
    ids,
    link,
    remark,
    revise,
    rows,
)
from vestige.cognition.text.analyser import fingerprint
from vestige.core.errors import Conflict, NotFound
from vestige.core.models import ANYTHING, EVERYTHING, Access, Edge, Evidence, Filter, Tombstone
from vestige.store.contract.changes import Add, Claim, Forget, Link, RecordEvidence
from vestige.store.contract.store import MemoryStore


@pytest.fixture
def deleted(store: MemoryStore) -> MemoryStore:
    """One memory that has touched every surface and is gone, and one that stays."""
    memory = replace(a_memory("a", "xylophone"), phrasings=("marimba",), tags=("percussion",), scope="/band")
    add_with(store, memory, axis(0), axis(1))
    add_with(store, replace(a_memory("b"), scope="/band"), axis(2))
    revise(store, replace(memory, content="glockenspiel", revision=2))
    store.put_vectors({"a": embedded(replace(memory, content="glockenspiel"), axis(0), axis(1))})
    remark(store, "a", Evidence.GOOD, T0)
    link(store, "a", "b")
    link(store, "b", "a")
    forget(store, "a", at=T0 + DAY)
    return store


def test_a_deleted_memory_is_in_no_list_count_or_statistic(deleted: MemoryStore) -> None:
    assert deleted.get_many(["a"], access=EVERYTHING) == []
    assert found(deleted, ANYTHING) == found(deleted, Filter(scope="/band")) == ["b"]
    assert [ids(records) for records in deleted.stream(access=EVERYTHING)] == [["b"]]
    assert deleted.count(ANYTHING, access=EVERYTHING) == 1
    stats = deleted.stats(access=EVERYTHING, now=T0)
    levels = deleted.levels(access=EVERYTHING, now=T0)
    assert (stats.memories, stats.embedded, stats.edges, len(levels.retentions)) == (1, 1, 0, 1)
    assert deleted.tag_counts(access=EVERYTHING) == {}
    assert deleted.unembedded(SIGNATURE, limit=5) == []


def test_nothing_finds_a_deleted_memory(deleted: MemoryStore) -> None:
    for term in ("xylophon*", "marimba", "glockenspiel", "percuss*"):
        assert deleted.lexical([term], ANYTHING, access=EVERYTHING, limit=5) == []
    for number in (0, 1):
        (near,) = deleted.nearest(rows(axis(number)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=5)
        assert [one.memory_id for one in near] == ["b"]
    asked = [fingerprint(text) for text in ("xylophone", "marimba", "glockenspiel")]
    assert deleted.same_text(asked, scope="/band", valid_at=T0, access=EVERYTHING) == {}


def test_its_edges_go_in_both_directions(deleted: MemoryStore) -> None:
    assert deleted.edges(["a", "b"], access=EVERYTHING) == []


def test_its_history_goes(deleted: MemoryStore) -> None:
    with pytest.raises(NotFound):
        deleted.history("a", access=EVERYTHING)


def test_a_tombstone_without_content_stays(deleted: MemoryStore) -> None:
    assert deleted.tombstone("a", access=EVERYTHING) == Tombstone(memory_id="a", deleted_at=T0 + DAY)
    assert deleted.tombstone("a", access=Access(scopes=("/band",))) is not None
    assert deleted.tombstone("b", access=EVERYTHING) is None
    assert deleted.tombstone("unknown", access=EVERYTHING) is None


def test_its_events_stay(deleted: MemoryStore) -> None:
    kinds = [event.kind for event in deleted.log(access=EVERYTHING, memory_id="a")]
    assert kinds == ["memory.created", "memory.revised", "memory.remarked", "edge.linked", "memory.deleted"]


def test_the_id_can_never_be_used_again(deleted: MemoryStore) -> None:
    with pytest.raises(Conflict):
        add(deleted, a_memory("a", "something else"))
    assert deleted.get_many(["a"], access=EVERYTHING) == []


def test_derived_data_cannot_bring_it_back(deleted: MemoryStore) -> None:
    assert deleted.put_vectors({"a": embedded(a_memory("a", "xylophone"), axis(0))}) == 0
    assert deleted.rebuild_words() == 1
    assert deleted.lexical(["xylophon*"], ANYTHING, access=EVERYTHING, limit=5) == []


def test_a_memory_added_and_deleted_in_one_commit_leaves_only_its_tombstone(store: MemoryStore) -> None:
    memory = a_memory("a", "xylophone")
    store.commit(
        [
            Add(memory=memory, embedded=embedded(memory, axis(0))),
            Forget(memory_id="a", at=T0, reason="mistake"),
        ],
        access=EVERYTHING,
    )
    (near,) = store.nearest(rows(axis(0)), SIGNATURE, ANYTHING, access=EVERYTHING, limit=5)
    assert near == []
    assert store.lexical(["xylophon*"], ANYTHING, access=EVERYTHING, limit=5) == []
    assert store.tombstone("a", access=EVERYTHING) is not None
    assert len(store.log(access=EVERYTHING)) == 2


def claim(key: str, answer: str) -> Claim:
    return Claim(key=key, digest="d", answer=answer, at=T0)


def test_an_answer_kept_for_a_retry_goes_when_it_quotes_the_text(store: MemoryStore) -> None:
    memory = replace(a_memory("a", 'the "blue" xylophone'), phrasings=("a marimba",))
    store.commit(
        [Add(memory=memory)], access=EVERYTHING, claim=claim("quotes", '{"was":"the \\"blue\\" xylophone"}')
    )
    revise(store, replace(memory, content="a glockenspiel", phrasings=(), revision=2))
    remarked = RecordEvidence(memory_id="a", evidence=Evidence.GOOD, at=T0)
    store.commit([remarked], access=EVERYTHING, claim=claim("quotes the new text", "a glockenspiel"))
    store.commit([remarked], access=EVERYTHING, claim=claim("quotes a phrasing", "> a marimba"))
    store.commit([remarked], access=EVERYTHING, claim=claim("names", '{"id":"a"}'))
    store.commit([Add(memory=a_memory("b"))], access=EVERYTHING, claim=claim("other", "a glockenspiel"))
    linked = Link(edge=Edge(source_id="b", target_id="a", kind="k", created_at=T0))
    store.commit([linked], access=EVERYTHING, claim=claim("links to it", "a glockenspiel"))
    forget(store, "a")
    assert store.claimed("quotes") is None
    assert store.claimed("quotes the new text") is None
    assert store.claimed("quotes a phrasing") is None
    assert store.claimed("links to it") is None
    assert store.claimed("names") == claim("names", '{"id":"a"}')
    assert store.claimed("other") == claim("other", "a glockenspiel")


def test_what_it_superseded_and_what_superseded_it_stay(store: MemoryStore) -> None:
    add(store, replace(a_memory("old"), superseded_by="a"), replace(a_memory("a"), superseded_by="new"))
    add(store, a_memory("new"))
    forget(store, "a")
    assert found(store, ANYTHING) == ["new", "old"]
