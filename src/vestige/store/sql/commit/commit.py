"""Commits changes: text is analysed before the transaction, changes are applied to pending rows, and those
are written with one statement per table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from vestige.cognition.fsrs import strength as cognition
from vestige.core.clock import tick
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, NotFound
from vestige.core.models import NO_METADATA, ROOT_SCOPE, Access, LogEvent, Memory, Revision
from vestige.store.contract.changes import (
    CARRIED,
    CREATED,
    DELETED,
    DROPPED,
    LINKED,
    PUT,
    REMARKED,
    REVISED,
    STATE,
    TUNED,
    UNLINKED,
    Add,
    Carry,
    Change,
    ChangeState,
    Drop,
    Forget,
    Link,
    Put,
    RecordEvidence,
    Revise,
    Tune,
    Unlink,
    about,
    check_tune,
    evidence_payload,
)
from vestige.store.merge.strength_log import carried, carried_strength
from vestige.store.sql.commit import commit_rows as pending
from vestige.store.sql.commit.commit_rows import PendingDocuments, PendingEdges, PendingMemory
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.rows import edges, history, log, memories, store_facts, strengths
from vestige.store.sql.rows.store_facts import StoreHead
from vestige.store.sql.search import index_rows, vectors

UNLOGGED_FIELDS = ("revision", "updated_at")  # they change with every revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An addition or revision with the rows derived from its text."""

    change: Add | Revise
    row: memories.WrittenMemory
    analysis: index_rows.Analysis


Step = Written | RecordEvidence | Link | Unlink | ChangeState | Carry | Tune | Put | Drop | Forget


def analyse(change: Change) -> Step:
    """Do the slow part that needs no database, before the write lock is taken."""
    if isinstance(change, Add | Revise):
        analysis = index_rows.analyse(change.memory)
        row = pending.row_of(change.memory, analysis.fingerprints)
        return Written(change=change, row=row, analysis=analysis)
    return change


@dataclass(slots=True, kw_only=True)
class PendingCommit:
    """The pending rows of one commit by `node`. `clock` is its last reading."""

    node: str
    access: Access
    before: StoreHead
    clock: int
    curve: float
    next_key: int
    taken: set[str]
    pending_memories: dict[str, PendingMemory]
    documents: PendingDocuments
    surfaces: Surfaces
    pending_edges: PendingEdges = field(default_factory=PendingEdges)
    forgotten: list[PendingMemory] = field(default_factory=list)
    buried: list[history.EndedMemory] = field(default_factory=list)
    entries: list[log.LogEntry] = field(default_factory=list)

    @classmethod
    def begin(
        cls, db: Database, node: str, changes: Sequence[Change], access: Access, surfaces: Surfaces
    ) -> "PendingCommit":
        """Load the rows that the changes touch."""
        documents = PendingDocuments.begin(db, changes, access)
        named = [memory_id for change in changes for memory_id in about(change)]
        touched = list(dict.fromkeys([*named, *documents.cited()]))
        known = memories.stored(db, touched)
        before = store_facts.read(db, node)
        adds = any(isinstance(one, Add) for one in changes)  # every search records evidence, which needs less
        return cls(
            node=node,
            access=access,
            before=before,
            clock=before.clock,
            curve=before.curve,
            next_key=surfaces.next_key(db) if adds else 0,
            surfaces=surfaces,
            taken=history.buried_among(db, touched) | known.keys() if adds else set(),
            documents=documents,
            pending_memories={
                memory_id: PendingMemory(
                    key=one.key,
                    memory=one.record.memory,
                    strength=one.record.strength,
                    text_hash=one.text_hash,
                )
                for memory_id, one in known.items()
            },
        )

    def apply(self, step: Step) -> None:
        """Apply one change to the pending rows and note its event."""
        match step:
            case Written(change=Add() as add):
                self._add(add, step)
            case Written(change=Revise() as revise):
                self._revise(revise, step)
            case RecordEvidence() | ChangeState() | Carry():
                self._weigh(step)
            case Tune():
                self._tune(step)
            case Link():
                self._link(step)
            case Unlink():
                self._unlink(step)
            case Put() | Drop():
                self._file(step)
            case Forget():
                self._forget(step)

    def write(self, db: Database) -> list[LogEvent]:
        """Write the pending rows and the events."""
        living = list(self.pending_memories.values())
        pending.write_texts(db, self.before.profile, living, self.surfaces)
        strengths.put(db, {one.key: one.strength for one in living if one.is_new or one.reweighed})
        if any(entry.kind == TUNED for entry in self.entries):
            strengths.tune(db, self.curve)
        self.pending_edges.write(db)
        self.documents.write(db, lambda memory_id: self.pending_memories[memory_id].key, self.surfaces)
        pending.write_endings(db, self.forgotten, self.surfaces)
        history.bury(db, self.buried)
        log.advance(db, self.clock)
        return log.append(db, self.node, self.entries, position=self.before.position, seq=self.before.seq)

    def _add(self, change: Add, written: Written) -> None:
        memory = change.memory
        self._check_writable(memory)
        if memory.id in self.taken:
            raise Conflict(
                f"The id {memory.id} is already taken.",
                hint="Ids are never used twice, not even after a deletion.",
                details={"memory_id": memory.id},
            )
        pending_memory = PendingMemory(
            key=self.next_key,
            memory=memory,
            strength=cognition.encode(memory.created_at, self.curve),
            text_hash="",
            is_new=True,
        )
        self.next_key += 1
        self.taken.add(memory.id)
        self.pending_memories[memory.id] = pending_memory
        self._take_text(pending_memory, written, moved=True)
        self._note(CREATED, memory.created_at, memory)

    def _revise(self, change: Revise, written: Written) -> None:
        pending_memory = self._require(change.memory.id)
        old, new = pending_memory.memory, change.memory
        self._check_writable(new)
        if new.revision != old.revision + 1:
            raise Conflict(
                f"The memory {old.id} is at revision {old.revision}; {new.revision} cannot follow it.",
                hint="Load the memory again and repeat the change.",
                details={"memory_id": old.id, "revision": old.revision},
            )
        if new.created_at != old.created_at:
            new = replace(new, created_at=old.created_at)
            written = replace(written, row=pending.row_of(new, written.analysis.fingerprints))
        pending_memory.past.append(
            Revision(memory=old, recorded_at=old.updated_at, ended_at=new.updated_at, reason=change.reason)
        )
        pending_memory.memory = new
        changed = _changed_fields(old, new)
        self._take_text(pending_memory, written, moved=not index_rows.MADE_FROM.isdisjoint(changed))
        self._note(REVISED, new.updated_at, new, {"fields": changed, "reason": change.reason})

    def _take_text(self, pending_memory: PendingMemory, written: Written, *, moved: bool) -> None:
        """Take over a memory's row, its lexical row if it can have changed, and the vectors of its present
        text."""
        row, embedded = written.row, written.change.embedded
        if row.text_hash != pending_memory.text_hash:
            pending_memory.lost_vectors, pending_memory.embedded = not pending_memory.is_new, None
        if moved:
            pending_memory.analysis = written.analysis
        pending_memory.row, pending_memory.text_hash = row, row.text_hash
        if embedded is not None:
            store_facts.require(self.before.profile, embedded.signature)
            vectors.check(embedded)
            if embedded.text_hash == row.text_hash and embedded.pieces:
                pending_memory.embedded = embedded

    def _weigh(self, change: RecordEvidence | ChangeState | Carry) -> None:
        match change:
            case RecordEvidence():
                self._record_evidence(change)
            case ChangeState():
                self._change_state(change)
            case Carry():
                self._carry(change)

    def _record_evidence(self, change: RecordEvidence) -> None:
        pending_memory = self._require(change.memory_id)
        prior, pending_memory.strength = (
            pending_memory.strength,
            cognition.after(pending_memory.strength, change.evidence, change.at, change.amount),
        )
        pending_memory.reweighed = True
        self._note(
            REMARKED,
            change.at,
            pending_memory.memory,
            evidence_payload(change, prior, pending_memory.strength, pending_memory.memory.suppression_count),
            around=(strengths.as_json(prior), strengths.as_json(pending_memory.strength)),
        )

    def _change_state(self, change: ChangeState) -> None:
        pending_memory = self._require(change.memory_id)
        pending_memory.strength = cognition.settled(pending_memory.strength, change.at)
        pending_memory.reweighed = True
        payload = {"from": change.before.value, "to": change.after.value, "reason": change.reason}
        self._note(STATE, change.at, pending_memory.memory, payload)

    def _carry(self, change: Carry) -> None:
        pending_memory = self._require(change.memory_id)
        payload = carried(change.strength)
        pending_memory.strength = replace(carried_strength(payload), curve=self.curve)
        pending_memory.reweighed = True
        self._note(CARRIED, change.at, pending_memory.memory, payload)

    def _tune(self, change: Tune) -> None:
        check_tune(change, self.access)
        self.curve = change.w20
        for pending_memory in self.pending_memories.values():
            pending_memory.strength = replace(pending_memory.strength, curve=change.w20)
        self._note(TUNED, change.at, None, {"w20": change.w20})

    def _file(self, change: Put | Drop) -> None:
        if isinstance(change, Drop):
            gone = self.documents.drop(change, self._memory)
            self._note(DROPPED, change.at, gone, {"kind": gone.kind, "id": gone.id})
            return
        for memory_id in change.document.cites:
            self._require(memory_id)
        made = self.documents.put(change)
        if change.logged:
            self._note(PUT, made.updated_at, made, {"kind": made.kind, "id": made.id})
        else:
            self.clock = tick(self.clock, made.updated_at)
        self.documents.stamped(made, (self.clock, self.node))

    def _unlink(self, change: Unlink) -> None:
        source, target = self._require(change.source_id), self._require(change.target_id)
        self.pending_edges.unlink((source.key, target.key, change.kind), change)
        payload = {"target": change.target_id, "kind": change.kind}
        self._note(UNLINKED, change.at, source.memory, payload)

    def _link(self, change: Link) -> None:
        edge = change.edge
        edges.check(edge)
        source, target = self._require(edge.source_id), self._require(edge.target_id)
        self.pending_edges.link((source.key, target.key, edge.kind), edge)
        payload = {"target": edge.target_id, "kind": edge.kind, "weight": edge.weight}
        self._note(LINKED, edge.created_at, source.memory, payload)

    def _forget(self, change: Forget) -> None:
        pending_memory = self._require(change.memory_id)
        scope = pending_memory.memory.scope
        del self.pending_memories[change.memory_id]
        self.forgotten.append(pending_memory)
        self.buried.append(history.EndedMemory(memory_id=change.memory_id, scope=scope, at=change.at))
        self.pending_edges.forget(pending_memory.key)
        self.documents.forget(change.memory_id)
        self._note(DELETED, change.at, pending_memory.memory, {"reason": change.reason})

    def _note(
        self,
        kind: str,
        at: datetime,
        subject: Memory | Document | None,
        payload: Mapping[str, Any] = NO_METADATA,
        around: tuple[str, str] | None = None,
    ) -> None:
        """Note an event; `around` are the strengths before and after an evidence event."""
        self.clock = tick(self.clock, at)
        self.entries.append(
            log.LogEntry(
                clock=self.clock,
                at=at,
                kind=kind,
                memory_id=subject.id if isinstance(subject, Memory) else None,
                scope=ROOT_SCOPE if subject is None else subject.scope,
                payload=payload,
                around=around,
            )
        )

    def _memory(self, memory_id: str) -> Memory | None:
        pending_memory = self.pending_memories.get(memory_id)
        return None if pending_memory is None else pending_memory.memory

    def _require(self, memory_id: str) -> PendingMemory:
        pending_memory = self.pending_memories.get(memory_id)
        if pending_memory is None or not self.access.allows(pending_memory.memory):
            raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
        return pending_memory

    def _check_writable(self, memory: Memory) -> None:
        if not self.access.allows(memory):
            raise Forbidden(
                f"This caller may not write into the scope {memory.scope}.", details={"scope": memory.scope}
            )


def _changed_fields(old: Memory, new: Memory) -> list[str]:
    names = [one.name for one in fields(Memory) if one.name not in UNLOGGED_FIELDS]
    return sorted(name for name in names if getattr(old, name) != getattr(new, name))
