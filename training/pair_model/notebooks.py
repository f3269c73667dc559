"""The notebooks of the pair model: notes that are all true, with questions or with later notes.

Notes and questions are training data. Later notes are not: the thresholds of the gate are judged by them.
"""

import json
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from training.pair_model.augment import vary
from training.pair_model.pairs import DATA, Example

FOLDER = DATA / "notebooks"

NEIGHBOURS = 5  # The nearest notes that a note is paired with …
LEAST_LIKENESS = 0.3  # … if their cosine is not below this.
CLOSE_NOTES, FAR_NOTES = 6, 2
"""The notes that do not answer a question: the nearest ones, and some by chance."""
ANSWER_WEIGHT = 4
"""How often a note that answers counts, against once for one that does not."""
BY_WORDS = 0.05
"""The weight of a shared word's rarity beside the cosine, where notes near a question are found."""
COPIES, NEIGHBOUR_COPIES = 6, 4

LATER = ("corrects", "stands", "same")
"""The kinds of later notes: one corrects the note that it is about, one leaves it standing, one repeats it in
other words."""


class Vectors(Protocol):
    """Unit vectors of texts, one row each."""

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question and the positions of the notes that answer it; none if there is no answer."""

    text: str
    answers: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterNote:
    """A note written later, the position of the note that it is about, and its kind, one of LATER."""

    text: str
    about: int
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    """One author's notes, all true at the same time, with questions or later notes."""

    name: str
    notes: tuple[str, ...]
    questions: tuple[Question, ...]
    later: tuple[LaterNote, ...]


@dataclass(frozen=True, slots=True)
class AnswerExample:
    """A question, a note, and whether the note answers it."""

    question: str
    note: str
    answers: bool


def notebooks(folder: Path = FOLDER) -> list[Notebook]:
    """All notebooks, in the order of their names."""
    return [_read(file) for file in sorted(folder.glob("*.jsonl"))]


def _read(file: Path) -> Notebook:
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines() if line]
    notes = [row for row in rows if row["kind"] == "note"]
    places = {row["id"]: at for at, row in enumerate(notes)}
    return Notebook(
        name=file.stem,
        notes=tuple(row["text"] for row in notes),
        questions=tuple(
            Question(text=row["text"], answers=frozenset(places[one] for one in row["answers"]))
            for row in rows
            if row["kind"] == "question"
        ),
        later=tuple(
            LaterNote(text=row["text"], about=places[row["of"]], kind=row["kind"])
            for row in rows
            if row["kind"] in LATER
        ),
    )


def neighbours(books: Sequence[Notebook], vectors: Vectors, rng: random.Random) -> list[Example]:
    """Each note with the notes nearest to it: both are true, so they leave each other standing."""
    found = []
    for book in books:
        rows = vectors.embed_documents(book.notes)
        likeness = rows @ rows.T
        np.fill_diagonal(likeness, -1)
        for at, note in enumerate(book.notes):
            near = [one for one in _nearest(likeness[at], NEIGHBOURS) if likeness[at, one] >= LEAST_LIKENESS]
            found += [Example(book.notes[one], note, "other") for one in near]
    return _copies(found, NEIGHBOUR_COPIES, rng)


def answers(books: Sequence[Notebook], vectors: Vectors, rng: random.Random) -> list[AnswerExample]:
    """Each question with the notes that answer it, the nearest that do not, and some others."""
    found: list[AnswerExample] = []
    for book in books:
        rows = vectors.embed_documents(book.notes)
        words = [_words(note) for note in book.notes]
        for question in book.questions:
            [row] = vectors.embed_documents([question.text])
            near = rows @ row + BY_WORDS * _shared_rarity(_words(question.text), words)
            others = [one for one in _nearest(near, len(book.notes)) if one not in question.answers]
            chosen = others[:CLOSE_NOTES] + rng.sample(others, FAR_NOTES)
            for at in sorted(question.answers):
                found += [AnswerExample(question.text, book.notes[at], True)] * ANSWER_WEIGHT
            found += [AnswerExample(question.text, book.notes[at], False) for at in chosen]
    changed = [
        AnswerExample(vary(one.question, rng), vary(one.note, rng), one.answers)
        for _ in range(COPIES - 1)
        for one in found
    ]
    return found + changed


def _copies(examples: list[Example], copies: int, rng: random.Random) -> list[Example]:
    changed = (
        Example(vary(one.first, rng), vary(one.second, rng), one.label)
        for _ in range(copies - 1)
        for one in examples
    )
    return [*examples, *changed]


def _nearest(likeness: NDArray[np.float32], count: int) -> Iterator[int]:
    return (int(at) for at in np.argsort(-likeness, kind="stable")[:count])


def _words(text: str) -> frozenset[str]:
    return frozenset("".join(sign if sign.isalnum() else " " for sign in text.lower()).split())


def _shared_rarity(asked: frozenset[str], notes: Sequence[frozenset[str]]) -> NDArray[np.float64]:
    """For each note the rarity of the words it shares with the question, as a sum of logarithms."""
    rarity = {
        word: np.log(len(notes) / count) for word in asked if (count := sum(word in one for one in notes))
    }
    return np.array([sum(rarity[word] for word in sorted(asked & one)) for one in notes])
