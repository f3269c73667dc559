"""Portable files of a project: what they hold, and copies of their memories for another project.

A file whose entities all belong to the scope of the project is merged with its history, like any portable
file. Of another file the memories are copied: each gets an id that is derived from its own and from the
scope, so that a second import adds nothing, and both projects may be in one store.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ROOT_SCOPE, Filter, Memory, Strength, covers
from vestige.core.origin import Origin, lowest
from vestige.engine.context import Call
from vestige.engine.exchange.import_foreign import ForeignImport, import_reading, import_target
from vestige.engine.exchange.import_portable import inspect, read_histories
from vestige.exchange.importers.records import (
    Brought,
    BroughtEdge,
    BroughtMemory,
    Reading,
    Target,
    UnreadRecords,
    derived_id,
)
from vestige.exchange.portable.file import PortableContents
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import TUNED
from vestige.store.merge.histories import DocumentHistory, EdgeHistory, EntityHistory, MemoryHistory
from vestige.store.merge.strength_log import Curves
from vestige.store.merge.union import edge, present

MOST_CURVES = 10_000
DROPPED_SUCCESSOR = "the memory that superseded it is not in the file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileExtent:
    """What a portable file holds, and whether all of it belongs to one scope. `memories` are the ids of the
    present memories with their scopes."""

    contents: PortableContents
    within: bool
    memories: dict[str, str]


def belongs(scope: str, other: str) -> bool:
    """Whether a scope is part of a project's. A folder outside any repository has the root scope, and owns
    only what is directly in it, not every other project."""
    return other == scope if scope == ROOT_SCOPE else covers(scope, other)


def memories_of(scope: str) -> Filter:
    """All memories of a project, archived ones too."""
    return Filter(scope=scope, scope_only=scope == ROOT_SCOPE, archived=None)


def extent_of(call: Call, file: Path, scope: str) -> FileExtent:
    """Read a file to its end, which checks it, and compare it with a scope."""
    memories: dict[str, str] = {}
    outside = False

    def watch(batch: Sequence[EntityHistory]) -> None:
        nonlocal outside
        call.check()
        for history in batch:
            outside = outside or not _is_within(history, scope)
            memory = present(history) if isinstance(history, MemoryHistory) else None
            if memory is not None:
                memories[memory.id] = memory.scope

    contents = inspect(file, call.engine.now(), before=watch)
    return FileExtent(contents=contents, within=not outside, memories=memories)


def import_copies(call: Call, file: Path, extent: FileExtent, scope: str, *, dry_run: bool) -> ForeignImport:
    """Copy the memories of a portable file into a scope, with tags, source, times, strength, metadata and the
    links between them. Earlier revisions and documents stay behind."""
    target = import_target(call, scope)
    names = {
        memory_id: memory_id if belongs(scope, own) else derived_id("project copy", scope, memory_id)
        for memory_id, own in extent.memories.items()
    }
    records = _copies(file, target, names, stored_curves(call))
    found = Reading(records=records, total=extent.contents.lines)
    return import_reading(call, found, target, name=file.name, dry_run=dry_run)


def stored_curves(call: Call) -> Curves:
    """The curves of forgetting that were in force in this store."""
    query = LogQuery(kinds=(TUNED,))
    return Curves.from_events(call.engine.store.latest(query, access=call.access, limit=MOST_CURVES))


def strength_of(history: MemoryHistory, curves: Curves) -> Strength:
    """The strength of a memory after all events of its history."""
    return curves.folded(history.versions[-1].created_at, history.events).strength


def _copies(file: Path, target: Target, names: dict[str, str], curves: Curves) -> Iterator[Brought]:
    documents = 0
    for history in read_histories(file):
        match history:
            case MemoryHistory() if history.versions:
                memory, notes = _copied(history.versions[-1], target, names)
                strength = replace(strength_of(history, curves), curve=target.curve)
                yield BroughtMemory(place=history.memory_id, memory=memory, strength=strength, notes=notes)
            case EdgeHistory():
                link = edge(history)
                if link is not None and names.keys() >= {link.source_id, link.target_id}:
                    copied = replace(link, source_id=names[link.source_id], target_id=names[link.target_id])
                    yield BroughtEdge(place=f"{link.source_id} {link.target_id}", edge=copied)
            case DocumentHistory():
                documents += history.document is not None
            case _:
                pass
    if documents:
        yield UnreadRecords(
            kind="document", place="", reason="it belongs to the store it came from", count=documents
        )


def _copied(memory: Memory, target: Target, names: dict[str, str]) -> tuple[Memory, tuple[str, ...]]:
    successor = names.get(memory.superseded_by) if memory.superseded_by is not None else None
    lost = memory.superseded_by is not None and successor is None
    copied = replace(
        memory,
        id=names[memory.id],
        scope=target.scope,
        superseded_by=successor,
        revision=1,
        domains=(),
        domain_scores={},
        origin=lowest((Origin.IMPORT.value, memory.origin)),
    )
    return copied, (DROPPED_SUCCESSOR,) if lost else ()


def _is_within(history: EntityHistory, scope: str) -> bool:
    """Whether all that a history says is about a scope. The curve belongs to a whole store."""
    match history:
        case MemoryHistory():
            scopes = {event.scope for event in history.events} | {one.scope for one in history.versions}
        case EdgeHistory():
            scopes = {event.scope for event in history.events}
        case DocumentHistory():
            scopes = {event.scope for event in history.events}
            scopes |= {history.document.scope} if history.document else set()
        case _:
            return False
    return all(belongs(scope, one) for one in scopes)
