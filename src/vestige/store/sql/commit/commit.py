"""One commit: text is analysed before the transaction, changes are applied to a draft of the memories
they touch, and the draft is written with one statement per table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any

from vestige.cognition.fsrs import strength as cognition
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
from vestige.store.hybrid_clock import tick
from vestige.store.merge.strength_log import carried, carried_strength
from vestige.store.sql.commit import drafts as pending
from vestige.store.sql.commit.drafts import PendingDocuments, PendingEdges, PendingMemory
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.rows import edges, history, log, memories, store_facts, strengths
from vestige.store.sql.rows.store_facts import StoreHead
from vestige.store.sql.search import thread_rows, vectors, word_rows

UNLOGGED_FIELDS = ("revision", "updated_at")  # they change with every revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An addition or revision with what is derived from its memory's text."""

    change: Add | Revise
    row: memories.WrittenMemory
    analysis: word_rows.Analysis


Step = Written | RecordEvidence | Link | Unlink | ChangeState | Carry | Tune | Put | Drop | Forget


def analyse(change: Change) -> Step:
    """Do the slow part that needs no database, before the write lock is taken."""
    if isinstance(change, Add | Revise):
        analysis = word_rows.analyse(change.memory)
        row = pending.row_of(change.memory, analysis.fingerprints)
        return Written(change=change, row=row, analysis=analysis)
    return change


@dataclass(slots=True, kw_only=True)
class PendingCommit:
    """The draft of one commit by `node`. `clock` is its last reading."""

    node: str
    access: Access
    before: StoreHead
    clock: int
    curve: float
    next_key: int
    taken: set[str]
    drafts: dict[str, PendingMemory]
    filing: PendingDocuments
    surfaces: Surfaces
    wiring: PendingEdges = field(default_factory=PendingEdges)
    forgotten: list[PendingMemory] = field(default_factory=list)
    buried: list[history.EndedMemory] = field(default_factory=list)
    entries: list[log.LogEntry] = field(default_factory=list)

    @classmethod
    def begin(
        cls, db: Database, node: str, changes: Sequence[Change], access: Access, surfaces: Surfaces
    ) -> "PendingCommit":
        """Load what the changes touch."""
        filing = PendingDocuments.begin(db, changes, access)
        named = [memory_id for change in changes for memory_id in about(change)]
        touched = list(dict.fromkeys([*named, *filing.cited()]))
        known = memories.stored(db, touched)
        before = store_facts.read(db, node)
        adds = any(isinstance(one, Add) for one in changes)  # every search leaves remarks: they need less
        return cls(
            node=node,
            access=access,
            before=before,
            clock=before.clock,
            curve=before.curve,
            next_key=surfaces.next_key(db) if adds else 0,
            surfaces=surfaces,
            taken=history.buried_among(db, touched) | known.keys() if adds else set(),
            filing=filing,
            drafts={
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
        """Make one change to the draft and note its event."""
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
        """Write the draft and the events."""
        living = list(self.drafts.values())
        pending.write_texts(db, self.before.profile, living, self.surfaces)
        strengths.put(db, {one.key: one.strength for one in living if one.is_new or one.remarked})
        if any(entry.kind == TUNED for entry in self.entries):
            strengths.tune(db, self.curve)
        self.wiring.write(db)
        self.filing.write(db, lambda memory_id: self.drafts[memory_id].key, self.surfaces)
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
        draft = PendingMemory(
            key=self.next_key,
            memory=memory,
            strength=cognition.encode(memory.created_at, self.curve),
            text_hash="",
            is_new=True,
        )
        self.next_key += 1
        self.taken.add(memory.id)
        self.drafts[memory.id] = draft
        self._take_text(draft, written, moved=True)
        self._note(CREATED, memory.created_at, memory)

    def _revise(self, change: Revise, written: Written) -> None:
        draft = self._require(change.memory.id)
        old, new = draft.memory, change.memory
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
        draft.past.append(
            Revision(memory=old, recorded_at=old.updated_at, ended_at=new.updated_at, reason=change.reason)
        )
        draft.memory = new
        changed = _changed_fields(old, new)
        self._take_text(draft, written, moved=not thread_rows.MADE_FROM.isdisjoint(changed))
        self._note(REVISED, new.updated_at, new, {"fields": changed, "reason": change.reason})

    def _take_text(self, draft: PendingMemory, written: Written, *, moved: bool) -> None:
        """Take over a memory's row, its lexical row if that can have changed, and the vectors that were
        made from its present text."""
        row, embedded = written.row, written.change.embedded
        if row.text_hash != draft.text_hash:
            draft.lost_vectors, draft.embedded = not draft.is_new, None
        if moved:
            draft.analysis = written.analysis
        draft.row, draft.text_hash = row, row.text_hash
        if embedded is not None:
            store_facts.require(self.before.profile, embedded.signature)
            vectors.check(embedded)
            if embedded.text_hash == row.text_hash and embedded.pieces:
                draft.embedded = embedded

    def _weigh(self, change: RecordEvidence | ChangeState | Carry) -> None:
        match change:
            case RecordEvidence():
                self._remark(change)
            case ChangeState():
                self._settle(change)
            case Carry():
                self._carry(change)

    def _remark(self, change: RecordEvidence) -> None:
        draft = self._require(change.memory_id)
        prior, draft.strength = (
            draft.strength,
            cognition.after(draft.strength, change.evidence, change.at, change.amount),
        )
        draft.remarked = True
        self._note(
            REMARKED,
            change.at,
            draft.memory,
            evidence_payload(change, prior, draft.strength, draft.memory.suppression_count),
            around=(strengths.as_json(prior), strengths.as_json(draft.strength)),
        )

    def _settle(self, change: ChangeState) -> None:
        draft = self._require(change.memory_id)
        draft.strength = cognition.settled(draft.strength, change.at)
        draft.remarked = True
        payload = {"from": change.before.value, "to": change.after.value, "reason": change.reason}
        self._note(STATE, change.at, draft.memory, payload)

    def _carry(self, change: Carry) -> None:
        draft = self._require(change.memory_id)
        payload = carried(change.strength)
        draft.strength = replace(carried_strength(payload), curve=self.curve)
        draft.remarked = True
        self._note(CARRIED, change.at, draft.memory, payload)

    def _tune(self, change: Tune) -> None:
        check_tune(change, self.access)
        self.curve = change.w20
        for draft in self.drafts.values():
            draft.strength = replace(draft.strength, curve=change.w20)
        self._note(TUNED, change.at, None, {"w20": change.w20})

    def _file(self, change: Put | Drop) -> None:
        if isinstance(change, Drop):
            gone = self.filing.drop(change, self._memory)
            self._note(DROPPED, change.at, gone, {"kind": gone.kind, "id": gone.id})
            return
        for memory_id in change.document.cites:
            self._require(memory_id)
        made = self.filing.put(change)
        if change.logged:
            self._note(PUT, made.updated_at, made, {"kind": made.kind, "id": made.id})
        else:
            self.clock = tick(self.clock, made.updated_at)
        self.filing.stamped(made, (self.clock, self.node))

    def _unlink(self, change: Unlink) -> None:
        source, target = self._require(change.source_id), self._require(change.target_id)
        self.wiring.unlink((source.key, target.key, change.kind), change)
        payload = {"target": change.target_id, "kind": change.kind}
        self._note(UNLINKED, change.at, source.memory, payload)

    def _link(self, change: Link) -> None:
        edge = change.edge
        edges.check(edge)
        source, target = self._require(edge.source_id), self._require(edge.target_id)
        self.wiring.link((source.key, target.key, edge.kind), edge)
        payload = {"target": edge.target_id, "kind": edge.kind, "weight": edge.weight}
        self._note(LINKED, edge.created_at, source.memory, payload)

    def _forget(self, change: Forget) -> None:
        draft = self._require(change.memory_id)
        scope = draft.memory.scope
        del self.drafts[change.memory_id]
        self.forgotten.append(draft)
        self.buried.append(history.EndedMemory(memory_id=change.memory_id, scope=scope, at=change.at))
        self.wiring.forget(draft.key)
        self.filing.forget(change.memory_id)
        self._note(DELETED, change.at, draft.memory, {"reason": change.reason})

    def _note(
        self,
        kind: str,
        at: datetime,
        subject: Memory | Document | None,
        payload: Mapping[str, Any] = NO_METADATA,
        around: tuple[str, str] | None = None,
    ) -> None:
        """Note an event; `around` are the strengths before and after a remark."""
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
        draft = self.drafts.get(memory_id)
        return None if draft is None else draft.memory

    def _require(self, memory_id: str) -> PendingMemory:
        draft = self.drafts.get(memory_id)
        if draft is None or not self.access.allows(draft.memory):
            raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
        return draft

    def _check_writable(self, memory: Memory) -> None:
        if not self.access.allows(memory):
            raise Forbidden(
                f"This caller may not write into the scope {memory.scope}.", details={"scope": memory.scope}
            )


def _changed_fields(old: Memory, new: Memory) -> list[str]:
    names = [one.name for one in fields(Memory) if one.name not in UNLOGGED_FIELDS]
    return sorted(name for name in names if getattr(old, name) != getattr(new, name))
