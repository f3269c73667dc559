"""The benchmark of notes: its cases are whole, and its figures count what became of them."""

from collections import Counter
from pathlib import Path

import pytest

from benchmarks.engine import InProcess
from benchmarks.notes import pairs, questions
from benchmarks.notes.cases import (
    HALVES,
    PLAIN,
    SETS,
    UNANSWERABLE,
    Notebook,
    NotePair,
    NoteQuestion,
    notebooks_of,
    pairs_of,
)
from benchmarks.notes.pairs import PairOutcome
from benchmarks.notes.questions import Asked
from benchmarks.notes.shares import in_words, interval
from benchmarks.silence.prompts import FOREIGN, OWN, UNKNOWN, notebooks
from benchmarks.tail.stores import SIZES, WRONG, stores_of
from vestige.embed.hashing import HashingEmbedder


@pytest.mark.parametrize("half", HALVES)
def test_each_half_has_its_cases_and_every_answer_is_a_note(half: str) -> None:
    cases, books = pairs_of(half), notebooks_of(half)
    assert Counter(case.label for case in cases) == {
        "corrects": 80, "other": 100, "same": 20, "elaborates": 12, "unclear": 8
    }  # fmt: skip
    assert len({case.id for case in cases}) == len(cases)
    for book in books:
        known = {note.id for note in book.notes}
        assert len(known) == len(book.notes) == 60
        assert [one.id for one in book.questions if not one.answers <= known] == []
        assert [one.id for one in book.questions if (one.kind in UNANSWERABLE) == bool(one.answers)] == []


@pytest.mark.parametrize("name", PLAIN)
def test_each_plain_author_has_all_cases_and_every_answer_is_a_note(name: str) -> None:
    [book] = notebooks_of(name)
    taken_out = 1 if name == "plain" else 0
    assert Counter(case.label for case in pairs_of(name)) == {
        "corrects": 56, "other": 60 - taken_out, "same": 24 - taken_out, "elaborates": 12, "unclear": 8
    }  # fmt: skip
    known = {note.id for note in book.notes}
    assert len(known) == len(book.notes) == 70
    assert [one.id for one in book.questions if not one.answers <= known] == []
    assert [one.id for one in book.questions if (one.kind in UNANSWERABLE) == bool(one.answers)] == []


def test_no_author_is_in_two_sets() -> None:
    authors = [author for names in SETS.values() for author in names]
    assert len(set(authors)) == len(authors) == 6


def test_the_figures_of_pairs_count_decisions_by_label() -> None:
    decided = [
        ("corrects", "supersede"),
        ("corrects", "reinforce"),
        ("other", "supersede"),
        ("same", "update"),
    ]
    outcomes = [
        PairOutcome(
            pair=NotePair(id="p", first="a", second="b", label=label, kind="value"), decision=decision
        )
        for label, decision in decided
    ]
    assert pairs.figures(outcomes) == {
        "corrections superseded": [True, False],
        "corrections swallowed": [False, True],
        "standing facts superseded": [True],
        "paraphrases reinforced": [True],
        "conflicts kept and marked": [],
    }


def test_the_figures_of_questions_count_the_first_note_and_refusals() -> None:
    known = NoteQuestion(id="q1", text="?", answers=frozenset({"n1"}), kind="sibling")
    unknown = NoteQuestion(id="q2", text="?", answers=frozenset(), kind="nonsense")
    asked = [Asked(question=known, found=("n2", "n1"), sure=(0.9, 0.5)), Asked(question=unknown, found=())]
    found = questions.figures(asked)
    assert found["sibling: right note first"] == [False]
    assert (found["unanswerable refused"], found["answerable refused"]) == ([True], [False])
    assert [(row["hits"], row["right"]) for row in questions.reliability(asked)] == [
        (0, None), (0, None), (1, 1.0), (0, None), (1, 0.0)
    ]  # fmt: skip


def test_pairs_and_questions_go_through_the_shipped_tools(tmp_path: Path) -> None:
    case = NotePair(
        id="p1", first="Tea is at four.", second="Tea is at five.", label="corrects", kind="value"
    )
    with InProcess(tmp_path, embedder=HashingEmbedder()) as engine:
        assert [one.decision for one in pairs.by_gate(engine, [case])] == ["supersede"]
    book = Notebook(author="a", notes=notebooks_of("development")[0].notes[:2], questions=())
    assert list(questions.ask_memory(book, {"embeddings.provider": "hashing"})) == []


def test_a_share_is_shown_with_its_interval() -> None:
    assert in_words([True, True, False, False]) == "2 of 4 (0.50, 0.15–0.85)"
    assert interval([]) == (0.0, 1.0)


# -- small stores: other topics and their own ----------------------------------------------------


@pytest.mark.parametrize("half", HALVES)
def test_a_small_store_has_its_size_an_answer_and_questions_of_other_authors(half: str) -> None:
    stores = list(stores_of(half))

    assert len(stores) == len(HALVES[half]) * sum(SIZES.values())
    for one in stores:
        held = {note.id for note in one.notebook.notes}
        right = [asked for asked in one.notebook.questions if asked.id not in one.wrong]
        assert len(held) == one.size
        assert right
        assert all(asked.answers and asked.answers <= held for asked in right)
        assert not any(name.startswith(f"{one.notebook.author}-") for name in one.wrong)
        assert len(one.wrong) == WRONG


def test_the_same_small_stores_are_drawn_every_time() -> None:
    assert list(stores_of("development")) == list(stores_of("development"))


# -- silence: prompts of other stores -----------------------------------------------------------------


def test_a_store_is_asked_its_own_questions_and_those_of_another_store() -> None:
    sessions = list(notebooks(Path(), 5))
    assert len(sessions) == 4
    for session in sessions:
        kinds = [one.kind for one in session.prompts]
        assert {kind: kinds.count(kind) for kind in (OWN, FOREIGN, UNKNOWN)} == {
            OWN: 5,
            FOREIGN: 5,
            UNKNOWN: 5,
        }
        keys = {document.key for document in session.corpus.documents}
        assert all(one.gold <= keys and one.gold for one in session.prompts if one.kind == OWN)
        own = {one.text for one in session.prompts if one.kind == OWN}
        assert not own & {one.text for one in session.prompts if one.kind == FOREIGN}
