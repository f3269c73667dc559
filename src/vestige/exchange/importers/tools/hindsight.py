"""Hindsight: the zip archive that it exports of a bank, with documents, facts, observations and models."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MAX_LABEL_CHARS
from vestige.exchange.importers.bundles import Bundle, bundle
from vestige.exchange.importers.fields import as_moment
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import (
    MEMORY,
    Brought,
    BroughtEdge,
    BroughtInsight,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
)
from vestige.exchange.importers.tools.tables import kept_id, link

TOOL = "hindsight"
MANIFEST = "manifest.json"
MAX_DOCUMENT_BYTES = 256_000_000
NAMES = {"text": "content", "fact_type": "node_type", "occurred_start": "occurred_at"}
"""Fields with another name here."""
LISTS = {
    "bank": "settings of that program",
    "banks": "settings of that program",
    "webhooks": "settings of that program",
    "knowledge_pages": "an order of its models, which are imported themselves",
    "mental_model_history": "earlier versions of its models",
    "async_operations": "",
    "graph_maintenance_queue": "",
    "entity_maintenance_queue": "",
    "invalidated_memory_units": "facts that were invalidated there",
    "attachments": "files: only texts are imported",
    "audit_log": "a log of that program",
    "llm_requests": "a log of that program",
}
"""Why the records of a list are not imported."""


def is_manifest(value: object) -> bool:
    return isinstance(value, Mapping) and "source_bank_id" in value


@dataclass(slots=True, kw_only=True)
class _Bank:
    """The ids of the facts read so far, by their document and number, and the links between them."""

    target: Target
    name: str
    facts: dict[tuple[str, int], str] = field(default_factory=dict)
    links: list[BroughtEdge | UnreadRecords] = field(default_factory=list)


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    with bundle(path) as files:
        yield Reading(records=_records(files, target))


def _records(files: Bundle, target: Target) -> Iterator[Brought]:
    manifest = files.load(files.named(MANIFEST) or MANIFEST, MAX_DOCUMENT_BYTES)
    bank = _Bank(
        target=target, name=_name(manifest.get("source_bank_id") if isinstance(manifest, Mapping) else "")
    )
    inner = sorted(name for name in files.names if name.endswith(".json"))
    for name in (one for one in inner if "documents/" in one):
        yield from _document(files.load(name, MAX_DOCUMENT_BYTES), name, bank)
    later: list[Brought] = []
    for name in (one for one in inner if "documents/" not in one and not one.endswith(MANIFEST)):
        for found in _list(files, name, bank):
            if isinstance(found, BroughtInsight):
                later.append(found)
            else:
                yield found
    yield from bank.links
    yield from later
    blobs = sum("blobs/" in name for name in files.names)
    yield UnreadRecords(kind="file", place="blobs/", reason=LISTS["attachments"], count=blobs)


def _document(value: object, place: str, bank: _Bank) -> Iterator[Brought]:
    document = value if isinstance(value, Mapping) else {}
    facts, chunks = (_listed(document.get(name)) for name in ("facts", "chunks"))
    for number, fact in enumerate(facts):
        where = f"{place}, fact {number + 1}"
        if isinstance(fact, Mapping):
            yield _fact(fact, number, document, where, bank)
        else:
            yield UnreadRecords(kind=MEMORY, place=where, reason="it is not a JSON object")
    if facts:
        reason = "the raw text of a document, whose facts are imported"
        yield UnreadRecords(kind="chunk", place=place, reason=reason, count=len(chunks))
        return
    for number, chunk in enumerate(chunks):
        text = chunk.get("chunk_text") if isinstance(chunk, Mapping) else None
        yield _memory({"content": text, "node_type": "document"}, number, document, place, bank)


def _memory(
    own: Mapping[str, object], number: int, document: Mapping[str, object], place: str, bank: _Bank
) -> Brought:
    """A part of a document: the parts follow each other."""
    name = _name(document.get("id"))
    made_at = own.get("created_at") or own.get("mentioned_at") or document.get("created_at")
    known_by = own.get("source_id") or f"{bank.name}\0{name}\0{own['node_type']}\0{number}\0{own['content']}"
    fields = {
        **own,
        "id": kept_id(TOOL, bank.target, known_by),
        "source": TOOL,
        "created_at": made_at,
        "thread": f"{TOOL}:{name}"[:1000],
        "position": number,
        "bank": bank.name,
    }
    fields.pop("source_id", None)
    if own["node_type"] != "document":
        bank.facts[name, number] = str(fields["id"])
    return memory_of(fields, place, bank.target)


def _fact(
    fact: Mapping[str, object], number: int, document: Mapping[str, object], place: str, bank: _Bank
) -> Brought:
    own = {NAMES.get(name, name): value for name, value in fact.items()}
    relations = own.pop("causal_relations", None)
    own.pop("observation_scopes", None)
    if own.get("event_date") in (own.get("occurred_at"), own.get("mentioned_at")):
        own.pop("event_date", None)
    named = [*_listed(own.pop("tags", [])), *_listed(document.get("tags")), *_listed(own.pop("entities", []))]
    found = _memory(
        {"content": None, **own, "node_type": own.get("node_type") or "fact", "tags": named},
        number,
        document,
        place,
        bank,
    )
    for relation in _listed(relations):
        if isinstance(relation, Mapping):
            _relate(relation, (_name(document.get("id")), number), place, bank)
    return found


def _relate(relation: Mapping[str, object], fact: tuple[str, int], place: str, bank: _Bank) -> None:
    """Note a causal link to an earlier fact of the same document."""
    end = bank.facts.get((fact[0], _number(relation.get("target_fact_index"))))
    if end is not None:
        bank.links.append(link((bank.facts[fact], end), place, bank.target, kind="causal", given={}))
    else:
        reason = "a memory at its end is not in the archive"
        bank.links.append(UnreadRecords(kind="connection", place=place, reason=reason))


def _listed(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _name(value: object) -> str:
    """An id, as long as a label may be: it becomes a part of every record below it."""
    return str(value)[:MAX_LABEL_CHARS]


def _number(value: object) -> int:
    """The number of a fact; -1 for anything else."""
    return value if isinstance(value, int) else -1


def _list(files: Bundle, name: str, bank: _Bank) -> Iterator[Brought]:
    """The records of another list of the archive."""
    stem = name.rpartition("/")[2].removesuffix(".json")
    value = files.load(name, MAX_DOCUMENT_BYTES)
    records = value if isinstance(value, list) else [value] if value else []
    if stem not in ("observations", "mental_models", "directives"):
        reason = LISTS.get(stem, "a list that this version of Vestige does not know")
        if reason:
            yield UnreadRecords(kind=stem, place=name, reason=reason, count=len(records))
        return
    for number, record in enumerate(records, start=1):
        place = f"{name}, {number}"
        if not isinstance(record, Mapping):
            yield UnreadRecords(kind=MEMORY, place=place, reason="it is not a JSON object")
        elif stem == "observations":
            yield _observation(record, place, bank)
        else:
            yield _model(record, stem.removesuffix("s"), place, bank)


def _observation(record: Mapping[str, object], place: str, bank: _Bank) -> Brought:
    """An observation is an insight into the facts that it comes from."""
    refs = [one for one in _listed(record.get("sources")) if isinstance(one, Mapping)]
    found = [bank.facts.get((_name(one.get("document_id")), _number(one.get("fact_index")))) for one in refs]
    sources = tuple(dict.fromkeys(one for one in found if one is not None))
    text = record.get("text")
    own = kept_id(TOOL, bank.target, record.get("source_id") or f"{bank.name}\0observation\0{text}")
    if not sources or None in found or not isinstance(text, str):
        fields = {**record, "id": own, "node_type": "observation", "source": TOOL}
        return memory_of(fields, place, bank.target)
    extra = {name: record[name] for name in ("tags", "occurred_start", "occurred_end") if record.get(name)}
    return BroughtInsight(
        place=place,
        id=own,
        kind="Observation",
        text=text,
        sources=sources,
        confidence=0.0,
        novelty=0.0,
        at=as_moment(record.get("created_at")) or bank.target.now,
        extra={**extra, "proof_count": record.get("proof_count")},
    )


def _model(record: Mapping[str, object], kind: str, place: str, bank: _Bank) -> Brought:
    """A model that it wrote about a subject, or a rule: its name, then its text."""
    text = record.get("content") or record.get("description")
    fields = {
        "id": derived_id(TOOL, bank.target.scope, bank.name, kind, str(record.get("id"))),
        "content": f"{record.get('name')}\n\n{text}"
        if isinstance(text, str) and record.get("name")
        else text,
        "node_type": kind,
        "tags": record.get("tags") or [],
        "created_at": record.get("created_at"),
        "updated_at": record.get("last_updated") or record.get("updated_at"),
        "question": record.get("source_query"),
        "bank": bank.name,
        "source": TOOL,
    }
    return memory_of(fields, place, bank.target)
