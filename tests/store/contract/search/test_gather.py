"""Gathering candidates: which arm finds what, and that every signal is there for each of them."""

from dataclasses import replace
from math import nan

import numpy as np
import pytest

from tests.store.support.generators import (
    DAY,
    OTHER_SIGNATURE,
    SIGNATURE,
    T0,
    a_memory,
    a_turn,
    add,
    add_with,
    axis,
    between,
    forget,
    held,
    remark,
    revise,
)
from vestige.cognition.query import literals as verbatim
from vestige.cognition.ranking.bm25 import idf
from vestige.cognition.text.form import Form, name_hash
from vestige.core.candidates import LONGEST_TOKENS, MOST_TOKENS, CandidatePool, tokens_kept
from vestige.core.errors import InvalidInput, ModelMismatch
from vestige.core.models import ANYTHING, EVERYTHING, Access, Evidence, Filter
from vestige.store.contract.search import Probe
from vestige.store.contract.store import MemoryStore

MEANT = Probe(vector=axis(0), signature=SIGNATURE, per_arm=100)


def gather(store: MemoryStore, probe: Probe, access: Access = EVERYTHING) -> CandidatePool:
    return store.gather(probe, access=access)


def literal(store: MemoryStore, *literals: str, where: Filter = ANYTHING, per_arm: int = 100) -> list[str]:
    pool = gather(store, Probe(literals=literals, where=where, per_arm=per_arm))
    assert pool.by_literal.all()
    return list(pool.ids)


def test_the_pool_is_the_union_of_the_arms_in_the_order_of_ids(store: MemoryStore) -> None:
    add_with(store, a_memory("d", "zinc"), axis(1))
    add_with(store, a_memory("a", "iron"), axis(0))
    add_with(store, a_memory("c", "see ERR_42"), axis(2))
    add_with(store, a_memory("b", "nickel"), axis(3))
    probe = Probe(terms=("zinc",), literals=("ERR_42",), vector=axis(0), signature=SIGNATURE, per_arm=1)
    pool = gather(store, probe)
    assert pool.ids == ("a", "c", "d")
    assert pool.by_meaning.tolist() == [True, False, False]
    assert pool.by_literal.tolist() == [False, True, False]
    assert pool.by_words.tolist() == [False, False, True]
    assert (pool.memories, pool.frequencies) == (4, {"zinc": 1})


def test_every_signal_is_there_whichever_arm_found_a_candidate(store: MemoryStore) -> None:
    turns = [a_turn("a", "zinc", 1), a_turn("b", "iron ERR_42", 2), a_turn("c", "nickel", 3)]
    for turn, share in zip(turns, (0.9, 0.5, 0.1), strict=True):
        add_with(store, turn, axis(7), between(0, 1, share))
    add_with(store, a_memory("d", "iron ERR_42"), axis(0))
    probe = replace(MEANT, terms=("iron",), literals=("ERR_42", "absent"), per_arm=4)
    pool = gather(store, probe)
    assert pool.ids == ("a", "b", "c", "d")
    worded = {one.memory_id: one for one in store.lexical(["iron"], ANYTHING, access=EVERYTHING, limit=9)}
    for name in ("own", "window", "thread"):
        assert getattr(pool, name).tolist() == [getattr(worded[one], name) for one in pool.ids]
    assert pool.cosine == pytest.approx([0.9, 0.5, 0.1, 1.0], abs=1e-6)
    assert (pool.starts.tolist(), pool.ends.tolist()) == ([1, 1, 1, 0], [2, 2, 2, 1])
    assert (pool.vectors == [*(between(0, 1, share) for share in (0.9, 0.5, 0.1)), axis(0)]).all()
    assert pool.literals.tolist() == [0, 1, 0, 1]
    few = gather(store, replace(probe, per_arm=1, terms=("unobtainium",)))
    # found by meaning, or by its literal: its other scores are what they were, but for the words asked for
    assert few.ids == ("b", "d")
    assert few.cosine == pytest.approx([0.5, 1.0], abs=1e-6)
    assert few.literals.tolist() == [1, 1]
    assert [few.own.any(), few.window.any(), few.thread.any()] == [False] * 3


def test_a_candidate_has_the_score_of_its_thread_though_no_word_is_near_it(store: MemoryStore) -> None:
    add_with(store, a_turn("far", "nickel", 1), axis(0))
    add(store, a_turn("middle", "basalt", 2), a_turn("there", "zinc", 3))
    pool = gather(store, replace(MEANT, terms=("zinc",)))
    (at,) = np.flatnonzero(~pool.by_words).tolist()
    assert pool.ids[at] == "far"
    assert (pool.own[at], pool.window[at]) == (0.0, 0.0)
    assert pool.thread[at] == pool.thread.max() > 0


def test_each_arm_is_limited_by_itself_and_ties_go_by_id(store: MemoryStore) -> None:
    for name in ("c", "a", "d", "b"):
        add_with(store, a_memory(name, "zinc ERR_42"), axis(0))
    probe = replace(MEANT, terms=("zinc",), literals=("ERR_42",), per_arm=2)
    assert gather(store, probe).ids == ("a", "b")
    assert gather(store, replace(probe, per_arm=0)).ids == ()
    with pytest.raises(InvalidInput):
        gather(store, replace(probe, per_arm=-1))


def test_what_is_not_close_enough_is_not_found_by_meaning(store: MemoryStore) -> None:
    add_with(store, a_memory("near", "zinc"), between(0, 1, 0.8))
    add_with(store, a_memory("far", "iron"), between(0, 1, 0.2))
    assert gather(store, replace(MEANT, least_cosine=0.5)).ids == ("near",)
    both = gather(store, replace(MEANT, least_cosine=0.5, terms=("iron",)))
    assert both.ids == ("far", "near")
    assert both.cosine == pytest.approx([0.2, 0.8], abs=1e-6)


def test_filters_and_access_hold_for_every_arm(store: MemoryStore) -> None:
    for name, scope, tags in (("a", "/x", ("red",)), ("b", "/x", ()), ("c", "/y", ("red",))):
        memory = replace(a_memory(name, "zinc ERR_42"), scope=scope, tags=tags)
        add_with(store, memory, axis(0))
    probe = replace(MEANT, terms=("zinc",), literals=("ERR_42",))
    assert gather(store, probe).ids == ("a", "b", "c")
    assert gather(store, probe, Access(scopes=("/x",))).ids == ("a", "b")
    assert gather(store, replace(probe, where=Filter(tags_any=("red",)))).ids == ("a", "c")
    only = gather(store, replace(probe, where=Filter(tags_any=("red",)), per_arm=1), Access(scopes=("/y",)))
    assert only.ids == ("c",)
    assert (only.by_words & only.by_meaning & only.by_literal).all()


def test_an_empty_probe_and_an_empty_store_give_an_empty_pool(store: MemoryStore) -> None:
    for probe in (Probe(per_arm=9), MEANT, replace(MEANT, terms=("zinc",), literals=("x",))):
        pool = gather(store, probe)
        assert (pool.ids, pool.sketch, pool.memories) == ((), None, 0)
        assert pool.traits.created.shape == pool.own.shape == pool.cosine.shape == (0,)
    add(store, a_memory("a", "zinc"))
    assert gather(store, Probe(per_arm=9)).ids == ()


def test_without_vectors_here_or_there_meaning_takes_no_part(store: MemoryStore) -> None:
    add(store, a_memory("a", "zinc"))
    for probe in (replace(MEANT, terms=("zinc",)), Probe(terms=("zinc",), per_arm=9)):
        pool = gather(store, probe)
        assert pool.ids == ("a",)
        assert pool.cosine == pytest.approx([nan], nan_ok=True)
        assert (pool.starts.tolist(), pool.ends.tolist(), pool.sketch) == ([0], [0], None)
    add_with(store, a_memory("b", "iron"), axis(0))
    assert gather(store, Probe(terms=("zinc",), per_arm=9)).ids == ("a",)
    assert gather(store, replace(MEANT, terms=("zinc",))).cosine == pytest.approx([nan, 1.0], nan_ok=True)


def test_a_vector_of_another_space_is_refused(store: MemoryStore) -> None:
    add_with(store, a_memory("a", "zinc"), axis(0))
    with pytest.raises(ModelMismatch):
        gather(store, replace(MEANT, signature=OTHER_SIGNATURE))
    for vector in (np.ones(3, dtype=np.float32), np.full(8, np.nan, dtype=np.float32)):
        with pytest.raises(InvalidInput):
            gather(store, replace(MEANT, vector=vector))
    with pytest.raises(InvalidInput, match="signature"):
        gather(store, replace(MEANT, signature=None))


def test_frequencies_are_of_the_whole_store_and_name_every_term(store: MemoryStore) -> None:
    add(store, a_memory("a", "zinc zinc cobalt copper"), a_memory("b", "zinc"), a_memory("c", "iron"))
    asked = Probe(terms=("zinc", "unobtainium", "co*", "("), where=Filter(scope="/nowhere"), per_arm=9)
    pool = gather(store, asked)
    assert pool.ids == ()
    assert (pool.frequencies, pool.memories) == ({"zinc": 2, "unobtainium": 0, "co*": 1, "(": 0}, 3)
    forget(store, "b")
    assert gather(store, asked).frequencies["zinc"] == 1
    # what the budget leaves out is still counted
    tight = gather(store, Probe(terms=("zinc", "iron"), postings=1, per_arm=9))
    assert tight.ids == ("c",)
    assert tight.frequencies == {"zinc": 1, "iron": 1}


def test_a_window_covers_the_share_of_the_query_that_its_terms_weigh(store: MemoryStore) -> None:
    add(
        store,
        a_turn("a", "zinc zinc", 1),
        a_turn("b", "iron", 2),
        a_turn("c", "nickel", 3),
        a_memory("d", "zinc iron cobalt"),
    )
    pool = gather(store, Probe(terms=("zinc", "iron", "cobalt", "unobtainium", "iron"), per_arm=9))
    zinc, iron, cobalt, unknown = (idf(frequency, 4) for frequency in (2, 2, 1, 0))
    whole = zinc + iron + cobalt + unknown
    held = [zinc + iron, zinc + iron, iron, zinc + iron + cobalt]
    assert pool.ids == ("a", "b", "c", "d")
    assert pool.covered == pytest.approx([share / whole for share in held])


def test_the_date_terms_are_scored_alone_too(store: MemoryStore) -> None:
    add(store, a_turn("a", "zinc in march", 1), a_turn("b", "iron", 2), a_memory("c", "zinc"))
    pool = gather(store, Probe(terms=("zinc", "march"), date_terms=("march",), per_arm=9))
    alone = {one.memory_id: one for one in store.lexical(["march"], ANYTHING, access=EVERYTHING, limit=9)}
    assert pool.ids == ("a", "b", "c")
    assert pool.dated == pytest.approx([alone["a"].window, alone["b"].window, 0.0])
    assert not gather(store, Probe(terms=("zinc", "march"), per_arm=9)).dated.any()


def test_somebody_is_present_who_speaks_in_the_thread(store: MemoryStore) -> None:
    add(
        store,
        a_turn("a", "Ada: zinc", 1),
        a_turn("b", "Bob: zinc", 2),
        a_turn("c", "Bob: zinc", 1, thread="other"),
        replace(a_memory("d", "zinc"), author="Ada"),
    )
    pool = gather(store, Probe(terms=("zinc",), names=frozenset({name_hash("Ada")}), per_arm=9))
    assert pool.ids == ("a", "b", "c", "d")
    assert pool.present.tolist() == [True, True, False, False]
    assert not gather(store, Probe(terms=("zinc",), per_arm=9)).present.any()


# -- traits ----------------------------------------------------------------------------------------


def test_traits_tell_what_the_stages_need(store: MemoryStore) -> None:
    happened = T0 - DAY
    told = replace(
        a_turn("a", "Bob: I saw zinc yesterday, did you?", 1),
        occurred_at=happened,
        author="Ada Lovelace",
        suppression_count=2,
    )
    add(store, told, a_memory("b", "zinc " * 60))
    remark(store, "a", Evidence.EXPOSED, T0 + DAY)
    remark(store, "a", Evidence.USEFUL, T0 + DAY)
    traits = gather(store, Probe(terms=("zinc",), per_arm=9)).traits
    strength = held(store, "a").strength
    assert traits.created.tolist() == [T0.timestamp()] * 2
    assert traits.happened == pytest.approx([happened.timestamp(), nan], nan_ok=True)
    assert traits.stability[0] == pytest.approx(strength.stability)
    assert traits.decay_from[0] == pytest.approx(strength.decay_from.timestamp())
    assert traits.retrieval[0] == pytest.approx(strength.retrieval)
    assert traits.storage[0] == pytest.approx(strength.storage)
    assert traits.suppressions.tolist() == [2, 0]
    assert traits.retrieved.tolist() == [strength.times_retrieved, 0]
    assert traits.useful.tolist() == [strength.times_useful, 0] == [1, 0]
    assert traits.thread.tolist() == [-1, -1], "what is suppressed is in no thread"
    assert traits.form.tolist() == [Form.TURN, Form.NOTE]
    assert traits.first_person.tolist() == [True, False]
    assert traits.asks.tolist() == [True, False]
    assert traits.timed.tolist() == [True, False]
    assert traits.speaker.tolist() == [name_hash("Ada"), 0]


def test_members_of_a_thread_share_a_number(store: MemoryStore) -> None:
    add(
        store,
        a_turn("a", "zinc", 1),
        a_turn("b", "zinc", 1, thread="other"),
        a_turn("c", "zinc", 2),
        a_memory("d", "zinc"),
    )
    first, second, third, none = gather(store, Probe(terms=("zinc",), per_arm=9)).traits.thread.tolist()
    assert first == third >= 0
    assert second >= 0
    assert second != first
    assert none == -1


def test_a_revision_changes_the_traits(store: MemoryStore) -> None:
    memory = a_memory("a", "zinc")
    add(store, memory)
    revise(store, replace(memory, content="Did I see zinc?", author="Bob", revision=2))
    traits = gather(store, Probe(terms=("zinc",), per_arm=9)).traits
    assert (traits.asks.tolist(), traits.first_person.tolist()) == ([True], [True])
    assert traits.speaker.tolist() == [name_hash("bob")]


# -- literals --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("the Error TS2345 again", "ts2345"),
        ("set VESTIGE_HOME first", "VESTIGE_HOME"),
        ("in src/store/pool.py it is", "src/store/pool.py"),
        ("she said  never\tagain, twice", "Never Again"),
        ("STRASSE und Straße", "straße"),
        ("東京都に住む", "京都"),
    ],
)
def test_a_literal_is_found_as_it_is_written(store: MemoryStore, content: str, wanted: str) -> None:
    add(store, a_memory("a", content), a_memory("b", "quartz"))
    assert literal(store, wanted) == ["a"]


def test_the_words_of_a_literal_in_another_order_are_not_it(store: MemoryStore) -> None:
    add(store, a_memory("a", "never again"), a_memory("b", "again and never"), a_memory("c", "again, never"))
    assert literal(store, "never again") == ["a"]
    assert literal(store, "again, never") == ["c"]


def test_part_of_a_word_is_no_literal(store: MemoryStore) -> None:
    add(store, a_memory("a", "foo_bar"), a_memory("b", "foo_ba"))
    assert literal(store, "foo_ba") == ["b"]
    pool = gather(store, Probe(terms=("foobar",), literals=("foo_ba",), per_arm=9))
    assert (pool.ids, pool.literals.tolist()) == (("a", "b"), [0, 1])


def test_tags_and_phrasings_hold_literals_too(store: MemoryStore) -> None:
    add(
        store,
        replace(a_memory("a", "zinc"), tags=("ERR_42",)),
        replace(a_memory("b", "zinc"), phrasings=("about ERR_42",)),
    )
    assert literal(store, "err_42") == ["a", "b"]
    # a literal does not run over from one tag to the next
    add(store, replace(a_memory("c", "zinc"), tags=("deep", "cobalt")))
    assert literal(store, "deep cobalt") == []


def test_a_memory_is_found_by_its_id_and_by_its_source(store: MemoryStore) -> None:
    name = "01900000-0000-7000-8000-00000000abcd"
    add(store, replace(a_memory(name, "zinc"), source="notes/today.md"), a_memory("other", "iron"))
    for wanted in (name, name.upper(), f" {name} ", "notes/today.md"):
        assert literal(store, wanted) == [name]
    assert literal(store, "notes/today") == []


def test_more_literals_come_first(store: MemoryStore) -> None:
    add(
        store,
        a_memory("a", "ERR_1"),
        a_memory("b", "ERR_1 and ERR_2"),
        a_memory("c", "ERR_2"),
        a_memory("d", "ERR_2 ERR_2 ERR_2"),
    )
    assert literal(store, "ERR_1", "ERR_2", "ERR_2", per_arm=1) == ["b"]
    assert literal(store, "ERR_1", "ERR_2", per_arm=3) == ["a", "b", "c"]
    pool = gather(store, Probe(literals=("ERR_1", "ERR_2", "ERR_2"), per_arm=9))
    assert pool.literals.tolist() == [1, 2, 1, 1]


@pytest.mark.parametrize("nothing", ["", " ", "!!!", '"', "(", "*", "%", "\N{COMBINING ACUTE ACCENT}"])
def test_a_literal_without_words_finds_nothing(store: MemoryStore, nothing: str) -> None:
    add(store, a_memory("a", 'zinc !!! " ( * %'))
    assert literal(store, nothing) == []


def test_a_literal_may_be_long(store: MemoryStore) -> None:
    text = " ".join(f"word{number}" for number in range(3_000))
    add(store, a_memory("a", f"first {text} last"), a_memory("b", "word1 word2"))
    assert literal(store, text) == ["a"]


def test_a_literal_in_very_many_memories_finds_none_but_counts(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vestige.cognition.query.literals.COMMON", 2)
    add(store, *(a_memory(name, "ERR_42") for name in "ab"))
    assert literal(store, "ERR_42") == ["a", "b"]
    add(store, a_memory("c", "ERR_42 zinc"))
    assert literal(store, "ERR_42") == []
    pool = gather(store, Probe(terms=("zinc",), literals=("ERR_42",), per_arm=9))
    assert (pool.ids, pool.literals.tolist(), pool.by_literal.tolist()) == (("c",), [1], [False])


def test_a_literal_is_counted_among_what_may_be_found(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verbatim, "COMMON", 3)
    add(store, replace(a_memory("mine", "ERR_FOO_12 again"), scope="/a"))
    add(store, *(replace(a_memory(f"other {n}", "ERR_FOO_12"), scope="/b") for n in range(5)))

    mine = store.gather(Probe(literals=("ERR_FOO_12",), per_arm=5), access=Access(scopes=("/a",)))
    all_ = store.gather(Probe(literals=("ERR_FOO_12",), per_arm=5), access=EVERYTHING)

    assert mine.ids == ("mine",)
    assert all_.ids == ()


def test_of_long_texts_a_sketch_holds_the_beginning() -> None:
    few = np.array([10, 5_000], dtype=np.int64)
    many = np.full(1_000, 1_000, dtype=np.int64)

    assert tokens_kept(few).tolist() == [10, LONGEST_TOKENS]
    assert set(tokens_kept(many).tolist()) == {MOST_TOKENS // 1_000}
