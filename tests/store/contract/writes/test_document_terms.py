from dataclasses import replace

from tests.store.support.generators import T0
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING, Access
from vestige.store.contract.changes import Put
from vestige.store.contract.store import MemoryStore


def test_documents_are_found_by_the_terms_they_name(store: MemoryStore) -> None:
    plain = Document(kind="sample", id="plain", body={"text": "zinc"}, created_at=T0, updated_at=T0)
    bodies: dict[str, dict[str, object]] = {
        "one": {"terms": {"zinc": 1.0, "iron": 0.5}},
        "two": {"terms": {"tin": "tin"}},
    }
    named = [replace(plain, id=name, body=body) for name, body in bodies.items()]
    store.commit([Put(document=one) for one in (plain, *named)], access=EVERYTHING)

    def naming(*terms: str) -> list[str]:
        found = store.documents("sample", access=EVERYTHING, terms=terms, limit=9)
        return [one.id for one in found]

    assert naming("iron") == naming("iron", "lead") == ["one"]
    assert naming("zinc", "tin") == ["one", "two"]
    assert naming("text", "1.0") == naming() == []
    assert len(store.documents("sample", access=EVERYTHING, limit=9)) == 3


def test_documents_are_counted_by_kind_term_scope_and_access(store: MemoryStore) -> None:
    plain = Document(kind="sample", id="plain", scope="/one", created_at=T0, updated_at=T0)
    below = replace(plain, id="below", scope="/one/two", body={"terms": {"zinc": True}})
    beside = replace(plain, id="beside", scope="/onetwo", body={"terms": {"zinc": True}})
    other = replace(plain, id="plain", kind="other")
    store.commit([Put(document=one) for one in (plain, below, beside, other)], access=EVERYTHING)

    assert store.count_documents("sample", access=EVERYTHING) == 3
    assert store.count_documents("sample", access=EVERYTHING, terms=["zinc", "tin"]) == 2
    assert store.count_documents("sample", access=EVERYTHING, scope="/one") == 2
    assert store.count_documents("sample", access=EVERYTHING, scope="/one", terms=["zinc"]) == 1
    assert store.count_documents("sample", access=Access(scopes=("/one/two",))) == 1
    assert store.count_documents("sample", access=Access(domains=("work",))) == 0
    assert store.count_documents("nothing", access=EVERYTHING) == 0
