from dataclasses import replace

import pytest

from tests.store.support.generators import DAY, HOUR, T0, a_memory, add, forget
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from vestige.core.models import EVERYTHING, Access
from vestige.store.contract.changes import Add, Drop, Forget, Put
from vestige.store.contract.store import MemoryStore

PROJECT = Access(scopes=("/project",))


def a_document(name: str = "one", kind: str = "finding", *, cites: tuple[str, ...] = ()) -> Document:
    return Document(
        kind=kind, id=name, body={"text": "zinc", "list": [1]}, cites=cites, created_at=T0, updated_at=T0
    )


def put(store: MemoryStore, *documents: Document, access: Access = EVERYTHING) -> None:
    store.commit([Put(document=one) for one in documents], access=access)


def named(store: MemoryStore, kind: str = "finding", access: Access = EVERYTHING) -> list[str]:
    return [one.id for one in store.documents(kind, access=access, limit=100)]


def later(document: Document, hours: int = 1) -> Document:
    return replace(document, version=document.version + 1, updated_at=document.updated_at + hours * HOUR)


def test_a_document_comes_back_with_every_field_as_it_was_given(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b", "copper"))
    given = replace(a_document(cites=("b", "a")), scope="/project/x")
    put(store, given)
    assert store.documents("finding", access=EVERYTHING, limit=5) == [given]


def test_a_document_is_found_under_its_own_kind_only(store: MemoryStore) -> None:
    put(store, a_document(), a_document(kind="run"))
    assert named(store, "run") == ["one"]
    assert named(store, "other") == []


def test_the_next_version_replaces_the_document_and_keeps_when_it_was_made(store: MemoryStore) -> None:
    put(store, a_document())
    put(store, replace(later(a_document()), body={"text": "iron"}, created_at=T0 + DAY))
    (found,) = store.documents("finding", access=EVERYTHING, limit=5)
    assert (found.body["text"], found.version, found.created_at) == ("iron", 2, T0)


@pytest.mark.parametrize("version", [1, 3])
def test_a_version_that_does_not_follow_the_present_one_is_a_conflict(
    store: MemoryStore, version: int
) -> None:
    put(store, a_document())
    with pytest.raises(Conflict):
        put(store, replace(a_document(), version=version, body={}))
    assert store.documents("finding", access=EVERYTHING, limit=5) == [a_document()]


def test_a_first_version_other_than_one_is_a_conflict(store: MemoryStore) -> None:
    with pytest.raises(Conflict):
        put(store, replace(a_document(), version=2))


def test_the_document_changed_last_comes_first_and_ties_go_by_id(store: MemoryStore) -> None:
    put(store, a_document("b"), a_document("a"), a_document("c"))
    put(store, later(a_document("c")))
    assert named(store) == ["c", "a", "b"]
    assert [one.id for one in store.documents("finding", access=EVERYTHING, limit=1, offset=1)] == ["a"]
    with pytest.raises(InvalidInput):
        store.documents("finding", access=EVERYTHING, limit=-1)


def test_documents_are_narrowed_down_by_id_by_memory_and_by_scope(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b", "copper"))
    put(store, a_document("one", cites=("a",)), replace(a_document("two", cites=("b",)), scope="/project/x"))

    def found(**asked: object) -> list[str]:
        return [one.id for one in store.documents("finding", access=EVERYTHING, limit=9, **asked)]  # type: ignore[arg-type]  # the keywords of each case

    assert found(ids=["two", "three"]) == ["two"]
    assert found(ids=[]) == []
    assert found(citing=["a", "nobody"]) == ["one"]
    assert found(citing=[]) == []
    assert found(scope="/project") == ["two"]
    assert found(scope="/project/x", inherited=True) == ["one", "two"]


def test_deleting_a_memory_deletes_the_documents_that_cite_it(store: MemoryStore) -> None:
    add(store, a_memory("a"), a_memory("b", "copper"))
    put(store, a_document("one", cites=("a", "b")), a_document("two", cites=("b",)))
    forget(store, "a")
    assert named(store) == ["two"]


def test_a_document_filed_with_the_deletion_of_what_it_cites_goes_with_it(store: MemoryStore) -> None:
    ending = Forget(memory_id="a", at=T0, reason="asked to")
    store.commit(
        [Add(memory=a_memory("a")), Put(document=a_document(cites=("a",))), ending], access=EVERYTHING
    )
    assert named(store) == []


def test_a_document_cannot_cite_a_memory_that_does_not_exist(store: MemoryStore) -> None:
    with pytest.raises(NotFound):
        put(store, a_document(cites=("nobody",)))
    assert named(store) == []


def test_a_dropped_document_is_gone_and_its_id_is_free(store: MemoryStore) -> None:
    put(store, a_document())
    store.commit([Drop(kind="finding", id="one", at=T0)], access=EVERYTHING)
    assert named(store) == []
    put(store, a_document())
    assert named(store) == ["one"]


def test_dropping_what_is_not_there_is_not_found_and_changes_nothing(store: MemoryStore) -> None:
    put(store, a_document("two"))
    with pytest.raises(NotFound):
        store.commit(
            [Drop(kind="finding", id="two", at=T0), Drop(kind="finding", id="one", at=T0)], access=EVERYTHING
        )
    assert named(store) == ["two"]


def test_an_access_reaches_a_document_only_with_its_scope_and_all_it_cites(store: MemoryStore) -> None:
    inside = replace(a_memory("in"), scope="/project/x")
    add(store, inside, a_memory("out", "copper"))
    scoped = replace(a_document("scoped"), scope="/project/x")
    put(store, a_document("root"), scoped, replace(scoped, id="cites", cites=("in",)))
    put(store, replace(scoped, id="cites-out", cites=("in", "out")))
    assert named(store, access=PROJECT) == ["cites", "scoped"]
    with pytest.raises(NotFound):
        store.commit([Drop(kind="finding", id="cites-out", at=T0)], access=PROJECT)
    with pytest.raises(NotFound):
        store.commit([Drop(kind="finding", id="root", at=T0)], access=PROJECT)


def test_an_access_limited_by_domains_reaches_only_documents_about_its_memories(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), domains=("work",)), a_memory("b", "copper"))
    put(store, a_document("none"), a_document("work", cites=("a",)), a_document("both", cites=("a", "b")))
    assert named(store, access=Access(domains=("work",))) == ["work"]
    with pytest.raises(Forbidden):
        put(store, a_document("new"), access=Access(domains=("work",)))


def test_writing_a_document_outside_the_access_is_forbidden(store: MemoryStore) -> None:
    with pytest.raises(Forbidden):
        put(store, a_document(), access=PROJECT)
    assert named(store) == []


def test_the_log_tells_of_a_document_without_its_text(store: MemoryStore) -> None:
    put(store, a_document())
    store.commit([Put(document=later(a_document()), logged=False)], access=EVERYTHING)
    store.commit([Drop(kind="finding", id="one", at=T0 + DAY)], access=EVERYTHING)
    told = [(event.kind, event.memory_id, dict(event.payload)) for event in store.log(access=EVERYTHING)]
    about = {"kind": "finding", "id": "one"}
    assert told == [("document.put", None, about), ("document.dropped", None, about)]


def test_a_body_that_is_no_json_is_refused_when_it_is_made() -> None:
    with pytest.raises(InvalidInput):
        replace(a_document(), body={"set": {1}})
