"""The peer registry: each process that uses a store holds, by a session, the lock of its row in `present`.

The lock ends with the session, however the process ends, and all sessions see its holder. A row without a
lock belongs to a killed process; the next process removes it.
"""

import logging
import selectors
import socket
import threading
from collections.abc import Iterable
from contextlib import ExitStack, suppress
from dataclasses import asdict
from datetime import datetime
from typing import Any

import orjson
import psycopg
from psycopg import Connection, errors

from vestige.core.errors import StoreBusy, StoreUnavailable, VestigeError
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.processes import BRIEF, Holder, Who, kept, refuse_beside
from vestige.store.postgres.connection import PostgresConnections, value
from vestige.store.postgres.processes.locks import Lock, signed
from vestige.store.postgres.server.errors import translated
from vestige.store.sql.database import Row

logger = logging.getLogger(__name__)

# The lock of a row has one number of 64 bits, the schema's and the row's: no lock with two is the same.
_HELD = (
    "SELECT 1 FROM pg_locks l WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1"
    " AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
    " AND l.classid::bigint = {oid} AND l.objid::bigint = p.id"
)
LIVE = f"SELECT p.id, p.purpose, p.who FROM present p WHERE EXISTS ({_HELD})"
_SWEEP = f"DELETE FROM present p WHERE NOT EXISTS ({_HELD})"
_REGISTER = (
    "WITH here AS (INSERT INTO present (purpose, who) VALUES (%s, %s) RETURNING id)"
    " SELECT id, pg_advisory_lock((%s::bigint << 32) | id) FROM here"
)
_TRY = "SELECT pg_try_advisory_lock(%s::int4, %s::int4)"
_TAKE = "SELECT pg_advisory_lock(%s::int4, %s::int4)"
_STILL = "SELECT TRUE"
_TURN = "SELECT pg_advisory_xact_lock(%s::int4, %s::int4)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresPresence:
    """The registration of a process, until it is closed or the process ends."""

    id: int
    db: Connection[Any]

    def close(self) -> None:
        """Remove the registration. Its locks are freed first: a closed session frees them some time later."""
        with suppress(psycopg.Error):  # one that the server has ended has none
            leave = f"DELETE FROM present WHERE id = {self.id}; SELECT pg_advisory_unlock_all()"
            self.db.execute(leave.encode())
        self.db.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A registered process; with a purpose, one that has exclusive use."""

    id: int
    who: Who
    purpose: str


def present(rows: Iterable[Row]) -> list[Present]:
    """The registered processes, from rows of `LIVE`, in the order of their start."""
    found = [Present(id=number, purpose=purpose, who=_who(text)) for number, purpose, text in rows]
    return sorted(found, key=lambda one: (one.who.since, one.who.pid, one.id))


def join(
    connections: PostgresConnections,
    who: Who,
    *,
    patience_seconds: float | None = None,
    beside_any: bool = False,
) -> PostgresPresence:
    """Register this process. StoreBusy for a server beside an exclusive one, and for an exclusive server
    beside any other; servers start one after another."""
    oid = connections.schema_oid
    with ExitStack() as undo:
        db = undo.enter_context(connections.apart(patience_seconds))
        with translated(connections.place), db.transaction():
            if who.server and not beside_any:
                _take_turn(db, connections)
                others = (
                    one.who for one in present(db.execute(LIVE.format(oid=oid).encode())) if not one.purpose
                )
                refuse_beside(who, others, elsewhere="another storage.postgres.schema")
            db.execute(_SWEEP.format(oid=oid).encode())
            here = _register(db, oid, who, "")
        undo.pop_all()
        return here


def rejoin(connections: PostgresConnections, who: Who) -> PostgresPresence:
    """Register again after the session has ended; tried once. A server that started in the meantime did not
    see this one, so both continue and this logs a warning."""
    try:
        return join(connections, who, patience_seconds=0.0)
    except StoreBusy as exc:
        logger.warning(
            "storage.exclusive could not be kept while the database server was restarted. %s Both continue:"
            " stop one of them.",
            exc.message,
        )
        return join(connections, who, patience_seconds=0.0, beside_any=True)


def take(connections: PostgresConnections, who: Who, purpose: str) -> PostgresPresence:
    """Get exclusive use of a store until this is closed; StoreBusy, naming its holder."""
    brief, oid = purpose in BRIEF, connections.schema_oid
    lock = (Lock.BRIEFLY if brief else Lock.ALONE, signed(oid))
    again = connections.pool.waiting.turns(connections.wait_seconds)
    with ExitStack() as undo:
        db = undo.enter_context(connections.apart())
        with translated(connections.place):
            while not _took(db, lock, connections.wait_seconds if brief else 0.0):
                holder = _holder(db, oid, brief=brief)
                # No holder is named while another process takes or frees it, which takes a moment.
                if brief or holder is not None or not again():
                    raise kept(holder, details={"store": str(connections.place)})
            here = _register(db, oid, who, purpose)
        undo.pop_all()
        return here


def lead(db: Connection[Any], oid: int, *, held: bool) -> bool:
    """Become the leader by this session, unless another leads; one that `held` it leads while it answers."""
    if held:
        return bool(value(db, _STILL))
    return bool(value(db, _TRY, (Lock.LEADING, signed(oid))))


def _take_turn(db: Connection[Any], connections: PostgresConnections) -> None:
    db.execute(_patience(connections.wait_seconds))
    try:
        db.execute(_TURN, (Lock.STARTS, signed(connections.schema_oid)))
    except errors.LockNotAvailable as exc:
        raise StoreBusy("Another server is starting and does not finish.", hint="Try again.") from exc
    db.execute(f"SET LOCAL statement_timeout = {round(1000 * connections.statement_seconds)}".encode())


def _took(db: Connection[Any], lock: tuple[int, int], wait_seconds: float) -> bool:
    """Take a lock, or wait for it: the server serves the queue in order."""
    if wait_seconds <= 0:
        return bool(value(db, _TRY, lock))
    try:
        with db.transaction():  # it ends with the waiting; the lock is the session's
            db.execute(_patience(wait_seconds))
            db.execute(_TAKE, lock)
    except errors.LockNotAvailable:
        return False
    return True


def _patience(wait_seconds: float) -> bytes:
    """The wait of a transaction for a lock, whatever the statement timeout. 0 would never end."""
    milliseconds = max(1, round(1000 * wait_seconds))
    return f"SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = {milliseconds}".encode()


def _register(db: Connection[Any], oid: int, who: Who, purpose: str) -> PostgresPresence:
    fields = asdict(who)
    if not who.parent:
        del fields["parent"]  # versions before it do not know the field
    text = orjson.dumps(fields).decode()
    return PostgresPresence(id=int(value(db, _REGISTER, (purpose, text, oid))), db=db)


def _holder(db: Connection[Any], oid: int, *, brief: bool) -> Holder | None:
    for one in present(db.execute(LIVE.format(oid=oid).encode())):
        if one.purpose and (one.purpose in BRIEF) == brief:
            return Holder(who=one.who, purpose=one.purpose)
    return None


def _who(text: str) -> Who:
    fields = orjson.loads(text)
    return Who(**{**fields, "since": datetime.fromisoformat(fields["since"])})


# -- Keeping the registration: the session is watched, and replaced when it ends

FIRST_PAUSE_SECONDS = 0.05
LONGEST_PAUSE_SECONDS = 5.0
SLOWER = 1.1
"""The factor by which each pause between two attempts grows: it is about a tenth of the time the server has
been away."""


class KeptPresence:
    """The registration of this process, until it is closed."""

    def __init__(self, connections: PostgresConnections, who: Who) -> None:
        self._connections = connections
        self._who = who
        self._here = join(connections, who)
        self._changed = threading.Condition()
        self._missed: int | None = None
        self._asked = self._leading = False
        self._ended = threading.Event()
        self._alarm, self._bell = socket.socketpair()
        self._thread = threading.Thread(target=self._stay, name="vestige-presence", daemon=True)
        self._thread.start()

    @property
    def id(self) -> int:
        """The number by which the others know it."""
        return self._here.id

    def come_back(self, gone: int) -> None:
        """Register again, when the others no longer see this id; waits as calls wait for the server."""
        with self._changed:
            if self._here.id == gone and not self._ended.is_set():
                self._missed = gone
                self._bell.send(b"!")
                self._changed.wait_for(
                    lambda: self._here.id != gone or self._ended.is_set(), self._connections.wait_seconds
                )

    def leads(self) -> bool:
        """Whether the process leads, or does from now on; False while the server does not answer. The thread
        finds out, because it owns the session."""
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
        """Remove the registration. Safe to call twice."""
        with self._changed:
            if self._ended.is_set():
                return
            self._ended.set()
            self._changed.notify_all()
            self._bell.send(b"!")
        # A thread that waits even longer, for a server that does not answer, closes what it opens then.
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
        """Sleep until the session ends, is missed by another process, or is to end."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._alarm, selectors.EVENT_READ)
            ready.register(db.fileno(), selectors.EVENT_READ)
            while not self._ended.is_set() and self._missed != self._here.id:
                for event, _ in ready.select():
                    if event.fileobj is self._alarm:
                        self._alarm.recv(64)
                        if not self._answered(db):
                            return
                    elif not _alive(db):
                        return

    def _answered(self, db: Connection[Any]) -> bool:
        """Answer whether the process leads; False when the session has ended."""
        if not self._asked:
            return True
        try:
            leading = lead(db, self._connections.schema_oid, held=self._leading)
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
        pause, warned = FIRST_PAUSE_SECONDS, False
        while not self._ended.is_set():
            try:
                here = rejoin(self._connections, self._who)
            except VestigeError as exc:
                if not (warned or self._ended.is_set() or isinstance(exc, StoreUnavailable)):
                    logger.warning("Other processes do not see this one: %s", exc.message)
                    warned = True
                self._ended.wait(pause)
                pause = min(SLOWER * pause, LONGEST_PAUSE_SECONDS)
            else:
                with self._changed:
                    self._here = here
                    self._changed.notify_all()
                return


def _alive(db: Connection[Any]) -> bool:
    """Whether the session is still alive: the server may have sent a final message, or only TLS data."""
    try:
        db.pgconn.consume_input()
    except psycopg.Error:
        return False
    return True
