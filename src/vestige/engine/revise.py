"""Revising a memory: load → change → save, tried again if another process changed it meanwhile.

Every change of a canonical field makes a revision; the earlier one stays in the history. The events of
created, changed, deleted and linked memories are built here, so that every writer announces them alike.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, TypeVar

from vestige.core.clock import MOST_AHEAD
from vestige.core.documents import Document
from vestige.core.errors import Conflict, IdempotencyConflict, NotFound
from vestige.core.events import (
    ConnectionDiscovered,
    MemoryCreated,
    MemoryDeleted,
    MemoryUpdated,
    preview,
    scopes_of,
)
from vestige.core.models import ROOT_SCOPE, Access, Edge, Evidence, Filter, LogEvent, Memory, Record
from vestige.core.timezone import time_text
from vestige.engine.context import Call
from vestige.store.contract.changes import Change, Embedded, Put, RecordEvidence, Revise
from vestige.store.filter_rule import passes

# -- Events about memories


def created_event(memory: Memory, at: datetime) -> MemoryCreated:
    return MemoryCreated(
        timestamp=at,
        scopes=scopes_of(memory),
        id=memory.id,
        content_preview=preview(memory.content),
        node_type=memory.node_type,
        tags=memory.tags,
        session=memory.session_id,
    )


def updated_event(memory: Memory, at: datetime, names: Iterable[str]) -> MemoryUpdated:
    """The event that these fields of a memory have changed. It is sent to the scopes where the memory is now:
    a listener with access only to the former ones does not see the new text."""
    return MemoryUpdated(
        timestamp=at,
        scopes=scopes_of(memory),
        id=memory.id,
        content_preview=preview(memory.content),
        field=", ".join(names),
    )


def deleted_event(memory: Memory, at: datetime) -> MemoryDeleted:
    """The event that a memory was deleted from its scope and domains."""
    return MemoryDeleted(timestamp=at, scopes=scopes_of(memory), id=memory.id)


def connected_event(edge: Edge, ends: Mapping[str, Memory]) -> ConnectionDiscovered:
    """The event of a new link. If one end is not known, only listeners with access to everything get it."""
    there = [ends[end] for end in (edge.source_id, edge.target_id) if end in ends]
    return ConnectionDiscovered(
        timestamp=edge.created_at,
        scopes=scopes_of(*there) if len(there) == 2 else None,
        source_id=edge.source_id,
        target_id=edge.target_id,
        connection_type=edge.kind,
        weight=edge.weight,
    )


# -- Load, change, save

ATTEMPTS = 4
"""How often a change is tried if another process changes the same memory meanwhile."""
Outcome = TypeVar("Outcome")
BOOKKEEPING = frozenset({"revision", "updated_at"})
TEXT_FIELDS = frozenset({"content", "phrasings"})


def load(call: Call, memory_id: str) -> Record:
    """One record; NotFound says whether it was deleted."""
    found = call.engine.store.get_many([memory_id], access=call.access)
    if found:
        return found[0]
    grave = call.engine.store.tombstone(memory_id, access=call.access)
    if grave:
        raise NotFound(
            f"The memory {memory_id} was deleted on {time_text(grave.deleted_at)}.",
            details={"id": memory_id, "deletedAt": grave.deleted_at.isoformat()},
        )
    raise NotFound(
        f"There is no memory {memory_id}.",
        hint="Find the right id with `search` or `memory` with action `list`.",
        details={"id": memory_id},
    )


def load_passing(call: Call, memory_ids: Sequence[str], where: Filter) -> list[Record]:
    found = call.engine.store.get_many(memory_ids, access=call.access) if memory_ids else []
    return [one for one in found if passes(one.memory, where, call.access)]


def next_revision(memory: Memory, now: datetime) -> Memory:
    """The memory as its next revision. `updated_at` does not go backwards in a history."""
    return replace(memory, revision=memory.revision + 1, updated_at=not_before(memory.updated_at, now))


def not_before(earlier: datetime, now: datetime) -> datetime:
    """The time of a change after an earlier one. One that is more than a day ahead is of a wrong clock: it
    must not set ours."""
    return earlier if now < earlier <= now + MOST_AHEAD else now


def retry_on_conflict(call: Call, attempt: Callable[[], Outcome]) -> Outcome:
    """Run load → decide → save up to ATTEMPTS times: a Conflict means that another process changed the same
    memory in between, or the model of the store's vectors."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except IdempotencyConflict:
            raise
        except Conflict:
            call.check()
    return attempt()


def save(call: Call, changes: Sequence[Change]) -> list[LogEvent]:
    """Commit changes to memories that the caller did not name; the events. If one was deleted meanwhile, a
    Conflict is raised, so that `retry_on_conflict` decides again without it."""
    try:
        return call.engine.store.commit(changes, access=call.access, patience_seconds=call.patience_seconds)
    except NotFound as exc:
        raise Conflict() from exc


def revise(
    call: Call,
    memory_id: str,
    change: Callable[[Memory], Memory],
    *,
    reason: str,
    evidence: Evidence | None = None,
) -> tuple[Record, bool]:
    """Change a memory and save it, with evidence if given: the record, and whether anything changed."""

    def attempt() -> tuple[Record, bool]:
        record = load(call, memory_id)
        wanted = change(record.memory)
        names = changed_fields(record.memory, wanted)
        if not names:
            return record, False
        memory = next_revision(wanted, call.engine.now())
        changes: list[Change] = [revision(call, memory, names, reason)]
        if evidence is not None:
            changes.append(RecordEvidence(memory_id=memory_id, evidence=evidence, at=memory.updated_at))
        call.engine.store.commit(changes, access=call.access)
        call.engine.events.emit(updated_event(memory, memory.updated_at, names))
        return load(call, memory_id), True

    return retry_on_conflict(call, attempt)


def revision(call: Call, memory: Memory, names: list[str], reason: str) -> Change:
    """The change that saves a revision, with new vectors if its text is new."""
    made: list[Embedded] = []
    if TEXT_FIELDS & set(names):
        from vestige.engine.embedding import vectors_for  # brings what only writing needs

        made = vectors_for(call, [memory])
    return Revise(memory=memory, reason=reason, embedded=made[0] if made else None)


def changed_fields(before: Memory, after: Memory) -> list[str]:
    """The names of the fields that differ, apart from bookkeeping."""
    names = (field.name for field in fields(Memory))
    return [n for n in names if n not in BOOKKEEPING and getattr(before, n) != getattr(after, n)]


# -- Reading and writing of documents


def find_document(call: Call, kind: str, name: str, *, access: Access | None = None) -> Document | None:
    """The document of a kind with this id, within the caller's access or the given one."""
    found = call.engine.store.documents(kind, access=access or call.access, ids=[name], limit=1)
    return found[0] if found else None


def documents_by_id(call: Call, kind: str, ids: Sequence[str]) -> dict[str, Document]:
    """Those of these documents that exist."""
    found = call.engine.store.documents(kind, access=call.access, ids=ids, limit=len(ids)) if ids else ()
    return {one.id: one for one in found}


def put_document(
    kind: str,
    name: str,
    held: Document | None,
    now: datetime,
    *,
    body: Mapping[str, Any],  # Any: JSON
    scope: str = ROOT_SCOPE,
    cites: tuple[str, ...] = (),
    logged: bool = False,
) -> Put:
    """The change that writes a document: its first version, or the one after `held`."""
    document = Document(
        kind=kind,
        id=name,
        body=body,
        scope=scope,
        cites=cites,
        version=held.version + 1 if held else 1,
        created_at=held.created_at if held else now,
        updated_at=now,
    )
    return Put(document=document, logged=logged)


def with_body(document: Document, body: Mapping[str, Any], now: datetime, *, logged: bool = True) -> Put:
    """The change that writes the next version of a document with another body, and nothing else new."""
    latest = not_before(document.updated_at, now)
    changed = replace(document, body=body, version=document.version + 1, updated_at=latest)
    return Put(document=changed, logged=logged)
