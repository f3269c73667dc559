"""Questions put to a notebook through `search`: the right note first, and silence where there is none."""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count, pairwise
from pathlib import Path
from uuid import UUID

from benchmarks.bm25 import Bm25
from benchmarks.engine import InProcess
from benchmarks.notes.cases import UNANSWERABLE, Note, Notebook, NoteQuestion
from benchmarks.notes.shares import in_words, share
from benchmarks.progress import track
from benchmarks.report import Cell, Target
from vestige.app.app import Clock

TOP = 5
ASKED_AT = datetime(2026, 11, 1, 9, tzinfo=UTC)
BINS = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question and the answer of one way of searching: ids of notes best first, with their confidence."""

    question: NoteQuestion
    found: tuple[str, ...]
    confidence: float | None = None
    sure: tuple[float, ...] = ()

    @property
    def first(self) -> bool:
        return bool(self.found) and self.found[0] in self.question.answers

    @property
    def refused(self) -> bool:
        return not self.found


def ask_memory(notebook: Notebook, settings: dict[str, object], limit: int = TOP) -> Iterator[Asked]:
    """Store the notes on the days they were written, then ask."""
    moment = [ASKED_AT]
    numbers = count(1)
    clock = Clock(
        now=lambda: moment[0],
        monotonic=time.monotonic,
        sleep=time.sleep,
        new_id=lambda: str(UUID(int=next(numbers))),
        rng=random.Random(19),
    )
    with (
        tempfile.TemporaryDirectory(prefix="vestige-notes-") as folder,
        InProcess(Path(folder), clock=clock, settings=settings) as engine,
    ):
        notes: dict[str, list[str]] = {}  # a note that says the same joins an earlier memory
        for note in notebook.notes:
            moment[0] = note.at
            stored = engine.call("smart_ingest", {"content": note.text, **_context_of(note)})
            notes.setdefault(stored["nodeId"], []).append(note.id)
            engine.settle()
        moment[0] = ASKED_AT
        for question in track(notebook.questions, f"questions of {notebook.author}"):
            answer = engine.call(
                "search", {"query": question.text, "limit": limit, "record": False, **_asking(question)}
            )
            results = [one for one in answer["results"] if one["id"] in notes]
            yield Asked(
                question=question,
                found=tuple(_best(notes[one["id"]], question) for one in results),
                confidence=answer["confidence"],
                sure=tuple(one.get("confidence", answer["confidence"]) for one in results),
            )


def _best(notes: Sequence[str], question: NoteQuestion) -> str:
    return next((name for name in notes if name in question.answers), notes[0])


def _context_of(note: Note) -> dict[str, object]:
    given: dict[str, object] = {"tags": list(note.topics)} if note.topics else {}
    return given | ({"session_id": note.session} if note.session else {})


def _asking(question: NoteQuestion) -> dict[str, object]:
    given: dict[str, object] = {"context_topics": list(question.topics)} if question.topics else {}
    return given | ({"context_session": question.session} if question.session else {})


def ask_bm25(notebook: Notebook) -> Iterator[Asked]:
    index = Bm25([note.text for note in notebook.notes])
    for question in notebook.questions:
        best = index.top(question.text, TOP)
        yield Asked(question=question, found=tuple(notebook.notes[at].id for at in best))


def ask_random(notebook: Notebook) -> Iterator[Asked]:
    rng = random.Random(19)
    for question in notebook.questions:
        found = rng.sample([note.id for note in notebook.notes], TOP)
        yield Asked(question=question, found=tuple(found))


def ask_nothing(notebook: Notebook) -> Iterator[Asked]:
    return (Asked(question=question, found=()) for question in notebook.questions)


def summary(way: str, asked: Sequence[Asked]) -> dict[str, Cell]:
    return {"way": way, **{name: in_words(hits) for name, hits in figures(asked).items()}}


def figures(asked: Sequence[Asked]) -> dict[str, list[bool]]:
    answerable = [one for one in asked if one.question.kind not in UNANSWERABLE]
    unanswerable = [one for one in asked if one.question.kind in UNANSWERABLE]
    first = {
        f"{kind}: right note first": [one.first for one in answerable if one.question.kind == kind]
        for kind in ("sibling", "direct", "past", "context")
    }
    return first | {
        "unanswerable refused": [one.refused for one in unanswerable],
        "answerable refused": [one.refused for one in answerable],
    }


def by_class(asked: Sequence[Asked]) -> list[dict[str, Cell]]:
    return [
        {
            "class": kind,
            "questions": len(found),
            "right note first": sum(one.first for one in found),
            "in the first five": sum(bool(one.question.answers & set(one.found)) for one in found),
            "refused": sum(one.refused for one in found),
            "mean confidence": _mean([one.confidence for one in found if one.confidence is not None]),
        }
        for kind in dict.fromkeys(one.question.kind for one in asked)
        if (found := [one for one in asked if one.question.kind == kind])
    ]


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def reliability(asked: Sequence[Asked]) -> list[dict[str, Cell]]:
    """Of the hits with a stated confidence in each bin, the share that answers the question."""
    hits = [
        (sure, name in one.question.answers)
        for one in asked
        for name, sure in zip(one.found, one.sure, strict=True)
    ]
    rows: list[dict[str, Cell]] = []
    for low, high in pairwise(BINS):
        inside = [(sure, right) for sure, right in hits if low <= sure < high or (high == 1.0 == sure)]
        rows.append(
            {
                "stated": f"{low:.1f}–{high:.1f}",
                "hits": len(inside),
                "mean stated": _mean([sure for sure, _ in inside]),
                "right": _mean([float(right) for _, right in inside]),
            }
        )
    return rows


WANTED = (
    ("sibling: right note first", 19 / 20, True),
    ("direct: right note first", 28 / 30, True),
    ("unanswerable refused", 0.8, True),
    ("answerable refused", 0.05, False),
)


def targets(half: str, asked: Sequence[Asked]) -> Iterator[Target]:
    found = figures(asked)
    for name, limit, at_least in WANTED:
        value = share(found[name])
        if value is not None:
            yield Target(name=f"{half}: {name}", value=value, limit=limit, at_least=at_least)
