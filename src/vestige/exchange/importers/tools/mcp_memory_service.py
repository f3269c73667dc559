"""mcp-memory-service: its SQLite database and its JSON export."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.cognition.graph.kinds import COMPLEMENTARY, CONTRADICTS, SEMANTIC, TEMPORAL
from vestige.exchange.importers.fields import as_moment, as_number
from vestige.exchange.importers.json_files import load
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import (
    CONNECTION,
    INSIGHT,
    MEMORY,
    Brought,
    BroughtInsight,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
)
from vestige.exchange.importers.tools.tables import link, parsed, unread_tables
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, is_database, opened

TOOL = "mcp-memory-service"
TABLES = {"memories": ("content_hash", "content", "memory_type")}
NAMES = {"memory_type": "node_type", "metadata_json": "metadata"}
"""Fields with another name here."""
COMPUTED = (
    "content_hash", "created_at_iso", "updated_at_iso", "embedding", "embedding_pending", "deleted_at",
    "vector_id", "content_size", "r2_key", "export_source",
)  # fmt: skip
USUAL: dict[str, object] = {"store": "default", "version": 1, "confidence": 1.0}
"""Values that say nothing."""
KINDS = {
    "causes": "causal",
    "fixes": "causal",
    "contradicts": CONTRADICTS,
    "supports": COMPLEMENTARY,
    "follows": TEMPORAL,
    "related": SEMANTIC,
}
SYMMETRIC = (CONTRADICTS, SEMANTIC)
READ = ("memories", "memory_graph", "beliefs")
LEFT = {
    "metadata": "",
    "migration_registry": "",
    "sync_events": "a log of changes for the other machines of that program",
    "sync_cursor": "",
    "push_cursor": "",
    "tags": "the tags are in the memories",
    "memory_tags": "the tags are in the memories",
}


def is_export(value: object) -> bool:
    return (
        isinstance(value, Mapping) and "export_metadata" in value and isinstance(value.get("memories"), list)
    )


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    if is_database(path):
        with opened(path) as file:
            total = sum(file.counts.get(name, 0) for name in READ)
            yield Reading(records=_of_database(file, target), total=total)
    else:
        value = load(path)
        listed = value.get("memories") if isinstance(value, Mapping) else value
        records = listed if isinstance(listed, list) else []
        yield Reading(records=_of_export(records, target), total=len(records))


def _of_export(records: list[object], target: Target) -> Iterator[Brought]:
    for number, record in enumerate(records, start=1):
        if isinstance(record, Mapping):
            yield _memory(record, f"memory {number}", target)
        else:
            yield UnreadRecords(kind=MEMORY, place=f"memory {number}", reason="it is not a JSON object")


def _of_database(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    for row in file.rows("memories"):
        yield _memory(row, f"memories {row.get('id')}", target)
    linked: set[tuple[object, object, str]] = set()
    for row in file.rows("memory_graph"):
        yield _link(row, linked, target)
    for row in file.rows("beliefs"):
        yield _belief(row, target)
    yield from unread_tables(file, READ, LEFT)


def _own_id(content_hash: object, target: Target) -> str:
    return derived_id(TOOL, target.scope, str(content_hash))


def _memory(row: Mapping[str, object], place: str, target: Target) -> Brought:
    if row.get("deleted_at"):
        return UnreadRecords(kind=MEMORY, place=place, reason="it was deleted there")
    fields: dict[str, object] = {"source": TOOL}
    for name, value in row.items():
        if name not in COMPUTED and USUAL.get(name) != value:
            fields[NAMES.get(name, name)] = value
    fields["metadata"] = parsed(fields.get("metadata"))
    fields["id"] = _own_id(row.get("content_hash") or row.get("content"), target)
    if fields.get("superseded_by"):
        fields["superseded_by"] = _own_id(fields["superseded_by"], target)
        fields["valid_until"] = fields.get("updated_at")
    return memory_of(fields, place, target)


def _link(row: Row, linked: set[tuple[object, object, str]], target: Target) -> Brought:
    begin, end = row.get("source_hash"), row.get("target_hash")
    place = f"memory_graph {begin} → {end}"
    kind = KINDS.get(str(row.get("relationship_type")), SEMANTIC)
    if kind in SYMMETRIC and (end, begin, kind) in linked:
        return UnreadRecords(kind=CONNECTION, place=place, reason="the same link in the other direction")
    linked.add((begin, end, kind))
    given = {"weight": row.get("similarity"), "created_at": row.get("created_at")}
    return link((_own_id(begin, target), _own_id(end, target)), place, target, kind=kind, given=given)


def _belief(row: Row, target: Target) -> Brought:
    """A belief is an insight into the memories that it is derived from."""
    place, text = f"beliefs {row.get('id')}", row.get("content")
    sources, confidence = parsed(row.get("derived_from")), as_number(row.get("confidence"))
    if not isinstance(text, str) or not isinstance(sources, list) or not sources:
        return UnreadRecords(kind=INSIGHT, place=place, reason="it does not say what it is derived from")
    return BroughtInsight(
        place=place,
        id=_own_id(row.get("belief_hash"), target),
        kind="Belief",
        text=text,
        sources=tuple(dict.fromkeys(_own_id(one, target) for one in sources)),
        confidence=min(1.0, max(0.0, confidence or 0.0)),
        novelty=0.0,
        at=as_moment(row.get("created_at")) or target.now,
        extra={"status": row.get("status")},
    )
