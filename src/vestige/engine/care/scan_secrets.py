"""Scanning stored data for secrets, and redacting them.

A revision would keep the old wording, here and on every machine that this store is merged with. So a memory
is replaced instead: a new one with the same strength and links takes its place, and the old one is purged,
which wins on every machine.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import field, replace
from functools import partial
from typing import Any

from vestige.cognition.graph.kinds import MERGES, SUPERSEDES
from vestige.core.documents import Document
from vestige.core.errors import NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, EVERYTHING, Edge, Memory
from vestige.engine.context import Call
from vestige.engine.embedding import vectors_for
from vestige.engine.ingest.secrets import SecretSighting, find_in_fields
from vestige.engine.memory.delete import forget_search_words
from vestige.engine.revise import (
    created_event,
    deleted_event,
    find_document,
    load,
    next_revision,
    retry_on_conflict,
    save,
    with_body,
)
from vestige.store.contract.changes import Add, Carry, Change, Forget, Link, Revise
from vestige.store.merge.histories import DocumentHistory, EntityHistory, MemoryHistory

TEXTS = (
    "content", "phrasings", "tags", "node_type", "source", "author", "agent_id", "session_id", "thread",
    "scope", "domains", "metadata",
)  # fmt: skip
"""The fields of a memory that hold text from a caller."""
API_KEY = "api_key"
"""The `document` of a finding in the label of a key."""
REDACTED = "redacted"
"""The reason of the deletion, and of the revisions of memories that it had ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFinding:
    """A secret in a document or the label of a key, or in revisions of a memory; `present` if the last one
    holds it."""

    id: str
    sighting: SecretSighting
    document: str | None = None
    revisions: tuple[int, ...] = ()
    present: bool = True


@dataclass(slots=True, kw_only=True)
class Scanned:
    """What was scanned and found, and which memories were replaced (old id to new)."""

    memories: int = 0
    documents: int = 0
    findings: list[SecretFinding] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    redacted_documents: int = 0


def scan(call: Call, *, redact: bool) -> Scanned:
    """Scan every memory with its history, every document, and with access to everything the labels of keys;
    with `redact`, redact the findings."""
    seen, total = Scanned(), call.engine.store.count(ANYTHING, access=call.access)
    for batch in call.engine.store.histories(access=call.access):
        call.check()
        for history in batch:
            seen.memories += isinstance(history, MemoryHistory) and bool(history.versions)
            seen.documents += isinstance(history, DocumentHistory) and history.document is not None
            seen.findings += secrets_in(history)
        call.progress(seen.memories, max(seen.memories, total), f"{seen.memories} memories scanned")
    if call.access == EVERYTHING:
        seen.findings += _in_labels(call)
    if redact and seen.findings:
        with call.engine.store.alone("redact"):
            _redact(call, seen)
    return seen


def texts_of(memory: Memory) -> dict[str, Any]:
    texts = {name: getattr(memory, name) for name in TEXTS}
    return {name: value for name, value in texts.items() if value}


def secrets_in(history: EntityHistory) -> list[SecretFinding]:
    """The secrets that a memory has held or a document holds."""
    match history:
        case MemoryHistory():
            return list(_in_memory(history))
        case DocumentHistory(document=Document() as document):
            return [
                SecretFinding(document=document.kind, id=document.id, sighting=one)
                for one in find_in_fields({"body": document.body})[1]
            ]
        case _:
            return []


def _in_labels(call: Call) -> Iterable[SecretFinding]:
    for key in call.engine.store.list_keys():
        for one in find_in_fields({"label": key.label})[1]:
            yield SecretFinding(document=API_KEY, id=key.id, sighting=one)


def _in_memory(history: MemoryHistory) -> Iterable[SecretFinding]:
    """The secrets of a memory's versions, each once with all revisions that hold it."""
    places: dict[SecretSighting, list[int]] = defaultdict(list)
    for version in history.versions:
        for one in find_in_fields(texts_of(version))[1]:
            places[one].append(version.revision)
    last = history.versions[-1].revision if history.versions else 0
    for sighting, held in places.items():
        revisions = tuple(dict.fromkeys(held))
        yield SecretFinding(
            id=history.memory_id, sighting=sighting, revisions=revisions, present=last in revisions
        )


def _redact(call: Call, seen: Scanned) -> None:
    found = dict.fromkeys((one.document, one.id) for one in seen.findings)
    for done, (kind, name) in enumerate(found):
        call.check()
        if kind is None:
            new = retry_on_conflict(call, partial(_replace, call, name))
            seen.replaced |= {name: new} if new else {}
        elif kind == API_KEY:
            seen.redacted_documents += _redact_label(call, name)
        else:
            seen.redacted_documents += retry_on_conflict(call, partial(_redact_document, call, kind, name))
        call.progress(done + 1, len(found), f"{done + 1} of {len(found)} redacted")


def _replace(call: Call, memory_id: str) -> str | None:
    """Replace a memory by one without secrets and history; None if it was deleted meanwhile."""
    store, now = call.engine.store, call.engine.now()
    try:
        record = load(call, memory_id)
    except NotFound:
        return None
    clean, _ = find_in_fields(texts_of(record.memory))
    new = replace(record.memory, id=call.engine.new_id(), revision=1, **clean)
    made = vectors_for(call, [new])
    forget_search_words(call, [record.memory], now)  # first: an interrupted run can be repeated
    edges = store.edges([memory_id], access=call.access)
    changes: list[Change] = [Add(memory=new, embedded=made[0] if made else None)]
    changes.append(Carry(memory_id=new.id, strength=record.strength, at=now))
    changes += [Link(edge=_moved_edge(edge, memory_id, new.id)) for edge in edges]
    changes += _heirs(call, edges, memory_id, new.id)
    # Deleting checks no revision; this change does, so that a concurrent edit is a Conflict.
    changes.append(Revise(memory=next_revision(record.memory, now), reason=REDACTED))
    changes.append(Forget(memory_id=memory_id, at=now, reason=REDACTED))
    save(call, changes)
    call.engine.events.emit(created_event(new, now), deleted_event(record.memory, now))
    return new.id


def _moved_edge(edge: Edge, old: str, new: str) -> Edge:
    source, target = (new if end == old else end for end in (edge.source_id, edge.target_id))
    return replace(edge, source_id=source, target_id=target)


def _heirs(call: Call, edges: Iterable[Edge], old: str, new: str) -> list[Change]:
    """The changes to memories that the old one had ended: the new one ends them instead."""
    ended = [edge.target_id for edge in edges if edge.source_id == old and edge.kind in (SUPERSEDES, MERGES)]
    records = call.engine.store.get_many(ended, access=call.access) if ended else []
    heirs = [replace(one.memory, superseded_by=new) for one in records if one.memory.superseded_by == old]
    return [Revise(memory=next_revision(one, call.engine.now()), reason=REDACTED) for one in heirs]


def _redact_label(call: Call, key_id: str) -> bool:
    (key,) = call.engine.store.list_keys([key_id])
    clean = find_in_fields({"label": key.label})[0]
    if clean:
        call.engine.store.label_key(key_id, clean["label"])
    return bool(clean)


def _redact_document(call: Call, kind: str, name: str) -> bool:
    """Redact the secrets of a document; False if it has none, or was deleted meanwhile."""
    document = find_document(call, kind, name)
    clean = find_in_fields({"body": document.body})[0] if document else {}
    if document is None or not clean:
        return False
    put = with_body(document, clean["body"], call.engine.now())
    call.engine.store.commit([put], access=call.access)
    return True
