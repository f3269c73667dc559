from dataclasses import replace
from math import log

import pytest

from tests.store.support.generators import T0, a_memory, add, forget, hits, memory_id, revise
from vestige.cognition.text.analyser import memory_terms, query_terms
from vestige.core.candidates import LexicalScores
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.contract.store import MemoryStore


def words(store: MemoryStore, *terms: str, where: Filter = ANYTHING, limit: int = 100) -> list[LexicalScores]:
    return store.lexical(terms, where, access=EVERYTHING, limit=limit)


def scores(store: MemoryStore, *terms: str) -> dict[str, float]:
    found = words(store, *terms)
    # outside any thread, what stands beside a memory adds nothing
    assert all((one.window, one.thread) == (one.own, 0.0) for one in found)
    return {one.memory_id: one.own for one in found}


@pytest.fixture
def metals(store: MemoryStore) -> MemoryStore:
    """Five memories of 3, 2, 1, 3 and 1 terms: ten in all, two on average."""
    add(
        store,
        a_memory("a", "zinc zinc iron"),
        a_memory("b", "zinc cobalt"),
        a_memory("c", "iron"),
        a_memory("d", "iron iron silver"),
        a_memory("e", "copper"),
    )
    return store


def test_scores_are_the_formula_worked_by_hand(metals: MemoryStore) -> None:
    # cobalt: df 1, idf ln(4.5/1.5); b is of average length, so tf 1 scores idf · 2.2/2.2
    assert scores(metals, "cobalt") == pytest.approx({"b": log(3.0)}, abs=1e-6)
    # zinc: df 2, idf ln(3.5/2.5); a has tf 2 and length 3: 1.2 · (0.25 + 0.75 · 1.5) = 1.65
    zinc = log(1.4)
    assert scores(metals, "zinc") == pytest.approx({"a": zinc * 4.4 / 3.65, "b": zinc}, abs=1e-6)
    # e has length 1: 1.2 · (0.25 + 0.75 · 0.5) = 0.75
    assert scores(metals, "copper") == pytest.approx({"e": log(3.0) * 2.2 / 1.75}, abs=1e-6)
    assert scores(metals, "copper")["e"] == pytest.approx(1.381112, abs=1e-6)


def test_a_term_in_more_than_half_of_the_memories_still_counts_a_little(metals: MemoryStore) -> None:
    # iron: df 3, idf would be ln(2.5/3.5) < 0 and becomes 1e-6
    expected = {"a": 2.2 / 2.65, "c": 2.2 / 1.75, "d": 4.4 / 3.65}
    assert {name: score / 1e-6 for name, score in scores(metals, "iron").items()} == pytest.approx(expected)
    assert hits(words(metals, "iron")) == ["c", "d", "a"]


def test_the_score_of_several_terms_is_the_sum(metals: MemoryStore) -> None:
    zinc, cobalt, both = (scores(metals, *terms) for terms in (("zinc",), ("cobalt",), ("zinc", "cobalt")))
    assert both == pytest.approx({"a": zinc["a"], "b": zinc["b"] + cobalt["b"]}, abs=1e-9)
    assert hits(words(metals, "zinc", "cobalt")) == ["b", "a"]


def test_a_term_counts_as_often_as_it_is_asked_for(metals: MemoryStore) -> None:
    zinc, cobalt = scores(metals, "zinc"), scores(metals, "cobalt")
    assert scores(metals, "zinc", "cobalt", "zinc", "zinc") == pytest.approx(
        {"a": 3 * zinc["a"], "b": 3 * zinc["b"] + cobalt["b"]}, abs=1e-9
    )


def test_no_terms_and_unknown_terms_find_nothing(metals: MemoryStore) -> None:
    assert words(metals) == []
    assert words(metals, "unobtainium") == []
    assert words(metals, "") == []


def test_a_star_matches_the_beginning_of_a_term(metals: MemoryStore) -> None:
    # co*: cobalt in b, copper in e; df 2, idf ln 1.4
    assert scores(metals, "co*") == pytest.approx({"b": log(1.4), "e": log(1.4) * 2.2 / 1.75}, abs=1e-6)
    # zi*: every occurrence of any matching term counts: the same as the whole word here
    assert scores(metals, "zi*") == pytest.approx(scores(metals, "zinc"), abs=1e-9)
    assert hits(words(metals, "s*")) == ["d"]
    assert words(metals, "inc*") == []


def test_a_prefix_counts_all_its_terms_of_one_memory_together(store: MemoryStore) -> None:
    add(store, a_memory("a", "cobalt copper"), a_memory("b", "silver quartz"), a_memory("c", "nickel basalt"))
    # df 1 of 3, idf ln(2.5/1.5); tf 2, average length: 2 · 2.2/3.2
    assert scores(store, "co*") == pytest.approx({"a": log(2.5 / 1.5) * 4.4 / 3.2}, abs=1e-6)


def test_the_limit_keeps_the_best_and_ties_go_by_id(store: MemoryStore) -> None:
    add(
        store,
        *(a_memory(memory_id(number), "zinc") for number in (4, 2, 3, 1)),
        a_memory("best", "zinc zinc"),
    )
    add(store, *(a_memory(f"filler {number}", "silver") for number in range(20)))
    assert hits(words(store, "zinc", limit=3)) == ["best", memory_id(1), memory_id(2)]


def test_filters_are_applied_before_the_limit_and_never_change_a_score(metals: MemoryStore) -> None:
    add(metals, replace(a_memory("x", "zinc iron cobalt"), tags=("x",), scope="/project"))
    everything = scores(metals, "zinc", "cobalt")
    for where in (
        Filter(tags_any=("x",)),
        Filter(scope="/project"),
        Filter(created_from=T0, tags_all=("x",)),
    ):
        (only,) = words(metals, "zinc", "cobalt", where=where, limit=1)
        assert only.memory_id == "x"
        assert only.own == pytest.approx(everything["x"], abs=1e-9)


def test_tags_and_phrasings_are_found_by_their_words(store: MemoryStore) -> None:
    add(store, replace(a_memory("a", "zinc"), tags=("deep cobalt",), phrasings=("a grey metal",)))
    for word in ("cobalt", "deep", *query_terms("grey metal")):
        assert hits(words(store, word)) == ["a"]


def test_questions_are_found_by_meaning_words_not_by_function_words(store: MemoryStore) -> None:
    add(
        store,
        a_memory("a", "The cobalt is in the drawer"),
        a_memory("b", "What is it, and where was the other?"),
    )
    assert hits(words(store, *query_terms("Where is the cobalt?"))) == ["a"]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("Das Café in der Straße", "cafe"),
        ("Das Café in der Straße", "STRASSE"),
        ("Привет, мир", "ПРИВЕТ"),
        ("東京都に住んでいます", "東京"),
        ("한국어 공부", "한국어"),
        ("the function parseHttpHeader fails", "http header"),
        ("see path/to/config_file.py", "config file"),
        ("see path/to/config_file.py", "path/to/config_file.py"),
        ("don't touch it", "dont"),
        ("runs on Python 3.11", "3.11"),
        ("she was running home", "runs"),
    ],
)
def test_text_is_found_however_it_is_spelt(store: MemoryStore, content: str, query: str) -> None:
    add(store, a_memory("a", content), a_memory("b", "quartz"), a_memory("c", "nickel"))
    assert hits(words(store, *query_terms(query))) == ["a"]


@pytest.mark.parametrize(
    "query",
    [
        *("and", "or", "not", "near", '"', "'", "zebra AND quartz", "NEAR(quartz zebra)", "content:quartz"),
        *("^quartz", "-quartz", "quartz +", "(quartz", 'quartz"', "quartz); DROP TABLE words; --"),
        *("{a b}: quartz", "*"),
    ],
)
def test_a_query_that_looks_like_search_syntax_is_only_words(store: MemoryStore, query: str) -> None:
    add(store, a_memory("a", "quartz"), a_memory("b", "silver"), a_memory("c", "nickel"))
    expected = ["a"] if "quartz" in query else []
    assert hits(words(store, *query_terms(query))) == expected
    assert hits(words(store, *query_terms(query), "nickel")) in (["c"], ["a", "c"], ["c", "a"])


@pytest.mark.parametrize(
    "term", ['"', '""', "'", '"a', "a b", "(", "*", "**", '"*', "a:b", "-", "+", "^", "\\"]
)
def test_a_term_the_analyser_would_never_make_is_harmless(store: MemoryStore, term: str) -> None:
    add(store, a_memory("a", "quartz"), a_memory("b", "silver"), a_memory("c", "nickel"))
    assert words(store, term) == []
    assert hits(words(store, term, "nickel")) == ["c"]


def test_every_term_of_a_memory_finds_it(store: MemoryStore) -> None:
    content = (
        "Ünïcödé 日本語テキスト camelCase snake_case kebab-case v1.2.3 👩‍🚀 don't x"
        + " y" * 50
        + " "
        + "z" * 200
    )
    add(store, a_memory("a", content), a_memory("b", "quartz"))
    for term in set(memory_terms(a_memory("a", content))):
        assert "a" in hits(words(store, term)), term


def test_a_revision_is_found_by_its_new_words_only(store: MemoryStore) -> None:
    add(store, replace(a_memory("a", "quartz"), tags=("shiny",)), a_memory("b", "silver"))
    revise(store, replace(a_memory("a", "copper"), tags=("dull",), revision=2))
    assert hits(words(store, "copper")) == hits(words(store, "dull")) == ["a"]
    assert words(store, "quartz") == words(store, *query_terms("shiny")) == []


def test_statistics_forget_what_was_revised_and_deleted(store: MemoryStore) -> None:
    add(store, a_memory("a", "zinc cobalt"), a_memory("b", "iron"), a_memory("c", "silver copper"))
    before = scores(store, "zinc", "copper")
    add(store, a_memory("x", "zinc zinc zinc zinc copper"), a_memory("y", "quartz"))
    revise(store, replace(a_memory("y", "zinc copper copper"), revision=2))
    assert scores(store, "zinc", "copper") != before
    forget(store, "x")
    forget(store, "y")
    assert scores(store, "zinc", "copper") == pytest.approx(before, abs=1e-12)


def test_rebuilding_the_words_changes_no_answer(metals: MemoryStore) -> None:
    revise(metals, replace(a_memory("c", "iron nickel"), revision=2))
    forget(metals, "d")
    terms = ("zinc", "cobalt", "iron", "nickel", "si*")
    before = words(metals, *terms)
    assert metals.rebuild_words() == 4
    assert words(metals, *terms) == before
    assert len(before) == 3
