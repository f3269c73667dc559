"""What the migrations make in a schema, read from their statements, and what of it is not there."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache

from vestige.store.postgres.opening import schema
from vestige.store.sql.check.schema import SchemaObject, missing

CREATES = re.compile(r"CREATE (?:UNIQUE )?(TABLE|INDEX|VIEW) (\w+)")
COMMENTS = re.compile(r"--[^\n]*")
RULES = {"p": "PRIMARY KEY", "u": "UNIQUE", "f": "REFERENCES", "c": "CHECK"}
"""The server's letter for a rule of a table, and the word that makes one."""
CALLED = {"p": "primary key", "u": "unique key", "f": "foreign key", "c": "check"}

HERE = "relnamespace = current_schema()::regnamespace"
NAMES = f"SELECT relname::text FROM pg_class WHERE {HERE} AND relkind IN ('r', 'p', 'i', 'v', 'm')"
HELD_RULES = (
    "SELECT t.relname::text, c.contype::text, count(*) FROM pg_constraint c"
    f" JOIN pg_class t ON t.oid = c.conrelid WHERE t.{HERE} GROUP BY 1, 2"
)


@cache
def plan() -> dict[str, SchemaObject]:
    """Tables, indexes and views by name."""
    found = {}
    for statement in _statements():
        made = CREATES.match(statement)
        if made is not None:
            found[made[2]] = SchemaObject(kind=made[1].lower(), name=made[2], statement=statement)
    return found


@cache
def planned_rules() -> Counter[tuple[str, str]]:
    """How many rules of which letter each table has."""
    return Counter(
        {
            (one.name, letter): len(re.findall(rf"\b{words}\b", one.statement))
            for one in plan().values()
            if one.kind == "table"
            for letter, words in RULES.items()
        }
    )


def lacking(names: Iterable[str], rules: Sequence[tuple[str, str, int]]) -> list[SchemaObject]:
    """What is missing where `NAMES` and `HELD_RULES` answer this."""
    gone = missing(plan(), names)
    short = planned_rules() - Counter({(table, letter): number for table, letter, number in rules})
    without = {one.name for one in gone}
    return [
        *gone,
        *(
            SchemaObject(kind=CALLED[letter], name=f"of the table {table}")
            for table, letter in short
            if table not in without
        ),
    ]


def _statements() -> list[str]:
    return [COMMENTS.sub("", one).strip() for step in schema() for one in step.statements()]
