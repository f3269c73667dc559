"""A database of the reference system, schemas V1 to V11: memories, links, intentions and insights."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vestige.exchange.importers.intentions import INSIGHT, INTENTION, insight_of, intention_of
from vestige.exchange.importers.links import CONNECTION, edge_of
from vestige.exchange.importers.memories import MEMORY, memory_of
from vestige.exchange.importers.records import Brought, BroughtMemory, Reading, Target, UnreadRecords
from vestige.store.sqlite.file import reference
from vestige.store.sqlite.file.reference import ReferenceFile

LAST_SCHEMA = 11
CARRIED = {
    "knowledge_nodes": MEMORY,
    "memory_connections": CONNECTION,
    "intentions": INTENTION,
    "insights": INSIGHT,
}
LEFT = {
    "node_embeddings": "vectors of another model; the texts are embedded anew",
    "memory_states": "a memory's state follows from its strength here",
    "state_transitions": "the history of states begins anew here",
    "memory_access_log": "single accesses are not kept; their numbers are in the memories",
    "fsrs_cards": "a copy of what the memories say themselves",
    "fsrs_config": "the curve of forgetting is fitted to the reviews made here",
    "consolidation_history": "what another system did in its sleep",
    "dream_history": "what another system did in its sleep",
    "retention_snapshots": "the history of retention begins anew here",
    "sessions": "sessions have no place here",
    "knowledge_edges": "a table that the reference system never used; its links are the connections",
    "compressed_memories": "a table that the reference system never used",
}
"""Why the rows of a table are not imported."""
BOOKKEEPING = ("schema_version",)


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    """The records of a database while it is open."""
    with reference.opened(path) as file:
        total = sum(count for name, count in file.counts.items() if name in CARRIED)
        yield Reading(records=_records(file, target), total=total)


def _records(file: ReferenceFile, target: Target) -> Iterator[Brought]:
    for row in file.rows("knowledge_nodes"):
        yield _node(row, target)
    for row in file.rows("memory_connections"):
        place = f"memory_connections {row.get('source_id')} → {row.get('target_id')}"
        yield edge_of(row, place, target)
    for row in file.rows("intentions"):
        yield intention_of(row, f"intentions {row.get('id')}", target)
    for row in file.rows("insights"):
        yield insight_of(row, f"insights {row.get('id')}", target)
    yield from _left(file)


def _node(row: reference.Row, target: Target) -> BroughtMemory | UnreadRecords:
    place = f"knowledge_nodes {row.get('id')}"
    if not isinstance(row.get("id"), str):
        return UnreadRecords(kind=MEMORY, place=place, reason="it has no id")
    return memory_of(row, place, target)


def _left(file: ReferenceFile) -> Iterator[UnreadRecords]:
    """The tables that are not imported, each with its number of rows."""
    newer = f"it came after schema V{LAST_SCHEMA}, the last one that is read"
    unknown = newer if file.version > LAST_SCHEMA else "a table that the reference system does not have"
    for name, count in file.counts.items():
        if count and name not in CARRIED and name not in BOOKKEEPING:
            yield UnreadRecords(kind=name, place=name, reason=LEFT.get(name, unknown), count=count)
