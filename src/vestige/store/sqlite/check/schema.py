"""The schema of a SQLite file, compared with that of a database in memory which is migrated for it."""

import re
import sqlite3
from contextlib import closing
from functools import cache

from vestige.store.sql.check.schema import SchemaDifference, SchemaObject, SchemaObjects, by_name, differences
from vestige.store.sqlite.opening import schema

OBJECTS = (
    "SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"
)
OF_FTS5 = "CREATE TABLE '"
"""How the statements begin that FTS5 writes for its own tables. Another SQLite may write them otherwise."""
COMMENT = re.compile(r"--[^\n]*")
QUOTE = re.compile(r"[\"`\[\]]")
SPACE = re.compile(r"\s*([(),=<>])\s*|\s+")


@cache
def expected() -> SchemaObjects:
    """What the migrations create in an empty database."""
    with closing(sqlite3.connect(":memory:")) as db:
        for step in schema():
            for statement in step.statements():
                db.execute(statement)
        return objects(db)


def objects(db: sqlite3.Connection) -> SchemaObjects:
    return by_name(
        SchemaObject(
            kind=kind,
            name=name,
            table=table if kind != "table" and kind != "view" else None,
            definition="" if sql.startswith(OF_FTS5) else normalised(sql),
            statement=sql,
        )
        for kind, name, table, sql in db.execute(OBJECTS)
    )


def normalised(sql: str) -> str:
    """A statement without comments, quotes of names and spaces that mean nothing: SQLite keeps those as they
    were written, and `ALTER TABLE` writes them its own way."""
    return SPACE.sub(lambda match: match[1] or " ", QUOTE.sub("", COMMENT.sub("", sql))).strip().casefold()


def schema_differences(db: sqlite3.Connection) -> list[SchemaDifference]:
    """How a database of the present schema version differs from what the migrations create."""
    return differences(expected(), objects(db))
