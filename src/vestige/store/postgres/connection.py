"""Connections to one store in PostgreSQL: transactions, and the driver's errors translated.

All write transactions of a store take one lock first, in the order in which they ask for it. So they come one
after the other, as they do in SQLite: no deadlock, no lost update, and positions of the log in the order of
commits. Embedding and analysing, which are slow, are done before.

Sessions hold settings, locks and subscriptions, so a proxy that shares a session among clients (pgbouncer in
transaction mode) is refused (`opening`). One that keeps sessions apart (session mode) works.
"""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import Connection, errors
from psycopg.conninfo import make_conninfo
from psycopg.pq import TransactionStatus

from vestige.core.errors import StoreBusy, StoreReadOnly, StoreUnavailable
from vestige.core.lazy_dataclass import dataclass
from vestige.store.postgres.processes.locks import Lock, signed
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.server.dialect import respelled
from vestige.store.postgres.server.errors import HINTS, other_schema, translated
from vestige.store.postgres.server.pool import ConnectionPool, LoginRefused, Lost, ServerUnreachable
from vestige.store.postgres.server.values import register
from vestige.store.sql.database import Params, Rows
from vestige.store.sql.filters import is_read_only, storable_params

T = TypeVar("T")

# The driver warns of what it ignores when a session ends in the middle of something; we report the cause.
logging.getLogger("psycopg").setLevel(logging.ERROR)

STALLED_SECONDS = 60.0
"""The server ends the session of a writer that sends nothing for this long between two statements, so that
other processes can write. Statements that are sent together (`piped`) are one to the server."""
READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
HOLDER = (
    "SELECT a.application_name, a.client_addr::text, a.pid"
    " FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid"
    " WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = ? AND l.objid = ?"
    " AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())"
)
KEPT_ALIVE = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
}
"""The keep-alive settings: a server that vanished is noticed within a minute, not within two hours."""
REFUSALS = re.compile(
    r'authentication failed|no password supplied|pg_hba\.conf|role ".{1,256}" does not exist'
)
"""Messages of a server that refuses a login: before a session there is no error code. In other languages they
are reported like any other connection error."""


def is_lost(exc: psycopg.Error, db: Connection[Any]) -> bool:
    """Whether the server ended the session, so that a new one may succeed."""
    gone = (errors.AdminShutdown, errors.CrashShutdown, errors.IdleInTransactionSessionTimeout)
    # Leaving a pipeline whose session was ended, the driver raises an error of its own, without a code.
    broke = type(exc) is psycopg.OperationalError and exc.sqlstate is None
    return db.broken or db.closed or broke or isinstance(exc, gone)


class PostgresSession:
    """A connection lent from the pool, as a `Database`.

    The first statement shows whether the session is still alive: the server may have been restarted since it
    was last used. Then another one is tried, before anything has been done.
    """

    def __init__(self, pool: ConnectionPool, patience_seconds: float) -> None:
        self._pool = pool
        self._patience = patience_seconds
        self._again = pool.waiting.turns(patience_seconds)
        self._db: Connection[Any] | None = pool.borrow(patience_seconds)
        self._begun = False
        self._opening: bytes | None = None

    @property
    def connection(self) -> Connection[Any]:
        if self._db is None:
            raise Lost("the session was lost, and no other could be opened")
        return self._db

    def execute(self, sql: str, parameters: Params = (), /) -> Rows:
        """Run one statement that may be spelled as in `store.sql`."""
        spelled = respelled(sql).encode()
        try:
            rows: Rows = self._run(lambda db: db.execute(spelled, parameters, binary=True))
        except (psycopg.DataError, UnicodeEncodeError) as exc:
            # Raised by the driver: nothing was sent yet.
            if getattr(exc, "sqlstate", None) is not None or not is_read_only(sql):
                raise
            rows = self._run(lambda db: db.execute(spelled, storable_params(parameters), binary=True))
        return rows

    def executemany(self, sql: str, parameters: Iterable[Params], /) -> None:
        """Run one statement for each of these, sent together."""
        rows = list(parameters)
        if rows:
            self._run(lambda db: db.cursor().executemany(respelled(sql).encode(), rows))

    def begin(self, opening: str) -> None:
        """Begin a transaction in the same trip as its first statement."""
        self._opening = opening.encode()

    def finish(self) -> None:
        """End a transaction that only read, if one was begun."""
        if self.connection.info.transaction_status != TransactionStatus.IDLE:
            self.command("COMMIT")

    @contextmanager
    def piped(self) -> Iterator[None]:
        """Send statements one after the other, without waiting for answers that are not read."""
        db = self.connection
        try:
            with db.pipeline():
                yield
        except psycopg.Error as exc:  # it may have come while rows were read
            if is_lost(exc, db):
                db.close()
                raise Lost(str(exc)) from exc
            raise

    def command(self, sql: str) -> None:
        """Run statements without values, in one trip."""
        self._run(lambda db: db.execute(sql.encode()))

    def asked(self, sql: str) -> Any:  # whatever the column holds
        """Run statements without values, in one trip; the value that the last one selects."""
        answers: psycopg.Cursor[Any] = self._run(lambda db: db.execute(sql.encode()))
        while answers.nextset():
            pass
        found = answers.fetchone()
        return None if found is None else found[0]

    def commit(self, place: ServerAddress) -> None:
        """End a transaction that wrote something."""
        db = self.connection
        try:
            answer = db.execute(b"COMMIT").statusmessage
        except psycopg.Error as exc:
            if not is_lost(exc, db):
                raise
            if isinstance(exc, errors.IdleInTransactionSessionTimeout):  # it ended before it was asked
                raise Lost(str(exc)) from exc
            raise StoreUnavailable(
                f"The server did not answer a commit: the write may have been kept or not. ({place})",
                hint="Check whether it is there before you write it again; with an idempotency key just"
                " repeat it.",
                details={"store": str(place), "outcome": "unknown"},
            ) from exc
        if answer != "COMMIT":  # a statement failed before, unnoticed
            raise errors.InFailedSqlTransaction("the transaction was rolled back")

    def roll_back(self) -> None:
        """Undo what was not committed."""
        db = self._db
        if db is not None and not db.closed and db.info.transaction_status != TransactionStatus.IDLE:
            with suppress(psycopg.Error):
                db.rollback()

    def end(self) -> None:
        """Undo what was not committed, and give the connection back."""
        self.roll_back()
        db, self._db = self._db, None
        if db is not None:
            self._pool.give_back(db)

    def _run(self, action: Callable[[Connection[Any]], Any]) -> Any:  # what the driver answers
        while True:
            db = self.connection
            try:
                with self._opened(db):
                    answer = action(db)
            except psycopg.Error as exc:
                if not is_lost(exc, db):
                    raise
                db.close()
                if self._begun or not self._again():
                    raise Lost(str(exc)) from exc
                self._replace(db)
            else:
                self._begun = True
                return answer

    @contextmanager
    def _opened(self, db: Connection[Any]) -> Iterator[None]:
        """Inside the transaction that is to begin."""
        if self._opening is None or db.info.transaction_status != TransactionStatus.IDLE:
            yield
            return
        with db.pipeline():
            db.execute(self._opening)
            yield

    def _replace(self, dead: Connection[Any]) -> None:
        self._db = None
        self._pool.give_back(dead)
        self._pool.renew()
        self._db = self._pool.borrow(self._patience)


@dataclass(slots=True)
class NodeId:
    """The node id under which a process writes; a fail-over to another server changes it."""

    text: str


@dataclass(slots=True, kw_only=True)
class PostgresConnections:
    """The open connections of one store."""

    place: ServerAddress
    pool: ConnectionPool
    node: NodeId
    schema_oid: int
    wait_seconds: float
    statement_seconds: float
    read_only: bool = False

    @contextmanager
    def reading(self, *, snapshot: bool = True) -> Iterator[PostgresSession]:
        """A session for reading; with `snapshot` in a transaction that sees one moment."""
        with translated(self.place), self._lent(self.wait_seconds) as session:
            if snapshot:
                session.begin(READ)
            yield session
            session.finish()

    def read(self, work: Callable[[PostgresSession], T], *, snapshot: bool = True) -> T:
        """The result of `work`, with such a session."""

        def reading() -> T:
            with self.reading(snapshot=snapshot) as session:
                return work(session)

        return self.repeated(reading)

    def repeated(self, read: Callable[[], T]) -> T:
        """The result of `read`, repeated once if the session was ended: the query may be what ends it. Also
        if a standby cancelled it, because it replays the removal of rows that the query could still see."""
        try:
            return read()
        except (StoreUnavailable, StoreBusy) as exc:
            if not isinstance(exc.__cause__, (Lost, errors.SerializationFailure)):
                raise
        return read()

    @contextmanager
    def writing(self, patience_seconds: float | None = None) -> Iterator[PostgresSession]:
        """A session inside the one write transaction: committed at the end, undone on any error."""
        with translated(self.place), self._write_transaction(patience_seconds) as session:
            yield session

    def written(self, work: Callable[[PostgresSession], T], patience_seconds: float | None = None) -> T:
        """The result of `work` in the one write transaction. It is repeated when the server rolled it back:
        because of another transaction, or because it was restarted before the commit was requested."""
        again = self.pool.waiting.turns(self.patience(patience_seconds))
        with translated(self.place):
            while True:
                try:
                    with self._write_transaction(patience_seconds) as session, session.piped():
                        return work(session)
                except (Lost, errors.SerializationFailure, errors.DeadlockDetected):
                    if not again():
                        raise

    @contextmanager
    def unhurried(self) -> Iterator[PostgresSession]:
        """A session outside any transaction whose statements have no time limit."""
        with translated(self.place), self._lent(self.wait_seconds) as session:
            session.command("SET statement_timeout TO 0")
            try:
                yield session
            finally:
                with suppress(psycopg.Error):  # of a dead session, which is not used again
                    session.roll_back()
                    session.command(f"SET statement_timeout TO {round(1000 * self.statement_seconds)}")

    def apart(self, patience_seconds: float | None = None) -> Connection[Any]:
        """A separate connection for long use; the caller closes it."""
        self.check_open()
        with translated(self.place):
            again = self.pool.waiting.turns(self.patience(patience_seconds))
            while True:
                try:
                    return _kept_idle(self.pool.connect())
                except ServerUnreachable:
                    if not again():
                        raise

    def close(self) -> None:
        """Close idle connections now, and lent ones when they come back. Safe to call twice."""
        self.pool.close()

    def check_open(self) -> None:
        """StoreError once it was closed."""
        self.pool.check_open()

    def patience(self, wanted: float | None) -> float:
        return self.wait_seconds if wanted is None else min(wanted, self.wait_seconds)

    @contextmanager
    def _lent(self, patience_seconds: float) -> Iterator[PostgresSession]:
        session = PostgresSession(self.pool, patience_seconds)
        try:
            yield session
        finally:
            session.end()

    @contextmanager
    def _write_transaction(self, patience_seconds: float | None) -> Iterator[PostgresSession]:
        self.check_open()
        if self.read_only:
            raise StoreReadOnly(hint=HINTS[StoreReadOnly], details={"store": str(self.place)})
        patience = self.patience(patience_seconds)
        with self._lent(patience) as session:
            self._take_turn(session, patience)
            yield session
            session.commit(self.place)

    def _take_turn(self, session: PostgresSession, patience_seconds: float) -> None:
        lock = f"{Lock.WRITERS}, {signed(self.schema_oid)}"
        try:
            # In one trip. A lock timeout of 0 would never end.
            present = session.asked(
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0;"
                f" SET LOCAL lock_timeout = {max(1, round(1000 * patience_seconds))};"
                f" SELECT pg_advisory_xact_lock({lock}); SET LOCAL lock_timeout = 0;"
                f" SET LOCAL statement_timeout = {round(1000 * self.statement_seconds)};"
                f" SET LOCAL idle_in_transaction_session_timeout = {round(1000 * STALLED_SECONDS)};"
                " SELECT current_schema()::regnamespace::oid"
            )
        except errors.LockNotAvailable as exc:
            session.roll_back()
            raise self._kept_busy(session, patience_seconds) from exc
        if present != self.schema_oid:  # our lock would be another one's, and so would the node
            raise other_schema(self.place)

    def _kept_busy(self, session: PostgresSession, waited_seconds: float) -> StoreBusy:
        found = session.execute(HOLDER, (Lock.WRITERS, self.schema_oid)).fetchone()
        details: dict[str, Any] = {"store": str(self.place), "waited_seconds": waited_seconds}
        stayed = f"The store stayed busy for {waited_seconds:.1f} s"
        if found is None:
            return StoreBusy(f"{stayed}: other processes kept writing.", hint="Try again.", details=details)
        program, address, pid = found
        where = f" at {address}" if address else ""
        return StoreBusy(
            f"{stayed}: {program or 'a program'}{where} is writing and does not finish.",
            hint="Try again. If it lasts, stop that process, or let an administrator end its session with"
            f" SELECT pg_terminate_backend({pid});",
            details={**details, "program": program, "address": address, "session": pid},
        )


def connect(place: ServerAddress, *, program: str, wait_seconds: float) -> Connection[Any]:
    """A connection in autocommit mode: transactions are always explicit here. ServerUnreachable without one,
    LoginRefused if the server refuses the user."""
    waiting = {"connect_timeout": max(2, round(wait_seconds)), **KEPT_ALIVE}
    wanted = {"application_name": program, **{name: str(value) for name, value in waiting.items()}}
    ours = {name: value for name, value in wanted.items() if name not in place.options}
    try:
        return psycopg.connect(make_conninfo(place.url, client_encoding="utf8", **ours), autocommit=True)
    except psycopg.OperationalError as exc:
        said = place.without_secrets(str(exc))
    # Not from within: the driver's error holds the connection, and that the password.
    raise (LoginRefused if REFUSALS.search(said) else ServerUnreachable)(said)


def _kept_idle(db: Connection[Any]) -> Connection[Any]:
    """A session that the server does not end for being idle, whatever its `idle_session_timeout`."""
    try:
        db.execute("SET idle_session_timeout TO 0")
    except psycopg.Error as exc:
        db.close()
        raise ServerUnreachable(str(exc)) from exc
    return db


def value(db: Connection[Any], query: str, params: Sequence[object] = ()) -> Any:  # whatever the column holds
    """The first value of the first row; None without a row."""
    row = db.execute(query.encode(), params).fetchone()
    return None if row is None else row[0]


def connector(
    place: ServerAddress,
    program: str,
    wait_seconds: float,
    statement_seconds: float,
    vector_oid: int,
    check: Callable[[Connection[Any]], None],
) -> Callable[[], Connection[Any]]:
    """A function that makes connections with the store's schema and types, each checked once."""

    def make() -> Connection[Any]:
        db = connect(place, program=program, wait_seconds=wait_seconds)
        try:
            prepare(db, place, statement_seconds, vector_oid)
            check(db)
        except psycopg.Error as exc:
            db.close()
            raise ServerUnreachable(str(exc)) from exc
        return db

    return make


def prepare(db: Connection[Any], place: ServerAddress, statement_seconds: float, vector_oid: int) -> None:
    db.execute(place.settings(statement_seconds, db.info.server_version).encode())
    register(db, vector_oid)
