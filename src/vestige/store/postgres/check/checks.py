"""The checks of a PostgreSQL store, by name, each a function over one snapshot."""

from collections.abc import Callable, Iterator
from datetime import datetime

import psycopg

from vestige.core.errors import StoreError
from vestige.store import migrations
from vestige.store.contract.trouble import UNREADABLE, Trouble
from vestige.store.postgres.check.schema import OBJECTS, ExpectedSchema, expected, objects
from vestige.store.postgres.connection import PostgresConnections, PostgresSession
from vestige.store.postgres.opening import applied, schema
from vestige.store.sql.check import fields, log, rows, vectors

WORD_KEY = "key"
UNCOUNTED = (
    "SELECT count(*) FROM ("
    " (SELECT term, count(*) AS memories, sum(count)::bigint AS occurrences FROM postings GROUP BY term"
    " EXCEPT SELECT term, memories, occurrences FROM terms)"
    " UNION ALL (SELECT term, memories, occurrences FROM terms"
    " EXCEPT SELECT term, count(*), sum(count)::bigint FROM postings GROUP BY term)) differing"
)
UNPOSTED = (
    "WITH said AS (SELECT t.term, w.key, count(*)::integer AS count"
    " FROM words w, unnest(string_to_array(w.terms, ' ')) AS t(term) WHERE t.term <> '' GROUP BY 1, 2)"
    " SELECT count(*) FROM ((SELECT * FROM said EXCEPT SELECT term, key, count FROM postings)"
    " UNION ALL (SELECT term, key, count FROM postings EXCEPT SELECT * FROM said)) differing"
)
INVALID = (
    "SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
    " JOIN pg_class t ON t.oid = i.indrelid WHERE t.relnamespace = current_schema()::regnamespace"
    " AND NOT (i.indisvalid AND i.indisready)"
)
AMCHECK = "SELECT 1 FROM pg_extension WHERE extname = 'amcheck'"
TREES = (
    "SELECT c.oid, c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
    " JOIN pg_am a ON a.oid = c.relam JOIN pg_class t ON t.oid = i.indrelid"
    " WHERE a.amname = 'btree' AND i.indisvalid AND t.relnamespace = current_schema()::regnamespace"
)

Look = Callable[[PostgresSession], Iterator[Trouble]]


def examine(connections: PostgresConnections, now: datetime, *, deep: bool) -> list[Trouble]:
    """Everything that is wrong, in the order of the checks."""
    troubles: list[Trouble] = []
    with connections.unhurried() as apart:
        planned = expected(apart.connection)
    with connections.reading() as db:
        db.command("SET LOCAL statement_timeout = 0")  # it reads everything there is
        for name, look in _checks(planned, now, deep=deep).items():
            troubles.extend(_found(db, name, look))
    return troubles


def _checks(planned: ExpectedSchema, now: datetime, *, deep: bool) -> dict[str, Look]:
    checks: dict[str, Look] = {
        "schema": lambda db: _schema(db, planned),
        "values": rows.values,
        "strays": lambda db: rows.strays(db, WORD_KEY),
        "missing rows": lambda db: rows.missing(db, WORD_KEY),
        "tags": rows.tags,
        "citations": rows.citations,
        "texts": lambda db: rows.texts(db, WORD_KEY),
        "words": _words,
        "vectors": vectors.vectors,
        "tokens": vectors.tokens,
        "indexes": _indexes,
        "events": fields.events,
        "documents": fields.documents,
        "log": log.log,
        "clock": log.clock,
        "clocks": lambda db: fields.clocks(db, now),
        "deletions": log.deletions,
        "memories": log.lost,
    }
    return checks | ({"pages": _pages} if deep else {})


def _found(db: PostgresSession, name: str, look: Look) -> Iterator[Trouble]:
    """The problems that a check finds. A check that fails on damage reports that, and the others go on."""
    db.command("SAVEPOINT looking")
    try:
        yield from look(db)
    except (psycopg.Error, StoreError, *UNREADABLE) as exc:
        if isinstance(exc, psycopg.OperationalError) and db.connection.broken:
            raise
        db.command("ROLLBACK TO SAVEPOINT looking")
        yield Trouble(check=name, message=f"The check could not finish: {str(exc).splitlines()[0]}.")


def _schema(db: PostgresSession, planned: ExpectedSchema) -> Iterator[Trouble]:
    try:
        pending = migrations.pending(schema(), applied(db.connection))
    except StoreError as exc:  # of a newer Vestige, or a modified one
        yield Trouble(check="schema", message=exc.message)
        return
    if pending:
        names = ", ".join(step.label for step in pending)
        yield Trouble(check="schema", message=f"The schema lacks {names}.")
        return
    yield from planned.troubles(objects(db.execute(OBJECTS)))


def _words(db: PostgresSession) -> Iterator[Trouble]:
    """Compare the postings and the frequencies of terms with the terms of the memories."""
    for sql, message in (
        (UNPOSTED, "The index of words differs from the words of memories."),
        (UNCOUNTED, "The counts of words differ from their occurrences."),
    ):
        number = db.execute(sql).fetchone()[0]
        if number:
            yield Trouble(check="words", message=message, count=number, repair="words")


def _indexes(db: PostgresSession) -> Iterator[Trouble]:
    """Invalid indexes, such as one whose build was interrupted."""
    for (name,) in db.execute(INVALID):
        yield Trouble(
            check="indexes",
            message=f"The index {name} is incomplete: its build was interrupted or is still running.",
            severity="warning",
            repair="index",
        )


def _pages(db: PostgresSession) -> Iterator[Trouble]:
    """PostgreSQL's own check of its B-trees, where its extension `amcheck` is installed."""
    if db.execute(AMCHECK).fetchone() is None:
        return
    for oid, name in db.execute(TREES).fetchall():
        db.command("SAVEPOINT tree")
        try:
            db.execute("SELECT bt_index_check(CAST(? AS oid)::regclass, TRUE)", (oid,))
        except psycopg.Error as exc:
            db.command("ROLLBACK TO SAVEPOINT tree")
            yield Trouble(check="pages", message=f"The index {name} is damaged: {str(exc).splitlines()[0]}.")
