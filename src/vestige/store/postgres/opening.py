"""Opens a store: checks the server, creates or upgrades the schema, and determines the node."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from psycopg import Connection, errors, sql

from vestige import __version__
from vestige.core.errors import StoreBusy, StoreError, StoreReadOnly
from vestige.core.lazy_dataclass import dataclass
from vestige.store import migrations
from vestige.store.migrations import AppliedMigration, Migration
from vestige.store.postgres.connection import NodeId, PostgresConnections, connect, connector, prepare, value
from vestige.store.postgres.processes.locks import Lock, signed
from vestige.store.postgres.server.address import ServerAddress, limits
from vestige.store.postgres.server.errors import translated
from vestige.store.postgres.server.pool import ConnectionPool, LoginRefused, ServerUnreachable, ServerWait
from vestige.store.postgres.server.requirements import (
    check_server,
    extension_schema,
    no_schema_made,
    no_tables_made,
    shared_sessions,
    strangers,
)
from vestige.store.sql.database import Database
from vestige.store.sql.filters import moment_text
from vestige.store.sql.merge import arrivals

MIGRATION_WAITS = 12
"""The factor of the patience for another process that upgrades the store, over that for a write."""
HOPELESS = (
    *("could not translate host name", "failed to resolve host", "does not exist", "invalid "),
    *("SSL error: ", "does not match host name", "does not support SSL"),
)
"""Errors that waiting does not cure: an unknown host, a missing database or certificate, an invalid
parameter, a server that is not the one it claims to be. In other languages they are not recognised, and the
wait is in vain."""

NOT_MADE = "Run `vestige db init` as a user who may write, on the primary server."

RECORDS = (
    "CREATE TABLE IF NOT EXISTS schema_migrations (version BIGINT PRIMARY KEY, name TEXT NOT NULL UNIQUE,"
    " applied_at TEXT NOT NULL, checksum TEXT NOT NULL, written_by TEXT NOT NULL)"
)
# Not by its name alone: other programs have a table of this name, also in schemas of the path.
RECORDED = (
    "SELECT count(*) = 2 FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid"
    " WHERE c.relnamespace = current_schema()::regnamespace AND c.relname = 'schema_migrations'"
    " AND a.attname IN ('checksum', 'written_by')"
)
STRANGERS = (
    "SELECT c.relname FROM pg_class c WHERE c.relnamespace = %s AND c.relkind IN ('r', 'p', 'v', 'm')"
    " AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')"
    " ORDER BY c.relname LIMIT 1"
)
SCHEMA = "SELECT oid, has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = %s"
VECTOR_TYPE = (
    "SELECT t.oid FROM pg_type t JOIN pg_extension e ON e.extnamespace = t.typnamespace"
    " WHERE t.typname = 'vector' AND e.extname = 'vector'"
)
READS_ONLY = "SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool"
DATABASE = "(SELECT oid FROM pg_database WHERE datname = current_database())"
SYSTEM = "(SELECT system_identifier FROM pg_control_system())"
MAY_ASK_SYSTEM = "SELECT has_function_privilege('pg_control_system()', 'EXECUTE')"
TIMELINE = "left(pg_walfile_name(pg_current_wal_lsn()), 8)"
MAY_ASK_TIMELINE = (
    "SELECT has_function_privilege('pg_walfile_name(pg_lsn)', 'EXECUTE')"
    " AND has_function_privilege('pg_current_wal_lsn()', 'EXECUTE')"
)
MAY_WRITE = "SELECT has_table_privilege('events', 'INSERT')"
BACKEND = "SELECT pg_backend_pid()"
WRITE_LOCK = "SELECT pg_advisory_xact_lock(%s::int4, %s::int4)"


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresDependencies:
    """The dependencies of a store."""

    sleep: Callable[[float], None]
    monotonic: Callable[[], float]
    new_id: Callable[[], str]
    now: Callable[[], datetime]
    wait_seconds: float
    statement_seconds: float
    most_connections: int
    program: str = "vestige"

    @property
    def waiting(self) -> ServerWait:
        return ServerWait(sleep=self.sleep, monotonic=self.monotonic)


@cache
def schema() -> tuple[Migration, ...]:
    """The migrations that belong to this version."""
    return tuple(migrations.load(Path(__file__).with_name("migrations")))


def pending(done: Sequence[AppliedMigration]) -> list[Migration]:
    """The pending ones of those; StoreTooNew and StoreError as in `migrations.pending`."""
    return migrations.pending(schema(), done, elsewhere="storage.postgres.schema")


def open_connections(place: ServerAddress, around: PostgresDependencies) -> PostgresConnections:
    """The connections to a store, upgraded to the present schema, with its node id."""
    with translated(place), ExitStack() as undo:
        db = undo.enter_context(_connected(place, around))
        check_server(db, place)
        _refuse_shared_sessions(db, place, around)
        # Before the extension and the schema are made, which may take longer than an administrator allows.
        db.execute(limits(0, db.info.server_version).encode())
        read_only = bool(value(db, READS_ONLY))
        found = replace(place, extension_schema=extension_schema(db, place, read_only=read_only))
        oid = _schema_oid(db, found, read_only=read_only)
        db.execute(found.settings(0, db.info.server_version).encode())
        _bring_up_to_date(db, found, oid, around, read_only=read_only)
        read_only = read_only or not value(db, MAY_WRITE)
        node = NodeId(_settle(db, oid, around, read_only=read_only))
        vector_oid = int(value(db, VECTOR_TYPE))
        check = (lambda db: None) if read_only else _failover_check(db, node, oid, around)
        pool = ConnectionPool(
            connect=connector(
                found, around.program, around.wait_seconds, around.statement_seconds, vector_oid, check
            ),
            most=around.most_connections,
            waiting=around.waiting,
        )
        prepare(db, found, around.statement_seconds, vector_oid)
        undo.pop_all()
        pool.add(db)
    return PostgresConnections(
        place=found,
        pool=pool,
        node=node,
        schema_oid=oid,
        wait_seconds=around.wait_seconds,
        statement_seconds=around.statement_seconds,
        read_only=read_only,
    )


@contextmanager
def upgrading(connections: PostgresConnections) -> Iterator[None]:
    """Get the exclusive right to upgrade a store; waits for another process, but not for ever."""
    patience = max(1, round(1000 * MIGRATION_WAITS * connections.wait_seconds))
    lock = f"{Lock.UPGRADES}, {signed(connections.schema_oid)}"
    with closing(connections.apart()) as db:  # the lock ends with the session
        try:
            db.execute(f"SET statement_timeout = 0; SET lock_timeout = {patience}".encode())
            db.execute(f"SELECT pg_advisory_lock({lock})".encode())
        except errors.LockNotAvailable as exc:
            raise _upgraded_elsewhere(connections.place) from exc
        yield


def applied(db: Connection[Any]) -> list[AppliedMigration]:
    """The applied migrations of the session's schema; none for an empty one."""
    if not value(db, RECORDED):
        return []
    rows = db.execute("SELECT version, name, checksum, written_by FROM schema_migrations ORDER BY version")
    return [AppliedMigration(version=row[0], name=row[1], checksum=row[2], written_by=row[3]) for row in rows]


def _connected(place: ServerAddress, around: PostgresDependencies) -> Connection[Any]:
    """The first connection. It waits for a server that is away or starting."""
    again = around.waiting.turns(around.wait_seconds)
    while True:
        try:
            return connect(place, program=around.program, wait_seconds=around.wait_seconds)
        except LoginRefused:
            raise
        except ServerUnreachable as exc:
            if any(words in str(exc) for words in HOPELESS) or not again():
                raise


def _refuse_shared_sessions(db: Connection[Any], place: ServerAddress, around: PostgresDependencies) -> None:
    """StoreError behind a connection pooler that hands a session to another client between transactions:
    settings, locks and LISTEN would be those of anybody.

    A pooler gives its clients process numbers of its own. Then a second client shows how it pools: while both
    are connected, neither may come to the session of the other."""
    first = value(db, BACKEND)
    if first == db.info.backend_pid:
        return
    with closing(connect(place, program=around.program, wait_seconds=around.wait_seconds)) as other:
        if value(other, BACKEND) != first and value(db, BACKEND) == first:
            return
    raise shared_sessions(place)


def _schema_oid(db: Connection[Any], place: ServerAddress, *, read_only: bool) -> int:
    found = db.execute(SCHEMA, (place.schema,)).fetchone()
    if found is None:
        _create_schema(db, place, read_only=read_only)
        found = db.execute(SCHEMA, (place.schema,)).fetchone()
    if found is None or not found[1]:
        raise StoreError(
            f"This user may not use the schema {place.schema}. ({place})",
            hint=f"Let its owner run: GRANT USAGE ON SCHEMA {place.schema} TO <user>;",
            details={"store": str(place)},
        )
    return int(found[0])


def _create_schema(db: Connection[Any], place: ServerAddress, *, read_only: bool) -> None:
    if read_only:
        raise StoreReadOnly(
            f"There is no store here, and none can be created: the server is read-only. ({place})",
            hint=NOT_MADE,
            details={"store": str(place)},
        )
    try:
        db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(place.schema)))
    except errors.UniqueViolation:
        pass  # another process was faster, which IF NOT EXISTS does not see
    except errors.InsufficientPrivilege as exc:
        raise no_schema_made(place) from exc


def _bring_up_to_date(
    db: Connection[Any], place: ServerAddress, oid: int, around: PostgresDependencies, *, read_only: bool
) -> None:
    """Apply the pending migrations, each in one transaction with its record."""
    todo = pending(applied(db))
    if todo and read_only:
        raise StoreReadOnly(
            f"There is no store of this version, and none can be created: the server is read-only. ({place})",
            hint=NOT_MADE,
            details={"store": str(place)},
        )
    if not todo:
        return
    patience = round(1000 * MIGRATION_WAITS * around.wait_seconds)
    try:
        db.execute(f"SET lock_timeout = {patience}".encode())
        for step in todo:
            _apply(db, place, oid, step, around.now())
        db.execute("SET lock_timeout = 0")
    except errors.LockNotAvailable as exc:
        raise _upgraded_elsewhere(place) from exc
    except errors.InsufficientPrivilege as exc:
        raise no_tables_made(place) from exc


def _upgraded_elsewhere(place: ServerAddress) -> StoreBusy:
    return StoreBusy(
        f"Another process is upgrading the store and did not finish in time. ({place})",
        hint="Wait until it is done, then try again. Nothing was changed.",
        details={"store": str(place)},
    )


def _apply(db: Connection[Any], place: ServerAddress, oid: int, step: Migration, now: datetime) -> None:
    with db.transaction():
        for lock in (Lock.UPGRADES, Lock.WRITERS):
            db.execute(WRITE_LOCK, (lock, signed(oid)))
        done = {row.version for row in applied(db)}
        if step.version in done:
            return  # another process was faster
        table = None if done else value(db, STRANGERS, (oid,))
        if table is not None:
            raise strangers(place, table)
        db.execute(RECORDS)
        for statement in step.statements():
            db.execute(statement.encode())
        db.execute(
            "INSERT INTO schema_migrations (version, name, applied_at, checksum, written_by)"
            " VALUES (%s, %s, %s, %s, %s)",
            (step.version, step.name, moment_text(now), step.checksum, __version__),
        )


def _settle(db: Connection[Any], oid: int, around: PostgresDependencies, *, read_only: bool) -> str:
    """The node id of this installation; a new one where the database was copied from elsewhere."""
    known = db.execute("SELECT node, fingerprint FROM installation").fetchone()
    if read_only:
        if known is None:
            raise StoreReadOnly(hint=NOT_MADE)
        return str(known[0])
    fingerprint = _fingerprint(db, oid)
    if known is not None and known[1] == fingerprint:
        return str(known[0])
    with db.transaction():
        db.execute(f"SET LOCAL lock_timeout = {max(1, round(1000 * around.wait_seconds))}".encode())
        db.execute(WRITE_LOCK, (Lock.WRITERS, signed(oid)))
        known = db.execute("SELECT node, fingerprint FROM installation").fetchone()
        if known is not None and known[1] == fingerprint:
            return str(known[0])
        node = around.new_id()
        db.execute("DELETE FROM installation")
        db.execute(
            "INSERT INTO installation (one, node, fingerprint, since) VALUES (1, %s, %s, %s)",
            (node, fingerprint, moment_text(around.now())),
        )
    return node


def _failover_check(
    db: Connection[Any], node: NodeId, oid: int, around: PostgresDependencies
) -> Callable[[Connection[Any]], None]:
    """A function that takes a new node id when a new connection leads to another server than before: a
    promoted standby may lack the last writes of this node, and its numbers would be given out twice."""
    query = _fingerprint_query(db, oid)
    known = [value(db, query)]

    def check(db: Connection[Any]) -> None:
        found = value(db, query)
        if found is not None and found != known[0]:
            node.text = _settle(db, oid, around, read_only=False)
            known[0] = found

    return check


def _fingerprint(db: Connection[Any], oid: int) -> str:
    """A fingerprint that a copy of the database does not share: a restored dump has other numbers, and so has
    a copy within the server; a promoted standby, or an archive restored up to some moment, has another
    timeline.

    A copy of the server's files that is started in place of the original has the same fingerprint and is not
    noticed. A user without the right to read some of the parts uses the rest.
    """
    return str(value(db, _fingerprint_query(db, oid)))


def _fingerprint_query(db: Connection[Any], oid: int) -> str:
    """The statement by which this user reads the fingerprint; NULL on a standby."""
    server = SYSTEM if value(db, MAY_ASK_SYSTEM) else "0"
    # Not the timeline of the last checkpoint: that follows some time after a promotion.
    timeline = TIMELINE if value(db, MAY_ASK_TIMELINE) else "0"
    parts = f"{server}, {timeline}, {DATABASE}, {oid}"
    return f"SELECT CASE WHEN pg_is_in_recovery() THEN NULL ELSE concat_ws('-', {parts}) END"


# -- Incomplete transfers into this schema

# A user who may read the tables of a store, but not this one, can use the store all the same.
HAS_RECEIPT = (
    f"SELECT EXISTS (SELECT 1 FROM pg_class c WHERE c.relname = '{arrivals.TABLE}'"
    " AND c.relnamespace = current_schema()::regnamespace AND has_table_privilege(c.oid, 'SELECT'))"
)


def has_receipt(db: Database) -> bool:
    """Whether the table for receipts exists."""
    return bool(db.execute(HAS_RECEIPT).fetchone()[0])


def require_complete(db: Database, place: ServerAddress) -> None:
    """StoreError for an incomplete store."""
    if has_receipt(db) and not arrivals.is_complete(db):
        raise arrivals.incomplete(str(place))
