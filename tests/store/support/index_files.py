"""Stores whose vectors go into files early, and what a search of them must answer."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.store.support.generators import SIGNATURE, a_memory, embedded
from tests.store.support.sqlite_files import query
from vestige.core.models import ANYTHING, EVERYTHING, Filter
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Add
from vestige.store.contract.store import MemoryStore
from vestige.store.sqlite.store import SqliteStore

Vectors = NDArray[np.float32]
SMALL = {"SEGMENT_ROWS": 16, "PUBLISH_NEW": 20, "PUBLISH_ALL": 60, "FEWEST_ROWS": 4}


def publish_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and codes from a few vectors on, not thousands."""
    for name, size in SMALL.items():
        monkeypatch.setattr(f"vestige.store.sqlite.search.segments.{name}", size)
    monkeypatch.setattr("vestige.store.sqlite.search.vectors.CODES_FROM", 1)


def leave_to_worker(store: SqliteStore) -> None:
    """From now on `settle` publishes files, as if a worker called it every few seconds, and no write does."""
    store._publisher.by_worker = True


def folder_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.index")


def files_of(path: Path) -> list[Path]:
    return sorted(folder_of(path).glob("*"))


def listed(path: Path) -> list[str]:
    return sorted(str(row[0]) for row in query(path, "SELECT file FROM segments"))


def units(seed: int, count: int) -> Vectors:
    drawn = np.random.default_rng(seed).standard_normal((count, SIGNATURE.dimension))
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    return drawn.astype(np.float32)


def fill(store: MemoryStore, seed: int, count: int, first: int = 0) -> dict[str, Vectors]:
    """Add memories of one to three pieces; their vectors by id."""
    rng = np.random.default_rng(seed)
    pieces = rng.integers(1, 4, count)
    vectors = np.split(units(seed, int(pieces.sum())), np.cumsum(pieces)[:-1])
    made = {f"m{first + number:05}": rows for number, rows in enumerate(vectors)}
    changes = []
    for name, rows in made.items():
        memory = a_memory(name)
        changes.append(Add(memory=memory, embedded=embedded(memory, *rows)))
    store.commit(changes, access=EVERYTHING)
    return made


def asked(
    store: MemoryStore, queries: Vectors, limit: int = 10, where: Filter = ANYTHING
) -> list[list[Scored]]:
    return store.nearest(queries, SIGNATURE, where, access=EVERYTHING, limit=limit)


def expected(held: Mapping[str, Vectors], queries: Vectors, limit: int = 10) -> list[list[tuple[str, int]]]:
    """The right answer by brute force: ids with the number of the best piece."""
    answers = []
    for one in queries.astype(np.float64):
        scores = {name: rows.astype(np.float64) @ one for name, rows in held.items()}
        order = sorted(scores, key=lambda name: (-scores[name].max(), name))[:limit]
        answers.append([(name, int(scores[name].argmax())) for name in order])
    return answers


def told(answers: list[list[Scored]]) -> list[list[tuple[str, int]]]:
    return [[(one.memory_id, one.start) for one in answer] for answer in answers]


def answers_rightly(store: MemoryStore, held: Mapping[str, Vectors], seed: int = 99) -> bool:
    """Whether single and joint queries find exactly what brute force finds."""
    queries = units(seed, 6)
    right = expected(held, queries)
    alone = [told(asked(store, queries[at : at + 1]))[0] for at in range(len(queries))]
    return told(asked(store, queries)) == right and alone == right
