"""Chroma: the documents of a local folder, read from its SQLite file without its library. mem0 and others
keep their memories so. A palace of MemPalace is read with the meaning of its fields."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

from vestige.core.models import MAX_LABEL_CHARS
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import (
    MEMORY,
    Brought,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
    own_file,
)
from vestige.exchange.importers.tools import mem0
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, opened

TOOL = "chroma"
FILE = "chroma.sqlite3"
TABLES = {"embeddings": ("embedding_id", "segment_id"), "embedding_metadata": ("key", "string_value")}
DOCUMENT = "chroma:document"
VALUES = ("string_value", "int_value", "float_value", "bool_value")
TEXTS = (DOCUMENT, "data", "text", "content", "page_content", "document", "memory")
"""The fields that may hold the text of a document."""


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    with opened((path.is_dir() and own_file(path, FILE)) or path) as file:
        yield Reading(records=_records(file, target), total=file.counts.get("embeddings"))


def names_of(file: ForeignDatabase, table: str) -> dict[object, str]:
    """The names in a table by their ids, as long as a label may be: many rows may refer to one."""
    return {row.get("id"): str(row.get("name"))[:MAX_LABEL_CHARS] for row in file.rows(table)}


def collections_of(file: ForeignDatabase) -> dict[object, str]:
    """The name of the collection of each segment."""
    names = names_of(file, "collections")
    return {row.get("id"): names.get(row.get("collection"), "") for row in file.rows("segments")}


def documents(file: ForeignDatabase) -> Iterator[tuple[str, str, dict[str, object]]]:
    """The collection, the id and the fields of every document. Both tables are read once, side by side."""
    collections = collections_of(file)
    fields = groupby(file.rows("embedding_metadata", order=("id",)), key=lambda row: row.get("id"))
    number, some = next(fields, (None, iter(())))
    for row in file.rows("embeddings", order=("id",)):
        while number is not None and _before(number, row.get("id")):
            number, some = next(fields, (None, iter(())))
        found = dict(_field(one) for one in some) if number == row.get("id") else {}
        yield collections.get(row.get("segment_id"), ""), str(row.get("embedding_id")), found


def _before(one: object, other: object) -> bool:
    return isinstance(one, int) and isinstance(other, int) and one < other


def _field(row: Row) -> tuple[str, object]:
    value = next((row[name] for name in VALUES if row.get(name) is not None), None)
    return str(row.get("key")), value


def _records(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    for collection, name, fields in documents(file):
        yield document_of(fields, (TOOL, collection, name), target)


def document_of(fields: Mapping[str, object], known_by: tuple[str, str, str], target: Target) -> Brought:
    """The memory of a document in a vector store: program, collection and id identify it."""
    tool, collection, name = known_by
    place = f"{collection} {name}"
    text = next((one for one in TEXTS if isinstance(fields.get(one), str) and fields[one]), None)
    if text is None:
        return UnreadRecords(kind=MEMORY, place=place, reason="it has a vector, but no text")
    rest = {key: value for key, value in fields.items() if key != text}
    if text in ("data", DOCUMENT) and {"user_id", "agent_id", "run_id"} & fields.keys():
        return memory_of(mem0.memory_fields({**rest, "content": fields[text]}, name, target), place, target)
    own = derived_id(tool, target.scope, collection, name)
    made = {"source": tool, **rest, "content": fields[text], "id": own, "collection": collection}
    return memory_of(made, place, target)
