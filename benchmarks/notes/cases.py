"""The cases: pairs of notes, and notebooks with questions, by six authors. Half of them are blind."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.client import Json

DATA = Path(__file__).parent / "data"
HALVES = {"development": ("freight", "practice"), "blind": ("lab", "product")}
"""The authors of each half. Of the blind half only totals may be looked at."""
PLAIN = {"plain": ("household",), "plain-blind": ("workshop",)}
"""Authors who wrote later, and plainly: a sentence a note, its subject named. Of the blind one only
totals may be looked at."""
SETS = {**HALVES, **PLAIN}

UNANSWERABLE = ("no_attribute", "no_subject", "no_particular", "nonsense")
"""Classes of questions that no note of their notebook answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotePair:
    """Two notes, `first` stored earlier; `label` says what the second does to the first."""

    id: str
    first: str
    second: str
    label: str
    kind: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A note, the day it was written, and its context if it has one."""

    id: str
    text: str
    at: datetime
    topics: tuple[str, ...] = ()
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteQuestion:
    """A question, the ids of the notes that answer it, and the context it is asked in."""

    id: str
    text: str
    answers: frozenset[str]
    kind: str
    topics: tuple[str, ...] = ()
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notebook:
    """The notes of one author in the order of writing, and questions about them."""

    author: str
    notes: Sequence[Note] = field(default=())
    questions: Sequence[NoteQuestion] = field(default=())


def pairs_of(half: str, data: Path = DATA) -> list[NotePair]:
    return [
        NotePair(**{**row, "id": f"{author}-{row['id']}"})
        for author in SETS[half]
        for row in _rows(data / f"{author}-pairs.jsonl")
    ]


def notebooks_of(half: str, data: Path = DATA) -> list[Notebook]:
    return [_notebook(author, list(_rows(data / f"{author}-notes.jsonl"))) for author in SETS[half]]


def _notebook(author: str, rows: Sequence[Json]) -> Notebook:
    return Notebook(
        author=author,
        notes=[
            Note(
                id=row["id"],
                text=row["text"],
                at=datetime.fromisoformat(row["at"]).replace(hour=9, tzinfo=UTC),
                topics=tuple(row.get("topics", ())),
                session=row.get("session"),
            )
            for row in rows
            if row["kind"] == "note"
        ],
        questions=[
            NoteQuestion(
                id=row["id"],
                text=row["text"],
                answers=frozenset(row["answers"]),
                kind=row["class"],
                topics=tuple(row.get("topics", ())),
                session=row.get("session"),
            )
            for row in rows
            if row["kind"] == "question"
        ],
    )


def _rows(file: Path) -> Iterator[Json]:
    return (json.loads(line) for line in file.read_text("utf-8").splitlines() if line.strip())
