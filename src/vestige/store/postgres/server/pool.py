"""A pool of connections. A caller that finds none opens one, and waits for a server that is restarting.

The pool of psycopg connects in threads of its own. A caller that waits in vain gets no reason, and after a
restart it lends each of its dead connections once, or queries the server before every use. A child made by
`fork` must open a store of its own: two processes on one connection break it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import psycopg
from psycopg import Connection
from psycopg.pq import TransactionStatus

from vestige.core.errors import StoreBusy, StoreError
from vestige.core.lazy_dataclass import dataclass

RETRY_SECONDS = 0.05
IDLE_SECONDS = 600.0
"""A connection unused for this long is not used again: a firewall may have forgotten it."""


class ServerUnreachable(psycopg.OperationalError):
    """No connection could be opened. The driver's error would hold the password, this one does not."""


class LoginRefused(ServerUnreachable):
    """The server answers, and refuses this user."""


class Lost(psycopg.OperationalError):
    """The server ended a session before the commit: nothing of the transaction was kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerWait:
    """How to wait for a server or for another process."""

    sleep: Callable[[float], None]
    monotonic: Callable[[], float]

    def turns(self, seconds: float) -> Callable[[], bool]:
        """A function to call between attempts: it sleeps and returns True, until the seconds have passed."""
        deadline = self.monotonic() + seconds

        def again() -> bool:
            if self.monotonic() >= deadline:
                return False
            self.sleep(RETRY_SECONDS)
            return True

        return again


@dataclass(slots=True, kw_only=True)
class ConnectionPool:
    """At most `most` connections, each lent to one thread at a time."""

    connect: Callable[[], Connection[Any]]
    most: int
    waiting: ServerWait
    _idle: list[tuple[float, Connection[Any]]] = field(default_factory=list)
    _made: int = 0
    _closed: bool = False
    _renewed: float | None = None
    _changed: threading.Condition = field(default_factory=threading.Condition)

    def borrow(self, patience_seconds: float) -> Connection[Any]:
        """A connection to give back. StoreBusy when all are in use, ServerUnreachable when none opens."""
        again = self.waiting.turns(patience_seconds)
        idle = self._take(patience_seconds)
        if idle is not None:
            return idle
        try:
            while True:
                self.check_open()
                try:
                    return self.connect()
                except ServerUnreachable:
                    if not again():
                        raise
        except BaseException:
            self._discard([None])
            raise

    def give_back(self, db: Connection[Any]) -> None:
        """Return a connection to the pool; one that is dead or in a transaction is closed."""
        usable = not db.closed and db.info.transaction_status == TransactionStatus.IDLE
        with self._changed:
            if usable and not self._closed:
                self._idle.append((self.waiting.monotonic(), db))
                self._changed.notify()
                return
        self._discard([db])

    def add(self, db: Connection[Any]) -> None:
        with self._changed:
            self._made += 1
        self.give_back(db)

    def renew(self) -> None:
        """Close idle connections: one session has died, and others may have with it."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._renewed = self.waiting.monotonic()
        self._discard([db for _, db in idle])

    def renewed_within(self, seconds: float) -> bool:
        """Whether a session died within the last seconds."""
        return self._renewed is not None and self.waiting.monotonic() - self._renewed < seconds

    def close(self) -> None:
        """Close idle connections now, and lent ones when they come back. Safe to call twice."""
        with self._changed:
            self._closed = True
        self.renew()

    @property
    def closed(self) -> bool:
        return self._closed

    def check_open(self) -> None:
        """StoreError once it was closed."""
        if self._closed:
            raise StoreError("The store is closed.", hint="Open it again.")

    def _take(self, patience_seconds: float) -> Connection[Any] | None:
        """An idle connection; None when a new one is to be opened."""
        stale: list[Connection[Any] | None] = []
        try:
            with self._changed:
                if not self._changed.wait_for(self._available, patience_seconds):
                    raise StoreBusy(
                        f"All {self.most} connections of this process are in use.",
                        hint="Try again. If it lasts, raise storage.postgres.max_connections.",
                        details={"max_connections": self.most, "waited_seconds": patience_seconds},
                    )
                self.check_open()
                oldest = self.waiting.monotonic() - IDLE_SECONDS
                while self._idle:
                    since, db = self._idle.pop()  # the one used last: the others may go
                    if since >= oldest and not db.closed:
                        return db
                    stale.append(db)
                self._made += 1
                return None
        finally:
            self._discard(stale)

    def _available(self) -> bool:
        return self._closed or bool(self._idle) or self._made < self.most

    def _discard(self, gone: Sequence[Connection[Any] | None]) -> None:
        with self._changed:
            self._made -= len(gone)
            self._changed.notify(len(gone))
        for db in gone:
            if db is not None:
                db.close()
