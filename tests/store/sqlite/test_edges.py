"""What looking up edges costs in SQLite, in steps of its machine: they are the same on every computer."""

import sqlite3
from contextlib import closing
from itertools import pairwise
from pathlib import Path

from tests.store.support import sqlite_files
from tests.store.support.generators import T0, a_memory, add, memory_id
from vestige.core.models import EVERYTHING, Edge
from vestige.store.contract.changes import Link
from vestige.store.sql.rows import edges as graph
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store

MEMORIES = 200
COUNTED = 1_000
"""Steps between two counts."""


def test_edges_among_many_memories_cost_by_the_memory_and_not_by_the_pair(
    path: Path, store: SqliteStore
) -> None:
    names = [memory_id(number) for number in range(MEMORIES)]
    add(store, *(a_memory(name) for name in names))
    edges = [
        Edge(source_id=source, target_id=target, kind="related", weight=0.5, created_at=T0)
        for source, target in pairwise(names)
    ]
    store.commit([Link(edge=edge) for edge in edges], access=EVERYTHING)
    counts: list[int] = []
    with closing(sqlite3.connect(path)) as db:
        db.set_progress_handler(lambda: counts.append(COUNTED), COUNTED)
        found = graph.touching(db, names, EVERYTHING, among=True)
    assert found == sorted(edges, key=lambda edge: edge.source_id)
    assert sum(counts) < MEMORIES * MEMORIES
