"""The store contract. Every store obeys the same suite, `tests/store/test_contract_*.py`.

What holds for all methods:

- `access` says what the caller may reach. A memory outside it behaves exactly like one that does
  not exist: reads skip it, writes raise NotFound. Writing *into* a scope outside it is Forbidden.
- Ids are the caller's. Orders are total: ties go by id, ascending. Scores are higher-better. A
  negative limit or offset is InvalidInput, a limit of 0 an empty answer.
- Metadata, details and payloads are JSON, copied in and out; weights and vectors are finite.
- The store never embeds and has no clock: vectors and times are arguments.
- `commit` is the only way canonical data changes; it is one transaction. Other writes touch derived
  data only, and are ignored where the text they were derived from has changed.
- Driver errors never escape: they become StoreError and its children.
- Methods may be called from any thread. `close` ends the store; using it afterwards is StoreError.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vestige.documents import Document
from vestige.embed.protocol import Signature
from vestige.errors import ModelMismatch
from vestige.models import (
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
    Strength,
    Tombstone,
)
from vestige.store.changes import Change, Claim, Embedded
from vestige.store.logquery import LogQuery
from vestige.store.pool import POSTINGS_BUDGET, Pool, Probe, Reworded, Voices, Worded


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A memory with one arm's score; for vectors, the piece that matched best."""

    memory_id: str
    score: float
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How much of the vectors is in index files (`path` is None for a store that has none).

    Of `vectors`, `indexed` are in `segments` files of `size_bytes`, beside `dead` ones; the others are read
    from the store itself. `problems` says by name which files are not used, and why.
    """

    path: str | None = None
    vectors: int
    segments: int = 0
    indexed: int = 0
    dead: int = 0
    size_bytes: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)


def other_model(held: Signature, offered: Signature) -> ModelMismatch:
    """Every store's refusal of vectors of another signature, with what to do."""
    return ModelMismatch(
        f"This store holds vectors of {held.profile}, not of {offered.profile}.",
        hint=f"Set the embeddings back to {held.name}, or run `vestige rebuild --vectors` to embed every "
        f"memory with {offered.name}.",
        details={"held": held.profile, "offered": offered.profile},
    )


class MemoryStore(Protocol):
    """Keeps memories, their strength, history, links, words and vectors."""

    @property
    def node(self) -> str:
        """This installation's id: a copied store gets a new one when it is first opened."""

    @property
    def read_only(self) -> bool:
        """Whether writes are impossible here (read-only media)."""

    # -- canonical writes ------------------------------------------------------------------------

    def commit(
        self, changes: Sequence[Change], *, access: Access, claim: Claim | None = None
    ) -> list[LogEvent]:
        """Apply all changes in order, or none, in one transaction; the events logged for them.

        Kinds logged: `memory.created`, `memory.revised` (payload `fields`: names of what changed,
        `reason`), `memory.remarked` (`evidence`, `details`), `edge.linked` (`target`, `kind`,
        `weight`), `edge.unlinked` (`target`, `kind`), `memory.state` (`from`, `to`, `reason`),
        `curve.tuned` (`w20`; no memory),
        `document.put` and `document.dropped` (`kind`, `id`; no memory), `memory.deleted` (`reason`). A remark
        tells its `amount` when it is not 1, and `state` (from, to) when it changed the memory's state. An
        event of a document has the document's scope. A change made earlier in the list is seen by later
        ones. A claim whose key exists raises IdempotencyConflict and writes nothing. An event's scope
        is its memory's after the change; milliseconds in `clock` end in the year 4199.
        """

    # -- reading ---------------------------------------------------------------------------------

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
        """A memory's earlier revisions, oldest first; NotFound for an unknown id."""

    def earlier(self, memory_ids: Sequence[str], moment: datetime, *, access: Access) -> dict[str, Memory]:
        """Those of these memories that were revised after a moment, as they were then: the last revision
        by then, or the first where even that has a later time. Others and unknown ones are left out."""

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
        and be in reach, because it tells the target's id.
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

    # -- search arms -----------------------------------------------------------------------------
    # They search present wordings: with `known_at`, a memory whose `cognition.text.searchable` was another
    # then is found by none of them. `reworded` gives it.

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        """What passes the filter and was worded otherwise at `where.known_at` (none without it), as it was
        then, the one revised last first, ties by id; with the statistics of `terms`, as `lexical` has them
        for memories by themselves."""

    def lexical(
        self,
        terms: Sequence[str],
        where: Filter,
        *,
        access: Access,
        limit: int,
        postings: int | None = POSTINGS_BUDGET,
    ) -> list[Worded]:
        """The best memories by BM25 with their neighbours (`window`), then `own`, then id.

        A memory's own terms are those of `cognition.text.memory_terms`. Its window adds those of the
        memory before and after it in its thread; a thread adds up its members. On each level the score is
        Σ idf·tf·(k1+1)/(tf + k1·(1 − b + b·len/avglen)) with k1 = 1.2, b = 0.75 and
        idf = max(1e-6, ln((N − df + .5)/(df + .5))); N, df and avglen are of the whole store at that level
        (memories; memories with their windows; threads), whatever the filter, so that a filter never
        changes a score. A term counts as often as it is given; one ending in `*` matches as a prefix.
        No terms: no results. Of the distinct terms the first `bm25.MOST_COUNTED` count, and of the prefixes
        the `MOST_PREFIXES` longest; of those that occur, the `MOST_TERMS` rarest are looked up.

        With `postings` set, terms are taken from the rarest on (by df, then by term) while the number of
        their occurrences fits, the first one in any case, and the others are left out.

        Neighbours share a thread: the same scope, thread (where none is given, source, if there is a
        position), domains and validity window. Members are ordered by position (those without come last),
        then by arrival. Where the members of a thread have different sources, each source with at least
        two members on average is a thread of its own. A suppressed or archived memory is in
        no thread.
        """

    def nearest(
        self,
        vectors: NDArray[np.float32],
        signature: Signature,
        where: Filter,
        *,
        access: Access,
        limit: int,
    ) -> list[list[Scored]]:
        """For each row of `vectors`, the memories whose best piece has the highest cosine, exactly.

        The filter is applied before the limit. A signature other than the store's is ModelMismatch;
        a store without vectors answers with empty lists.
        """

    def vectors(
        self, memory_ids: Sequence[str], signature: Signature, *, access: Access
    ) -> dict[str, NDArray[np.float32]]:
        """The vectors of these memories, a row for each piece in the order of the text; those without any are
        left out. A signature other than the store's is ModelMismatch."""

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        """Which of these names (`form.name_hash`) speak in a talk in reach, and whether any note is in reach.
        It may say that there are notes where there are none."""

    def gather(self, probe: Probe, *, access: Access) -> Pool:
        """The candidates for a search: the union of what each arm finds, from one snapshot.

        The arms are `lexical` and `nearest` (above `least_cosine`), and the literals: memories whose
        `cognition.text.memory_terms` hold all `cognition.verbatim.literal_terms` of a literal and whose
        searchable text or one tag holds the literal itself, letter case and runs of white space aside, or
        whose id or source it is; those with more literals first, then by id. Where more than
        `verbatim.COMMON` memories that pass the filter have all its terms, or its source, those are not
        found by it. A store may bound how much text it reads for literals. A probe without a vector, or a
        store without vectors, has no dense arm; vectors of another signature are ModelMismatch.
        """

    # -- derived data ----------------------------------------------------------------------------

    def signature(self) -> Signature | None:
        """The signature of the vectors held here, also after the last of them went; None before the
        first one was written."""

    def adopt(self, signature: Signature) -> None:
        """Make this the store's signature and drop the vectors of any other."""

    def unembedded(self, signature: Signature, *, limit: int) -> list[Memory]:
        """Memories without vectors of their present text, oldest first."""

    def put_vectors(self, embedded: Mapping[str, Embedded]) -> int:
        """Add vectors made after the fact; how many memories took them (stale ones do not)."""

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with those replayed from the log up to position `after`; how many
        memories took them. One with a `memory.remarked` or `memory.state` event past it keeps its present
        strength, which holds that evidence while the replayed one does not. Their curve stays the store's."""

    def rebuild_words(self) -> int:
        """Derive all lexical rows and term statistics again from the text; how many memories."""

    def index_status(self) -> IndexStatus:
        """What the index files hold; they are read through and checked."""

    def rebuild_index(self) -> IndexStatus:
        """Write again the index files that are damaged or mostly dead, and those that are missing."""

    # -- care ------------------------------------------------------------------------------------

    def backup(self, destination: Path) -> None:
        """Write a complete, verified copy to a path that does not exist yet, while others write."""

    def close(self) -> None:
        """Let go of everything this store opened. Safe to call twice."""
