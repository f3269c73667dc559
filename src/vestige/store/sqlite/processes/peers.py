"""The peers of a SQLite store: other processes that share its file, and exclusive work."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from vestige.core.errors import StoreReadOnly
from vestige.store.contract.answers import Notice
from vestige.store.contract.processes import BRIEF, Holder, Who
from vestige.store.fair_lock import FairLock
from vestige.store.sql.rows import notices
from vestige.store.sqlite.connection import HINTS, SqliteConnections, translated
from vestige.store.sqlite.processes import locks
from vestige.store.sqlite.processes.presence import SqlitePresence, join, lead, not_exclusive, present

PATIENCE_SECONDS = 0.2
"""The patience of notices for other writers: late ones are worth little."""


class SqlitePeers:
    """The peers of a store. `who` describes this process; one that only reads may leave it out."""

    def __init__(self, connections: SqliteConnections, who: Who | None) -> None:
        self._shared = connections
        self._hasty = _hasty(connections)
        self._who = who
        self._line = FairLock(who, {"path": str(connections.path)})
        self._here: SqlitePresence | None = None
        self._lead: int | None = None
        self._leading = threading.Lock()
        self._ended = threading.Event()
        if who is not None and who.exclusive and connections.read_only:
            raise not_exclusive(connections.path, "it can only be read")
        if who is not None and not connections.read_only:
            waiting = connections.waiting
            self._here = join(connections.path, who, waiting.turns(waiting.deadline_seconds))

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        self._shared.check_open()
        path, waiting = self._shared.path, self._shared.waiting
        if self._who is None or self._shared.read_only:
            raise StoreReadOnly(hint=HINTS[StoreReadOnly], details={"path": str(path)})
        with ExitStack() as held:
            seconds = waiting.deadline_seconds
            waited = purpose in BRIEF and held.enter_context(self._line.turn(purpose, seconds))
            more = waiting.turns(seconds)
            if waited:
                more()  # sleeps like other processes do, so that they get a turn

            def again(holder: Holder | None) -> bool:
                # No holder is named while another process takes the lock or reads it, which takes a moment.
                return (holder is None or holder.purpose in BRIEF) and more()

            with translated(path):
                handle = locks.take(path, purpose, self._who, again=again)
            held.callback(locks.release, handle)
            yield

    def processes(self) -> list[Who]:
        self._shared.check_open()
        return present(self._shared.path)

    def has_peers(self) -> bool:
        return len(self.processes()) > 1

    def leading(self) -> bool:
        with self._leading:
            self._shared.check_open()
            if self._lead is None and self._who is not None and not self._shared.read_only:
                try:
                    self._lead = lead(self._shared.path)
                except OSError:  # duplicate work is better than none
                    return True
            return self._lead is not None

    @property
    def lingers_in(self) -> str | None:
        """The write-ahead log, while a reader keeps it from being truncated."""
        return self._shared.journal.lingers_in

    def notify(self, process: str, messages: Sequence[str]) -> None:
        with self._hasty.writing() as db:
            notices.add(db, process, messages)

    def notices(self, after: int) -> list[Notice]:
        with self._shared.reading(snapshot=False) as db:
            return notices.after(db, after)

    @contextmanager
    def listening(self) -> Iterator[Callable[[float], bool]]:
        """A file sends no notification: the listener looks again when its wait is over."""
        self._shared.check_open()
        yield lambda seconds: not self._ended.wait(seconds)

    def _leave(self) -> None:
        """Remove this process from the registry."""
        self._ended.set()
        self._hasty.close()
        here, self._here = self._here, None
        if here is not None:
            here.close()
        with self._leading:
            held, self._lead = self._lead, None
        if held is not None:
            locks.unlock(held)


def _hasty(connections: SqliteConnections) -> SqliteConnections:
    """Separate connections for notices, so that no writer waits behind one that waits."""
    waiting = replace(connections.waiting, deadline_seconds=PATIENCE_SECONDS)
    return SqliteConnections(path=connections.path, waiting=waiting, uri=connections.uri)
