"""Commits changes: text is analysed before the transaction, changes are applied to pending rows, and those
are written with one statement per table."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from vestige.cognition.fsrs import strength as fsrs_strength
from vestige.cognition.text.analyser import text_hash
from vestige.core.clock import tick
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, NotFound
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    NO_METADATA,
    ROOT_SCOPE,
    Access,
    Edge,
    LogEvent,
    Memory,
    Revision,
    Strength,
    covers,
)
from vestige.store.contract import changes as contract
from vestige.store.contract.memberships import revised_fields
from vestige.store.merge.strength_log import carried, carried_strength
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.rows import documents, edges, history, memories, notices, store_facts, strengths
from vestige.store.sql.rows.documents import Name
from vestige.store.sql.rows.edges import EdgeKey
from vestige.store.sql.rows.store_facts import StoreHead
from vestige.store.sql.search import index_rows, vectors

# -- Pending rows of a commit: memories, documents and edges to write or remove


@dataclass(slots=True, kw_only=True)
class PendingMemory:
    """A memory as the commit leaves it, with the rows to write; `past` are the revisions to keep."""

    key: int
    memory: Memory
    strength: Strength
    text_hash: str
    is_new: bool = False
    row: memories.WrittenMemory | None = None
    analysis: index_rows.Analysis | None = None
    embedded: contract.Embedded | None = None
    lost_vectors: bool = False
    reweighed: bool = False
    past: list[Revision] = field(default_factory=list)

    @classmethod
    def known(cls, stored: memories.Stored) -> "PendingMemory":
        return cls(key=stored.key, memory=stored.memory, strength=stored.strength, text_hash=stored.text_hash)


def row_of(memory: Memory, fingerprints: frozenset[str]) -> memories.WrittenMemory:
    return memories.WrittenMemory(
        columns=memories.to_row(memory),
        text_hash=text_hash(memory),
        tags=memory.tags,
        fingerprints=fingerprints,
    )


def write_texts(
    db: Database, profile: store_facts.Profile | None, after: Sequence[PendingMemory], surfaces: Surfaces
) -> None:
    """Write the new and changed memories, with everything derived from their text."""
    worded = [one for one in after if one.row is not None]
    if not worded:
        return
    memories.insert(db, {one.key: one.row for one in worded if one.is_new and one.row})
    memories.update(db, {one.key: one.row for one in worded if not one.is_new and one.row})
    for new in (True, False):
        analysed = {one.key: one.analysis for one in worded if one.analysis and one.is_new == new}
        index_rows.put_words(db, analysed, surfaces, new=new)
    vectors.delete(db, [one.key for one in worded if one.lost_vectors])
    if profile is not None:
        again = [one.key for one in worded if one.embedded and not one.is_new]
        vectors.delete(db, again, profile)
    vectors.write(db, profile, {one.key: one.embedded for one in worded if one.embedded})
    history.keep(db, [(one.key, past) for one in worded for past in one.past])


def write_endings(db: Database, forgotten: Sequence[PendingMemory], surfaces: Surfaces) -> None:
    """Remove memories with everything that is derived from their text or quotes it."""
    if not forgotten:
        return
    gone = [one for one in forgotten if not one.is_new]
    surfaces.erase(db, [one.key for one in gone])
    notices.clear(db)
    for one in gone:
        texts = {one.memory.content, *one.memory.phrasings} | history.texts(db, one.key)
        texts.update(text for past in one.past for text in (past.memory.content, *past.memory.phrasings))
        store_facts.drop_quoting(db, one.key, texts)
    if gone:
        keys = [one.key for one in gone]
        documents.drop_citing(db, keys)
        vectors.delete(db, keys)
        index_rows.delete(db, keys, surfaces)
        memories.delete(db, keys)


# -- Document rows of a commit


@dataclass(slots=True, kw_only=True)
class PendingDocuments:
    """The documents that a commit touches: as they were, and (None: gone) as they will be."""

    access: Access
    known: Mapping[Name, Document]
    after: dict[Name, Document | None] = field(default_factory=dict)
    stamps: dict[Name, documents.PutStamp] = field(default_factory=dict)

    @classmethod
    def begin(cls, db: Database, changes: Iterable[contract.Change], access: Access) -> "PendingDocuments":
        return cls(access=access, known=documents.stored(db, {name for c in changes for name in _named(c)}))

    def cited(self) -> list[str]:
        """The memories that the known documents cite: they decide who has access to them."""
        return [memory_id for one in self.known.values() for memory_id in one.cites]

    def put(self, change: contract.Put) -> Document:
        """Put a document; the caller has checked access to the memories it cites."""
        given, name = change.document, (change.document.kind, change.document.id)
        if not self._is_writable(given):
            raise _not_writable(given.scope)
        present = self._present(name)
        version = 0 if present is None else present.version
        if given.version != version + 1:
            raise Conflict(
                f"The {given.kind} {given.id} is at version {version}; {given.version} cannot follow it.",
                hint="Load it again and repeat the change.",
                details={"kind": given.kind, "id": given.id, "version": version},
            )
        since = given.created_at if present is None else present.created_at
        made = given if given.created_at == since else replace(given, created_at=since)
        self.after[name] = made
        return made

    def drop(self, change: contract.Drop, memory_of: Callable[[str], Memory | None]) -> Document:
        present = self._present((change.kind, change.id))
        if present is None or not self._is_accessible(present, memory_of):
            raise NotFound(f"There is no {change.kind} {change.id}.", details={"id": change.id})
        self.after[change.kind, change.id] = None
        return present

    def forget(self, memory_id: str) -> None:
        """Drop documents of this commit that cite a memory deleted in it."""
        for name, one in self.after.items():
            if one is not None and memory_id in one.cites:
                self.after[name] = None

    def write(self, db: Database, key_of: Callable[[str], int], surfaces: Surfaces) -> None:
        documents.drop(db, [name for name, one in self.after.items() if one is None], surfaces)
        for name, one in self.after.items():
            if one is not None:
                before = self.known.get(name)
                same = before is not None and before.cites == one.cites
                cited = None if same else [key_of(memory_id) for memory_id in dict.fromkeys(one.cites)]
                documents.put(db, one, self.stamps[name], cited)

    def _present(self, name: Name) -> Document | None:
        return self.after[name] if name in self.after else self.known.get(name)

    def _is_accessible(self, document: Document, memory_of: Callable[[str], Memory | None]) -> bool:
        if not self._is_writable(document):
            return False
        cited = [memory_of(memory_id) for memory_id in document.cites]
        return all(memory is not None and self.access.allows(memory) for memory in cited)

    def _is_writable(self, document: Document) -> bool:
        scopes = self.access.scopes
        covered = scopes is None or any(covers(one, document.scope) for one in scopes)
        return covered and (self.access.domains is None or bool(document.cites))


def _not_writable(scope: str) -> Forbidden:
    return Forbidden(f"This caller may not write into the scope {scope}.", details={"scope": scope})


def _named(change: contract.Change) -> Iterable[Name]:
    if isinstance(change, contract.Put):
        return [(change.document.kind, change.document.id)]
    return [(change.kind, change.id)] if isinstance(change, contract.Drop) else []


# -- Edge rows of a commit


@dataclass(slots=True, kw_only=True)
class PendingEdges:
    """The edges that a commit creates or gives a new weight, and those it removes (None: a new one)."""

    made: dict[EdgeKey, Edge] = field(default_factory=dict)
    ended: dict[EdgeKey, contract.Unlink | None] = field(default_factory=dict)

    def link(self, key: EdgeKey, edge: Edge) -> None:
        known = self.made.get(key)
        self.made[key] = edge if known is None else replace(known, weight=edge.weight)

    def unlink(self, key: EdgeKey, change: contract.Unlink) -> None:
        """Remove an edge; whether the store has it shows when it is written."""
        fresh = self.made.pop(key, None) is not None
        if key in self.ended and not fresh:
            raise _no_edge(change)
        self.ended.setdefault(key, None if fresh else change)

    def forget(self, key: int) -> None:
        """Drop edges of this commit at a memory that it deletes."""
        self.made = {ends: edge for ends, edge in self.made.items() if key not in ends[:2]}

    def write(self, db: Database) -> None:
        for key, change in self.ended.items():
            if not edges.delete(db, key) and change is not None:
                raise _no_edge(change)
        edges.put(db, self.made)


def _no_edge(change: contract.Unlink) -> NotFound:
    return NotFound(
        f"There is no {change.kind} link from {change.source_id} to {change.target_id}.",
        details={"source": change.source_id, "target": change.target_id, "kind": change.kind},
    )


# -- One commit: its changes, and the events they make


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An addition or revision with the rows derived from its text."""

    change: contract.Add | contract.Revise
    row: memories.WrittenMemory
    analysis: index_rows.Analysis


Step = Written | contract.Change


def analyse(change: contract.Change) -> Step:
    """Do the slow part that needs no database, before the write lock is taken."""
    if isinstance(change, contract.Add | contract.Revise):
        analysis = index_rows.analyse(change.memory)
        row = row_of(change.memory, analysis.fingerprints)
        return Written(change=change, row=row, analysis=analysis)
    return change


@dataclass(slots=True, kw_only=True)
class PendingCommit:
    """The pending rows of one commit. `clock` is its last reading."""

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
    entries: list[history.LogEntry] = field(default_factory=list)

    @classmethod
    def begin(
        cls, db: Database, changes: Sequence[contract.Change], access: Access, surfaces: Surfaces
    ) -> "PendingCommit":
        documents = PendingDocuments.begin(db, changes, access)
        named = [memory_id for change in changes for memory_id in contract.about(change)]
        touched = list(dict.fromkeys([*named, *documents.cited()]))
        # Every search records evidence, which needs less.
        adds = any(isinstance(one, contract.Add) for one in changes)
        whole = adds or any(isinstance(one, contract.Revise | contract.Forget) for one in changes)
        # All are asked before the first answer is read: over a network they are one trip.
        rows, head = memories.ask_stored(db, touched, whole=whole), db.execute(store_facts.HEAD)
        last_key = surfaces.ask_last_key(db) if adds else None
        buried = history.ask_buried(db, touched) if adds else ()
        known, before = memories.stored_in(rows, whole=whole), store_facts.head_in(head)
        return cls(
            access=access,
            before=before,
            clock=before.clock,
            curve=before.curve,
            next_key=memories.next_key(last_key) if last_key else 0,
            surfaces=surfaces,
            taken={row[0] for row in buried} | known.keys() if adds else set(),
            documents=documents,
            pending_memories={name: PendingMemory.known(one) for name, one in known.items()},
        )

    def apply(self, step: Step) -> None:
        match step:
            case Written(change=contract.Add() as add):
                self._add(add, step)
            case Written(change=contract.Revise() as revise):
                self._revise(revise, step)
            case contract.RecordEvidence() | contract.ChangeState() | contract.Carry():
                self._weigh(step)
            case contract.Tune():
                self._tune(step)
            case contract.Link():
                self._link(step)
            case contract.Unlink():
                self._unlink(step)
            case contract.Put() | contract.Drop():
                self._file(step)
            case contract.Forget():
                self._forget(step)

    def write(self, db: Database) -> list[LogEvent]:
        living = list(self.pending_memories.values())
        write_texts(db, self.before.profile, living, self.surfaces)
        strengths.put(db, {one.key: one.strength for one in living if one.is_new or one.reweighed})
        if any(entry.kind == contract.TUNED for entry in self.entries):
            strengths.tune(db, self.curve)
        self.pending_edges.write(db)
        self.documents.write(db, lambda memory_id: self.pending_memories[memory_id].key, self.surfaces)
        write_endings(db, self.forgotten, self.surfaces)
        history.bury(db, self.buried)
        history.advance(db, self.clock)
        return history.append(
            db, self.before.node, self.entries, position=self.before.position, seq=self.before.seq
        )

    def _add(self, change: contract.Add, written: Written) -> None:
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
            strength=fsrs_strength.encode(memory.created_at, self.curve),
            text_hash="",
            is_new=True,
        )
        self.next_key += 1
        self.taken.add(memory.id)
        self.pending_memories[memory.id] = draft
        self._take_text(draft, written, moved=True)
        self._note(contract.CREATED, memory.created_at, memory)

    def _revise(self, change: contract.Revise, written: Written) -> None:
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
            written = replace(written, row=row_of(new, written.analysis.fingerprints))
        draft.past.append(
            Revision(memory=old, recorded_at=old.updated_at, ended_at=new.updated_at, reason=change.reason)
        )
        draft.memory = new
        self._take_text(draft, written, moved=index_rows.is_outdated(old, new))
        payload = {"fields": revised_fields(old, new), "reason": change.reason}
        self._note(contract.REVISED, new.updated_at, new, payload)

    def _take_text(self, draft: PendingMemory, written: Written, *, moved: bool) -> None:
        """Take over a memory's row, its lexical row if it can have changed, and the vectors of its present
        text."""
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

    def _weigh(self, change: contract.RecordEvidence | contract.ChangeState | contract.Carry) -> None:
        draft = self._require(change.memory_id)
        prior, around = draft.strength, None
        payload: Mapping[str, Any]
        match change:
            case contract.RecordEvidence():
                kind = contract.REMARKED
                draft.strength = fsrs_strength.after(prior, change.evidence, change.at, change.amount)
                around = (strengths.as_json(prior), strengths.as_json(draft.strength))
                suppressions = draft.memory.suppression_count
                payload = contract.evidence_payload(change, prior, draft.strength, suppressions)
            case contract.ChangeState():
                kind = contract.STATE
                draft.strength = fsrs_strength.settled(prior, change.at)
                payload = {"from": change.before.value, "to": change.after.value, "reason": change.reason}
            case contract.Carry():
                kind = contract.CARRIED
                payload = carried(change.strength)
                draft.strength = replace(carried_strength(payload), curve=self.curve)
        draft.reweighed = True
        self._note(kind, change.at, draft.memory, payload, around)

    def _tune(self, change: contract.Tune) -> None:
        contract.check_tune(change, self.access)
        self.curve = change.w20
        for draft in self.pending_memories.values():
            draft.strength = replace(draft.strength, curve=change.w20)
        self._note(contract.TUNED, change.at, None, {"w20": change.w20})

    def _file(self, change: contract.Put | contract.Drop) -> None:
        if isinstance(change, contract.Drop):
            gone = self.documents.drop(change, self._memory)
            self._note(contract.DROPPED, change.at, gone, {"kind": gone.kind, "id": gone.id})
            return
        for memory_id in change.document.cites:
            self._require(memory_id)
        made = self.documents.put(change)
        if change.logged:
            self._note(contract.PUT, made.updated_at, made, {"kind": made.kind, "id": made.id})
        else:
            self.clock = tick(self.clock, made.updated_at)
        self.documents.stamps[made.kind, made.id] = (self.clock, self.before.node)

    def _unlink(self, change: contract.Unlink) -> None:
        source, target = self._require(change.source_id), self._require(change.target_id)
        self.pending_edges.unlink((source.key, target.key, change.kind), change)
        payload = {"target": change.target_id, "kind": change.kind}
        self._note(contract.UNLINKED, change.at, source.memory, payload)

    def _link(self, change: contract.Link) -> None:
        edge = change.edge
        edges.check(edge)
        source, target = self._require(edge.source_id), self._require(edge.target_id)
        self.pending_edges.link((source.key, target.key, edge.kind), edge)
        payload = {"target": edge.target_id, "kind": edge.kind, "weight": edge.weight}
        self._note(contract.LINKED, edge.created_at, source.memory, payload)

    def _forget(self, change: contract.Forget) -> None:
        draft = self._require(change.memory_id)
        scope = draft.memory.scope
        del self.pending_memories[change.memory_id]
        self.forgotten.append(draft)
        self.buried.append(history.EndedMemory(memory_id=change.memory_id, scope=scope, at=change.at))
        self.pending_edges.forget(draft.key)
        self.documents.forget(change.memory_id)
        self._note(contract.DELETED, change.at, draft.memory, {"reason": change.reason})

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
            history.LogEntry(
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
        draft = self.pending_memories.get(memory_id)
        return None if draft is None else draft.memory

    def _require(self, memory_id: str) -> PendingMemory:
        draft = self.pending_memories.get(memory_id)
        if draft is None or not self.access.allows(draft.memory):
            raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
        return draft

    def _check_writable(self, memory: Memory) -> None:
        if not self.access.allows(memory):
            raise _not_writable(memory.scope)
