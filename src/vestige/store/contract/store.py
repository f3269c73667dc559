"""The store contract: seven small Protocols that `MemoryStore` joins.

Every store passes the same suite, `tests/store/contract/`.

What holds for all methods:

- `access` is what the caller may read and write. A memory outside it behaves exactly like one that does
  not exist: reads skip it, writes raise NotFound. Writing *into* a scope outside it is Forbidden.
- The caller chooses ids. Orders are total: ties go by id, ascending. Scores are higher-better. A
  negative limit or offset is InvalidInput, a limit of 0 an empty answer.
- Metadata, details and payloads are JSON, copied in and out; weights and vectors are finite.
- No text holds a NUL or a lone surrogate: a change with one is InvalidInput, and nothing is found by one.
- Labels are short enough for an index in any database (`models.MAX_LABEL_BYTES`, less for ids, kinds and
  the keys of claims); others are TooLarge. Rows of older versions stay usable.
- The store never embeds and has no clock: vectors and times are arguments.
- `commit` is the only way canonical data changes; it is one transaction. Other writes touch derived
  data only, and are ignored where the text they were derived from has changed.
- Driver errors never escape: they become StoreError and its children.
- Methods may be called from any thread. `close` ends the store; using it afterwards is StoreError.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Protocol

from vestige.core.api_key import ApiKey
from vestige.core.documents import Document
from vestige.core.models import (
    ANYTHING,
    Access,
    Edge,
    Filter,
    LogEvent,
    Memory,
    MemoryContext,
    Order,
    Record,
    Revision,
    StoreStats,
    Strength,
    Tombstone,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import (
    IndexStatus,
    Levels,
    LogQuery,
    NearestMemories,
    Notice,
    ProfileStatus,
)
from vestige.store.contract.changes import Change, Claim, Embedded
from vestige.store.contract.processes import Who
from vestige.store.contract.search import StoreSearch
from vestige.store.contract.trouble import Trouble
from vestige.store.merge.histories import Absorbed, EntityHistory


class StoreReads(Protocol):
    """Reading memories, their history, links, documents and the log."""

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        """The records in the requested order; unknown ids are left out, repeats are returned once."""

    def contexts(self, memory_ids: Sequence[str], *, access: Access) -> list[MemoryContext]:
        """Like `get_many`, but only where and when the memories were made, which costs less to read."""

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
        """Counts of memories that are not archived; of edges, all. `due` are valid and due at `now`, and not
        suppressed, as in a list of them."""

    def levels(self, *, access: Access, now: datetime) -> Levels:
        """The strength at `now` of every memory that is not archived."""

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        """Every tag with the number of memories that carry it and are not archived."""

    def ids_like(self, part: str, *, access: Access, limit: int) -> list[str]:
        """Ids of memories, archived ones too, that begin or end with a text, in order."""

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

    def count_documents(
        self, kind: str, *, access: Access, terms: Sequence[str] | None = None, scope: str | None = None
    ) -> int:
        """How many documents `documents` would return for these arguments, without a limit."""

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


class StoreWrites(Protocol):
    """Writing canonical data. `commit` and `absorb` are one transaction each."""

    def commit(
        self,
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,
    ) -> list[LogEvent]:
        """Apply all changes in order, or none, in one transaction; the events logged for them.

        Kinds logged: `memory.created`, `memory.revised` (payload `fields`: names of the changed fields,
        `reason`), `memory.remarked` (`evidence`, `details`), `edge.linked` (`target`, `kind`, `weight`),
        `edge.unlinked` (`target`, `kind`), `memory.state` (`from`, `to`, `reason`), `memory.carried`
        (`strength`), `curve.tuned` (`w20`; no memory), `document.put` and `document.dropped` (`kind`, `id`;
        no memory), `memory.deleted` (`reason`). An evidence event (`memory.remarked`) has an `amount` when it
        is not 1, and `state` (from, to) when it changed the memory's state. An event of a document has the
        document's scope. A change made earlier in the list is seen by later ones. A claim whose key exists
        raises IdempotencyConflict and writes nothing. An event's scope is its memory's after the change. The
        `clock` of an event follows the calendar until the year 4199 and only counts on after it. StoreBusy
        after `patience_seconds` of waiting for other writers, where that is less than the store is set to
        wait.
        """

    def absorb(self, histories: Sequence[EntityHistory], *, access: Access) -> Absorbed:
        """Merge histories with those of this store, in one transaction; repeating it changes nothing.

        `store.merge.union` defines the merge. Events keep their node, seq and clock and get positions at the
        end of this store's log; the clock never gives a reading below one it has seen. Strengths are folded
        anew where evidence came in. A deleted memory stays deleted. An edge exists while both ends do; a
        document that cites a memory unknown here is left out. Vectors are taken like those of `put_vectors`
        by memories that have none; ones of another signature are ignored. Only for an unlimited access, else
        Forbidden. An invalid history (`store.merge.absorb.check`) is InvalidInput. One with another content
        for a known event, or with events of this store's own node that are new here, comes from a clone:
        these events are named by their content (`store.merge.forks`), both are kept, and this store takes a
        new node id if its own was forked.
        """


class StoreDerived(Protocol):
    """Derived data: vectors, strengths, word rows, index files. It can be rebuilt from canonical data."""

    def signature(self) -> Signature | None:
        """The signature of the vectors in this store, also after the last of them was removed; None before
        the first one."""

    def profiles(self) -> list[ProfileStatus]:
        """The signatures that have vectors: the one in use, then the coming one and the former one, if
        any."""

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        """Memories without vectors of this signature for their present text, oldest first. With `tokens` also
        those with vectors but without tokens; a text without a word has tokens of length 0."""

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        """Add vectors that were made after their memories; the number of memories that took them (stale ones
        do not).

        The first ones decide the store's signature. With `coming` they are of another one and are stored
        beside those in use: no search finds them before `adopt`, and they are removed with their text like
        others. One signature is coming at a time: the vectors of an earlier coming one are removed. The
        former one is not coming: missing vectors are added to it. Any other is ModelMismatch.
        """

    def adopt(self, signature: Signature) -> bool:
        """Put a signature in use, in one transaction; whether it is in use. While a memory has no vectors of
        it (`unembedded`) it is not, and nothing changes.

        The previous one becomes the former one and keeps its vectors; later writes get none of it. Any other
        is removed with its vectors: the earlier former one, and a coming one.
        """

    def drop_vectors(self, signature: Signature) -> None:
        """Remove the vectors and tokens of the coming or the former signature, and leftovers of others, in
        short transactions. InvalidInput for the one in use. An unknown one has none. After an interruption,
        calling it again continues."""

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with those replayed from the log up to position `after`; the number of memories
        that took them. One with later evidence (`strength_log.EVIDENCE`) keeps its present strength, which
        includes that evidence while the replayed one does not. The curve stays the store's."""

    def neighbours(
        self, *, access: Access, most_products: int | None = None, check: Callable[[], None] = lambda: None
    ) -> NearestMemories | None:
        """For each accessible memory with vectors in use, the nearest other accessible ones, by the cosine of
        the means of their pieces (`cognition.graph.neighbour_lists`).

        A list has every accessible memory with a product above its floor. Nothing in it depends on when
        memories came, but how many more a list has. The lists are up to date with every write before; a store
        that keeps them compares what came since the last call. If that takes more than `most_products`,
        it returns None, and a store that keeps lists does as much as that allows, so that later calls
        finish it; of more than `MOST_LISTED` memories it keeps none. `check` is called from time to time and
        may raise.
        """

    def rebuild_neighbours(self) -> int:
        """Forget the lists of neighbours and make them again; the number of memories with one."""

    def rebuild_words(self) -> int:
        """Derive all lexical rows and term statistics again from the text; the number of memories."""

    def index_status(self) -> IndexStatus:
        """The state of the index files; they are read through and verified."""

    def rebuild_index(self) -> IndexStatus:
        """Write the index files again that are damaged, missing, or mostly of deleted vectors."""


class StorePeers(Protocol):
    """The processes that share a store: locks, leader, notices."""

    def alone(self, purpose: str) -> AbstractContextManager[None]:
        """Get exclusive use for work that only one process at a time may do: migrating, embedding anew,
        purging, restoring.

        StoreBusy at once, naming the holder (pid, command, since, purpose), while another process or thread
        has it. Work that takes only a moment (`processes.BRIEF`) waits for its like as writes do, threads in
        their order, and for nothing else. Reads and ordinary writes go on. It ends with the block, or with
        the process.
        """

    def processes(self) -> list[Who]:
        """The processes that have this store open, as far as known, the first one first."""

    def has_peers(self) -> bool:
        """Whether another process may have this store open, even if it is not visible at the moment."""

    def leading(self) -> bool:
        """Whether this process leads the processes that use this store. The first process that asks becomes
        the leader, until it closes the store or ends, or until a database server restarts: so call it before
        each piece of a leader's work. A read-only store never leads."""

    @property
    def lingers_in(self) -> str | None:
        """The name of a file that still holds deleted text because a reader uses an earlier snapshot; None
        otherwise. The text is removed with the first write after that, or when any process closes the
        store."""

    def notify(self, process: str, messages: Sequence[str]) -> None:
        """Send messages to the other processes that use this store; the last `MOST_NOTICES` are kept.

        Messages are JSON objects. Deleting a memory removes all of them, because they may quote it, and one
        whose `quotes` (a list of ids) names a deleted memory is not stored. StoreBusy instead of a long wait.
        """

    def notices(self, after: int) -> list[Notice]:
        """The messages after a number, oldest first; all of them when that number is higher than every
        message: then the store was set back, by a restore or a server that lagged."""

    def listening(self) -> AbstractContextManager[Callable[[float], bool]]:
        """A function that waits up to the given seconds for a message, and returns whether there may be one:
        at the first call, when one arrives, after a failure, and whenever the store cannot know. StoreError
        when the store fails, after which it may be called again; it returns False early when the store is
        closed."""


class StoreCare(Protocol):
    """Looking after a store: backup, examination, repair, closing."""

    def backup(self, destination: Path) -> None:
        """Write a complete, verified copy to a path that does not exist yet, while others write."""

    def settle(self) -> None:
        """Make the store's own files complete without its log, if nothing was written since the previous
        call: then a plain copy of the file is a backup. Derived files are written here too from the first
        call on, which until then the writes do. A server calls it every few seconds."""

    def examine(self, now: datetime, *, deep: bool = False) -> list[Trouble]:
        """The problems of this store, from one snapshot; `deep` reads every page. Nothing is changed."""

    def repair(self, repair: str, now: datetime) -> None:
        """Run a repair that `examine` named, on derived data and files only; InvalidInput for any other."""

    def close(self) -> None:
        """Close everything that this store opened. Safe to call twice."""


class StoreKeys(Protocol):
    """Keeps API keys, and the logins that were ended early. Both belong to an installation: backups and
    transfers carry them, exports and histories do not, and they are not logged."""

    def put_key(self, key: ApiKey, *, replacing: str | None = None) -> None:
        """Add a key; Conflict where its id or hash is taken. With `replacing`, the key of that id is revoked
        at `key.created_at` in the same transaction: NotFound for an unknown one, Conflict for one that was
        revoked before."""

    def list_keys(self, ids: Sequence[str] | None = None) -> list[ApiKey]:
        """All keys, revoked ones too, or those of these ids, oldest first, ties by id."""

    def key_by_hash(self, hash: str) -> ApiKey | None:
        """The key with this hash, even if revoked or expired, or None."""

    def revoke_key(self, key_id: str, at: datetime) -> ApiKey:
        """Revoke a key in all processes at once; the revoked key. One that was revoked before keeps its first
        time. NotFound for an unknown one."""

    def label_key(self, key_id: str, label: str) -> ApiKey:
        """Give a key another label; the key with it. NotFound for an unknown one."""

    def note_keys_used(self, used: Mapping[str, datetime]) -> None:
        """Record when keys were last used, by id. An earlier time than the known one changes nothing, nor
        does an unknown id."""

    def end_login(self, login_id: str, ends: datetime, *, forgetting: datetime) -> bool:
        """End a login in all processes at once that would have lasted until `ends`; whether this call did:
        of several at once, in any processes, one does. Ending it again changes nothing. Records of logins
        that would have ended before `forgetting` are removed, because their cookies have expired anyway."""

    def login_ended(self, login_id: str) -> bool:
        """Whether a login was ended early; False for an unknown one, or one whose record was removed."""

    def key_of_login(self, key_id: str, login_id: str) -> ApiKey | None:
        """The key of this id, even if revoked or expired, unless `login_ended`. One query instead of two,
        because each request with a cookie needs it."""


class MemoryStore(
    StoreReads, StoreWrites, StoreSearch, StoreDerived, StorePeers, StoreCare, StoreKeys, Protocol
):
    """Keeps memories, their strength, history, links, words and vectors; and the API keys to them."""

    @property
    def node(self) -> str:
        """This installation's id: a copied store gets a new one when it is first opened."""

    @property
    def read_only(self) -> bool:
        """Whether writes are impossible here (read-only media)."""

    @property
    def write_failure(self) -> str | None:
        """Why this process acknowledges no more writes until it is restarted; None while it does."""

    @property
    def software(self) -> dict[str, str]:
        """The software below the store, by name, with versions; empty where it needs none."""
