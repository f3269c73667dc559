"""Compares two stores: every row of every table, and the answers to the same queries."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from vestige.cognition.text.analyser import memory_terms
from vestige.core.candidates import LexicalScores
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.contract.answers import Scored
from vestige.store.contract.store import MemoryStore
from vestige.store.sql.database import Database, Row
from vestige.store.sql.rows import memories
from vestige.store.transfer.ends import Progress, RowRefusal
from vestige.store.transfer.row_keys import rank
from vestige.store.transfer.rows import BATCH, key_text, printable
from vestige.store.transfer.tables import COMPARED, MEMORIES, STRENGTHS, TableSpec

SEARCH = "search"
QUESTIONS = 20
ASKED_TERMS = 8
ANSWERS = 10
SCORE_TOLERANCE = 1e-6
MOST_DIFFERENCES = 1_000
OWNERS = {STRENGTHS.table: MEMORIES.table}
"""Tables whose rows are copied with those of another table or not at all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    table: str
    name: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The result of a comparison: equal rows of each table, the number of queries, and the differences."""

    rows: dict[str, int]
    questions: int
    differences: tuple[Difference, ...]

    def of_rows(self) -> "Comparison":
        """The comparison without the queries: stores answer from their present rows, which others may have
        changed."""
        kept = tuple(one for one in self.differences if one.table != SEARCH)
        return replace(self, questions=0, differences=kept)


def compare(
    there: Database,
    here: Database,
    stores: tuple[MemoryStore, MemoryStore],
    refused: Sequence[RowRefusal],
    progress: Progress,
) -> Comparison:
    """Compare two stores, each in one snapshot. Rows that were refused are not reported as missing."""
    total = sum(part.count(there) for part in COMPARED)
    rows: dict[str, int] = {}
    differences: list[Difference] = []
    for part in COMPARED:
        same = 0
        owner = OWNERS.get(part.table, part.table)
        left_out = frozenset(one.key for one in refused if one.table == owner)
        for row, what_differs in _both(part, _rows(part, there, left_out), _rows(part, here)):
            if what_differs is None:
                same += 1
            else:
                differences.append(Difference(table=part.table, name=_name(part, row), what=what_differs))
        rows[part.table] = same
        progress(sum(rows.values()), total, f"Comparing {part.table}")
    questions = 0
    # Missing rows change the frequencies of words, and damaged ones cannot be searched.
    if not refused and not differences:
        questions, unlike = _asked(there, stores)
        differences += unlike
    return Comparison(rows=rows, questions=questions, differences=tuple(differences[:MOST_DIFFERENCES]))


def _both(part: TableSpec, left: Iterator[Row], right: Iterator[Row]) -> Iterator[tuple[Row, str | None]]:
    """Every row of either side with its difference, if any; both come in the order of their keys."""
    ours, theirs = next(left, None), next(right, None)
    while ours is not None or theirs is not None:
        if ours is not None and theirs is not None and part.key(ours) == part.key(theirs):
            yield ours, _unlike(part, ours, theirs)
            ours, theirs = next(left, None), next(right, None)
        elif ours is not None and (theirs is None or rank(part.key(ours)) < rank(part.key(theirs))):
            yield ours, "is missing"
            ours = next(left, None)
        else:
            yield theirs or (), "was not there before"
            theirs = next(right, None)


def _rows(part: TableSpec, db: Database, left_out: frozenset[str] = frozenset()) -> Iterator[Row]:
    for rows in part.batches(db, None, BATCH):
        yield from (row for row in rows if not left_out or key_text(part, row) not in left_out)


def _unlike(part: TableSpec, ours: Row, theirs: Row) -> str | None:
    if ours == theirs:
        return None
    names = (column.name for column in part.columns)
    changed = [name for name, a, b in zip(names, ours, theirs, strict=True) if a != b]
    return f"differs in {', '.join(changed)}"


def _name(part: TableSpec, row: Row) -> str:
    return printable(", ".join(str(value) for value in part.key(row)))


def _asked(there: Database, stores: tuple[MemoryStore, MemoryStore]) -> tuple[int, list[Difference]]:
    """Run the same queries on both stores; the number of queries, and the differing answers."""
    questions, unlike = 0, []
    for memory_id, terms in _questions(there):
        by_words = [_by_words(store, terms) for store in stores]
        by_meaning = [_by_meaning(store, memory_id) for store in stores]
        questions += 1
        for arm, (ours, theirs) in (("words", by_words), ("vectors", by_meaning)):
            if not _alike(ours, theirs):
                what = f"the best {ANSWERS} by {arm} for its own text differ"
                unlike.append(Difference(table=SEARCH, name=memory_id, what=what))
    return questions, unlike


def _questions(db: Database) -> Iterator[tuple[str, list[str]]]:
    """The words of memories from all over the store, with their ids."""
    (last,) = db.execute("SELECT coalesce(max(key), 0) FROM memories").fetchone()
    steps = sorted({last * number // QUESTIONS for number in range(QUESTIONS)})
    seen = set()
    for step in steps:
        found, _ = memories.texts_after(db, step, 1)
        for key, memory in found:
            if key not in seen:
                seen.add(key)
                yield memory.id, list(islice(memory_terms(memory), ASKED_TERMS))


Answer = list[tuple[str, float]]


def _by_words(store: MemoryStore, terms: Sequence[str]) -> Answer:
    found: list[LexicalScores] = store.lexical(terms, ANYTHING, access=EVERYTHING, limit=ANSWERS)
    return [(one.memory_id, one.window) for one in found]


def _by_meaning(store: MemoryStore, memory_id: str) -> Answer:
    signature = store.signature()
    if signature is None:
        return []
    held = store.vectors([memory_id], signature, access=EVERYTHING).get(memory_id)
    if held is None:
        return []
    found: list[list[Scored]] = store.nearest(held[:1], signature, ANYTHING, access=EVERYTHING, limit=ANSWERS)
    return [(one.memory_id, one.score) for one in found[0]]


def _alike(ours: Answer, theirs: Answer) -> bool:
    same = [name for name, _ in ours] == [name for name, _ in theirs]
    scores = ([score for _, score in ours], [score for _, score in theirs])
    return same and np.allclose(scores[0], scores[1], rtol=0, atol=SCORE_TOLERANCE)
