"""Documents and vectors that are taken in."""

from dataclasses import replace

from tests.store.support import meetings
from tests.store.support.generators import (
    HOUR,
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    NewStore,
    a_memory,
    add,
    axis,
    embedded,
    forget,
    held,
)
from tests.store.support.meetings import Pair, a_document, bodies, edit, give, lives, meet, put
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.changes import Drop, Embedded
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import Absorbed

apart = meetings.apart


def test_of_two_puts_the_later_one_holds_with_or_without_an_event(apart: Pair) -> None:
    one, other = apart
    put(one, a_document())
    give(one, other)
    put(one, replace(a_document(), body={"n": "one"}, updated_at=T0 + HOUR), logged=False)
    put(other, replace(a_document(), body={"n": "other"}, updated_at=T0 + 2 * HOUR), logged=False)
    meet(one, other)
    assert bodies(one) == bodies(other) == {"one": "other"}


def test_a_dropped_document_stays_away_until_it_is_put_again(apart: Pair) -> None:
    one, other = apart
    put(one, a_document())
    give(one, other)
    one.commit([Drop(kind="note", id="one", at=T0 + HOUR)], access=EVERYTHING)
    assert give(one, other) == Absorbed(events=1, documents=1)
    assert bodies(other) == {}
    put(other, replace(a_document(), body={"n": "again"}, updated_at=T0 + 2 * HOUR))
    meet(one, other)
    assert bodies(one) == {"one": "again"}


def test_a_change_that_came_after_the_drop_elsewhere_wins(apart: Pair) -> None:
    one, other = apart
    put(one, a_document())
    give(one, other)
    one.commit([Drop(kind="note", id="one", at=T0 + HOUR)], access=EVERYTHING)
    put(other, replace(a_document(), body={"n": "later"}, updated_at=T0 + 2 * HOUR), logged=False)
    meet(one, other)
    assert bodies(one) == bodies(other) == {"one": "later"}


def test_what_was_taken_out_of_a_document_stays_out(apart: Pair) -> None:
    one, other = apart
    words = replace(a_document(kind="sample"), body={"terms": {"zinc": 2.0, "iron": 1.0}})
    put(one, words, logged=False)
    give(one, other)
    without = replace(words, body={"terms": {"iron": 1.0}}, version=2, updated_at=T0 + HOUR)
    put(one, without, logged=False)
    meet(one, other)
    for store in apart:
        assert store.documents("sample", access=EVERYTHING, limit=9) == [without]


def test_a_document_whose_memory_is_not_here_waits_for_it(new_store: NewStore) -> None:
    one, other = new_store(), new_store()
    add(one, a_memory("a"))
    put(one, a_document(cites=("a",)))
    memory, document = lives(one)
    assert other.absorb([document], access=EVERYTHING) == Absorbed(waiting=("note/one",))
    assert lives(other) == []
    other.absorb([memory], access=EVERYTHING)
    assert other.absorb([document], access=EVERYTHING).documents == 1
    assert lives(other) == [memory, document]


def test_a_document_that_cites_a_deleted_memory_is_told_and_not_kept(apart: Pair) -> None:
    one, other = apart
    put(one, a_document("old"))
    give(one, other)
    put(one, replace(a_document("old", cites=("a",)), updated_at=T0 + HOUR))
    forget(other, "a")
    meet(one, other)
    assert bodies(one) == bodies(other) == {}


# -- vectors -------------------------------------------------------------------------------------------


def give_vectors(store: MemoryStore, name: str = "a") -> Embedded:
    given = embedded(held(store, name).memory, axis(1), axis(2))
    assert store.put_vectors({name: given}) == 1
    return given


def nearest(store: MemoryStore) -> list[str]:
    (found,) = store.nearest(axis(1)[None], SIGNATURE, ANYTHING, access=EVERYTHING, limit=9)
    return [one.memory_id for one in found]


def test_vectors_come_along_where_there_are_none(apart: Pair) -> None:
    one, other = apart
    give_vectors(one)
    give(one, other)
    assert other.signature() is None
    give(one, other, vectors=True)
    assert nearest(other) == ["a"]
    assert other.unembedded(SIGNATURE, limit=9) == []


def test_vectors_of_another_model_are_ignored(apart: Pair) -> None:
    one, other = apart
    give_vectors(one)
    add(other, a_memory("own", "iron"))
    own = embedded(held(other, "own").memory, axis(0), signature=OTHER_SIGNATURE)
    other.put_vectors({"own": own})
    give(one, other, vectors=True)
    assert other.signature() == OTHER_SIGNATURE
    assert [memory.id for memory in other.unembedded(OTHER_SIGNATURE, limit=9)] == ["a"]


def test_vectors_go_when_a_text_comes_in_that_they_are_not_of(apart: Pair) -> None:
    one, other = apart
    give_vectors(other)
    edit(one, 1, tags=("red",))
    give(one, other)
    assert held(other, "a").embedded
    edit(one, 2, content="copper")
    give(one, other)
    assert not held(other, "a").embedded
    assert nearest(other) == []
