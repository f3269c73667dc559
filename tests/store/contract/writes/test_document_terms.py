from dataclasses import replace

from tests.store.support.generators import T0
from vestige.core.documents import Document
from vestige.core.models import EVERYTHING
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
