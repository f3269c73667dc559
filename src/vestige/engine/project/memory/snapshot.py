"""Snapshots of a project's memory: a portable file, and bringing the memory back to it.

A restore changes as little as it can: what differs from the snapshot gets a revision with the fields of then,
what was deleted since comes back under a new id, what is newer is archived, and links are as they were. All
of it is one transaction, and the state before is written to a snapshot of its own first. So a restore
destroys nothing, and restoring that file undoes it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from vestige.core.errors import InvalidInput
from vestige.core.events import EventScope, StoreMerged
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Memory, Record, Strength
from vestige.engine.care.backup import BACKUPS
from vestige.engine.context import Call
from vestige.engine.exchange.export import export_portable
from vestige.engine.exchange.import_portable import embed_missing, import_portable, inspect, read_histories
from vestige.engine.project.memory.portable_copy import (
    belongs,
    extent_of,
    memories_of,
    stored_curves,
    strength_of,
)
from vestige.engine.project.place import Project
from vestige.engine.revise import changed_fields, next_revision, retry_on_conflict
from vestige.exchange.importers.records import derived_id
from vestige.exchange.portable.file import PortableContents
from vestige.store.contract.changes import Add, Carry, Change, Link, Revise, Unlink
from vestige.store.contract.memberships import MEMBERSHIP, has_local_part, revised_membership
from vestige.store.merge.histories import EdgeHistory, MemoryHistory
from vestige.store.merge.union import edge

REASON = "restored from a snapshot"
BATCH = 500
EdgeKey = tuple[str, str, str]
_COMPUTED = ("retention", "retention_at", "curve")
"""Fields of a strength that follow from the others and the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotState:
    """The memories and links of a snapshot. `renewed` are the ids under which deleted memories come back."""

    memories: dict[str, tuple[Memory, Strength]]
    edges: dict[EdgeKey, Edge]
    renewed: dict[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoredProject:
    """What a restore did, or would do. `kept` is the snapshot of the state before it."""

    memories: int
    revised: int
    returned: int
    archived: int
    strengths: int
    linked: int
    unlinked: int
    renewed: dict[str, str]
    kept: Path | None = None
    embedded: int = 0
    note: str | None = None

    @property
    def changes(self) -> int:
        return self.revised + self.returned + self.archived + self.strengths + self.linked + self.unlinked


def make_snapshot(
    call: Call, project: Project, *, name: str | None = None, what: str = "project"
) -> tuple[Path, PortableContents]:
    """Write all memories of a project with their histories to a new file, and check it by reading it."""
    stem = f"{what}-{_plain(project.name)}"
    path, written = export_portable(
        call, memories_of(project.scope), name=name, vectors=False, folder=BACKUPS, stem=stem, complete=True
    )
    read = inspect(path, None)
    if read.digest != written.digest:
        raise InvalidInput(f"{path.name} was written, but reads differently.", hint="Check the disk.")
    return path, written


def restore_snapshot(call: Call, project: Project, file: Path, *, dry_run: bool) -> RestoredProject:
    """Bring the memories of a project back to a snapshot."""
    extent = extent_of(call, file, project.scope)
    if not extent.within:
        raise InvalidInput(
            f"{file.name} is no snapshot of this project: it has other scopes than {project.scope}.",
            hint="`vestige project import` copies its memories into this project.",
            details={"argument": "file"},
        )
    if dry_run:
        return _plan(call, project, file)[1]
    kept, _ = make_snapshot(call, project, what="before-restore")
    # Histories that are not here, such as those of another machine, are merged first, with their past.
    import_portable(call, file, embed=False)

    def attempt() -> RestoredProject:
        changes, done = _plan(call, project, file)
        if changes:
            call.engine.store.commit(changes, access=call.access)
        return done

    done = retry_on_conflict(call, attempt)
    embedded, note = embed_missing(call)
    if done.changes:
        call.engine.events.emit(
            StoreMerged(
                timestamp=call.engine.now(),
                scopes=(EventScope(scope=project.scope),),
                source=file.name,
                added=done.returned,
                changed=done.revised,
                ended=done.archived,
            )
        )
    return replace(done, kept=kept, embedded=embedded, note=note)


def _plan(call: Call, project: Project, file: Path) -> tuple[list[Change], RestoredProject]:
    wanted = _state(call, file)
    now = call.engine.now()
    here = {one.memory.id: one for one in _present(call, project, list(wanted.memories))}
    back = [memory for memory in wanted.memories if memory not in here]
    revisions, strengths = _revisions(wanted, here, now)
    newer = [
        one.memory
        for memory_id, one in here.items()
        if memory_id not in wanted.memories and one.memory.archived_at is None
    ]
    links, cuts = _links(call, wanted, here, now)
    changes: list[Change] = [Add(memory=_again(wanted.memories[one][0], project)) for one in back]
    changes += revisions
    changes += [_archival(memory, now) for memory in newer]
    changes += [Carry(memory_id=one, strength=wanted.memories[one][1], at=now) for one in (*back, *strengths)]
    changes += [*links, *cuts]
    return changes, RestoredProject(
        memories=len(wanted.memories),
        revised=len(revisions),
        returned=len(back),
        archived=len(newer),
        strengths=len(strengths),
        linked=len(links),
        unlinked=len(cuts),
        renewed={old: new for old, new in wanted.renewed.items() if new in back},
    )


def _state(call: Call, file: Path) -> SnapshotState:
    """What a file holds, under the ids that its memories have here."""
    curves = stored_curves(call)
    found: dict[str, tuple[Memory, Strength]] = {}
    edges: list[Edge] = []
    for history in read_histories(file):
        if isinstance(history, MemoryHistory) and history.versions:
            found[history.memory_id] = (history.versions[-1], strength_of(history, curves))
        elif isinstance(history, EdgeHistory):
            link = edge(history)
            edges += [link] if link is not None else []
    store = call.engine.store
    renewed = {
        memory_id: derived_id("restored", memory_id, str(grave.deleted_at))
        for memory_id in found
        if (grave := store.tombstone(memory_id, access=call.access)) is not None
    }

    def named(memory_id: str | None) -> str | None:
        return renewed.get(memory_id, memory_id) if memory_id is not None else None

    memories = {
        renewed.get(memory_id, memory_id): (
            replace(memory, id=renewed.get(memory_id, memory_id), superseded_by=named(memory.superseded_by)),
            strength,
        )
        for memory_id, (memory, strength) in found.items()
    }
    moved = (
        replace(
            one,
            source_id=renewed.get(one.source_id, one.source_id),
            target_id=renewed.get(one.target_id, one.target_id),
        )
        for one in edges
    )
    between = {_key(one): one for one in moved if memories.keys() >= {one.source_id, one.target_id}}
    return SnapshotState(memories=memories, edges=between, renewed=renewed)


def _present(call: Call, project: Project, wanted: Sequence[str]) -> Iterator[Record]:
    """The memories of the project, and those of the snapshot that have moved to another scope since."""
    seen: set[str] = set()
    for batch in call.engine.store.stream(memories_of(project.scope), access=call.access, batch=BATCH):
        call.check()
        seen.update(one.memory.id for one in batch)
        yield from batch
    for some in _chunks([one for one in wanted if one not in seen]):
        yield from call.engine.store.get_many(some, access=call.access)


def _revisions(
    wanted: SnapshotState, here: dict[str, Record], now: datetime
) -> tuple[list[Change], list[str]]:
    """The revisions that give memories the fields of then, and the ids whose strength differs."""
    revisions: list[Change] = []
    strengths: list[str] = []
    for memory_id, (then, strength) in wanted.memories.items():
        record = here.get(memory_id)
        if record is None:
            continue
        as_then = replace(
            then,
            created_at=record.memory.created_at,
            revision=record.memory.revision,
            updated_at=record.memory.updated_at,
        )
        if not has_local_part(then):  # a file for other installations says nothing about found domains
            as_then = replace(as_then, **revised_membership(record.memory, then, MEMBERSHIP, here=False))
        if changed_fields(record.memory, as_then):
            revisions.append(Revise(memory=next_revision(as_then, now), reason=REASON))
        if _basis(record.strength) != _basis(strength):
            strengths.append(memory_id)
    return revisions, strengths


def _links(
    call: Call, wanted: SnapshotState, here: dict[str, Record], now: datetime
) -> tuple[list[Change], list[Change]]:
    """Links of the snapshot that are missing or have another weight, and links between its memories that it
    does not have. Links to anything else are left alone."""
    present: dict[EdgeKey, Edge] = {}
    both = [memory_id for memory_id in wanted.memories if memory_id in here]
    for some in _chunks(both):
        for one in call.engine.store.edges(some, access=call.access):
            if one.source_id in wanted.memories and one.target_id in wanted.memories:
                present[_key(one)] = one
    links: list[Change] = [
        Link(edge=one)
        for key, one in wanted.edges.items()
        if key not in present or present[key].weight != one.weight
    ]
    cuts: list[Change] = [
        Unlink(source_id=key[0], target_id=key[1], kind=key[2], at=now)
        for key in present
        if key not in wanted.edges
    ]
    return links, cuts


def _again(memory: Memory, project: Project) -> Memory:
    """A memory of the snapshot that is stored anew, in its scope or that of the project."""
    return replace(
        memory, revision=1, scope=memory.scope if belongs(project.scope, memory.scope) else project.scope
    )


def _archival(memory: Memory, now: datetime) -> Change:
    return Revise(memory=next_revision(replace(memory, archived_at=now), now), reason=REASON)


def _basis(strength: Strength) -> dict[str, object]:
    names = (name for name in Strength.__slots__ if name not in _COMPUTED)
    return {name: getattr(strength, name) for name in names}


def _key(one: Edge) -> EdgeKey:
    return one.source_id, one.target_id, one.kind


def _chunks(ids: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(ids), BATCH):
        yield list(ids[start : start + BATCH])


def _plain(name: str) -> str:
    """A project's name for a file name."""
    return "".join(one if one.isalnum() or one in "-_" else "-" for one in name)[:40] or "project"
