"""The documents of one commit, as it leaves them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from vestige.documents import Document
from vestige.errors import Conflict, Forbidden, NotFound
from vestige.models import Access, Memory, covers
from vestige.store.changes import Change, Drop, Put
from vestige.store.sql import documents
from vestige.store.sql.database import Database, Surfaces
from vestige.store.sql.documents import Name


@dataclass(slots=True, kw_only=True)
class Filing:
    """The documents a commit touches: as they were, and (None: gone) as they will be."""

    access: Access
    known: Mapping[Name, Document]
    drafts: dict[Name, Document | None] = field(default_factory=dict)
    stamps: dict[Name, documents.PutStamp] = field(default_factory=dict)

    @classmethod
    def begin(cls, db: Database, changes: Iterable[Change], access: Access) -> "Filing":
        """Load what the changes touch."""
        return cls(access=access, known=documents.stored(db, {name for c in changes for name in _named(c)}))

    def cited(self) -> list[str]:
        """The memories that the known documents cite: they decide who reaches them."""
        return [memory_id for one in self.known.values() for memory_id in one.cites]

    def put(self, change: Put) -> Document:
        """File a document; the memories it cites have been found in reach."""
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
        self.drafts[name] = made
        return made

    def stamped(self, made: Document, stamp: documents.PutStamp) -> None:
        """Note when a document was filed."""
        self.stamps[made.kind, made.id] = stamp

    def drop(self, change: Drop, memory_of: Callable[[str], Memory | None]) -> Document:
        """Mark a document as gone."""
        present = self._present((change.kind, change.id))
        if present is None or not self._reaches(present, memory_of):
            raise NotFound(f"There is no {change.kind} {change.id}.", details={"id": change.id})
        self.drafts[change.kind, change.id] = None
        return present

    def forget(self, memory_id: str) -> None:
        """What is filed in this commit and cites a memory that is deleted in it goes too."""
        for name, one in self.drafts.items():
            if one is not None and memory_id in one.cites:
                self.drafts[name] = None

    def write(self, db: Database, key_of: Callable[[str], int], surfaces: Surfaces) -> None:
        """Write the drafts."""
        documents.drop(db, [name for name, one in self.drafts.items() if one is None], surfaces)
        for name, one in self.drafts.items():
            if one is not None:
                cited = [key_of(memory_id) for memory_id in dict.fromkeys(one.cites)]
                documents.put(db, one, self.stamps[name], cited)

    def _present(self, name: Name) -> Document | None:
        return self.drafts[name] if name in self.drafts else self.known.get(name)

    def _reaches(self, document: Document, memory_of: Callable[[str], Memory | None]) -> bool:
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
