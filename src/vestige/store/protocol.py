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
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vestige.embed.protocol import Signature
from vestige.errors import ModelMismatch
from vestige.models import (
    ANYTHING,
    NO_METADATA,
    Access,
    Edge,
    Evidence,
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
from vestige.store.logquery import LogQuery
from vestige.store.pool import POSTINGS_BUDGET, Pool, Probe, Reworded, Voices, Worded

REMARKED = "memory.remarked"
LINKED = "edge.linked"
"""The two kinds of event that are looked for in the log, not only shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The vector of characters `start`..`end` of a memory's searchable text."""

    start: int
    end: int
    vector: NDArray[np.float32]
    tokens: "Tokens | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The token states of a piece, one sign bit per dimension (`numpy.packbits` of `state > 0`), and for
    each token whether it stands in a question."""

    bits: NDArray[np.uint8]
    asked: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The vectors of one memory, guarded by the hash of the text they were made from.

    `text_hash` is `cognition.text.text_hash(memory)`. A store drops vectors whose hash is not the
    memory's present one, and refuses (ModelMismatch) those of another signature than its own.
    """

    signature: Signature
    text_hash: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """A new memory, encoded at its `created_at`. An id that exists, or existed, is a Conflict."""

    memory: Memory
    embedded: Embedded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """A memory's next revision; the present one moves to its history.

    `memory.revision` must be the present revision + 1, else Conflict (load again and retry).
    `created_at` stays what it was. Vectors are kept while the text hash is the same. The earlier
    revision is kept as recorded from its `updated_at` until the new one's, ended by `reason`.
    """

    memory: Memory
    reason: str
    embedded: Embedded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """Evidence about a memory. Its strength is folded forward inside the transaction."""

    memory_id: str
    evidence: Evidence
    at: datetime
    details: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An edge, created or given a new weight (`created_at` stays). Both ends must exist; a loop is
    InvalidInput."""

    edge: Edge


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """The end of a memory: text, revisions, phrasings, vectors, lexical rows and edges go, and a
    tombstone without content stays. Its events stay too; they never held text. Claims whose answer
    quotes it go as well."""

    memory_id: str
    at: datetime
    reason: str


Change = Add | Revise | Remark | Link | Forget


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An idempotency key with the digest of its request and the answer given to it."""

    key: str
    digest: str
    answer: str
    at: datetime


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
        `weight`), `memory.deleted` (`reason`). A change made earlier in the list is seen by later
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
        """Counts. `due` are true and due at `now`; `retentions` holds every memory's retention at `now`,
        `accessibilities` what its suppression leaves of it (`cognition.strength.accessibility`), both
        ascending."""

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        """Every tag with the number of memories that carry it."""

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

    def claimed(self, key: str) -> Claim | None:
        """The claim made under this key, or None."""

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        """For each `cognition.text.fingerprint` known in exactly this scope, the id of the oldest
        memory that carries it (in its content or a phrasing) and was true at `valid_at`."""

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
        two members on average is a thread of its own. A suppressed memory is in no thread.
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
        memories took them. One with a `memory.remarked` event past it keeps its present strength,
        which holds that evidence while the replayed one does not."""

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
