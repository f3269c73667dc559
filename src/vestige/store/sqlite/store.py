"""SqliteStore: the store contract on one SQLite file. A method is a transaction around a sibling module."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from datetime import datetime
from itertools import islice
from pathlib import Path

from vestige.documents import Document
from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput, StoreBusy
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
from vestige.store.answers import IndexStatus
from vestige.store.changes import Change, Claim, Embedded, Forget
from vestige.store.lives import Absorbed, Life
from vestige.store.logquery import LogQuery
from vestige.store.processes import Who
from vestige.store.sqlite import (
    absorbing,
    backup,
    checkup,
    documents,
    drafts,
    graph,
    history,
    installation,
    log,
    memories,
    mending,
    proof,
    registry,
    reviews,
    segments,
    words,
)
from vestige.store.sqlite import commit as committing
from vestige.store.sqlite import lives as telling
from vestige.store.sqlite import stats as counting
from vestige.store.sqlite import vectors as dense
from vestige.store.sqlite.arms import SearchArms
from vestige.store.sqlite.columns import natural
from vestige.store.sqlite.company import Company
from vestige.store.sqlite.connection import (
    WRITE_DEADLINE_SECONDS,
    Connections,
    Randomness,
    Synchronous,
    Waiting,
    translated,
)
from vestige.store.sqlite.filters import clause
from vestige.store.sqlite.opening import Surroundings, open_file, upgrading
from vestige.store.trouble import Trouble


class SqliteStore(SearchArms, Company):
    """A `MemoryStore` in one file, which any number of processes may share.

    What each method promises is said in `MemoryStore`. Made by `open`.
    """

    def __init__(self, connections: Connections, *, node: str, who: Who | None = None) -> None:
        self._node, self._file = node, installation.file_at(connections.path)
        SearchArms.__init__(self, connections)
        Company.__init__(self, connections, who)

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        rng: Randomness,
        sleep: Callable[[float], None],
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
        now: Callable[[], datetime],
        machine: str,
        who: Who | None = None,
        busy_seconds: float = WRITE_DEADLINE_SECONDS,
        synchronous: Synchronous = "normal",
        read_only: bool = False,
    ) -> "SqliteStore":
        """Open the store at `path`, making or upgrading it where needed.

        `machine` names this computer: a file that was copied from elsewhere gets a new node id. Other
        processes see `who` is here. A write waits up to `busy_seconds` for other writers. Where the file
        or its directory cannot be written the store is opened for reading.
        """
        waiting = Waiting(rng=rng, sleep=sleep, monotonic=monotonic, deadline_seconds=busy_seconds)
        who = who or Who(pid=os.getpid(), command="", since=now())
        around = Surroundings(
            waiting=waiting, new_id=new_id, now=now, machine=machine, who=who, synchronous=synchronous
        )
        connections, node = open_file(path, around, read_only=read_only)
        with ExitStack() as undo, translated(path):
            undo.callback(connections.close)
            store = cls(connections, node=node, who=who)
            undo.callback(store.close)
            if not store._words_are_current() and not store.read_only:
                with upgrading(path, around):
                    if not store._words_are_current():  # another process was faster
                        store.rebuild_words()
            undo.pop_all()
        return store

    @property
    def node(self) -> str:
        """This installation's id."""
        return self._node

    @property
    def read_only(self) -> bool:
        """Whether writes are impossible here."""
        return self._connections.read_only

    # -- canonical writes ------------------------------------------------------------------------

    def commit(
        self,
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,
    ) -> list[LogEvent]:
        """Apply all changes in order, or none; the events logged for them."""
        analysed = [committing.analyse(change) for change in changes]
        with self._connections.writing(patience_seconds) as db:
            if claim is not None:
                registry.claim(db, claim)
            installation.require_in_place(self._connections.path, self._file)
            # Who opened the file after us may have seen that it needs another one.
            self._node = installation.node_in(db)
            work = committing.Work.begin(db, self._node, changes, access)
            for one in analysed:
                work.apply(one)
            events = work.write(db)
            if claim is not None:
                registry.attach(db, claim.key, [draft.key for draft in work.drafts.values()])
        if events:
            installation.keep_mark(self._connections.path, events[-1].node, events[-1].seq)
        drafts.tidy(self._connections, ended=any(isinstance(change, Forget) for change in changes))
        return events

    # -- the whole -------------------------------------------------------------------------------

    def lives(
        self, where: Filter | None = None, *, access: Access, vectors: bool = False, batch: int = 500
    ) -> Iterator[list[Life]]:
        """Everything canonical, `batch` at a time, all in one read transaction."""
        _check_batch(batch)
        with self._connections.reading() as db:
            told = telling.tell(db, where, access, vectors=vectors)
            while some := list(islice(told, batch)):
                yield some

    def absorb(self, lives: Sequence[Life], *, access: Access) -> Absorbed:
        """Unite these lives with what is here; doing it again changes nothing."""
        installation.require_in_place(self._connections.path, self._file)
        return absorbing.absorb(self._connections, lives, access)

    # -- reading ---------------------------------------------------------------------------------

    def get_many(self, memory_ids: Sequence[str], *, access: Access) -> list[Record]:
        """The records in the order asked for, each once, without the unknown ones."""
        asked = dict.fromkeys(memory_ids)
        with self._connections.reading(snapshot=False) as db:
            found = memories.by_id(db, asked, access)
        return [found[memory_id] for memory_id in asked if memory_id in found]

    def find(
        self, where: Filter, *, access: Access, order: Order = Order.NEWEST, limit: int, offset: int = 0
    ) -> list[Record]:
        """A page of the records that match."""
        first, most = natural(offset), natural(limit)
        with self._connections.reading() as db:
            wanted = history.clause_at(db, where, access)
            return memories.page(db, wanted, order, where.now, most, first)

    def stream(self, where: Filter = ANYTHING, *, access: Access, batch: int = 500) -> Iterator[list[Record]]:
        """Every matching record in the order of arrival, `batch` at a time, each batch in a transaction
        of its own: a slow reader holds nothing up."""
        _check_batch(batch)
        reached: int | None = 0
        while reached is not None:
            with self._connections.reading() as db:
                wanted = history.clause_at(db, where, access)
                records, reached = memories.after_key(db, wanted, reached, batch)
            if records:
                yield records

    def count(self, where: Filter, *, access: Access) -> int:
        """How many records match."""
        with self._connections.reading() as db:
            return memories.count(db, history.clause_at(db, where, access))

    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        """Counts over what the access reaches."""
        with self._connections.reading() as db:
            return counting.stats(db, access, now)

    def tag_counts(self, *, access: Access) -> dict[str, int]:
        """Every tag with the number of memories that carry it."""
        with self._connections.reading() as db:
            return memories.tag_counts(db, access)

    def history(self, memory_id: str, *, access: Access) -> list[Revision]:
        """A memory's earlier revisions, oldest first."""
        with self._connections.reading() as db:
            return history.of(db, memory_id, access)

    def earlier(self, memory_ids: Sequence[str], moment: datetime, *, access: Access) -> dict[str, Memory]:
        """Those of these memories that were revised after a moment, as they were then."""
        with self._connections.reading(snapshot=False) as db:
            return history.earlier(db, memory_ids, moment, access)

    def tombstone(self, memory_id: str, *, access: Access) -> Tombstone | None:
        """What is left of a deleted memory, or None."""
        with self._connections.reading() as db:
            return history.tombstone(db, memory_id, access)

    def log(
        self, *, access: Access, memory_id: str | None = None, after: int = 0, limit: int = 1000
    ) -> list[LogEvent]:
        """Logged events with position > `after`, in commit order."""
        most = natural(limit)
        with self._connections.reading() as db:
            return log.read(db, access=access, memory_id=memory_id, after=after, limit=most)

    def latest(self, asked: LogQuery, *, access: Access, limit: int) -> list[LogEvent]:
        """The events asked for, the last one first."""
        most = natural(limit)
        with self._connections.reading() as db:
            return log.latest(db, asked, access=access, limit=most)

    def edges(
        self, memory_ids: Sequence[str], *, access: Access, among: bool = False, heaviest: int | None = None
    ) -> list[Edge]:
        """Edges that touch any of the ids, with both ends in reach."""
        most = None if heaviest is None else natural(heaviest)
        with self._connections.reading() as db:
            return graph.touching(db, memory_ids, access, among=among, heaviest=most)

    def stream_edges(
        self, kinds: Sequence[str] | None = None, *, access: Access, batch: int = 1000
    ) -> Iterator[list[Edge]]:
        """Every edge of these kinds, `batch` at a time, each batch in a transaction of its own."""
        _check_batch(batch)
        reached: graph.EdgeKey | None = graph.FIRST
        while reached is not None:
            with self._connections.reading() as db:
                edges, reached = graph.after_key(db, kinds, access, reached, batch)
            if edges:
                yield edges

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
        """The documents of a kind, the one changed last first."""
        first, most = natural(offset), natural(limit)
        wanted = documents.Wanted(
            kind=kind, ids=ids, citing=citing, terms=terms, scope=scope, inherited=inherited
        )
        with self._connections.reading() as db:
            return documents.page(db, wanted, access, most, first)

    def claimed(self, key: str) -> Claim | None:
        """The claim made under this key, or None."""
        with self._connections.reading(snapshot=False) as db:
            return registry.claimed(db, key)

    def same_text(
        self, fingerprints: Sequence[str], *, scope: str, valid_at: datetime, access: Access
    ) -> dict[str, str]:
        """For each fingerprint known in exactly this scope, the oldest memory true then that carries it."""
        with self._connections.reading(snapshot=False) as db:
            return memories.same_text(db, fingerprints, scope, clause(Filter(valid_at=valid_at), access))

    # -- derived data ----------------------------------------------------------------------------

    def signature(self) -> Signature | None:
        """The signature of the vectors held here; None before the first one."""
        with self._connections.reading(snapshot=False) as db:
            profile = registry.profile(db)
        return None if profile is None else profile.signature

    def adopt(self, signature: Signature) -> bool:
        """Put a signature in use if every memory has vectors of it; whether it is."""
        with self._connections.writing() as db:
            if not dense.adopt(db, signature):
                return False
        segments.sweep(self._connections)
        # What is in use now is not undone because others write: the rest is left for the next time.
        with suppress(StoreBusy):
            while self._dropped_some():
                pass
        return True

    def unembedded(self, signature: Signature, *, limit: int) -> list[Memory]:
        """Memories without vectors of their present text, oldest first."""
        most = natural(limit)
        with self._connections.reading(snapshot=False) as db:
            profile = registry.of_signature(db, signature)
            return memories.unembedded(db, profile.id if profile else None, most)

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        """Add vectors made after the fact; how many memories took them."""
        with self._connections.writing() as db:
            return dense.put_by_id(db, embedded, coming)

    def put_strengths(self, strengths: Mapping[str, Strength], *, after: int) -> int:
        """Overwrite strengths with replayed ones, except where there is later evidence; how many."""
        with self._connections.writing() as db:
            return reviews.put_by_id(db, strengths, after)

    def rebuild_words(self) -> int:
        """Derive all lexical rows, places and fingerprints again from the text; how many memories."""
        return mending.rebuild_words(self._connections)

    def index_status(self) -> IndexStatus:
        """What the index files hold; they are read through and checked."""
        with self._connections.reading() as db:
            return segments.status(db)

    def rebuild_index(self) -> IndexStatus:
        """Write again the index files that are damaged or mostly dead, and those that are missing."""
        segments.rebuild(self._connections)
        return self.index_status()

    def _dropped_some(self) -> bool:
        """Remove some of the vectors that are not in use, in a transaction of its own."""
        with self._connections.writing() as db:
            return dense.drop_others(db)

    def _words_are_current(self) -> bool:
        with self._connections.reading(snapshot=False) as db:
            return words.are_current(db)

    # -- care ------------------------------------------------------------------------------------

    def backup(self, destination: Path) -> None:
        """Write a complete, verified copy to a path that does not exist yet, while others write."""

        def prove(copied: Path) -> None:
            connections = proof.lying(copied, self._connections.waiting)
            with closing(SqliteStore(connections, node=self._node)) as store:
                proof.read_one_of_each(store, connections)

        with self._connections.reading() as db:
            backup.copy(db, destination, prove=prove)

    def examine(self, now: datetime, *, deep: bool = False) -> list[Trouble]:
        """What is wrong in the file and around it."""
        return checkup.examine(self._connections, now, deep=deep)

    def mend(self, repair: str, now: datetime) -> None:
        """Do a repair that `examine` named."""
        mending.mend(self._connections, repair, now)

    def close(self) -> None:
        """Let go of every connection. Safe to call twice."""
        self._connections.close()
        self._leave()


def _check_batch(batch: int) -> None:
    if batch < 1:
        raise InvalidInput("A batch holds at least one record.", details={"given": batch})
