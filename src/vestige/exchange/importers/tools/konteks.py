"""Konteks: the observations and diary of its database (`.konteks/memory.sqlite`), or of its durable export.

Its extraction of the repository is not read: `vestige project init` makes one. What was deleted or suppressed
there stays behind. The hashes in a file are not trusted.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.exchange.importers.json_files import load
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import MEMORY, Brought, Reading, Target, UnreadRecords, derived_id
from vestige.exchange.importers.tools.tables import parsed
from vestige.store.sqlite.file.foreign import is_database, opened

TOOL = "konteks"
FILE = "memory.sqlite"
FORMAT = "konteks.durable-memory.v1"
TABLES = {"observations": ("kind", "text_inline", "content_hash"), "diary_entries": ("subject", "summary")}
GONE = (
    ("deleted_at", "deletedAt", "it was deleted there"),
    ("suppressed_at", "suppressedAt", "it was suppressed there"),
)


def is_export(value: object) -> bool:
    return isinstance(value, Mapping) and value.get("format") == FORMAT


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    if not is_database(path):
        yield Reading(records=_of_export(load(path), target))
        return
    with opened(path) as file:
        total = sum(file.counts.get(name, 0) for name in TABLES)
        yield Reading(
            records=_records(file.rows("observations"), file.rows("diary_entries"), target), total=total
        )


def _of_export(value: object, target: Target) -> Iterator[Brought]:
    parts = [value.get(name) if isinstance(value, Mapping) else None for name in ("memories", "diaries")]
    lists = [
        [one for one in part if isinstance(one, Mapping)] if isinstance(part, list) else [] for part in parts
    ]
    yield from _records(iter(lists[0]), iter(lists[1]), target)


def _records(
    observations: Iterator[Mapping[str, object]], diaries: Iterator[Mapping[str, object]], target: Target
) -> Iterator[Brought]:
    for row in observations:
        yield _brought(
            row, row.get("text_inline", row.get("content")), str(row.get("kind") or "note"), target
        )
    for row in diaries:
        yield _brought(row, row.get("summary"), "diary", target)


def _brought(row: Mapping[str, object], text: object, kind: str, target: Target) -> Brought:
    place = f"{kind} {row.get('id')}"
    for column, name, reason in GONE:
        if row.get(column) or row.get(name):
            return UnreadRecords(kind=MEMORY, place=place, reason=reason)
    tags = parsed(row.get("tags_json", row.get("tags")))
    listed = [tag for tag in tags if isinstance(tag, str)] if isinstance(tags, list) else []
    fields = {
        "id": derived_id(TOOL, target.scope, str(row.get("id")), str(text)),
        "content": text,
        "node_type": kind,
        "created_at": row.get("created_at", row.get("createdAt")),
        "source": row.get("source") or row.get("subject") or TOOL,
        "tags": [*listed, *(["diary"] if kind == "diary" and "diary" not in listed else [])],
        "metadata": {"konteks_id": row.get("id"), "konteks_confidence": row.get("confidence")},
    }
    return memory_of({name: value for name, value in fields.items() if value is not None}, place, target)
