"""OpenMemory, which is the name of two programs: one of mem0, one of CaviraOSS. Their databases differ by
their columns. mem0's program also writes a zip archive."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from vestige.cognition.graph.kinds import SEMANTIC
from vestige.exchange.importers.bundles import bundle
from vestige.exchange.importers.json_files import MAX_FILE_BYTES, load
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import MEMORY, Brought, Reading, Target, UnreadRecords
from vestige.exchange.importers.tools.tables import kept_id, link, parsed, sentence, unread_tables
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, is_database, opened

TOOL = "openmemory"
TABLES = {"memories": ("content", "app_id", "state"), "apps": ("name",)}
TABLES_OF_CAVIRA = {"memories": ("content", "primary_sector", "meta"), "waypoints": ("src_id", "dst_id")}
EXPORT = "memories.json"


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    if path.is_dir() or not is_database(path):
        yield Reading(records=_of_export(_exported(path), target))
        return
    with opened(path) as file:
        records = _of_cavira if file.has("memories", "primary_sector") else _of_mem0
        yield Reading(records=records(file, target), total=file.counts.get("memories"))


# -- mem0's program

READ = ("memories", "apps", "categories", "memory_categories", "users")
LEFT = {
    "alembic_version": "",
    "configs": "settings of that program",
    "access_controls": "rights of that program",
    "archive_policies": "settings of that program",
    "memory_status_history": "the history of states begins anew here",
    "status_history": "the history of states begins anew here",
    "memory_access_logs": "single accesses are not kept",
}
COMPUTED = ("vector", "state", "deleted_at", "category_ids", "app_id", "app")


def is_export(value: object) -> bool:
    return isinstance(value, Mapping) and "export_meta" in value and isinstance(value.get("memories"), list)


def _exported(path: Path) -> Mapping[str, list[object]]:
    """The tables of an export: a zip archive, its folder, or the file in it."""
    if path.is_file() and path.suffix == ".json":
        value = load(path)
    else:
        with bundle(path) as files:
            value = files.load(files.named(EXPORT) or EXPORT, MAX_FILE_BYTES)
    tables = value if isinstance(value, Mapping) else {}
    return {str(name): rows for name, rows in tables.items() if isinstance(rows, list)}


def _of_export(tables: Mapping[str, list[object]], target: Target) -> Iterator[Brought]:
    """The archive has its memories twice; the lines of the other file add nothing."""
    rows = {name: [one for one in listed if isinstance(one, dict)] for name, listed in tables.items()}
    yield from _memories(rows, target)
    for name, listed in tables.items():
        reason = LEFT.get(name, "a list that this version of Vestige does not know")
        if listed and name not in READ:
            yield UnreadRecords(kind=name, place=name, reason=reason, count=len(listed))


def _of_mem0(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    yield from _memories({name: list(file.rows(name, without=("vector",))) for name in READ}, target)
    yield from unread_tables(file, READ, LEFT)


def _memories(tables: Mapping[str, list[Row]], target: Target) -> Iterator[Brought]:
    apps = {row.get("id"): row.get("name") for row in tables.get("apps", [])}
    names = {row.get("id"): row.get("name") for row in tables.get("categories", [])}
    users = {row.get("id"): row.get("user_id") for row in tables.get("users", [])}
    tags = defaultdict[object, list[object]](list)
    for row in tables.get("memory_categories", []):
        tags[row.get("memory_id")].append(names.get(row.get("category_id")))
    for row in tables.get("memories", []):
        place = f"memories {row.get('id')}"
        if row.get("state") == "deleted" or row.get("deleted_at"):
            yield UnreadRecords(kind=MEMORY, place=place, reason="it was deleted there")
            continue
        fields = {name: value for name, value in row.items() if name not in COMPUTED}
        fields |= {
            "id": kept_id(TOOL, target, row.get("id")),
            "source": TOOL,
            "metadata": parsed(row.get("metadata")),
            "user_id": users.get(row.get("user_id"), row.get("user_id")),
            "agent_id": apps.get(row.get("app_id")),
            "tags": [tag for tag in tags[row.get("id")] if tag],
        }
        if row.get("state") == "archived":
            fields["archived_at"] = row.get("archived_at") or row.get("updated_at")
        elif row.get("state") == "paused":
            fields["state_there"] = "paused"
        yield memory_of(fields, place, target)


# -- The program of CaviraOSS

READ_OF_CAVIRA = ("memories", "waypoints", "temporal_facts", "temporal_edges", "users")
LEFT_OF_CAVIRA = {
    "vectors": "vectors of another model; the texts are embedded anew",
    "embed_logs": "",
    "_migrations": "",
    "stats": "counts of that program",
}
COMPUTED_OF_CAVIRA = (
    "mean_vec", "compressed_vec", "vector", "norm_vector", "mean_dim", "simhash", "segment", "sectors",
    "version", "decay_lambda",
)  # fmt: skip


def _of_cavira(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    for row in file.rows("memories", without=COMPUTED_OF_CAVIRA):
        fields: dict[str, object] = {**row, "id": kept_id(TOOL, target, row.get("id")), "source": TOOL}
        meta = fields["metadata"] = parsed(fields.pop("meta", None))
        if fields.get("tags") in (None, "", "[]") and isinstance(meta, Mapping):
            fields["tags"] = meta.get("tags")
        yield memory_of(fields, f"memories {row.get('id')}", target)
    for row in file.rows("temporal_facts"):
        yield _fact(row, target)
    for row in file.rows("users"):
        yield from _profile(row, target)
    for row in file.rows("waypoints"):
        ends = kept_id(TOOL, target, row.get("src_id")), kept_id(TOOL, target, row.get("dst_id"))
        yield link(ends, f"waypoints {row.get('src_id')} → {row.get('dst_id')}", target, given=row)
    for row in file.rows("temporal_edges"):
        ends = kept_id(TOOL, target, row.get("source_id")), kept_id(TOOL, target, row.get("target_id"))
        place = f"temporal_edges {row.get('source_id')} → {row.get('target_id')}"
        given = {"weight": row.get("weight"), "created_at": row.get("valid_from")}
        yield link(ends, place, target, kind=SEMANTIC, given=given)
    yield from unread_tables(file, READ_OF_CAVIRA, LEFT_OF_CAVIRA)


def _fact(row: Row, target: Target) -> Brought:
    """A fact of its temporal graph: a sentence with its validity."""
    subject, end = row.get("subject"), row.get("object", row.get("obj"))
    fields = {
        "id": kept_id(TOOL, target, row.get("id")),
        "content": sentence(subject, row.get("predicate"), end),
        "created_at": row.get("last_updated") or row.get("valid_from"),
        "valid_from": row.get("valid_from"),
        "valid_until": row.get("valid_to"),
        "confidence": row.get("confidence"),
        "user_id": row.get("user_id"),
        "metadata": parsed(row.get("metadata")),
        "source": TOOL,
        "tags": [subject, end],
    }
    return memory_of(fields, f"temporal_facts {row.get('id')}", target)


def _profile(row: Row, target: Target) -> Iterator[Brought]:
    """What it wrote about a user; a user without that is only an id."""
    if row.get("summary"):
        fields = {
            "id": kept_id(TOOL, target, f"user {row.get('user_id')}"),
            "content": row["summary"],
            "created_at": row.get("created_at"),
            "updated_at": row.get("updated_at"),
            "node_type": "profile",
            "user_id": row.get("user_id"),
            "source": TOOL,
        }
        yield memory_of(fields, f"users {row.get('user_id')}", target)
