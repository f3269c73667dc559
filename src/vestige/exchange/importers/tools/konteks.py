"""Konteks: the observations and diary of its database (`.konteks/memory.sqlite`), or of its durable export.

Its extraction of the repository is not read: `vestige project init` makes one. What was deleted or suppressed
there stays behind. The hashes in a file are not trusted. The database has the source of an observation only
in its search documents, its tags only among the names of its graph, and what replaced it only as a relation.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.core.errors import InvalidInput
from vestige.exchange.importers.json_files import load
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import MEMORY, Brought, Reading, Target, UnreadRecords, derived_id
from vestige.exchange.importers.tools.tables import parsed
from vestige.store.sqlite.file.foreign import ForeignDatabase, is_database, opened

TOOL = "konteks"
FILE = "memory.sqlite"
FAMILY = "konteks.durable-memory."
FORMAT = f"{FAMILY}v1"
LISTS = ("memories", "diaries")
TABLES = {"observations": ("kind", "text_inline", "content_hash"), "diary_entries": ("subject", "summary")}
GONE = (
    ("deleted_at", "deletedAt", "it was deleted there"),
    ("suppressed_at", "suppressedAt", "it was suppressed there"),
)
OBSERVATION = "memory"
"""The type of an observation among the search documents; also its path there when it has no source."""


def is_export(value: object) -> bool:
    return isinstance(value, Mapping) and str(value.get("format", "")).startswith(FAMILY)


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    if not is_database(path):
        yield Reading(records=_of_export(_checked(load(path), path), target))
        return
    with opened(path) as file:
        total = sum(file.counts.get(name, 0) for name in TABLES)
        yield Reading(records=_of_database(file, target), total=total)


# -- Its export


def _checked(value: object, path: Path) -> Mapping[str, object]:
    if not isinstance(value, Mapping) or value.get("format") != FORMAT:
        raise InvalidInput(f"{path} is an export of Konteks in another version; only {FORMAT} is read.")
    missing = [name for name in LISTS if not isinstance(value.get(name), list)]
    if missing:
        raise InvalidInput(f"{path} is a damaged export of Konteks: {' and '.join(missing)} must be a list.")
    return value


def _of_export(value: Mapping[str, object], target: Target) -> Iterator[Brought]:
    for name in LISTS:
        listed = value[name]
        for number, row in enumerate(listed if isinstance(listed, list) else (), start=1):
            if not isinstance(row, Mapping):
                place = f"{name}, item {number}"
                yield UnreadRecords(kind=MEMORY, place=place, reason="it is not a JSON object")
            elif name == "diaries":
                yield _brought(row, row.get("summary"), "diary", target)
            else:
                yield _brought(row, row.get("content"), str(row.get("kind") or "note"), target)


# -- Its database


def _of_database(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    sources = {
        str(row.get("target_id")): path
        for row in file.rows("retrieval_documents", without=("fts_text", "embedding_text"))
        if row.get("target_type") == OBSERVATION
        and isinstance(path := row.get("path"), str)
        and path not in ("", OBSERVATION)
    }
    graph = _KonteksGraph(file)
    for row in file.rows("observations"):
        own_id, kind = str(row.get("id")), str(row.get("kind") or "note")
        source = sources.get(own_id, "")
        found = {
            "source": source or None,
            "tags": graph.tags(own_id, kind, source),
            "valid_until": graph.replaced_at(own_id),
        }
        yield _brought({**found, **row}, row.get("text_inline"), kind, target)
    for row in file.rows("diary_entries"):
        yield _brought(row, row.get("summary"), "diary", target)


class _KonteksGraph:
    """What the graph of Konteks says of an observation. Its names there are its id, `memory#` and its id, its
    kind, its source with the parts of its path, and its tags."""

    def __init__(self, file: ForeignDatabase) -> None:
        self._names: defaultdict[str, list[str]] = defaultdict(list)
        self._nodes: dict[str, str] = {}
        for row in file.rows("entity_aliases"):
            node, name = str(row.get("entity_id")), row.get("value")
            if not isinstance(name, str):
                continue
            self._names[node].append(name)
            if name.startswith("obs_"):
                self._nodes[name] = node
        self._replaced = {
            str(row.get("object_id")): row.get("created_at")
            for row in file.rows("relations")
            if row.get("predicate") == "supersedes" and row.get("status") == "active"
        }

    def tags(self, own_id: str, kind: str, source: str) -> list[str]:
        known = {own_id, f"memory#{own_id}", kind}
        names: Iterable[str] = self._names.get(self._nodes.get(own_id, ""), ())
        return [name for name in dict.fromkeys(names) if name not in known and not _is_in(name, source)]

    def replaced_at(self, own_id: str) -> object:
        """When a newer decision replaced it; None if none did."""
        return self._replaced.get(self._nodes.get(own_id, ""))


def _is_in(name: str, source: str) -> bool:
    return bool(source) and (name.lower() in source.lower() or source.lower() in name.lower())


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
        "valid_until": row.get("valid_until"),
        "metadata": {"konteks_id": row.get("id"), "konteks_confidence": row.get("confidence")},
    }
    return memory_of({name: value for name, value in fields.items() if value is not None}, place, target)
