"""The schema of a store in PostgreSQL, compared with what the migrations create in the same server.

The migrations create temporary tables in a transaction that is rolled back (ADR 0025). No other session sees
them, nothing of the store is locked, and every user may create them unless an administrator forbade it.
"""

import re
from collections.abc import Iterable
from typing import Any

import psycopg
from psycopg import Connection, sql

from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.trouble import Trouble
from vestige.store.postgres.opening import schema
from vestige.store.sql.check.schema import SchemaObject, SchemaObjects, by_name, differences

CREATES = re.compile(r"CREATE (?:UNIQUE )?(TABLE|INDEX|VIEW) (\w+)(?: ON (\w+))?")
COMMENTS = re.compile(r"--[^\n]*")
EXTENSION = (
    "SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace"
    " WHERE e.extname = 'vector'"
)

HERE = "relnamespace = current_schema()::regnamespace"
# Kind, name, table and definition of everything in the present schema. The statistics target is a part of a
# column's definition: the server must keep no samples of texts. So is NOT NULL, which is a constraint with
# a name only since PostgreSQL 18. The server's definition of an index names the schema, which is removed.
OBJECTS = f"""
SELECT 'table', c.relname::text, NULL, '' FROM pg_class c WHERE c.{HERE} AND c.relkind IN ('r', 'p')
UNION ALL
SELECT 'column', c.relname || '.' || a.attname, c.relname::text,
    concat_ws(' ', t.typname, a.atttypmod, o.collname, a.attnotnull, a.attidentity,
        pg_get_expr(d.adbin, d.adrelid), coalesce(a.attstattarget, -1))
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid JOIN pg_type t ON t.oid = a.atttypid
    LEFT JOIN pg_collation o ON o.oid = a.attcollation
    LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.{HERE} AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL
SELECT CASE r.contype WHEN 'p' THEN 'primary key' WHEN 'u' THEN 'unique key' WHEN 'f' THEN 'foreign key'
    ELSE 'check' END, r.conname::text, c.relname::text, pg_get_constraintdef(r.oid)
FROM pg_constraint r JOIN pg_class c ON c.oid = r.conrelid
WHERE c.{HERE} AND r.contype IN ('p', 'u', 'f', 'c')
UNION ALL
SELECT 'index', c.relname::text, t.relname::text,
    replace(replace(pg_get_indexdef(c.oid), ' ON pg_temp.', ' ON '),
        ' ON ' || quote_ident(n.nspname) || '.', ' ON ')
FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE c.{HERE}
    AND NOT EXISTS (SELECT 1 FROM pg_constraint r WHERE r.conindid = c.oid AND r.contype IN ('p', 'u'))
UNION ALL
SELECT 'view', c.relname::text, NULL, pg_get_viewdef(c.oid) FROM pg_class c WHERE c.{HERE} AND c.relkind = 'v'
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedSchema:
    """The objects that the migrations create. `names_only` is the reason why only their names are known."""

    objects: SchemaObjects
    names_only: str | None = None

    def troubles(self, present: SchemaObjects) -> list[Trouble]:
        found = [one.trouble() for one in differences(self.objects, present)]
        if self.names_only is None:
            return found
        message = f"Only names of tables, indexes and views were compared: {self.names_only}."
        return [*found, Trouble(check="schema", message=message, severity="warning")]


def expected(db: Connection[Any]) -> ExpectedSchema:
    """The objects that the migrations create, as the server itself creates them, rolled back at once. Where
    this user or server cannot create them: only their names, from the text of the migrations."""
    try:
        with db.transaction(force_rollback=True):
            extension = db.execute(EXTENSION.encode()).fetchone()
            path = [sql.Identifier(name) for name in ("pg_temp", *(extension or ()))]
            db.execute(sql.SQL("SET LOCAL search_path TO {}").format(sql.SQL(", ").join(path)))
            db.execute("\n".join(step.sql for step in schema()).encode())  # in one trip
            return ExpectedSchema(objects=objects(db.execute(OBJECTS.encode())))
    except psycopg.errors.ReadOnlySqlTransaction as exc:
        # That a store was opened for reading only is not a problem to report; that a server is a standby is.
        standby = db.execute("SELECT pg_is_in_recovery()").fetchone()
        reason = str(exc).splitlines()[0] if standby and standby[0] else None
        return ExpectedSchema(objects=_named(), names_only=reason)
    except psycopg.Error as exc:
        if db.broken or db.closed:
            raise
        return ExpectedSchema(objects=_named(), names_only=str(exc).splitlines()[0])


def objects(rows: Iterable[tuple[Any, ...]]) -> SchemaObjects:
    """The objects of a schema, from the rows of `OBJECTS`."""
    return by_name(
        SchemaObject(
            kind=kind,
            name=name,
            table=table,
            definition=definition,
            statement=_statement(kind, name, definition),
        )
        for kind, name, table, definition in rows
    )


def _statement(kind: str, name: str, definition: str) -> str:
    return f"CREATE VIEW {name} AS {definition}" if kind == "view" else definition


def _named() -> SchemaObjects:
    found = []
    for step in schema():
        for statement in step.statements():
            text = COMMENTS.sub("", statement).strip()
            if made := CREATES.match(text):
                found.append(SchemaObject(kind=made[1].lower(), name=made[2], table=made[3], statement=text))
    return by_name(found)
