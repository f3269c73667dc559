"""Words of neighbours and threads: who counts, how much, and what must not leak."""

from collections.abc import Callable
from dataclasses import replace
from math import log

import pytest

from tests.store.support.generators import (
    DAY,
    HOUR,
    T0,
    a_memory,
    a_turn,
    add,
    embedded,
    forget,
    held,
    hits,
    revise,
)
from vestige.cognition.text.form import name_hash
from vestige.core.candidates import LexicalScores, Voices
from vestige.core.models import ANYTHING, EVERYTHING, Access, Filter, Memory
from vestige.store.contract.changes import Add
from vestige.store.contract.store import MemoryStore


def worded(store: MemoryStore, *terms: str, where: Filter = ANYTHING) -> dict[str, LexicalScores]:
    found = store.lexical(terms, where, access=EVERYTHING, limit=1_000)
    return {one.memory_id: one for one in found}


def fillers(count: int) -> list[Memory]:
    return [a_memory(f"filler {number}", "quartz") for number in range(count)]


def near(store: MemoryStore, term: str) -> set[str]:
    """The memories that have a word, or stand beside one that has."""
    return set(worded(store, term))


def bm25(tf: int, length: float, average: float, found: int, documents: int) -> float:
    idf = max(1e-6, log((documents - found + 0.5) / (found + 0.5)))
    return idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average))


@pytest.fixture
def talk(store: MemoryStore) -> MemoryStore:
    """Three turns of 2, 1 and 1 terms, another thread of one turn, and six notes of one term each."""
    add(
        store,
        a_turn("one", "zinc iron", 1),
        a_turn("two", "cobalt", 2),
        a_turn("three", "zinc", 3),
        a_turn("alone", "nickel", 1, thread="other"),
        *fillers(6),
    )
    return store


def test_the_three_levels_are_the_formula_worked_by_hand(talk: MemoryStore) -> None:
    # own: 10 memories of 11 terms; windows: 3, 4, 2, and 1 each for the others, 16 terms in all;
    # threads: two, of 4 terms and 1.
    found = worded(talk, "zinc")
    assert set(found) == {"one", "two", "three"}
    assert found["one"].own == pytest.approx(bm25(1, 2, 1.1, 2, 10), abs=1e-9)
    assert found["two"].own == 0.0
    assert found["three"].own == pytest.approx(bm25(1, 1, 1.1, 2, 10), abs=1e-9)
    assert found["one"].window == pytest.approx(bm25(1, 3, 1.6, 3, 10), abs=1e-9)
    assert found["two"].window == pytest.approx(bm25(2, 4, 1.6, 3, 10), abs=1e-9)
    assert found["three"].window == pytest.approx(bm25(1, 2, 1.6, 3, 10), abs=1e-9)
    for name in ("one", "two", "three"):
        assert found[name].thread == pytest.approx(bm25(2, 4, 2.5, 1, 2), abs=1e-15)


def test_results_are_ordered_by_window_then_own_then_id(talk: MemoryStore) -> None:
    assert hits(talk.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=9)) == ["two", "three", "one"]
    assert hits(talk.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=1)) == ["two"]
    tied = [a_turn(name, "silver", 1, thread=name) for name in ("c", "a", "b")]
    add(talk, *tied)
    assert hits(talk.lexical(["silver"], ANYTHING, access=EVERYTHING, limit=2)) == ["a", "b"]


def test_a_thread_of_one_is_its_own_window(talk: MemoryStore) -> None:
    (alone,) = worded(talk, "nickel").values()
    # its window is as long as itself, but windows are longer on average
    assert alone.own == pytest.approx(bm25(1, 1, 1.1, 1, 10), abs=1e-9)
    assert alone.window == pytest.approx(bm25(1, 1, 1.6, 1, 10), abs=1e-9)
    assert alone.thread == pytest.approx(bm25(1, 1, 2.5, 1, 2), abs=1e-15)


def test_members_stand_by_position_and_those_without_come_last_in_the_order_of_arrival(
    store: MemoryStore,
) -> None:
    add(
        store,
        a_turn("late", "nickel", None),
        a_turn("third", "cobalt", 7),
        a_turn("first", "zinc", -5),
        a_turn("last", "basalt", None),
        a_turn("second", "iron", 0),
    )
    assert near(store, "zinc") == {"first", "second"}
    assert near(store, "iron") == {"first", "second", "third"}
    assert near(store, "cobalt") == {"second", "third", "late"}
    assert near(store, "nickel") == {"third", "late", "last"}
    assert near(store, "basalt") == {"late", "last"}


def test_equal_positions_stand_in_the_order_of_arrival(store: MemoryStore) -> None:
    add(store, a_turn("b", "zinc", 1), a_turn("a", "iron", 1), a_turn("c", "cobalt", 1))
    assert near(store, "zinc") == {"a", "b"}
    assert near(store, "iron") == {"a", "b", "c"}


@pytest.mark.parametrize("position", [1, None])
def test_what_has_the_same_place_stands_in_the_order_in_which_it_was_made(
    store: MemoryStore, position: int | None
) -> None:
    add(store, a_turn("last", "cobalt", position, at=T0 + HOUR))
    add(store, a_turn("first", "zinc", position, at=T0 - HOUR), a_turn("middle", "iron", position))
    assert near(store, "zinc") == {"first", "middle"}
    assert near(store, "iron") == {"first", "middle", "last"}
    assert near(store, "cobalt") == {"middle", "last"}


def test_without_a_thread_the_source_is_one_if_there_is_a_position(store: MemoryStore) -> None:
    def chunk(name: str, text: str, source: str | None, position: int | None) -> Memory:
        return replace(a_memory(name, text), source=source, position=position)

    add(
        store,
        chunk("a", "zinc", "book", 1),
        chunk("b", "iron", "book", 2),
        chunk("unplaced", "iron", "book", None),
        chunk("other", "iron", "paper", 3),
        chunk("nowhere", "iron", None, 3),
    )
    assert near(store, "zinc") == {"a", "b"}
    assert worded(store, "iron")["nowhere"].thread == 0.0
    assert worded(store, "iron")["unplaced"].thread == 0.0


def test_a_thread_and_a_source_of_the_same_name_are_two_threads(store: MemoryStore) -> None:
    add(store, replace(a_memory("a", "zinc"), source="x", position=1), a_turn("b", "iron", 2, thread="x"))
    assert near(store, "zinc") == {"a"}


def test_sources_with_two_members_on_average_are_threads_of_their_own(store: MemoryStore) -> None:
    def said(name: str, text: str, position: int, source: str | None) -> Memory:
        return replace(a_turn(name, text, position), source=source)

    add(store, said("a1", "zinc", 1, "a"), said("b1", "iron", 2, "b"), said("a2", "cobalt", 3, "a"))
    # three members, two sources: one thread
    assert near(store, "zinc") == {"a1", "b1"}
    add(store, said("b2", "nickel", 4, "b"))
    # four members, two sources: two threads
    assert near(store, "zinc") == {"a1", "a2"}
    assert near(store, "nickel") == {"b1", "b2"}
    add(store, said("none", "basalt", 5, None))
    # five members, three sources, one of them not told: one thread again
    assert near(store, "zinc") == {"a1", "b1"}
    assert near(store, "basalt") == {"b2", "none"}
    forget(store, "none")
    assert near(store, "zinc") == {"a1", "a2"}


def test_a_source_per_member_leaves_a_thread_whole(store: MemoryStore) -> None:
    add(
        store,
        *(
            replace(a_turn(f"m{number}", text, number), source=f"line {number}")
            for number, text in enumerate(("zinc", "iron", "cobalt"))
        ),
    )
    assert near(store, "iron") == {"m0", "m1", "m2"}


SETTINGS: dict[str, Callable[[Memory], Memory]] = {
    "scope": lambda memory: replace(memory, scope="/private"),
    "domains": lambda memory: replace(memory, domains=("home",)),
    "valid_from": lambda memory: replace(memory, valid_from=T0 - DAY),
    "valid_until": lambda memory: replace(memory, valid_until=T0 + DAY),
    "suppression": lambda memory: replace(memory, suppression_count=1, suppressed_at=T0),
    "archive": lambda memory: replace(memory, archived_at=T0),
    "thread": lambda memory: replace(memory, thread="elsewhere"),
    "text": lambda memory: replace(memory, content="granite"),
}


@pytest.mark.parametrize("change", SETTINGS.values(), ids=SETTINGS.keys())
def test_a_word_leaves_its_neighbours_when_its_memory_moves_out_of_their_sight(
    store: MemoryStore, change: Callable[[Memory], Memory]
) -> None:
    secret = a_turn("b", "zinc", 2)
    add(store, a_turn("a", "iron", 1), secret, a_turn("c", "cobalt", 3), *fillers(5))
    assert near(store, "zinc") == {"a", "b", "c"}
    before = worded(store, "iron")
    revise(store, change(replace(secret, revision=2)))
    assert near(store, "zinc") <= {"b"}
    # and what was beside it closes up, but for a change of the text alone
    moved = change(secret).content == secret.content
    assert ("c" in worded(store, "iron")) == moved
    revise(store, replace(secret, revision=3))
    assert worded(store, "iron") == before
    assert near(store, "zinc") == {"a", "b", "c"}


def test_a_word_leaves_its_neighbours_when_its_memory_is_forgotten(store: MemoryStore) -> None:
    add(store, a_turn("a", "iron", 1), a_turn("b", "zinc", 2), a_turn("c", "cobalt", 3), *fillers(5))
    assert near(store, "zinc") == {"a", "b", "c"}
    forget(store, "b")
    assert near(store, "zinc") == set()
    assert near(store, "iron") == {"a", "c"}


def test_a_memory_that_starts_out_hidden_never_joins(store: MemoryStore) -> None:
    add(store, a_turn("a", "iron", 1), replace(a_turn("b", "zinc", 2), suppression_count=2), *fillers(3))
    (found,) = worded(store, "zinc").values()
    assert (found.memory_id, found.window, found.thread) == ("b", found.own, 0.0)


def test_the_order_of_domains_does_not_part_a_thread(store: MemoryStore) -> None:
    add(
        store,
        replace(a_turn("a", "iron", 1), domains=("home", "work")),
        replace(a_turn("b", "zinc", 2), domains=("work", "home", "work")),
    )
    assert near(store, "zinc") == {"a", "b"}


def test_a_limited_access_sees_the_scores_of_its_own_threads_only(store: MemoryStore) -> None:
    add(
        store,
        replace(a_turn("mine", "iron", 1), scope="/user/ada"),
        replace(a_turn("theirs", "zinc", 2), scope="/user/bob"),
        *fillers(3),
    )
    access = Access(scopes=("/user/ada",))
    assert store.lexical(["zinc"], ANYTHING, access=access, limit=9) == []
    assert hits(store.lexical(["iron"], ANYTHING, access=access, limit=9)) == ["mine"]


def test_a_filter_takes_nothing_from_the_windows_it_lets_through(talk: MemoryStore) -> None:
    two = replace(held(talk, "two").memory, tags=("kept",), revision=2)
    revise(talk, two)
    everything = worded(talk, "zinc")
    assert worded(talk, "zinc", where=Filter(tags_any=("kept",))) == {"two": everything["two"]}


def test_a_word_that_only_the_thread_has_finds_nobody(store: MemoryStore) -> None:
    add(store, *(a_turn(f"m{number}", text, number) for number, text in enumerate(("zinc", "iron", "iron"))))
    assert near(store, "zinc") == {"m0", "m1"}


def test_one_commit_may_change_a_thread_several_times(store: MemoryStore) -> None:
    turns = [a_turn(f"m{number}", text, number) for number, text in enumerate(("zinc", "iron", "cobalt"))]
    store.commit([Add(memory=turn, embedded=embedded(turn)) for turn in reversed(turns)], access=EVERYTHING)
    assert near(store, "zinc") == {"m0", "m1"}
    assert near(store, "iron") == {"m0", "m1", "m2"}


def test_rebuilding_the_words_changes_no_window(talk: MemoryStore) -> None:
    forget(talk, "two")
    revise(talk, replace(held(talk, "three").memory, position=-1, revision=2))
    before = worded(talk, "zinc", "iron", "nickel")
    assert talk.rebuild_words() == 9
    assert worded(talk, "zinc", "iron", "nickel") == before
    assert set(before) == {"one", "three", "alone"}


# -- the postings budget ---------------------------------------------------------------------------


@pytest.fixture
def common(store: MemoryStore) -> MemoryStore:
    """Iron 6 times, in 3 memories; zinc 3 times, in 3; cobalt once."""
    add(
        store,
        a_memory("a", "iron iron iron iron zinc"),
        a_memory("b", "iron zinc cobalt"),
        a_memory("c", "iron"),
        a_memory("d", "zinc"),
        *fillers(9),
    )
    return store


def within(store: MemoryStore, postings: int | None, *terms: str) -> list[LexicalScores]:
    return store.lexical(terms, ANYTHING, access=EVERYTHING, limit=99, postings=postings)


def test_the_rarest_terms_are_taken_while_their_occurrences_fit(common: MemoryStore) -> None:
    everything = ("iron", "cobalt", "zinc")
    assert within(common, 10, *everything) == within(common, None, *everything)
    # iron and zinc are in three memories each: the name decides, iron comes first and does not fit
    for budget in (9, 6, 1, 0):
        taken = ("iron", "cobalt") if budget >= 7 else ("cobalt",)
        assert within(common, budget, *everything) == within(common, None, *taken)


def test_the_first_term_is_taken_in_any_case(common: MemoryStore) -> None:
    assert within(common, 0, "iron") == within(common, None, "iron") != []


def test_a_term_no_memory_has_takes_nobodys_place(common: MemoryStore) -> None:
    assert within(common, 0, "iron", "unobtainium") == within(common, None, "iron")
    assert within(common, 0, "iron", "(", "unobtainium*") == within(common, None, "iron")


def test_a_prefix_costs_all_its_occurrences(common: MemoryStore) -> None:
    # z* and zinc are as rare; together they have six occurrences
    assert within(common, 6, "zinc", "z*") == within(common, None, "zinc", "z*")
    assert within(common, 5, "zinc", "z*") == within(common, None, "z*")


ADA, BOB = name_hash("Ada"), name_hash("Bob")


def test_voices_are_the_speakers_of_talks_and_whether_there_are_notes(store: MemoryStore) -> None:
    add(store, replace(a_turn("one", "zinc", 1), author="Ada"), a_turn("two", "Bob: iron", 2))
    assert store.voices({ADA, BOB, 7}, access=EVERYTHING) == Voices(
        speakers=frozenset({ADA, BOB}), notes=False
    )

    add(store, a_memory("note"))
    forget(store, "two")
    assert store.voices({ADA, BOB}, access=EVERYTHING) == Voices(speakers=frozenset({ADA}), notes=True)


def test_a_limited_access_hears_nobody(store: MemoryStore) -> None:
    add(store, replace(a_turn("one", "zinc", 1), author="Ada"))
    assert store.voices({ADA}, access=Access(scopes=("/",))) == Voices(speakers=frozenset(), notes=True)
