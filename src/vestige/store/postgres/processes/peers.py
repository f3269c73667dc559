"""The peers of a PostgreSQL store: processes that share it, exclusive work, and notices."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import psycopg
from psycopg import Connection

from vestige.core.errors import StoreError, StoreReadOnly
from vestige.store.contract.answers import Notice
from vestige.store.contract.processes import BRIEF, Who
from vestige.store.fair_lock import FairLock
from vestige.store.postgres.connection import PostgresConnections
from vestige.store.postgres.processes import presence
from vestige.store.postgres.processes.presence import KeptPresence, Present
from vestige.store.postgres.server.errors import HINTS, translated
from vestige.store.sql.database import Database
from vestige.store.sql.rows import notices

PATIENCE_SECONDS = 0.2
"""The patience of notices for other writers: late ones are worth little."""
LOOK_UP_SECONDS = 0.2
"""The interval at which a listener checks whether the store was closed."""
SETTLING_SECONDS = 60.0
"""The time after a restart of the server in which others may not be back: all notice a lost connection within
a minute."""


class PostgresPeers:
    """The peers of a store. `MemoryStore` has the contract."""

    lingers_in: str | None = None
    """Deleted rows on the pages of the server are not readable by clients."""

    def __init__(self, connections: PostgresConnections, who: Who) -> None:
        self._shared = connections
        self._who = who
        self._line = FairLock(who, {"store": str(connections.place)})
        self._here: KeptPresence | None = None
        self._ended = threading.Event()
        if not connections.read_only:
            self._here = KeptPresence(connections, who)
        elif who.exclusive:
            raise StoreError(
                f"The store cannot be opened exclusively: it can only be read here. ({connections.place})",
                hint="Connect to the primary server, or start without --exclusive (storage.exclusive).",
                details={"store": str(connections.place)},
            )

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        """A restart of the server ends the exclusive use."""
        self._shared.check_open()
        if self._shared.read_only:
            raise StoreReadOnly(hint=HINTS[StoreReadOnly], details={"store": str(self._shared.place)})
        with ExitStack() as held:
            if purpose in BRIEF:  # threads wait here: a session for each of them would be too many
                held.enter_context(self._line.turn(purpose, self._shared.wait_seconds))
            held.callback(presence.take(self._shared, self._who, purpose).close)
            yield

    def processes(self) -> list[Who]:
        here = self._here
        number = -1 if here is None else here.id
        found = self._present()
        if here is not None and all(one.id != number for one in found):
            here.come_back(number)
            found = self._present()
        return [one.who for one in found if not one.purpose]

    def has_peers(self) -> bool:
        """Others may not have reconnected yet after a restart of the server."""
        others = len(self.processes()) > 1
        return others or self._shared.pool.renewed_within(SETTLING_SECONDS)

    def leading(self) -> bool:
        self._shared.check_open()
        here = self._here
        return here is not None and here.leads()

    def notify(self, process: str, messages: Sequence[str]) -> None:

        def send(db: Database) -> None:
            notices.add(db, process, messages)
            # Only that there are some, not their text: every user of the database may listen.
            db.execute(f"NOTIFY {self._channel}")

        self._shared.written(send, PATIENCE_SECONDS)

    def notices(self, after: int) -> list[Notice]:
        with self._shared.reading(snapshot=False) as db:
            return notices.after(db, after)

    @contextmanager
    def listening(self) -> Iterator[Callable[[float], bool]]:
        """The server notifies the listener; a standby does not."""
        self._shared.check_open()
        if self._shared.read_only:
            yield lambda seconds: not self._ended.wait(seconds)
            return
        listener = NoticeListener(self._shared, self._channel, self._ended)
        try:
            yield listener.wait
        finally:
            listener.close()

    @property
    def _channel(self) -> str:
        return f"vestige_{self._shared.schema_oid}"

    def _present(self) -> list[Present]:
        with self._shared.reading(snapshot=False) as db:
            return presence.present(db.execute(presence.LIVE.format(oid=self._shared.schema_oid)))

    def _leave(self) -> None:
        self._ended.set()
        here, self._here = self._here, None
        if here is not None:
            here.close()


class NoticeListener:
    """A session that listens for notices. It is opened when needed, and again after it was lost."""

    def __init__(self, connections: PostgresConnections, channel: str, ended: threading.Event) -> None:
        self._connections = connections
        self._channel = channel
        self._ended = ended
        self._db: Connection[Any] | None = None

    def wait(self, seconds: float) -> bool:
        """Wait; whether there may be a notice. At first, and after a restart, no session listened before."""
        self._connections.check_open()
        with translated(self._connections.place):
            if self._db is None:
                self._db = self._connections.apart(0.0)
                self._db.execute(f"LISTEN {self._channel}".encode())
                return True
            try:
                return self._heard(self._db, seconds)
            except psycopg.Error:
                self.close()
                raise

    def close(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _heard(self, db: Connection[Any], seconds: float) -> bool:
        left = seconds
        while left > 0 and not self._ended.is_set():
            for _ in db.notifies(timeout=min(left, LOOK_UP_SECONDS), stop_after=1):
                return True
            left -= LOOK_UP_SECONDS
        return False
