"""Small stores with questions: notes of an author, questions that they answer, and those of other authors."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.notes.cases import HALVES, Notebook, NoteQuestion, notebooks_of

SIZES = {1: 12, 2: 8, 4: 6, 8: 4, 16: 3, 50: 2}
"""The number of stores of each size, for each author."""
RIGHT, WRONG = 8, 8
"""The most answerable questions, and the wrong-topic questions, put to each store."""
SEED = 21
ASKED = ("sibling", "direct", "context")
"""The classes of questions that a note answers by itself; one about the past also needs what came later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallStore:
    """Notes of one author, with questions that they answer and questions about another author's notes."""

    size: int
    notebook: Notebook
    wrong: frozenset[str]
    """Ids of the questions on another topic."""


def stores_of(half: str) -> Iterator[SmallStore]:
    """The stores of a half. Each holds the answer to one question at least. Questions on another topic come
    from all other notebooks, their unanswerable and nonsense questions included."""
    rng = random.Random(SEED)
    books = [book for name in HALVES for book in notebooks_of(name)]
    for book in notebooks_of(half):
        others = [
            NoteQuestion(
                id=f"{other.author}-{one.id}", text=one.text, answers=frozenset(), kind="other topic"
            )
            for other in books
            if other.author != book.author
            for one in other.questions
        ]
        for size, draws in SIZES.items():
            for _ in range(draws):
                yield _drawn(book, others, size, rng)


def _drawn(book: Notebook, others: Sequence[NoteQuestion], size: int, rng: random.Random) -> SmallStore:
    answerable = [one for one in book.questions if one.kind in ASKED]
    seed = rng.choice([one for one in answerable if len(one.answers) <= size])
    rest = [note.id for note in book.notes if note.id not in seed.answers]
    held = seed.answers | set(rng.sample(rest, min(len(rest), size - len(seed.answers))))
    right = [one for one in answerable if one.answers <= held and one is not seed]
    asked = [seed, *rng.sample(right, min(RIGHT - 1, len(right)))]
    wrong = rng.sample(others, WRONG)
    notes = [note for note in book.notes if note.id in held]
    return SmallStore(
        size=size,
        notebook=Notebook(author=book.author, notes=notes, questions=[*asked, *wrong]),
        wrong=frozenset(one.id for one in wrong),
    )
