"""SqliteStore: the store contract on one SQLite file. A method is a transaction around a function of a
sibling module."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from datetime import datetime
from pathlib import Path

from vestige.core.models import Access, Edge, LogEvent
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import IndexStatus
from vestige.store.contract.changes import Add, Change, Claim, Embedded, Forget, Revise
from vestige.store.contract.processes import Who
from vestige.store.contract.trouble import Trouble, file_software
from vestige.store.merge.forks import no_ids
from vestige.store.merge.histories import Absorbed, EntityHistory
from vestige.store.sql.database import Database
from vestige.store.sql.group import Commit, GroupWriter, Take, apply_all
from vestige.store.sql.merge import absorb
from vestige.store.sql.tables import Tables
from vestige.store.sqlite import opening
from vestige.store.sqlite.backup import backup
from vestige.store.sqlite.connection import (
    WRITE_DEADLINE_SECONDS,
    Randomness,
    SqliteConnections,
    Synchronous,
    WriterWait,
    translated,
)
from vestige.store.sqlite.file import identity
from vestige.store.sqlite.opening import SqliteDependencies, open_file, upgrading
from vestige.store.sqlite.processes.peers import SqlitePeers
from vestige.store.sqlite.search import segments, snapshot
from vestige.store.sqlite.search.search import SqliteSearch
from vestige.store.sqlite.search.words import SqliteSurfaces


class SqliteStore(SqliteSearch, Tables, SqlitePeers):
    """A `MemoryStore` in one file, which any number of processes may share. Made by `open`."""

    def __init__(
        self,
        connections: SqliteConnections,
        *,
        node: str,
        who: Who | None = None,
        new_id: Callable[[], str] = no_ids,
    ) -> None:
        self._node, self._new_id, self._file = node, new_id, identity.file_at(connections.path)
        Tables.__init__(self, connections, SqliteSurfaces())
        SqliteSearch.__init__(self, connections)
        SqlitePeers.__init__(self, connections, who)
        self._publisher = segments.Publisher()

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
        """Open the store at `path`, creating or upgrading it where needed. `machine` names this computer: a
        file that was copied from elsewhere gets a new node id. Other processes see `who`. A write waits up to
        `busy_seconds` for other writers. Where the file or its directory cannot be written the store is
        opened for reading."""
        waiting = WriterWait(rng=rng, sleep=sleep, monotonic=monotonic, deadline_seconds=busy_seconds)
        who = who or Who(pid=os.getpid(), command="", since=now())
        around = SqliteDependencies(
            waiting=waiting, new_id=new_id, now=now, machine=machine, who=who, synchronous=synchronous
        )
        connections, node = open_file(path, around, read_only=read_only)
        with ExitStack() as undo, translated(path):
            undo.callback(connections.close)
            with connections.reading(snapshot=False) as db:
                opening.require_complete(db, path)
            store = cls(connections, node=node, who=who, new_id=new_id)
            undo.callback(store.close)
            if not store._words_are_current() and not store.read_only:
                with upgrading(path, around):
                    if not store._words_are_current():  # another process was faster
                        store.rebuild_words()
            undo.pop_all()
        return store

    @property
    def node(self) -> str:
        return self._node

    @property
    def read_only(self) -> bool:
        return self._connections.read_only

    @property
    def write_failure(self) -> str | None:
        lost = self._connections.journal.lost
        return None if lost is None else f"The write-ahead log {lost} while this process had it open"

    @property
    def software(self) -> dict[str, str]:
        return file_software()

    # -- Canonical writes

    def commit(
        self,
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,
    ) -> list[LogEvent]:
        def write(take: Take) -> None:
            with self._connections.writing(patience_seconds) as db:
                identity.require_in_place(self._connections.path, self._file)
                apply_all(db, take(), self._apply)

        patience = self._connections.patience(patience_seconds)
        writer = GroupWriter(write=write, conclude=self._conclude, patience_seconds=patience)
        return self._commits.run(Commit.of(changes, access, claim), writer)

    def _conclude(self, group: Sequence[Commit]) -> None:
        events = [event for one in group for event in one.events or ()]
        if events:
            self._node = events[-1].node  # another process may have given the file a new one
            identity.keep_mark(self._connections.path, events[-1].node, events[-1].seq)
        changes = [change for one in group for change in one.changes]
        self._tidy(ended=any(isinstance(change, Forget) for change in changes))
        if any(isinstance(change, Add | Revise) for change in changes):
            self._publisher.after_write(self._connections)

    # -- Merge of histories

    def absorb(self, histories: Sequence[EntityHistory], *, access: Access) -> Absorbed:
        identity.require_in_place(self._connections.path, self._file)
        absorbed = absorb.absorb(self._connections, histories, access, self._surfaces, self._new_id)
        self._node = absorbed.successor or self._node
        self._tidy(ended=absorbed.memories_ended > 0)
        self._publisher.after_write(self._connections)
        return absorbed

    # -- Reading

    def edges(
        self, memory_ids: Sequence[str], *, access: Access, among: bool = False, heaviest: int | None = None
    ) -> list[Edge]:
        if not self.has_edges():
            return []
        return super().edges(memory_ids, access=access, among=among, heaviest=heaviest)

    # -- Derived data

    def adopt(self, signature: Signature) -> bool:
        adopted = super().adopt(signature)
        if adopted:
            segments.sweep(self._connections)
            self._publisher.after_write(self._connections)
        return adopted

    def put_vectors(self, embedded: Mapping[str, Embedded], *, coming: Signature | None = None) -> int:
        put = super().put_vectors(embedded, coming=coming)
        self._publisher.after_write(self._connections)
        return put

    def index_status(self) -> IndexStatus:
        """The index files are read through and their checksums verified."""
        with self._connections.reading() as db:
            return segments.status(db)

    def rebuild_index(self) -> IndexStatus:
        segments.rebuild(self._connections)
        return self.index_status()

    def _tidy(self, *, ended: bool) -> None:
        """Remove what deleted memories left outside the tables."""
        if ended:
            self._connections.empty_journal()
            segments.sweep(self._connections)

    def _put_out_of_use(self, db: Database) -> None:
        """Stop using the files of other profiles: they are made again when one comes back."""
        segments.unlist_others(db)

    # -- Care: backup, check and repair

    def backup(self, destination: Path) -> None:

        def prove(copied: Path) -> None:
            connections = backup.immutable_connections(copied, self._connections.waiting)
            with closing(SqliteStore(connections, node=self._node)) as store:
                backup.read_one_of_each(store, connections)

        with self._connections.reading() as db:
            backup.copy(db, destination, prove=prove)

    def settle(self) -> None:
        self._publisher.by_worker = True
        self._publisher.publish(self._connections)
        snapshot.publish_if_due(self._connections)
        self._connections.settle()

    def examine(self, now: datetime, *, deep: bool = False) -> list[Trouble]:
        from vestige.store.sqlite.check import checks  # most processes never check

        return checks.examine(self._connections, now, deep=deep)

    def repair(self, repair: str, now: datetime) -> None:
        from vestige.store.sqlite.check.repair import repair_store

        repair_store(self._connections, repair, now)

    def close(self) -> None:
        self._connections.close()
        self._leave()
