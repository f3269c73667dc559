"""PostgresStore: the store contract on PostgreSQL with pgvector. A method is a transaction around a function
of a sibling module; most of them are those of every relational database (`store.sql.tables`)."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path

from vestige.core.errors import StoreError
from vestige.core.models import Access, LogEvent
from vestige.embed.protocol import Signature
from vestige.store.contract.changes import Change, Claim
from vestige.store.contract.processes import Who
from vestige.store.contract.trouble import Trouble
from vestige.store.merge.forks import no_ids
from vestige.store.merge.histories import Absorbed, EntityHistory
from vestige.store.postgres import opening
from vestige.store.postgres.check import checks
from vestige.store.postgres.check.repair import repair_store
from vestige.store.postgres.connection import PostgresConnections
from vestige.store.postgres.opening import PostgresDependencies, open_connections, upgrading
from vestige.store.postgres.processes.peers import PostgresPeers
from vestige.store.postgres.search.search import PostgresSearch
from vestige.store.postgres.search.words import PostgresSurfaces
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.server.errors import translated
from vestige.store.postgres.server.requirements import SOFTWARE
from vestige.store.sql.group import Commit, GroupWriter, Take, apply_all
from vestige.store.sql.merge import absorb
from vestige.store.sql.tables import Tables

WRITE_DEADLINE_SECONDS = 5.0
STATEMENT_SECONDS = 60.0
MOST_CONNECTIONS = 10

Copy = Callable[["PostgresStore", Path], None]


class PostgresStore(Tables, PostgresSearch, PostgresPeers):
    """A `MemoryStore` in a schema of a PostgreSQL database, which any number of processes may share.

    `MemoryStore` has the contract. Made by `open`.
    """

    def __init__(
        self,
        connections: PostgresConnections,
        *,
        who: Who,
        copy: Copy | None = None,
        new_id: Callable[[], str] = no_ids,
    ) -> None:
        self._new_id, self._connections, self._copy = new_id, connections, copy
        Tables.__init__(self, connections, PostgresSurfaces())
        PostgresSearch.__init__(self, connections)
        PostgresPeers.__init__(self, connections, who)

    @classmethod
    def open(
        cls,
        url: str,
        *,
        schema: str = "vestige",
        sleep: Callable[[float], None],
        monotonic: Callable[[], float],
        new_id: Callable[[], str],
        now: Callable[[], datetime],
        who: Who,
        copy: Copy | None = None,
        busy_seconds: float = WRITE_DEADLINE_SECONDS,
        statement_seconds: float = STATEMENT_SECONDS,
        max_connections: int = MOST_CONNECTIONS,
    ) -> "PostgresStore":
        """Open the store in a schema of the database at `url`, creating or upgrading it where needed.

        `copy` writes everything into a file, for `backup`. A call waits up to `busy_seconds` for other
        writers, for a connection and for a server that is restarting; no statement takes longer than
        `statement_seconds`. On a standby, or for a user who may only read, the store is opened for reading.
        """
        around = PostgresDependencies(
            sleep=sleep,
            monotonic=monotonic,
            new_id=new_id,
            now=now,
            wait_seconds=busy_seconds,
            statement_seconds=statement_seconds,
            most_connections=max_connections,
            program=_program(who),
        )
        connections = open_connections(ServerAddress(url=url, schema=schema), around)
        with ExitStack() as undo, translated(connections.place):
            undo.callback(connections.close)
            with connections.reading(snapshot=False) as db:
                opening.require_complete(db, connections.place)
            store = cls(connections, who=who, copy=copy, new_id=new_id)
            undo.callback(store.close)
            if not store._words_are_current() and not store.read_only:
                with upgrading(connections):
                    if not store._words_are_current():  # another process was faster
                        store.rebuild_words()
            undo.pop_all()
        return store

    @property
    def node(self) -> str:
        return self._connections.node.text

    @property
    def read_only(self) -> bool:
        return self._connections.read_only

    @property
    def write_failure(self) -> str | None:
        return None

    @property
    def software(self) -> dict[str, str]:
        with self._connections.reading(snapshot=False) as db:
            return dict(db.execute(SOFTWARE).fetchall())

    def commit(
        self,
        changes: Sequence[Change],
        *,
        access: Access,
        claim: Claim | None = None,
        patience_seconds: float | None = None,
    ) -> list[LogEvent]:
        def write(take: Take) -> None:
            self._connections.written(lambda db: apply_all(db, take(), self._apply), patience_seconds)

        patience = self._connections.patience(patience_seconds)
        writer = GroupWriter(write=write, conclude=self._conclude, patience_seconds=patience)
        return self._commits.run(Commit.of(changes, access, claim), writer)

    def _conclude(self, group: Sequence[Commit]) -> None:
        events = [event for one in group for event in one.events or ()]
        if events:
            self._connections.node.text = events[-1].node  # another process may give a new one

    def absorb(self, histories: Sequence[EntityHistory], *, access: Access) -> Absorbed:
        absorbed = absorb.absorb(self._connections, histories, access, self._surfaces, self._new_id)
        self._connections.node.text = absorbed.successor or self.node
        return absorbed

    def drop_vectors(self, signature: Signature) -> None:
        super().drop_vectors(signature)
        self.rebuild_index()

    def backup(self, destination: Path) -> None:
        if self._copy is None:
            raise StoreError("This store was opened without a function that copies it into a file.")
        self._copy(self, destination)

    def settle(self) -> None:
        self._connections.check_open()

    def examine(self, now: datetime, *, deep: bool = False) -> list[Trouble]:
        return checks.examine(self._connections, now, deep=deep)

    def repair(self, repair: str, now: datetime) -> None:
        if repair == "index":
            self.rebuild_index()
        else:
            repair_store(self._connections, repair, now)

    @property
    def closed(self) -> bool:
        return self._connections.pool.closed

    def close(self) -> None:
        self._hnsw.close()
        self._leave()
        self._connections.close()


def _program(who: Who) -> str:
    """The name of our sessions for an administrator of the server; it keeps 63 bytes."""
    where = f"@{who.host}" if who.host else ""
    return f"{who.command or 'vestige'} ({who.pid}{where})"[:63]
