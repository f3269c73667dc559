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
from vestige.store.merge.histories import Life


class StoreReads(Protocol):
    """Reading memories, their history, links, documents and the log."""

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        """The records in the order asked for; unknown ids are left out, repeats answered once."""

    def find(
        self, where: Filter, *, access: Access, order: Order = Order.NEWEST, limit: int, offset: int = 0
    ) -> list[Record]:
        """A page of records. NEWEST/OLDEST go by created_at, DUE by due_at (soonest first),
        RETENTION by retention at `where.now` (lowest first), which must be given."""

    def stream(self, where: Filter = ANYTHING, *, access: Access, batch: int = 500) -> Iterator[list[Record]]:
        """Every matching record in the order of arrival, a batch at a time. Records added while it
        runs may or may not appear; nothing appears twice."""

    def count(self, where: Filter, *, access: Access) -> int:
        """How many records match."""

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        """Counts of what is not archived; of edges, all. `due` are true and due at `now`; `retentions` holds
        every memory's retention at `now`, `accessibilities` what its suppression leaves of it
        (`cognition.strength.accessibility`), both ascending."""

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        """Every tag with the number of memories that carry it and are not archived."""

    def history(self, memory_id: str, *, access: Access) -> list[Revision]:
        """A memory's earlier revisions that are in reach, oldest first; NotFound for an unknown id."""

    def earlier(self, memory_ids: Sequence[str], moment: datetime, *, access: Access) -> dict[str, Memory]:
        """Those of these memories that were revised after a moment, as they were then: the last revision
        by then, or the first where even that is later. Others, and those out of reach then, are left out."""

    def tombstone(self, memory_id: str, *, access: Access) -> Tombstone | None:
        """What is left of a deleted memory, or None; its domains are gone, so an access limited by
        domains sees none."""

    def log(
        self, *, access: Access, memory_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEvent]:
        """Logged events with position > `after`, in commit order, all of them for an unlimited access.

        For a limited one the event's own scope must be covered, and a memory that exists must be in
        reach as it is now. Of a memory that no longer exists only the scope is known: with
        `access.domains` set, its events are left out. `edge.linked` also needs its target to exist
        and be in reach, because it tells the target's id, and an event of a document that document.
        """

    def latest(self, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
        """Those of the events that `log` lets this access read which are asked for, the last one first."""

    def edges(
        self, memory_ids: Sequence[str], *, access: Access, among: bool = False, heaviest: int | None = None
    ) -> list[Edge]:
        """Edges that touch any of the ids, in either direction, with both ends in reach; sorted by
        (source, target, kind). `among`: only those between two of the ids. `heaviest`: only so many, by
        weight, ties in that order."""

    def stream_edges(
        self, kinds: Sequence[str] | None = None, *, access: Access, batch: int = 1000
    ) -> Iterator[list[Edge]]:
        """Every edge of these kinds (None: of any) with both ends in reach, a batch at a time, each seen at
        most once. Edges that come or go while it runs may or may not appear."""

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
        its body) narrow it down; `scope` and `inherited` mean what they do in a `Filter`. A document is in
        reach when its scope is and every memory it cites; an access limited by domains reaches none that
        cites nothing.
        """

    def claimed(self, key: str) -> Claim | None:
        """The claim made under this key, or None."""

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        """For each `cognition.text.fingerprint` known in exactly this scope, the id of the oldest memory
        that carries it (in its content or a phrasing), was true at `valid_at` and is not archived."""

    def lives(
        self, where: Filter | None = None, *, access: Access, vectors: bool = False, batch: int = 500
    ) -> Iterator[list[Life]]:
        """Everything canonical, of one moment, a batch at a time: the curve, then memories by id, edges by
        (source, target, kind), documents by (kind, id). `vectors` adds those of present texts, with the
        tokens of all pieces of a memory at the first one.

        With a filter or a limited access: only memories that pass, were always in reach and superseded by
        nothing beyond it (their past would be told), the edges between them and the documents in reach that
        cite nothing else; no deleted ones, no curve, no edges that are gone and, with a filter, no document
        that cites nothing. Documents of an installation's own (`documents.LOCAL`), claims and keys never are.
        """
