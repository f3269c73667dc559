"""The status of a database in PostgreSQL, without opening it as a store: nothing is changed."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from psycopg import Connection, sql

from vestige.core.errors import StoreTooNew
from vestige.store.contract.trouble import Connected, DatabaseStatus, TableStatus, Upgrade, of_newer
from vestige.store.postgres.check.schema import OBJECTS, expected, objects
from vestige.store.postgres.connection import connect
from vestige.store.postgres.opening import applied, pending, schema
from vestige.store.postgres.processes.locks import Lock
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.server.errors import translated
from vestige.store.postgres.server.requirements import check_server
from vestige.store.sql.check.schema import differences
from vestige.store.sql.merge import arrivals

CONNECT_SECONDS = 10
MOST_COUNTED = 1_000_000
"""A table with more rows than this, as far as the server knows, is not counted."""

SERVER = (
    "SELECT current_setting('server_version'), pg_database_size(current_database()),"
    " pg_is_in_recovery() OR current_setting('default_transaction_read_only')::bool,"
    " (SELECT extversion FROM pg_extension WHERE extname = 'vector'),"
    " (SELECT oid FROM pg_namespace WHERE nspname = %s)"
)
TABLES = (
    "SELECT relname, reltuples::bigint, pg_total_relation_size(oid) FROM pg_class"
    " WHERE relnamespace = %s AND relkind = 'r' ORDER BY relname"
)
# Another program may have a table of this name in a schema that is searched after ours.
RECORDED = "SELECT EXISTS (SELECT 1 FROM pg_class WHERE relnamespace = %s AND relname = 'schema_migrations')"
SESSIONS = (
    "SELECT a.pid, coalesce(a.usename, ''), a.application_name, host(a.client_addr), coalesce(a.state, ''),"
    " a.backend_start, EXISTS (SELECT 1 FROM pg_locks l WHERE l.pid = a.pid AND l.granted"
    " AND l.locktype = 'advisory' AND l.classid = %s AND l.objid = %s AND l.objsubid = 2)"
    " FROM pg_stat_activity a WHERE a.datname = current_database() AND a.backend_type = 'client backend'"
    " AND a.pid <> pg_backend_pid() ORDER BY a.backend_start, a.pid"
)


def status(place: ServerAddress) -> DatabaseStatus:
    """The status of a database and of the store in it. StoreError as when it is opened."""
    with translated(place), _looking(place) as db:
        version, size, read_only, extension, oid = _row(db, SERVER, (place.schema,))
        sessions, tables = _sessions(db, oid), _tables(db, place.schema, oid)
        try:
            upgrade = _upgrade(db, oid)
        except StoreTooNew as exc:
            upgrade = of_newer(exc)
        return DatabaseStatus(
            place=str(place),
            server=f"PostgreSQL {version.split()[0]}",
            extensions={"vector": extension},
            upgrade=upgrade,
            read_only=read_only,
            size_bytes=size,
            tables=tables,
            connections=tuple(one for one, _ in sessions),
            writer=next((one for one, writes in sessions if writes), None),
            complete=_complete(db, tables),
            missing=_missing(db, upgrade),
        )


def plan(place: ServerAddress) -> Upgrade:
    """The pending upgrade of a store, without a backup first; StoreTooNew for one of a newer Vestige."""
    with translated(place), _looking(place) as db:
        return _upgrade(db, _row(db, SERVER, (place.schema,))[4])


@contextmanager
def _looking(place: ServerAddress) -> Iterator[Connection[Any]]:
    with connect(place, program="vestige", wait_seconds=CONNECT_SECONDS) as db:
        check_server(db, place)
        db.execute(place.settings(0, db.info.server_version).encode())
        yield db


def _upgrade(db: Connection[Any], oid: int | None) -> Upgrade:
    made = oid is not None and _row(db, RECORDED, (oid,))[0]
    done = applied(db) if made else []
    steps = tuple(step.label for step in pending(done))
    return Upgrade(schema=done[-1].version if done else 0, known=len(schema()), steps=steps)


def _tables(db: Connection[Any], schema_name: str, oid: int | None) -> tuple[TableStatus, ...]:
    found = []
    for name, about, size in db.execute(TABLES, (oid or 0,)).fetchall():
        rows = about if about > MOST_COUNTED else _rows(db, schema_name, name)
        found.append(TableStatus(name=name, rows=rows, size_bytes=size))
    return tuple(found)


def _complete(db: Connection[Any], tables: Sequence[TableStatus]) -> bool:
    if not any(one.name == arrivals.TABLE and one.rows for one in tables):
        return True
    return arrivals.is_finished(_row(db, arrivals.RECEIPT)[0])


def _missing(db: Connection[Any], upgrade: Upgrade) -> tuple[str, ...]:
    if not upgrade.schema or upgrade.steps or upgrade.newer is not None:
        return ()
    found = differences(expected(db).objects, objects(db.execute(OBJECTS.encode())))
    return tuple(str(one.expected) for one in found if one.missing)


def _rows(db: Connection[Any], schema_name: str, table: str) -> int:
    counting = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema_name, table))
    return int(_row(db, counting)[0])


def _sessions(db: Connection[Any], oid: int | None) -> list[tuple[Connected, bool]]:
    names = ("session", "user", "program", "address", "state", "since")
    rows = db.execute(SESSIONS, (Lock.WRITERS, oid or 0)).fetchall()
    return [(Connected(**dict(zip(names, row[:6], strict=True))), bool(row[6])) for row in rows]


def _row(db: Connection[Any], query: str | sql.Composed, params: Sequence[object] = ()) -> tuple[Any, ...]:
    row = db.execute(query.encode() if isinstance(query, str) else query, params).fetchone()
    assert row is not None, "every query here returns one row"
    return tuple(row)
