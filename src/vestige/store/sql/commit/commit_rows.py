"""Pending rows of a commit: memories, documents and edges to write or remove."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from vestige.cognition.text.analyser import text_hash
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, NotFound
from vestige.core.models import Access, Edge, Memory, Revision, Strength, covers
from vestige.store.contract.changes import Change, Drop, Embedded, Put, Unlink
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.rows import documents, edges, history, memories, notices, store_facts
from vestige.store.sql.rows.documents import Name
from vestige.store.sql.rows.edges import EdgeKey
from vestige.store.sql.search import index_rows, vectors


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
    embedded: Embedded | None = None
    lost_vectors: bool = False
    reweighed: bool = False
    past: list[Revision] = field(default_factory=list)


def row_of(memory: Memory, fingerprints: frozenset[str]) -> memories.WrittenMemory:
    """The row of a memory."""
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
    index_rows.put_words(db, {one.key: one.analysis for one in worded if one.analysis is not None}, surfaces)
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


# -- documents


@dataclass(slots=True, kw_only=True)
class PendingDocuments:
    """The documents that a commit touches: as they were, and (None: gone) as they will be."""

    access: Access
    known: Mapping[Name, Document]
    after: dict[Name, Document | None] = field(default_factory=dict)
    stamps: dict[Name, documents.PutStamp] = field(default_factory=dict)

    @classmethod
    def begin(cls, db: Database, changes: Iterable[Change], access: Access) -> "PendingDocuments":
        """Load what the changes touch."""
        return cls(access=access, known=documents.stored(db, {name for c in changes for name in _named(c)}))

    def cited(self) -> list[str]:
        """The memories that the known documents cite: they decide who has access to them."""
        return [memory_id for one in self.known.values() for memory_id in one.cites]

    def put(self, change: Put) -> Document:
        """Put a document; the caller has checked access to the memories it cites."""
        given, name = change.document, (change.document.kind, change.document.id)
        self._check_writable(given)
        present = self._present(name)
        version = 0 if present is None else present.version
        if given.version != version + 1:
            raise Conflict(
                f"The {given.kind} {given.id} is at version {version}; {given.version} cannot follow it.",
                hint="Load it again and repeat the change.",
                details={"kind": given.kind, "id": given.id, "version": version},
            )
        made = given if present is None else replace(given, created_at=present.created_at)
        self.after[name] = made
        return made

    def stamped(self, made: Document, stamp: documents.PutStamp) -> None:
        """Note the stamp of a document that was put."""
        self.stamps[made.kind, made.id] = stamp

    def drop(self, change: Drop, memory_of: Callable[[str], Memory | None]) -> Document:
        """Mark a document as gone."""
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
        """Write the documents."""
        documents.drop(db, [name for name, one in self.after.items() if one is None], surfaces)
        for name, one in self.after.items():
            if one is not None:
                cited = [key_of(memory_id) for memory_id in dict.fromkeys(one.cites)]
                documents.put(db, one, self.stamps[name], cited)

    def _present(self, name: Name) -> Document | None:
        return self.after[name] if name in self.after else self.known.get(name)

    def _is_accessible(self, document: Document, memory_of: Callable[[str], Memory | None]) -> bool:
        if not self._covered(document.scope) or (self.access.domains is not None and not document.cites):
            return False
        cited = [memory_of(memory_id) for memory_id in document.cites]
        return all(memory is not None and self.access.allows(memory) for memory in cited)

    def _check_writable(self, document: Document) -> None:
        if not self._covered(document.scope) or (self.access.domains is not None and not document.cites):
            raise Forbidden(
                f"This caller may not write into the scope {document.scope}.",
                details={"scope": document.scope},
            )

    def _covered(self, scope: str) -> bool:
        return self.access.scopes is None or any(covers(one, scope) for one in self.access.scopes)


def _named(change: Change) -> Iterable[Name]:
    if isinstance(change, Put):
        return [(change.document.kind, change.document.id)]
    return [(change.kind, change.id)] if isinstance(change, Drop) else []


# -- edges


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An edge that the commit removes; `fresh` when the same commit created it."""

    change: Unlink
    fresh: bool


@dataclass(slots=True, kw_only=True)
class PendingEdges:
    """The edges that a commit creates or gives a new weight, and those it removes before."""

    made: dict[EdgeKey, Edge] = field(default_factory=dict)
    ended: dict[EdgeKey, Ended] = field(default_factory=dict)

    def link(self, key: EdgeKey, edge: Edge) -> None:
        """Create an edge or give it a new weight."""
        known = self.made.get(key)
        self.made[key] = edge if known is None else replace(known, weight=edge.weight)

    def unlink(self, key: EdgeKey, change: Unlink) -> None:
        """Remove an edge; whether the store has it shows when it is written."""
        fresh = self.made.pop(key, None) is not None
        if key in self.ended and not fresh:
            raise _no_edge(change)
        self.ended.setdefault(key, Ended(change=change, fresh=fresh))

    def forget(self, key: int) -> None:
        """Drop edges of this commit at a memory that it deletes."""
        self.made = {ends: edge for ends, edge in self.made.items() if key not in ends[:2]}

    def write(self, db: Database) -> None:
        """Remove edges, then write the new ones."""
        for key, ended in self.ended.items():
            if not edges.delete(db, key) and not ended.fresh:
                raise _no_edge(ended.change)
        edges.put(db, self.made)


def _no_edge(change: Unlink) -> NotFound:
    return NotFound(
        f"There is no {change.kind} link from {change.source_id} to {change.target_id}.",
        details={"source": change.source_id, "target": change.target_id, "kind": change.kind},
    )
