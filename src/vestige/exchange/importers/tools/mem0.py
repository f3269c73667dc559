"""mem0: the answer of `get_all`, an export of its platform, and its history database."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby, pairwise
from pathlib import Path

from vestige.exchange.importers.json_files import load
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import MEMORY, Brought, Reading, Target, UnreadRecords
from vestige.exchange.importers.tools.tables import kept_id, sentence, unread_tables
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, is_database, opened

TOOL = "mem0"
TABLES = {"history": ("memory_id", "old_memory", "new_memory", "event")}
NAMES = {
    "data": "content",
    "memory": "content",
    "run_id": "session_id",
    "categories": "tags",
    "expiration_date": "valid_until",
}
"""Fields with another name here."""
COMPUTED = ("hash", "score", "text_lemmatized", "structured_attributes")


def is_mem0(record: Mapping[str, object]) -> bool:
    """Whether this is a memory of `get_all`."""
    return isinstance(record.get("memory"), str) and bool({"hash", "user_id", "run_id"} & record.keys())


def is_export(value: object) -> bool:
    records = listed(value)
    return any(isinstance(one, Mapping) and is_mem0(one) for one in records[:50])


def listed(value: object) -> list[object]:
    """The memories of an answer, in either version of it."""
    if isinstance(value, Mapping):
        value = value.get("results", value.get("memories"))
    return value if isinstance(value, list) else []


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    if is_database(path):
        with opened(path) as file:
            yield Reading(records=_of_history(file, target))
    else:
        value = load(path)
        yield Reading(records=_of_export(value, target), total=len(listed(value)))


def memory_fields(record: Mapping[str, object], memory_id: object, target: Target) -> dict[str, object]:
    """The fields of a memory, also of a point in its vector store, where the text is `data`."""
    fields: dict[str, object] = {"source": TOOL, "author": record.get("actor_id") or record.get("role")}
    for name, value in record.items():
        if name not in COMPUTED and name != "role" and not (name == "actor_id" and value is None):
            fields[NAMES.get(name, name)] = value
    fields.pop("actor_id", None)
    return {**fields, "id": kept_id(TOOL, target, memory_id)}


def _of_export(value: object, target: Target) -> Iterator[Brought]:
    for number, record in enumerate(listed(value), start=1):
        place = f"memory {number}"
        if isinstance(record, Mapping):
            known_by = record.get("id") or record.get("memory")
            yield memory_of(memory_fields(record, known_by, target), place, target)
        else:
            yield UnreadRecords(kind=MEMORY, place=place, reason="it is not a JSON object")
    relations = value.get("relations") if isinstance(value, Mapping) else None
    for number, relation in enumerate(relations if isinstance(relations, list) else [], start=1):
        yield _relation(relation, f"relation {number}", target)


def _relation(relation: object, place: str, target: Target) -> Brought:
    """A relation of its graph, which is a sentence here."""
    match relation:
        case {"source": str(begin), "relationship": str(kind), "target": str(end)} | {
            "source": str(begin),
            "relationship": str(kind),
            "destination": str(end),
        }:
            text = sentence(begin, kind, end)
            fields = {
                "content": text,
                "id": kept_id(TOOL, target, text),
                "source": TOOL,
                "tags": ["relation"],
            }
            return memory_of(fields, place, target)
        case _:
            return UnreadRecords(kind=MEMORY, place=place, reason="a relation without its ends")


# -- The history database

DELETED = "it was deleted there"


def _of_history(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    """The last state of each memory; earlier wordings are kept in its metadata."""
    rows = file.rows("history", order=("memory_id", "rowid"))
    for memory_id, some in groupby(rows, key=lambda row: row.get("memory_id")):
        yield from _memory(str(memory_id), list(some), target)
    for number, row in enumerate(file.rows("messages", order=("rowid",)), start=1):
        yield _message(row, number, target)
    yield from unread_tables(file, ("history", "messages"), {})


def _memory(memory_id: str, rows: list[Row], target: Target) -> Iterator[Brought]:
    last, place = rows[-1], f"history of {memory_id}"
    if last.get("is_deleted") or last.get("event") == "DELETE":
        yield UnreadRecords(kind=MEMORY, place=place, reason=DELETED)
        return
    earlier = [
        {"memory": row.get("new_memory"), "until": after.get("updated_at") or after.get("created_at")}
        for row, after in pairwise(rows)
        if row.get("new_memory") != last.get("new_memory")
    ]
    fields = {
        "memory": last.get("new_memory"),
        "created_at": rows[0].get("created_at"),
        "updated_at": last.get("updated_at") or last.get("created_at"),
        "actor_id": last.get("actor_id"),
        "role": last.get("role"),
        "earlier": earlier,
    }
    yield memory_of(memory_fields(fields, memory_id, target), place, target)


def _message(row: Row, number: int, target: Target) -> Brought:
    """A message that mem0 keeps as context of its next extraction: a turn of a conversation."""
    fields = {
        "id": kept_id(TOOL, target, row.get("id")),
        "content": row.get("content"),
        "created_at": row.get("created_at"),
        "author": row.get("name") or row.get("role"),
        "node_type": "turn",
        "source": TOOL,
        "thread": f"{TOOL}:{row.get('session_scope')}",
        "position": number,
    }
    return memory_of(fields, f"messages {row.get('id')}", target)
