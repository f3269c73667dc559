"""Looking back at wordings: the arms search present ones, `reworded` and `earlier` give those of then."""

from dataclasses import replace

import pytest

from tests.cognition.ranking.pools import pool
from tests.store.support.generators import (
    DAY,
    SIGNATURE,
    T0,
    a_memory,
    a_turn,
    add,
    add_with,
    axis,
    forget,
    held,
    hits,
    ids,
    revise,
    rows,
)
from vestige.cognition.query.analyse import analyse
from vestige.cognition.ranking.earlier_wordings import find_words
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING, Access, Filter, Memory
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore

THEN = Filter(known_at=T0)


def reword(store: MemoryStore, name: str, content: str, *, days: int = 1) -> Memory:
    """The memory's next revision, with another text."""
    memory = held(store, name).memory
    later = replace(
        memory, content=content, updated_at=T0 + days * DAY, revision=memory.revision + 1, scope=memory.scope
    )
    revise(store, later)
    return later


def reworded(
    store: MemoryStore, where: Filter = THEN, access: Access = EVERYTHING, limit: int = 9
) -> list[str]:
    return ids(store.reworded((), where, access=access, limit=limit).records)


def test_the_arms_leave_out_what_was_worded_otherwise(store: MemoryStore) -> None:
    for name in ("a", "b"):
        add_with(store, a_memory(name, "zinc"), axis(0))
    reword(store, "a", "iron")
    for where, there in ((THEN, ["b"]), (Filter(known_at=T0 + DAY), ["a", "b"])):
        terms = ("zinc", "iron")
        probe = Probe(
            terms=terms, literals=terms, vector=axis(0), signature=SIGNATURE, where=where, per_arm=9
        )
        assert sorted(hits(store.lexical(terms, where, access=EVERYTHING, limit=9))) == there
        assert list(store.gather(probe, access=EVERYTHING).ids) == there
        (near,) = store.nearest(rows(axis(0)), SIGNATURE, where, access=EVERYTHING, limit=9)
        assert hits(near) == ["b"]  # the new text of the other has no vector yet


def test_what_was_worded_otherwise_is_given_as_it_was(store: MemoryStore) -> None:
    first = replace(a_memory("a", "zinc"), tags=("red",), phrasings=("tutia",))
    add(store, first, a_memory("b"))
    reword(store, "a", "iron")
    (record,) = store.reworded((), THEN, access=EVERYTHING, limit=9).records
    assert record == replace(held(store, "a"), memory=first)


def test_other_revisions_are_no_other_wording(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    revise(store, replace(a_memory("a"), tags=("red",), pinned=True, updated_at=T0 + DAY, revision=2))
    assert reworded(store) == []


def test_a_phrasing_that_came_later_is_another_wording(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    revise(store, replace(a_memory("a"), phrasings=("Zn",), updated_at=T0 + DAY, revision=2))
    assert reworded(store) == ["a"]


def test_a_text_that_came_back_is_the_present_wording(store: MemoryStore) -> None:
    add(store, a_memory("a", "zinc"))
    reword(store, "a", "iron", days=1)
    reword(store, "a", "zinc", days=2)
    assert reworded(store, THEN) == []
    assert reworded(store, Filter(known_at=T0 + DAY)) == ["a"]


def test_without_a_time_nothing_was_worded_otherwise(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    reword(store, "a", "iron")
    assert reworded(store, Filter()) == []


def test_the_one_revised_last_comes_first_and_no_more_than_asked_for(store: MemoryStore) -> None:
    add(store, *(a_memory(name) for name in "abcd"))
    for name, days in (("b", 1), ("d", 3), ("c", 2), ("a", 2)):
        reword(store, name, "iron", days=days)
    assert reworded(store) == ["d", "a", "c", "b"]
    assert reworded(store, limit=2) == ["d", "a"]
    assert reworded(store, limit=0) == []
    with pytest.raises(InvalidInput):
        reworded(store, limit=-1)


def test_filters_judge_it_as_it_was_and_its_strength_as_it_is(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), tags=("red",)))
    later = reword(store, "a", "iron")
    revise(store, replace(later, tags=("blue",), updated_at=T0 + 2 * DAY, revision=3))
    due = held(store, "a").strength.due_at
    for where, there in (
        (Filter(tags_any=("red",)), ["a"]),
        (Filter(tags_any=("blue",)), []),
        (Filter(due_by=due), ["a"]),
        (Filter(due_by=due - DAY), []),
        (Filter(max_retention=1.0, now=T0), ["a"]),
        (Filter(max_retention=-1.0, now=T0), []),
    ):
        assert reworded(store, replace(where, known_at=T0)) == there


def test_an_access_must_reach_it_then_and_now(store: MemoryStore) -> None:
    first = replace(a_memory("a"), scope="/a")
    add(store, first)
    revise(store, replace(first, scope="/b", content="iron", updated_at=T0 + DAY, revision=2))
    for scopes, there in ((("/a",), []), (("/b",), []), (("/a", "/b"), ["a"])):
        assert reworded(store, access=Access(scopes=scopes)) == there


def test_a_deleted_memory_has_no_earlier_wording(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    reword(store, "a", "iron")
    forget(store, "a")
    assert reworded(store) == []
    assert store.earlier(["a"], T0, access=EVERYTHING) == {}


def test_the_statistics_give_a_text_the_score_that_the_arm_gives_it(store: MemoryStore) -> None:
    memories = [
        a_memory("a", "zinc and cobalt in march"),
        a_memory("b", "zinc zinc zinc and nothing else than this long text about iron ore"),
        a_memory("c", "cobalt"),
        *(a_memory(f"d{number}", "granite") for number in range(5)),
    ]
    add(store, *memories)
    asked = analyse("zinc cobalt march marble")
    found = store.reworded(asked.terms, THEN, access=EVERYTHING, limit=9)
    words = find_words(asked, memories, found.statistics, pool(0))
    arm = {
        one.memory_id: one.own
        for one in store.lexical(asked.terms, Filter(), access=EVERYTHING, limit=9, postings=None)
    }
    assert set(arm) == {"a", "b", "c"}
    assert words.own.tolist() == pytest.approx([arm.get(memory.id, 0.0) for memory in memories], abs=1e-9)


def test_the_statistics_name_every_term_that_counts(store: MemoryStore) -> None:
    add(store, a_turn("a", "zinc", 1), a_turn("b", "zinc cobalt", 2))
    found = store.reworded(["zinc", "marble", "cob*"], THEN, access=EVERYTHING, limit=0).statistics
    assert dict(found.frequencies) == {"zinc": 2, "marble": 0, "cob*": 1}
    assert (found.memories, found.words) == (2, 3)


def test_earlier_revisions_of_many_are_given_at_once(store: MemoryStore) -> None:
    add(store, *(a_memory(name, "zinc") for name in "abc"))
    reword(store, "a", "iron", days=1)
    reword(store, "a", "tin", days=3)
    reword(store, "b", "iron", days=2)
    asked = ["a", "b", "c", "unknown", "a"]

    def texts(days: int, access: Access = EVERYTHING) -> dict[str, str]:
        found = store.earlier(asked, T0 + days * DAY, access=access)
        return {name: memory.content for name, memory in found.items()}

    assert texts(0) == {"a": "zinc", "b": "zinc"}
    assert texts(2) == {"a": "iron"}
    assert texts(3) == {}
    assert texts(0, Access(scopes=("/elsewhere",))) == {}
    assert store.earlier([], T0, access=EVERYTHING) == {}


def test_the_first_revision_was_in_force_though_it_has_a_later_time(store: MemoryStore) -> None:
    imported = replace(a_memory("a", "zinc"), updated_at=T0 + 5 * DAY)
    add(store, imported)
    assert store.earlier(["a"], T0, access=EVERYTHING) == {}  # it is what it was
    revise(store, replace(imported, content="iron", updated_at=T0 + 6 * DAY, revision=2))
    assert store.earlier(["a"], T0, access=EVERYTHING) == {"a": imported}
