"""Databases that are as if just made, thousands of times: the rows of the last user are deleted.

A copy of a template costs 64 ms with its removal, deleting the few rows of a test 4 ms (ADR 0018).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import psycopg
from psycopg import sql

from testbed.postgres_server import Server

_LARGEST_GROWTH = 4_000_000
"""Bytes by which tables may grow before their database is replaced: deleted rows keep their place."""

_TABLES = """
SELECT t.relname, EXISTS (
    SELECT FROM pg_index i JOIN pg_class x ON x.oid = i.indexrelid JOIN pg_am a ON a.oid = x.relam
    WHERE i.indrelid = t.oid AND a.amname IN ('hnsw', 'ivfflat'))
FROM pg_class t WHERE t.relkind = 'r' AND t.relnamespace = 'public'::regnamespace ORDER BY t.relname"""

_SEQUENCES = """
SELECT sequencename, coalesce(last_value, start_value), last_value IS NOT NULL
FROM pg_sequences WHERE schemaname = 'public' ORDER BY sequencename"""

# Everything with a name in the schema, with the columns it has; and the bytes of all tables.
_SHAPE = """
SELECT md5(string_agg(format('%s %s %s', c.relname, c.relkind, a.columns), ',' ORDER BY c.relname)),
    sum(CASE c.relkind WHEN 'r' THEN pg_relation_size(c.oid) ELSE 0 END)::bigint
FROM pg_class c
CROSS JOIN LATERAL (
    SELECT string_agg(format('%s %s', attname, atttypid), ',' ORDER BY attnum) AS columns
    FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped) a
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p', 'i', 'S', 'v', 'm')"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """What a database looked like when it was new, and what brings its rows back."""

    shape: str
    size: int
    vector_tables: tuple[str, ...]
    emptying: sql.Composed
    rows: dict[str, bytes]


@dataclass(slots=True)
class FreshDatabases:
    """Hands out databases that look as `prepare` leaves them, and takes them back."""

    server: Server
    prepare: Callable[[str], None]
    _template: str | None = None
    _original: Original | None = None
    _sessions: dict[str, psycopg.Connection] = field(default_factory=dict)
    _free: list[str] = field(default_factory=list)

    def take(self) -> str:
        """The URL of a database that nobody uses."""
        if self._free:
            return self._free.pop()
        if self._template is None:
            self._template = self.server.new_database()
            self.prepare(self._template)
        url = self.server.new_database(template=self._template)
        self._sessions[url] = psycopg.connect(url, autocommit=True, options="-c lock_timeout=500ms")
        self._original = self._original or _look(self._sessions[url])
        return url

    def give_back(self, url: str) -> None:
        """Make a database as new again; one that cannot be, or grew large, is removed instead."""
        session, original = self._sessions[url], self._original
        assert original is not None, "a database was taken, so one was looked at"
        try:
            renewed = _renew(session, original)
        except psycopg.Error:  # restarted, or somebody still holds a lock: another copy is always right
            renewed = False
        if renewed:
            self._free.append(url)
            return
        session.close()
        del self._sessions[url]
        self.server.drop(url)

    def close(self) -> None:
        for url, session in self._sessions.items():
            session.close()
            self.server.drop(url)
        if self._template is not None:
            self.server.drop(self._template)


@contextmanager
def fresh_databases(server: Server, prepare: Callable[[str], None]) -> Iterator[FreshDatabases]:
    """Databases on `server`, all removed in the end. `prepare` is called once, on an empty one."""
    made = FreshDatabases(server, prepare)
    try:
        yield made
    finally:
        made.close()


def _look(session: psycopg.Connection) -> Original:
    tables = session.execute(_TABLES).fetchall()
    shape, size = _shape(session)
    rows = {name: _read(session, name) for name, _ in tables}
    # An index of vectors keeps deleted ones in its graph, where they would take places in later answers.
    # Such tables are truncated, and only if they have rows: it costs more than a delete.
    deletes = [
        sql.SQL("DELETE FROM {}").format(sql.Identifier(name)) for name, vectors in tables if not vectors
    ]
    restarts = [
        sql.SQL("SELECT setval({}, {}, {})").format(sql.Literal(f'public."{name}"'), number, used)
        for name, number, used in session.execute(_SEQUENCES)
    ]
    return Original(
        shape=shape,
        size=size,
        vector_tables=tuple(name for name, vectors in tables if vectors),
        emptying=sql.SQL("; ").join([*deletes, *restarts]),
        rows={name: copied for name, copied in rows.items() if copied},
    )


def _renew(session: psycopg.Connection, original: Original) -> bool:
    shape, size = _shape(session)
    if shape != original.shape or size > original.size + _LARGEST_GROWTH:
        return False
    with session.transaction():
        session.execute("SET LOCAL session_replication_role = replica")  # the order of tables does not matter
        for name in original.vector_tables:
            table = sql.Identifier(name)
            if session.execute(sql.SQL("SELECT FROM {} LIMIT 1").format(table)).rowcount:
                session.execute(sql.SQL("TRUNCATE {}").format(table))
        session.execute(original.emptying)
        for name, copied in original.rows.items():
            with session.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(sql.Identifier(name))) as copy:
                copy.write(copied)
    return True


def _shape(session: psycopg.Connection) -> tuple[str, int]:
    row = session.execute(_SHAPE).fetchone()
    assert row is not None
    return str(row[0]), int(row[1] or 0)


def _read(session: psycopg.Connection, table: str) -> bytes:
    with session.cursor().copy(sql.SQL("COPY {} TO STDOUT").format(sql.Identifier(table))) as copy:
        return b"".join(bytes(part) for part in copy)
