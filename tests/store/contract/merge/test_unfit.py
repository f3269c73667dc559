"""Text that a store cannot keep: nothing with it is written anywhere, and nothing is found by it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.store.support.generators import (
    DAY,
    T0,
    NewStore,
    a_memory,
    add,
    axis,
    embedded,
    flat,
    forget,
    ids,
    link,
)
from vestige.core.documents import Document
from vestige.core.errors import InvalidInput, NotFound, TooLarge
from vestige.core.models import (
    EVERYTHING,
    MAX_DOCUMENT_ID_BYTES,
    MAX_LABEL_BYTES,
    MAX_NAME_BYTES,
    Edge,
    Evidence,
    Filter,
    MemoryState,
)
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import (
    Add,
    Change,
    ChangeState,
    Claim,
    Drop,
    Forget,
    Link,
    Put,
    RecordEvidence,
    Revise,
    Unlink,
)
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import DocumentHistory, EdgeHistory, MemoryHistory

UNFIT = ("x\0", "\0", "x\ud800")


def wide(size: int) -> str:
    """A label of so many bytes, of letters that take three each and do not repeat: they compress badly."""
    seen, letters = 7, []
    for _ in range(size // 3):
        seen = seen * 1103515245 + 12345 & 0x7FFFFFFF
        letters.append(chr(0x4E00 + seen % 20_000))
    return "".join(letters) + "x" * (size % 3)


def commit(store: MemoryStore, *changes: Change, claim: Claim | None = None) -> None:
    store.commit(changes, access=EVERYTHING, claim=claim)


# -- what is written -------------------------------------------------------------------------------

Making = Callable[[str], Change]
CHANGES: dict[str, Making] = {
    "a reason to revise": lambda text: Revise(memory=replace(a_memory("a"), revision=2), reason=text),
    "a reason to forget": lambda text: Forget(memory_id="a", at=T0, reason=text),
    "a reason to settle": lambda text: ChangeState(
        memory_id="a", at=T0, before=MemoryState.ACTIVE, after=MemoryState.DORMANT, reason=text
    ),
    "a detail": lambda text: RecordEvidence(
        memory_id="a", evidence=Evidence.GOOD, at=T0, details={"a": [text]}
    ),
    "the name of a detail": lambda text: RecordEvidence(
        memory_id="a", evidence=Evidence.GOOD, at=T0, details={"a": {text: 1}}
    ),
    "the kind of an edge": lambda text: Link(
        edge=Edge(source_id="a", target_id="b", kind=text, created_at=T0)
    ),
    "an edge that is none": lambda text: Unlink(source_id="a", target_id="b", kind=text, at=T0),
    "a document that is none": lambda text: Drop(kind="note", id=text, at=T0),
    "a memory that is none": lambda text: RecordEvidence(memory_id=text, evidence=Evidence.GOOD, at=T0),
}


@pytest.mark.parametrize("text", UNFIT)
@pytest.mark.parametrize("making", CHANGES.values(), ids=CHANGES.keys())
def test_no_change_carries_it(store: MemoryStore, making: Making, text: str) -> None:
    add(store, a_memory("a"), a_memory("b"))
    with pytest.raises(InvalidInput):
        commit(store, making(text))
    assert len(store.latest(LogQuery(exposures=False), access=EVERYTHING, limit=9)) == 2


def test_a_detail_that_only_looks_like_it_is_kept(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    details = {"a": "\\u0000", "\\\\u0000": "\\"}
    commit(store, RecordEvidence(memory_id="a", evidence=Evidence.GOOD, at=T0, details=details))
    (event, _) = store.latest(LogQuery(exposures=False), access=EVERYTHING, limit=9)
    assert event.payload["details"] == details


@pytest.mark.parametrize("text", UNFIT)
def test_no_claim_is_made_with_it(store: MemoryStore, text: str) -> None:
    for claim in (
        Claim(key=text, digest="d", answer="{}", at=T0),
        Claim(key="k", digest=text, answer="{}", at=T0),
        Claim(key="k", digest="d", answer=text, at=T0),
    ):
        with pytest.raises(InvalidInput):
            commit(store, Add(memory=a_memory("a")), claim=claim)
    assert store.claimed("k") is None
    assert store.count(Filter(), access=EVERYTHING) == 0


@pytest.mark.parametrize("text", UNFIT)
def test_no_life_with_it_is_taken_in(new_store: NewStore, text: str) -> None:
    store, other = new_store(), new_store()
    add(store, a_memory("a"), a_memory("b"))
    link(store, "a", "b")
    commit(store, RecordEvidence(memory_id="a", evidence=Evidence.GOOD, at=T0))
    told = flat(store.histories(access=EVERYTHING))
    memory = next(one for one in told if isinstance(one, MemoryHistory))
    edge = next(one for one in told if isinstance(one, EdgeHistory))
    remark = replace(memory.events[1], payload={**memory.events[1].payload, "details": {"a": text}})
    linked = replace(edge.events[0], payload={**edge.events[0].payload, "kind": text})
    for bad in (
        replace(memory, events=(memory.events[0], remark)),
        replace(memory, memory_id=text),
        replace(edge, kind=text, events=(linked,)),
    ):
        with pytest.raises(InvalidInput):
            other.absorb([bad], access=EVERYTHING)
    assert other.latest(LogQuery(exposures=False), access=EVERYTHING, limit=9) == []


# -- what is asked for -----------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["a\0", "a\0b", "\0", "a\ud800"])
def test_nothing_is_found_by_it(store: MemoryStore, text: str) -> None:
    memory = replace(a_memory("a"), session_id="a", thread="a", tags=("a",), source="a", scope="/a")
    commit(store, Add(memory=memory), Add(memory=a_memory("b")), Add(memory=a_memory("gone")))
    link(store, "a", "b", kind="a")
    forget(store, "gone", at=T0 + DAY)
    document = Document(kind="a", id="a", body={"terms": {"a": 1}}, created_at=T0, updated_at=T0)
    commit(store, Put(document=document), claim=Claim(key="a", digest="d", answer="{}", at=T0))

    assert store.get_many([text], access=EVERYTHING) == []
    assert ids(store.get_many([text, "a"], access=EVERYTHING)) == ["a"]
    for where in (
        Filter(session_id=text),
        Filter(thread=text),
        Filter(source=text),
        Filter(tags_any=(text,)),
        Filter(tags_all=(text,)),
        Filter(node_types=(text,)),
        Filter(domains=(text,)),
        Filter(scope=f"/{text}"),
    ):
        assert store.find(where, access=EVERYTHING, limit=5) == []
        assert store.count(where, access=EVERYTHING) == 0
    assert store.count(Filter(exclude_types=(text,)), access=EVERYTHING) == 2
    assert store.claimed(text) is None
    assert store.tombstone(text, access=EVERYTHING) is None
    assert store.earlier([text], T0, access=EVERYTHING) == {}
    assert store.edges([text], access=EVERYTHING) == []
    assert flat(store.stream_edges([text], access=EVERYTHING)) == []
    assert store.documents(text, access=EVERYTHING, limit=5) == []
    assert store.documents("a", ids=[text], access=EVERYTHING, limit=5) == []
    assert store.documents("a", citing=[text], access=EVERYTHING, limit=5) == []
    assert store.documents("a", terms=[text], access=EVERYTHING, limit=5) == []
    assert store.log(memory_id=text, access=EVERYTHING) == []
    assert store.latest(LogQuery(memory_id=text), access=EVERYTHING, limit=5) == []
    assert store.same_text([text], scope="/a", valid_at=T0, access=EVERYTHING) == {}
    assert store.lexical([text], Filter(), access=EVERYTHING, limit=5) == []
    assert store.put_vectors({text: embedded(a_memory("a"), axis(0))}) == 0
    with pytest.raises(NotFound):
        store.history(text, access=EVERYTHING)


# -- what is too long to be looked up --------------------------------------------------------------


def test_labels_as_long_as_allowed_are_kept_and_found(new_store: NewStore) -> None:
    store, other = new_store(), new_store()
    label, one, two = wide(MAX_LABEL_BYTES), wide(MAX_NAME_BYTES), wide(MAX_NAME_BYTES - 1) + "y"
    name, kind = wide(MAX_DOCUMENT_ID_BYTES), wide(MAX_NAME_BYTES)
    memory = replace(a_memory(one), thread=label, session_id=label, tags=(label,), scope=f"/{label[:-1]}")
    document = Document(kind=kind, id=name, created_at=T0, updated_at=T0)
    claim = Claim(key=kind, digest="d", answer="{}", at=T0)
    edge = Edge(source_id=one, target_id=two, kind=kind, created_at=T0)
    commit(store, Add(memory=memory), Add(memory=a_memory(two)), Link(edge=edge), claim=claim)
    commit(store, Put(document=document))
    other.absorb(flat(store.histories(access=EVERYTHING)), access=EVERYTHING)

    for held in (store, other):
        where = Filter(thread=label, session_id=label, tags_all=(label,), scope=memory.scope)
        assert ids(held.find(where, access=EVERYTHING, limit=5)) == [one]
        assert held.edges([two], access=EVERYTHING) == [edge]
        assert held.documents(kind, ids=[name], access=EVERYTHING, limit=5) == [document]
    assert store.claimed(kind) == claim


LONGER: dict[str, Callable[[], Change]] = {
    "id": lambda: Add(memory=a_memory(wide(MAX_NAME_BYTES + 1))),
    "thread": lambda: Add(memory=replace(a_memory("c"), thread=wide(MAX_LABEL_BYTES + 1))),
    "session": lambda: Add(memory=replace(a_memory("c"), session_id=wide(MAX_LABEL_BYTES + 1))),
    "tag": lambda: Add(memory=replace(a_memory("c"), tags=(wide(MAX_LABEL_BYTES + 1),))),
    "scope": lambda: Add(memory=replace(a_memory("c"), scope="/" + wide(MAX_LABEL_BYTES))),
    "tag of a revision": lambda: Revise(
        memory=replace(a_memory("a"), revision=2, tags=(wide(MAX_LABEL_BYTES + 1),)), reason="r"
    ),
    "edge": lambda: Link(
        edge=Edge(source_id="a", target_id="b", kind=wide(MAX_NAME_BYTES + 1), created_at=T0)
    ),
    "kind of document": lambda: Put(
        document=Document(kind=wide(MAX_NAME_BYTES + 1), id="d", created_at=T0, updated_at=T0)
    ),
    "document": lambda: Put(
        document=Document(kind="d", id=wide(MAX_DOCUMENT_ID_BYTES + 1), created_at=T0, updated_at=T0)
    ),
}


@pytest.mark.parametrize("making", LONGER.values(), ids=LONGER.keys())
def test_a_label_that_no_index_holds_is_refused(store: MemoryStore, making: Callable[[], Change]) -> None:
    add(store, a_memory("a"), a_memory("b"))
    with pytest.raises(TooLarge, match="bytes in UTF-8"):
        commit(store, making())
    assert len(store.log(access=EVERYTHING)) == 2


def test_a_claim_that_no_index_holds_is_refused(store: MemoryStore) -> None:
    claim = Claim(key=wide(MAX_NAME_BYTES + 1), digest="d", answer="{}", at=T0)
    with pytest.raises(TooLarge, match="bytes in UTF-8"):
        commit(store, Add(memory=a_memory("a")), claim=claim)
    assert store.count(Filter(), access=EVERYTHING) == 0


def test_a_life_with_a_label_that_no_index_holds_is_not_taken_in(new_store: NewStore) -> None:
    store, other = new_store(), new_store()
    add(store, a_memory("a"))
    memory = next(one for one in flat(store.histories(access=EVERYTHING)) if isinstance(one, MemoryHistory))
    long = replace(memory.versions[0], tags=(wide(MAX_LABEL_BYTES + 1),))
    document = Document(kind="d", id=wide(MAX_DOCUMENT_ID_BYTES + 1), created_at=T0, updated_at=T0)
    filed = DocumentHistory(kind="d", id=document.id, events=(), document=document, clock=5, node="elsewhere")
    for life in (replace(memory, versions=(long,)), filed):
        with pytest.raises(TooLarge):
            other.absorb([life], access=EVERYTHING)
    assert flat(other.histories(access=EVERYTHING)) == []
