"""MemPalace: the drawers of a palace, and the facts of its knowledge graph."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.exchange.importers.fields import as_moment
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import Brought, Reading, Target, UnreadRecords, derived_id, own_file
from vestige.exchange.importers.tools import chroma
from vestige.exchange.importers.tools.tables import link, parsed, sentence, unread_tables
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, opened

TOOL = "mempalace"
TABLES = {"triples": ("subject", "predicate", "object"), "entities": ("name",)}
TABLES_OF_EXACT = {"documents": ("collection_id", "document", "metadata_json"), "collections": ("name",)}
DRAWERS, CLOSETS = "mempalace_drawers", "mempalace_closets"
GRAPH = "knowledge_graph.sqlite3"
EXACT = "sqlite_exact.sqlite3"
FILES = (chroma.FILE, EXACT, GRAPH)
INDEX = "an index of the drawers, which are imported themselves"
TEMPORARY = ("normalize_version", "id_recipe", "source_mtime", "source_dir_ino", "last_modified")
"""Fields that only serve that program."""
NAMES = {
    "filed_at": "created_at",
    "source_file": "source",
    "chunk_index": "position",
    "added_by": "author",
    "content_date": "occurred_at",
}
"""Fields with another name here."""


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    yield Reading(records=_records(path, target))


def files_of(path: Path) -> list[Path]:
    """The databases of a palace; the graph of the default palace is beside it."""
    if not path.is_dir():
        return [path]
    found = (own_file(path, f"{folder}{name}") for name in FILES for folder in ("", "palace/"))
    return [file for file in found if file is not None]


def is_palace(file: ForeignDatabase) -> bool:
    """Whether these are collections of a palace."""
    return any(str(row.get("name")).startswith(TOOL) for row in file.rows("collections"))


def _records(path: Path, target: Target) -> Iterator[Brought]:
    for found in files_of(path):
        with opened(found) as file:
            if file.has("triples"):
                yield from _graph(file, target)
            elif file.has("documents", "metadata_json"):
                yield from _drawers(_exact_documents(file), target)
            else:
                yield from _drawers(chroma.documents(file), target)


def _exact_documents(file: ForeignDatabase) -> Iterator[tuple[str, str, dict[str, object]]]:
    names = chroma.names_of(file, "collections")
    for row in file.rows("documents", without=("embedding",)):
        fields = parsed(row.get("metadata_json"))
        own = dict(fields) if isinstance(fields, Mapping) else {}
        document = {**own, chroma.DOCUMENT: row.get("document")}
        yield names.get(row.get("collection_id"), ""), str(row.get("id")), document


def _drawers(found: Iterator[tuple[str, str, dict[str, object]]], target: Target) -> Iterator[Brought]:
    for collection, name, fields in found:
        if collection == CLOSETS:
            yield UnreadRecords(kind="closet", place=name, reason=INDEX)
        else:
            yield _drawer(name, fields, target)


def _drawer(name: str, fields: Mapping[str, object], target: Target) -> Brought:
    """A drawer; those of one file follow each other."""
    made = {
        NAMES.get(key, key): value for key, value in fields.items() if key not in TEMPORARY and value != ""
    }
    if as_moment(made.get("occurred_at")) is None and "occurred_at" in made:
        made["content_date"] = made.pop("occurred_at")
    where = [made[part] for part in ("wing", "room", "hall") if isinstance(made.get(part), str)]
    thread = made.get("source") or made.get("parent_drawer_id")
    made |= {
        "id": derived_id(TOOL, target.scope, name),
        "content": made.pop(chroma.DOCUMENT, None),
        "tags": [part for part in where if part],
        "thread": None if thread is None else f"{TOOL}:{thread}"[:1000],
        "source": made.get("source") or TOOL,
    }
    return memory_of(made, f"drawer {name}", target)


# -- The knowledge graph


def _graph(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    names = chroma.names_of(file, "entities")
    drawers: dict[str, str] = {}
    for row in file.rows("triples"):
        fields = _fact(row, names, target)
        if isinstance(row.get("source_drawer_id"), str):
            drawers[str(fields["id"])] = str(row["source_drawer_id"])
        yield memory_of(fields, f"triples {row.get('id')}", target)
    for row in file.rows("entities"):
        yield from _properties(row, target)
    for fact, drawer in drawers.items():
        ends = fact, derived_id(TOOL, target.scope, drawer)
        yield link(ends, f"triples, drawer {drawer}", target, given={})
    yield from unread_tables(file, ("triples", "entities"), {})


def _fact(row: Row, names: Mapping[object, str], target: Target) -> dict[str, object]:
    begin, end = (names.get(row.get(part), row.get(part)) for part in ("subject", "object"))
    return {
        "id": derived_id(TOOL, target.scope, str(row.get("id"))),
        "content": sentence(begin, row.get("predicate"), end),
        "created_at": row.get("extracted_at"),
        "valid_from": row.get("valid_from"),
        "valid_until": row.get("valid_to"),
        "confidence": None if row.get("confidence") == 1.0 else row.get("confidence"),
        "source": row.get("source_file") or TOOL,
        "source_closet": row.get("source_closet"),
        "adapter_name": row.get("adapter_name"),
        "tags": [begin, end],
    }


def _properties(row: Row, target: Target) -> Iterator[Brought]:
    """What is known of an entity by itself; the name of any other entity is in its facts."""
    known, place = parsed(row.get("properties")), f"entities {row.get('id')}"
    if not isinstance(known, Mapping) or not known:
        return
    said = "; ".join(f"{key}: {value}" for key, value in known.items())
    kind = row.get("type")
    about = f"{row.get('name')} ({kind})" if kind and kind != "unknown" else str(row.get("name"))
    fields = {
        "id": derived_id(TOOL, target.scope, "entity", str(row.get("id"))),
        "content": f"{about}: {said}",
        "created_at": row.get("created_at"),
        "source": TOOL,
        "tags": [row.get("name"), kind],
    }
    yield memory_of(fields, place, target)
