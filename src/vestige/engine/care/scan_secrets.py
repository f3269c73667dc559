"""Looking for secrets in what is stored already, and blacking them out.

A revision keeps the old wording, here and on every machine that this store is united with. So a memory is
not revised but replaced: one with the same strength and links takes its place, and the old one is purged,
which wins everywhere.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from vestige.cognition.graph.kinds import MERGES, SUPERSEDES
from vestige.core.documents import Document
from vestige.core.errors import NotFound
from vestige.core.models import ANYTHING, Edge, Memory
from vestige.engine.context import Call
from vestige.engine.embedding import vectors_for
from vestige.engine.ingest.secrets import SecretSighting, look
from vestige.engine.memory.delete import unlearn
from vestige.engine.revise import created, deleted, load, next_revision, persistently, save
from vestige.store.contract.changes import Add, Carry, Change, Forget, Link, Put, Revise
from vestige.store.merge.histories import DocumentHistory, EntityHistory, MemoryHistory

TEXTS = (
    "content", "phrasings", "tags", "node_type", "source", "author", "agent_id", "session_id", "thread",
    "scope", "domains", "metadata",
)  # fmt: skip
"""The fields of a memory that somebody's words are in."""
REDACTED = "redacted"
"""Why a memory went, and why one that it had ended was revised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFinding:
    """A secret that is stored: in a memory, with the revisions that hold it and whether it holds it now, or
    in a document of a kind."""

    id: str
    sighting: SecretSighting
    document: str | None = None
    revisions: tuple[int, ...] = ()
    present: bool = True


@dataclass(slots=True, kw_only=True)
class Scanned:
    """What was looked through and found, and by what memories were replaced (old id to new)."""

    memories: int = 0
    documents: int = 0
    findings: list[SecretFinding] = field(default_factory=list)
    replaced: dict[str, str] = field(default_factory=dict)
    redacted_documents: int = 0


def scan(call: Call, *, redact: bool) -> Scanned:
    """Look through every memory with its history, and every document; with `redact`, black out the finds."""
    seen, total = Scanned(), call.engine.store.count(ANYTHING, access=call.access)
    for batch in call.engine.store.histories(access=call.access):
        call.check()
        for life in batch:
            seen.memories += isinstance(life, MemoryHistory) and bool(life.versions)
            seen.documents += isinstance(life, DocumentHistory) and life.document is not None
            seen.findings += found_in(life)
        call.progress(seen.memories, max(seen.memories, total), f"{seen.memories} memories looked through")
    if redact and seen.findings:
        with call.engine.store.alone("redact"):
            _redact(call, seen)
    return seen


def texts_of(memory: Memory) -> dict[str, Any]:
    """The words of a memory by field."""
    told = {name: getattr(memory, name) for name in TEXTS}
    return {name: value for name, value in told.items() if value}


def found_in(life: EntityHistory) -> list[SecretFinding]:
    """The secrets that a memory has held or a document holds."""
    match life:
        case MemoryHistory():
            return list(_in_memory(life))
        case DocumentHistory(document=Document() as document):
            return [
                SecretFinding(document=document.kind, id=document.id, sighting=one)
                for one in look({"body": document.body})[1]
            ]
        case _:
            return []


def _in_memory(life: MemoryHistory) -> Iterable[SecretFinding]:
    """What the versions of a memory hold, each once with all the revisions that hold it."""
    places: dict[SecretSighting, list[int]] = defaultdict(list)
    for version in life.versions:
        for one in look(texts_of(version))[1]:
            places[one].append(version.revision)
    last = life.versions[-1].revision if life.versions else 0
    for sighting, revisions in places.items():
        yield SecretFinding(
            id=life.memory_id,
            sighting=sighting,
            revisions=tuple(dict.fromkeys(revisions)),
            present=last in revisions,
        )


def _redact(call: Call, seen: Scanned) -> None:
    found = dict.fromkeys((one.document, one.id) for one in seen.findings)
    for done, (kind, name) in enumerate(found):
        call.check()
        if kind is None:
            new = persistently(call, partial(_replace, call, name))
            seen.replaced |= {name: new} if new else {}
        else:
            seen.redacted_documents += persistently(call, partial(_blacken, call, kind, name))
        call.progress(done + 1, len(found), f"{done + 1} of {len(found)} blacked out")


def _replace(call: Call, memory_id: str) -> str | None:
    """Put a memory without secrets and without history in the place of another; its id. One that has gone
    meanwhile is done."""
    store, now = call.engine.store, call.engine.now()
    try:
        record = load(call, memory_id)
    except NotFound:
        return None
    clean, _ = look(texts_of(record.memory))
    new = replace(record.memory, id=call.engine.new_id(), revision=1, **clean)
    made = vectors_for(call, [new])
    unlearn(call, [record.memory], now)  # before the words go: who is interrupted here can begin again
    edges = store.edges([memory_id], access=call.access)
    changes: list[Change] = [Add(memory=new, embedded=made[0] if made else None)]
    changes.append(Carry(memory_id=new.id, strength=record.strength, at=now))
    changes += [Link(edge=_moved(edge, memory_id, new.id)) for edge in edges]
    changes += _heirs(call, edges, memory_id, new.id)
    # The end of a memory asks for no revision. This one does: what somebody changed meanwhile is a Conflict.
    changes.append(Revise(memory=next_revision(record.memory, now), reason=REDACTED))
    changes.append(Forget(memory_id=memory_id, at=now, reason=REDACTED))
    save(call, changes)
    call.engine.events.emit(created(new, now), deleted(record.memory, now))
    return new.id


def _moved(edge: Edge, old: str, new: str) -> Edge:
    ends: Mapping[str, str] = {old: new}
    return replace(
        edge,
        source_id=ends.get(edge.source_id, edge.source_id),
        target_id=ends.get(edge.target_id, edge.target_id),
    )


def _heirs(call: Call, edges: Iterable[Edge], old: str, new: str) -> list[Change]:
    """What a memory had ended was ended by the one in its place."""
    ended = [edge.target_id for edge in edges if edge.source_id == old and edge.kind in (SUPERSEDES, MERGES)]
    records = call.engine.store.get_many(ended, access=call.access) if ended else []
    return [
        Revise(
            memory=next_revision(replace(one.memory, superseded_by=new), call.engine.now()), reason=REDACTED
        )
        for one in records
        if one.memory.superseded_by == old
    ]


def _blacken(call: Call, kind: str, name: str) -> bool:
    """Take the secrets out of a document; one that has gone meanwhile, with a memory it spoke of, is done."""
    found = call.engine.store.documents(kind, access=call.access, ids=[name], limit=1)
    clean = look({"body": found[0].body})[0] if found else {}
    if not clean:
        return False
    now, document = call.engine.now(), found[0]
    after = replace(
        document,
        body=clean["body"],
        version=document.version + 1,
        updated_at=max(now, document.updated_at),
    )
    call.engine.store.commit([Put(document=after)], access=call.access)
    return True
