"""What the migrations make in a file, and what of it is not there."""

import sqlite3
from contextlib import closing
from functools import cache

from vestige.store.sql.check import schema as blueprint
from vestige.store.sql.check.schema import SchemaObject
from vestige.store.sqlite.opening import schema

MADE = "SELECT type, name, sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'"


@cache
def plan() -> dict[str, SchemaObject]:
    """Everything that has a name, as SQLite itself makes it in an empty database."""
    with closing(sqlite3.connect(":memory:")) as db:
        for step in schema():
            for statement in step.statements():
                db.execute(statement)
        return {
            name: SchemaObject(kind=kind, name=name, statement=text) for kind, name, text in db.execute(MADE)
        }


def lacking(db: sqlite3.Connection) -> list[SchemaObject]:
    """What is missing in a database of the present schema."""
    return blueprint.missing(plan(), [name for _, name, _ in db.execute(MADE)])
