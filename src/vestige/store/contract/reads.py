"""The part of the store contract about reading."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Protocol

from vestige.core.documents import Document
from vestige.core.models import (
    ANYTHING,
    Access,
    Edge,
    Filter,
    LogEvent,
    Memory,
    Order,
    Record,
    Revision,
    StoreStats,
    Tombstone,
)
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.changes import Claim
from vestige.store.merge.histories import EntityHistory


class StoreReads(Protocol):
    """Reading memories, their history, links, documents and the log."""

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        """The records in the requested order; unknown ids are left out, repeats are returned once."""

    def find(
        self, where: Filter, *, access: Access, order: Order = Order.NEWEST, limit: int, offset: int = 0
    ) -> list[Record]:
        """A page of records. NEWEST/OLDEST go by created_at, DUE by due_at (soonest first),
        RETENTION by retention at `where.now` (lowest first), which must be given."""

    def stream(self, where: Filter = ANYTHING, *, access: Access, batch: int = 500) -> Iterator[list[Record]]:
        """Every matching record in the order of arrival, a batch at a time. Records added while it
        runs may or may not appear; nothing appears twice."""

    def count(self, where: Filter, *, access: Access) -> int:
        """The number of matching records."""

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        """Counts of memories that are not archived; of edges, all. `due` are valid and due at `now`;
        `retentions` holds every memory's retention at `now`, `accessibilities` the same after suppression
        (`cognition.fsrs.strength.accessibility`), both ascending."""

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        """Every tag with the number of memories that carry it and are not archived."""

    def history(self, memory_id: str, *, access: Access) -> list[Revision]:
        """A memory's accessible earlier revisions, oldest first; NotFound for an unknown id."""

    def earlier(self, memory_ids: Sequence[str], moment: datetime, *, access: Access) -> dict[str, Memory]:
        """The memories that were revised after a moment, in their state at that moment: the last revision by
        then, or the first where even that is later. Others, and those not accessible then, are left out."""

    def tombstone(self, memory_id: str, *, access: Access) -> Tombstone | None:
        """The tombstone of a deleted memory, or None; its domains are gone, so an access limited by domains
        gets None."""

    def log(
        self, *, access: Access, memory_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEvent]:
        """Logged events with position > `after`, in commit order, all of them for an unlimited access.

        For a limited one the event's own scope must be covered, and an existing memory must be accessible in
        its present state. Of a memory that no longer exists only the scope is known: with `access.domains`
        set, its events are left out. `edge.linked` also needs an existing, accessible target, because it
        holds the target's id, and an event of a document needs an accessible document.
        """

    def latest(self, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
        """The events that `log` returns for this access and that match the query, the last one first."""

    def edges(
        self, memory_ids: Sequence[str], *, access: Access, among: bool = False, heaviest: int | None = None
    ) -> list[Edge]:
        """Edges that touch any of the ids, in either direction, with both ends accessible; sorted by (source,
        target, kind). `among`: only those between two of the ids. `heaviest`: only this number, by weight,
        ties in that order."""

    def stream_edges(
        self, kinds: Sequence[str] | None = None, *, access: Access, batch: int = 1000
    ) -> Iterator[list[Edge]]:
        """Every edge of these kinds (None: of any) with both ends accessible, a batch at a time, each at most
        once. Edges that are added or removed while it runs may or may not appear."""

    def documents(
        self,
        kind: str,
        *,
        access: Access,
        ids: Sequence[str] | None = None,
        citing: Sequence[str] | None = None,
        terms: Sequence[str] | None = None,
        scope: str | None = None,
        inherited: bool = False,
        limit: int,
        offset: int = 0,
    ) -> list[Document]:
        """The documents of a kind, the one changed last first, ties by id.

        `ids`, `citing` (any of these memories) and `terms` (any of these is a name in the object `terms` of
        its body) filter; `scope` and `inherited` mean what they do in a `Filter`. A document is accessible
        when its scope is and every memory it cites; an access limited by domains excludes documents that cite
        nothing.
        """

    def claimed(self, key: str) -> Claim | None:
        """The claim made under this key, or None."""

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        """For each fingerprint (`cognition.text.analyser.fingerprint`) known in exactly this scope, the id of
        the oldest memory that carries it (in its content or a phrasing), was valid at `valid_at` and is not
        archived."""

    def histories(
        self, where: Filter | None = None, *, access: Access, vectors: bool = False, batch: int = 500
    ) -> Iterator[list[EntityHistory]]:
        """The histories of all entities, from one snapshot, a batch at a time: the curve, then memories by
        id, edges by (source, target, kind), documents by (kind, id). `vectors` adds those of present texts,
        with the tokens of all pieces of a memory at the first one.

        With a filter or a limited access: only memories that pass, were always accessible and were superseded
        by accessible memories only (their past would be exported), the edges between them and the accessible
        documents that cite nothing else; no deleted ones, no curve, no removed edges and, with a filter, no
        document without citations. Local documents (`documents.LOCAL`), claims and keys are never included.
        """
