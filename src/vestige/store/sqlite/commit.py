"""One commit: text is analysed before the transaction, changes are applied to a draft of the memories
they touch, and the draft is written with one statement per table."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

from vestige.checks import check_label
from vestige.cognition import strength as cognition
from vestige.cognition.text import text_hash
from vestige.errors import Conflict, Forbidden, NotFound
from vestige.models import ROOT_SCOPE, Access, LogEvent, Memory, Revision, Strength
from vestige.store.changes import (
    LINKED,
    REMARKED,
    STATE,
    TUNED,
    UNLINKED,
    Add,
    Change,
    Drop,
    Embedded,
    Forget,
    Link,
    Put,
    Remark,
    Revise,
    Settle,
    Tune,
    Unlink,
    about,
    check_tune,
    told,
)
from vestige.store.sqlite import (
    documents,
    graph,
    history,
    log,
    memories,
    places,
    registry,
    reviews,
    segments,
    vectors,
    words,
)
from vestige.store.sqlite.filing import Filing
from vestige.store.sqlite.wiring import Wiring

UNTOLD_FIELDS = ("revision", "updated_at")  # they change with every revision


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """An addition or revision with what is derived from its memory's text."""

    change: Add | Revise
    row: memories.Row
    analysis: words.Analysis


Step = Written | Remark | Link | Unlink | Settle | Tune | Put | Drop | Forget


@dataclass(slots=True, kw_only=True)
class Draft:
    """A memory as the commit leaves it, and what of it must be written."""

    key: int
    memory: Memory
    strength: Strength
    text_hash: str
    is_new: bool = False
    row: memories.Row | None = None
    analysis: words.Analysis | None = None
    embedded: Embedded | None = None
    lost_vectors: bool = False
    remarked: bool = False
    past: list[Revision] = field(default_factory=list)


def analyse(change: Change) -> Step:
    """Do the slow part that needs no database, before the write lock is taken."""
    if isinstance(change, Add | Revise):
        analysis = words.analyse(change.memory)
        return Written(change=change, row=row_of(change.memory, analysis.fingerprints), analysis=analysis)
    return change


def row_of(memory: Memory, fingerprints: frozenset[str]) -> memories.Row:
    """A memory as it is written."""
    return memories.Row(
        columns=memories.to_row(memory),
        text_hash=text_hash(memory),
        tags=memory.tags,
        fingerprints=fingerprints,
    )


@dataclass(slots=True, kw_only=True)
class Work:
    """The draft of one commit."""

    access: Access
    profile: registry.Profile | None
    next_key: int
    taken: set[str]
    drafts: dict[str, Draft]
    curve: float
    filing: Filing
    wiring: Wiring = field(default_factory=Wiring)
    forgotten: list[Draft] = field(default_factory=list)
    buried: list[history.Buried] = field(default_factory=list)
    entries: list[log.Entry] = field(default_factory=list)

    @classmethod
    def begin(cls, db: sqlite3.Connection, changes: Sequence[Change], access: Access) -> "Work":
        """Load what the changes touch."""
        filing = Filing.begin(db, changes, access)
        named = [memory_id for change in changes for memory_id in about(change)]
        touched = list(dict.fromkeys([*named, *filing.cited()]))
        known = memories.stored(db, touched)
        return cls(
            access=access,
            # Every search leaves remarks, and they need no vectors.
            profile=None if all(isinstance(one, Remark) for one in changes) else registry.profile(db),
            next_key=memories.next_key(db),
            taken=history.buried_among(db, touched) | known.keys(),
            curve=reviews.curve(db),
            filing=filing,
            drafts={
                memory_id: Draft(
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
            case Remark():
                self._remark(step)
            case Settle():
                self._settle(step)
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

    def write(self, db: sqlite3.Connection, node: str) -> list[LogEvent]:
        """Write the draft and the events."""
        living = list(self.drafts.values())
        worded = [one for one in living if one.row is not None]
        if worded:
            self._write_texts(db, worded)
        reviews.put(db, {one.key: one.strength for one in living if one.is_new or one.remarked})
        if any(entry.kind == TUNED for entry in self.entries):
            reviews.tune(db, self.curve)
        self.wiring.write(db)
        self.filing.write(db, lambda memory_id: self.drafts[memory_id].key)
        if self.forgotten:
            self._write_endings(db)
        return log.append(db, node, self.entries)

    def _write_texts(self, db: sqlite3.Connection, worded: Sequence[Draft]) -> None:
        """Write the memories that are new or revised, with all that is derived from their text."""
        memories.insert(db, {one.key: one.row for one in worded if one.is_new and one.row})
        memories.update(db, {one.key: one.row for one in worded if not one.is_new and one.row})
        words.put(db, {one.key: one.analysis for one in worded if one.analysis is not None})
        replaced = [one.key for one in worded if one.lost_vectors or (one.embedded and not one.is_new)]
        vectors.delete(db, replaced)
        vectors.write(db, self.profile, {one.key: one.embedded for one in worded if one.embedded})
        history.keep(db, [(one.key, past) for one in worded for past in one.past])

    def _write_endings(self, db: sqlite3.Connection) -> None:
        gone = [one for one in self.forgotten if not one.is_new]
        for one in gone:
            texts = {one.memory.content, *one.memory.phrasings} | history.texts(db, one.key)
            texts.update(text for past in one.past for text in (past.memory.content, *past.memory.phrasings))
            registry.drop_quoting(db, one.key, texts)
        if gone:
            keys = [one.key for one in gone]
            documents.drop_citing(db, keys)
            segments.unlist(db, keys)
            vectors.delete(db, keys)
            words.delete(db, keys)
            memories.delete(db, keys)
        history.bury(db, self.buried)

    def _add(self, change: Add, written: Written) -> None:
        memory = change.memory
        check_label("id", memory.id)
        self._check_writable(memory)
        if memory.id in self.taken:
            raise Conflict(
                f"The id {memory.id} is already taken.",
                hint="Ids are never used twice, not even after a deletion.",
                details={"memory_id": memory.id},
            )
        draft = Draft(
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
        self.entries.append(
            log.Entry(at=memory.created_at, kind="memory.created", memory_id=memory.id, scope=memory.scope)
        )

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
            written = replace(written, row=row_of(new, written.analysis.fingerprints))
        draft.past.append(
            Revision(memory=old, recorded_at=old.updated_at, ended_at=new.updated_at, reason=change.reason)
        )
        draft.memory = new
        changed = _changed_fields(old, new)
        self._take_text(draft, written, moved=not places.MADE_FROM.isdisjoint(changed))
        payload = {"fields": changed, "reason": change.reason}
        self.entries.append(
            log.Entry(
                at=new.updated_at,
                kind="memory.revised",
                memory_id=new.id,
                scope=new.scope,
                payload=payload,
            )
        )

    def _take_text(self, draft: Draft, written: Written, *, moved: bool) -> None:
        """Take over a memory's row, its lexical row if that can have changed, and the vectors that were
        made from its present text."""
        row, embedded = written.row, written.change.embedded
        if row.text_hash != draft.text_hash:
            draft.lost_vectors, draft.embedded = not draft.is_new, None
        if moved:
            draft.analysis = written.analysis
        draft.row, draft.text_hash = row, row.text_hash
        if embedded is not None:
            registry.require(self.profile, embedded.signature)
            vectors.check(embedded)
            if embedded.text_hash == row.text_hash and embedded.pieces:
                draft.embedded = embedded

    def _remark(self, change: Remark) -> None:
        draft = self._require(change.memory_id)
        prior, draft.strength = (
            draft.strength,
            cognition.after(draft.strength, change.evidence, change.at, change.amount),
        )
        draft.remarked = True
        self.entries.append(
            log.Entry(
                at=change.at,
                kind=REMARKED,
                memory_id=change.memory_id,
                scope=draft.memory.scope,
                payload=told(change, prior, draft.strength, draft.memory.suppression_count),
                prior=reviews.as_json(prior),
                new=reviews.as_json(draft.strength),
            )
        )

    def _settle(self, change: Settle) -> None:
        draft = self._require(change.memory_id)
        draft.strength = cognition.settled(draft.strength, change.at)
        draft.remarked = True
        payload = {"from": change.before.value, "to": change.after.value, "reason": change.reason}
        scope = draft.memory.scope
        self.entries.append(
            log.Entry(at=change.at, kind=STATE, memory_id=change.memory_id, scope=scope, payload=payload)
        )

    def _tune(self, change: Tune) -> None:
        check_tune(change, self.access)
        self.curve = change.w20
        for draft in self.drafts.values():
            draft.strength = replace(draft.strength, curve=change.w20)
        payload = {"w20": change.w20}
        self.entries.append(
            log.Entry(at=change.at, kind=TUNED, memory_id=None, scope=ROOT_SCOPE, payload=payload)
        )

    def _file(self, change: Put | Drop) -> None:
        if isinstance(change, Put):
            for memory_id in change.document.cites:
                self._require(memory_id)
            entry = self.filing.put(change)
        else:
            entry = self.filing.drop(change, self._memory)
        if entry is not None:
            self.entries.append(entry)

    def _unlink(self, change: Unlink) -> None:
        source, target = self._require(change.source_id), self._require(change.target_id)
        self.wiring.unlink((source.key, target.key, change.kind), change)
        payload = {"target": change.target_id, "kind": change.kind}
        scope = source.memory.scope
        self.entries.append(
            log.Entry(at=change.at, kind=UNLINKED, memory_id=change.source_id, scope=scope, payload=payload)
        )

    def _link(self, change: Link) -> None:
        edge = change.edge
        graph.check(edge)
        source, target = self._require(edge.source_id), self._require(edge.target_id)
        self.wiring.link((source.key, target.key, edge.kind), edge)
        self.entries.append(
            log.Entry(
                at=edge.created_at,
                kind=LINKED,
                memory_id=edge.source_id,
                scope=source.memory.scope,
                payload={"target": edge.target_id, "kind": edge.kind, "weight": edge.weight},
            )
        )

    def _forget(self, change: Forget) -> None:
        draft = self._require(change.memory_id)
        scope = draft.memory.scope
        del self.drafts[change.memory_id]
        self.forgotten.append(draft)
        self.buried.append(history.Buried(memory_id=change.memory_id, scope=scope, at=change.at))
        self.wiring.forget(draft.key)
        self.filing.forget(change.memory_id)
        self.entries.append(
            log.Entry(
                at=change.at,
                kind="memory.deleted",
                memory_id=change.memory_id,
                scope=scope,
                payload={"reason": change.reason},
            )
        )

    def _memory(self, memory_id: str) -> Memory | None:
        draft = self.drafts.get(memory_id)
        return None if draft is None else draft.memory

    def _require(self, memory_id: str) -> Draft:
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
    names = [one.name for one in fields(Memory) if one.name not in UNTOLD_FIELDS]
    return sorted(name for name in names if getattr(old, name) != getattr(new, name))
