"""Two stores that are changed apart and tell each other of it."""

from dataclasses import replace

import pytest

from tests.store.support.generators import HOUR, T0, NewStore, a_memory, add, flat, held, hits, revise
from vestige.core.documents import Document
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.changes import Put
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import Absorbed, EntityHistory

Pair = tuple[MemoryStore, MemoryStore]


# A module takes it over by naming it: `apart = meetings.apart`.


@pytest.fixture
def apart(new_store: NewStore) -> Pair:
    """Two stores that both know the memory `a`."""
    one, other = new_store(), new_store()
    add(one, a_memory("a"))
    give(one, other)
    return one, other


def lives(store: MemoryStore, *, vectors: bool = False) -> list[EntityHistory]:
    return flat(store.histories(access=EVERYTHING, vectors=vectors))


def give(giver: MemoryStore, taker: MemoryStore, *, vectors: bool = False) -> Absorbed:
    return taker.absorb(lives(giver, vectors=vectors), access=EVERYTHING)


def meet(one: MemoryStore, other: MemoryStore) -> None:
    give(one, other)
    give(other, one)
    assert lives(one) == lives(other)


def edit(store: MemoryStore, hours: int, **changes: object) -> None:
    """The next revision of `a`, so many hours after it was made."""
    now = held(store, "a").memory
    revised = replace(now, revision=now.revision + 1, updated_at=T0 + hours * HOUR)
    revise(store, replace(revised, **changes), reason=f"edited at {hours}")  # type: ignore[arg-type]  # any field


def a_document(name: str = "one", *, kind: str = "note", cites: tuple[str, ...] = ()) -> Document:
    return Document(kind=kind, id=name, body={"n": 1}, cites=cites, created_at=T0, updated_at=T0)


def put(store: MemoryStore, document: Document, *, logged: bool = True) -> None:
    known = store.documents(document.kind, access=EVERYTHING, ids=[document.id], limit=1)
    version = known[0].version + 1 if known else 1
    store.commit([Put(document=replace(document, version=version), logged=logged)], access=EVERYTHING)


def bodies(store: MemoryStore, kind: str = "note") -> dict[str, object]:
    return {one.id: one.body["n"] for one in store.documents(kind, access=EVERYTHING, limit=9)}


def words(store: MemoryStore, term: str) -> list[str]:
    return hits(store.lexical([term], ANYTHING, access=EVERYTHING, limit=9))
