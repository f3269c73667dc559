"""The store contract. Every store obeys the same suite, `tests/store/test_contract_*.py`.

What holds for all methods:

- `access` says what the caller may reach. A memory outside it behaves exactly like one that does
  not exist: reads skip it, writes raise NotFound. Writing *into* a scope outside it is Forbidden.
- Ids are the caller's. Orders are total: ties go by id, ascending. Scores are higher-better. A
  negative limit or offset is InvalidInput, a limit of 0 an empty answer.
- Metadata, details and payloads are JSON, copied in and out; weights and vectors are finite.
- No text holds a NUL or a lone surrogate: a change with one is InvalidInput, and nothing is found by one.
- What is written has labels that any database can index (`checks.MAX_LABEL_BYTES`, less for ids, kinds and
  the keys of claims); others are TooLarge. What an older version wrote stays usable.
- The store never embeds and has no clock: vectors and times are arguments.
- `commit` is the only way canonical data changes; it is one transaction. Other writes touch derived
  data only, and are ignored where the text they were derived from has changed.
- Driver errors never escape: they become StoreError and its children.
- Methods may be called from any thread. `close` ends the store; using it afterwards is StoreError.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

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
    Strength,
    Tombstone,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import IndexStatus, LogQuery, Notice, ProfileStatus, Scored
from vestige.store.contract.changes import Change, Claim, Embedded
from vestige.store.contract.keys import Keyring
from vestige.store.contract.processes import Who
from vestige.store.contract.search import (
    POSTINGS_BUDGET,
    CandidatePool,
    LexicalScores,
    Probe,
    Reworded,
    Voices,
)
from vestige.store.contract.trouble import Trouble
from vestige.store.merge.histories import Absorbed, Life


class MemoryStore(Keyring, Protocol):
    """Keeps memories, their strength, history, links, words and vectors; and the keys to them."""

    @property
    def node(self) -> str:
        """This installation's id: a copied store gets a new one when it is first opened."""

    @property
    def read_only(self) -> bool:
        """Whether writes are impossible here (read-only media)."""

    @property
    def software(self) -> dict[str, str]:
        """What the store runs on, by name, with versions; nothing where it needs no other software."""

    # -- canonical writes ------------------------------------------------------------------------

    def commit(
        self,
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,
    ) -> list[LogEvent]:
        """Apply all changes in order, or none, in one transaction; the events logged for them.

        Kinds logged: `memory.created`, `memory.revised` (payload `fields`: names of what changed,
        `reason`), `memory.remarked` (`evidence`, `details`), `edge.linked` (`target`, `kind`,
        `weight`), `edge.unlinked` (`target`, `kind`), `memory.state` (`from`, `to`, `reason`),
        `memory.carried` (`strength`), `curve.tuned` (`w20`; no memory),
        `document.put` and `document.dropped` (`kind`, `id`; no memory), `memory.deleted` (`reason`). A remark
        tells its `amount` when it is not 1, and `state` (from, to) when it changed the memory's state. An
        event of a document has the document's scope. A change made earlier in the list is seen by later
        ones. A claim whose key exists raises IdempotencyConflict and writes nothing. An event's scope
        is its memory's after the change; milliseconds in `clock` end in the year 4199. StoreBusy after
        `patience_seconds` of waiting for other writers, where that is less than the store is set to wait.
        """

    # -- the whole -------------------------------------------------------------------------------

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

    def absorb(self, lives: Sequence[Life], *, access: Access) -> Absorbed:
        """Unite these lives with what is here, in one transaction; doing it again changes nothing.

        `store.uniting` says what two tellings make. Events keep their node, seq and clock and get positions
        at the end of this store's log; the clock never gives a reading below one it has seen. Strengths are
        folded anew where evidence came in. A deleted memory stays deleted. An edge is there when both ends
        are; a document that cites a memory that is not here is left out. Vectors are taken like those of
        `put_vectors` by memories that have none; ones of another signature are ignored. Only for an
        unlimited access, else Forbidden. A life that cannot be true (`plausible.check`), or that tells one
        event in another way than it is told here, is InvalidInput.
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
    ) -> list[LexicalScores]:
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
        then by created_at, then by arrival. Where the members of a thread have different sources, each
        source with at least two members on average is a thread of its own. A suppressed or archived memory
        is in no thread.
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

    def gather(self, probe: Probe, *, access: Access) -> CandidatePool:
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

    def profiles(self) -> list[ProfileStatus]:
        """The signatures there are vectors of: the one in use, then the coming one and the former one, as far
        as there is one."""

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        """Memories without vectors of this signature of their present text, oldest first. With `tokens` also
        those whose vectors are there without tokens; a text may have none (a length of 0), and was given them
        all the same."""

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        """Add vectors made after the fact; how many memories took them (stale ones do not).

        The first ones decide the store's signature. With `coming` they are of another one and lie beside
        those in use: nothing finds them before `adopt`, and they go with their text as others do. One
        signature is coming at a time: the vectors of another that was are gone. The former one is not coming:
        what it lacks is added to what it has. Any other is ModelMismatch.
        """

    def adopt(self, signature: Signature) -> bool:
        """Put a signature in use, in one transaction; whether it is in use. While a memory has no vectors of
        it (`unembedded`) it is not, and nothing changes.

        The one that was in use becomes the former one and keeps its vectors; what is written from now on gets
        none of it. Any other goes, with its vectors: the former one before, and one that was coming.
        """

    def drop_vectors(self, signature: Signature) -> None:
        """Remove the vectors and tokens of a signature that is coming or the former one, and what was left of
        others, in transactions that are over in a moment. InvalidInput for the one in use. One that is not
        known has none. Whatever ends it before, doing it again goes on where it was."""

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with those replayed from the log up to position `after`; how many
        memories took them. One with evidence past it (`store.evidence.EVIDENCE`) keeps its present strength,
        which holds that evidence while the replayed one does not. Their curve stays the store's."""

    def rebuild_words(self) -> int:
        """Derive all lexical rows and term statistics again from the text; how many memories."""

    def index_status(self) -> IndexStatus:
        """What the index files hold; they are read through and checked."""

    def rebuild_index(self) -> IndexStatus:
        """Write again the index files that are damaged or mostly dead, and those that are missing."""

    # -- other processes -------------------------------------------------------------------------

    def alone(self, purpose: str) -> AbstractContextManager[None]:
        """Hold what only one process at a time may do: migrating, embedding anew, purging, restoring.

        StoreBusy at once, naming who holds it (pid, command, since, purpose), while another does; so also for
        another thread. What is over in a moment (`processes.BRIEF`) waits for its like as writes do, threads
        in their order and for each other anew, and for nothing else. Reads and ordinary writes go on. It ends
        with the block, or with the process.
        """

    def processes(self) -> list[Who]:
        """Who has this store open, as far as that can be told, the one that came first before the others."""

    def has_company(self) -> bool:
        """Whether another process may have this store open; also when it cannot be seen at the moment."""

    def leading(self) -> bool:
        """Whether this process leads those at work on this store. Who asks while nobody does leads from then
        on, until the store is closed, the process ends, however, or a database server forgets it, as with a
        restart: so it is asked before any work of a leader. A read-only store never leads."""

    @property
    def lingers_in(self) -> str | None:
        """The name of a file in which deleted text still lies, because somebody reads the store as it was
        before; None when there is none. It goes with the first write after that, or when a process closes
        the store, whoever deleted it."""

    def notify(self, process: str, messages: Sequence[str]) -> None:
        """Tell the other processes at work on this store; the last `MOST_NOTICES` are kept.

        Messages are JSON objects. Deleting a memory takes all of them away, because they may speak of it, and
        one whose `quotes` (a list of ids) names a deleted memory is not taken. StoreBusy rather than a long
        wait.
        """

    def notices(self, after: int) -> list[Notice]:
        """What was told after a notice, oldest first; everything when all there is came before: then the
        store was set back, by a restore or a server that lagged."""

    def listening(self) -> AbstractContextManager[Callable[[float], bool]]:
        """What it gives waits for a notice for so many seconds, and says whether there may be one: at the
        first call, when one is told, after a failure, and whenever the store cannot know. StoreError when the
        store fails, after which it may be called again; it ends early, with False, when the store is closed.
        """

    # -- care ------------------------------------------------------------------------------------

    def backup(self, destination: Path) -> None:
        """Write a complete, verified copy to a path that does not exist yet, while others write."""

    def examine(self, now: datetime, *, deep: bool = False) -> list[Trouble]:
        """What is wrong here, of one moment; `deep` reads every page. Nothing is changed."""

    def mend(self, repair: str, now: datetime) -> None:
        """Do a repair that `examine` named, on derived data and files only; InvalidInput for any other."""

    def close(self) -> None:
        """Let go of everything this store opened. Safe to call twice."""
