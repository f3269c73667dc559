"""A process stays among those that are seen: its session is watched, and another one made when it ends.

The server forgets the locks of a session that ends, as all do when it is restarted. Until the process is back
the others do not see it: they tell it no news, and a server may start beside one that wants the store for
itself. So its end is noticed at once, by a thread that sleeps for as long as the session lives.
"""

import logging
import selectors
import socket
import threading
from typing import Any

import psycopg
from psycopg import Connection

from vestige.errors import StoreUnavailable, VestigeError
from vestige.store.postgres import presence
from vestige.store.postgres.connection import Connections
from vestige.store.processes import Who

logger = logging.getLogger(__name__)

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0
SLOWER = 1.1
"""By so much each pause between two tries grows: it is about a tenth of the time the server has been away."""


class Staying:
    """The presence of this process, until it is closed."""

    def __init__(self, connections: Connections, who: Who) -> None:
        self._connections = connections
        self._who = who
        self._here = presence.join(connections, who)
        self._changed = threading.Condition()
        self._missed: int | None = None
        self._asked = self._leading = False
        self._ended = threading.Event()
        self._alarm, self._bell = socket.socketpair()
        self._thread = threading.Thread(target=self._stay, name="vestige-presence", daemon=True)
        self._thread.start()

    @property
    def id(self) -> int:
        """By which the others know it."""
        return self._here.id

    def come_back(self, gone: int) -> None:
        """Be seen again, when the others no longer see this id; waits for it as calls wait for the server."""
        with self._changed:
            if self._here.id == gone and not self._ended.is_set():
                self._missed = gone
                self._bell.send(b"!")
                self._changed.wait_for(
                    lambda: self._here.id != gone or self._ended.is_set(), self._connections.wait_seconds
                )

    def leads(self) -> bool:
        """Whether the process leads, or does from now on; no, while the server does not answer. The thread
        finds out: the session is its own."""
        with self._changed:
            if self._ended.is_set():
                return False
            self._asked = True
            self._bell.send(b"?")
            self._changed.wait_for(
                lambda: not self._asked or self._ended.is_set(), self._connections.wait_seconds
            )
            return self._leading and not self._asked

    def close(self) -> None:
        """Be seen no more. Safe to call twice."""
        with self._changed:
            if self._ended.is_set():
                return
            self._ended.set()
            self._changed.notify_all()
            self._bell.send(b"!")
        # A thread that waits even longer, for a server that does not answer, closes what it still makes.
        self._thread.join(self._connections.wait_seconds)
        self._alarm.close()
        self._bell.close()

    def _stay(self) -> None:
        while not self._ended.is_set():
            self._watch(self._here.db)
            if not self._ended.is_set():
                self._return()
        self._here.close()

    def _watch(self, db: Connection[Any]) -> None:
        """Sleep until the session ends, is missed by somebody, or is to end."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._alarm, selectors.EVENT_READ)
            ready.register(db.fileno(), selectors.EVENT_READ)
            while not self._ended.is_set() and self._missed != self._here.id:
                for told, _ in ready.select():
                    if told.fileobj is self._alarm:
                        self._alarm.recv(64)
                        if not self._answered(db):
                            return
                    elif not _alive(db):
                        return

    def _answered(self, db: Connection[Any]) -> bool:
        """Tell who asked whether the process leads; False when the session has ended."""
        if not self._asked:
            return True
        try:
            leading = presence.lead(db, self._connections.schema_oid, held=self._leading)
        except psycopg.Error:
            return False
        with self._changed:
            self._leading, self._asked = leading, False
            self._changed.notify_all()
        return True

    def _return(self) -> None:
        with self._changed:
            self._leading = False  # its lock has gone with the session
        self._here.db.close()
        self._connections.pool.renew()
        pause, told = FIRST_PAUSE_SECONDS, False
        while not self._ended.is_set():
            try:
                here = presence.rejoin(self._connections, self._who)
            except VestigeError as exc:
                if not (told or self._ended.is_set() or isinstance(exc, StoreUnavailable)):
                    logger.warning("Other processes do not see this one: %s", exc.message)
                    told = True
                self._ended.wait(pause)
                pause = min(SLOWER * pause, LONGEST_PAUSE_SECONDS)
            else:
                with self._changed:
                    self._here = here
                    self._changed.notify_all()
                return


def _alive(db: Connection[Any]) -> bool:
    """Whether the server goes on: what it sends may be its last words, or TLS that talks to itself."""
    try:
        db.pgconn.consume_input()
    except psycopg.Error:
        return False
    return True
