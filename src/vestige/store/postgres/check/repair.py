"""Repairs of derived rows of a PostgreSQL store. Canonical rows are never written here."""

from datetime import datetime

from vestige.store.contract.trouble import no_repair
from vestige.store.postgres.check.schema import OBJECTS, ExpectedSchema, expected, objects
from vestige.store.postgres.connection import PostgresConnections, PostgresSession
from vestige.store.postgres.search.words import PostgresSurfaces
from vestige.store.sql.check import fields
from vestige.store.sql.check.repair import REPAIRS
from vestige.store.sql.check.schema import differences
from vestige.store.sql.tables import Tables


def repair_store(connections: PostgresConnections, repair: str, now: datetime) -> None:
    """Run a repair in the tables; InvalidInput for an unknown one."""
    surfaces = PostgresSurfaces()
    if repair == "words":
        Tables(connections, surfaces).rebuild_words()
    elif repair == "schema":
        with connections.unhurried() as apart:
            planned = expected(apart.connection)
        connections.written(lambda db: _create_again(db, planned))
    elif repair == "clocks":
        connections.written(lambda db: fields.repair_clocks(db, now))
    elif repair in REPAIRS:
        connections.written(lambda db: _repair(db, repair, surfaces))
    else:
        raise no_repair(repair)


def _create_again(db: PostgresSession, planned: ExpectedSchema) -> None:
    """Create indexes and views that are missing or have another definition."""
    db.command("SET LOCAL statement_timeout = 0")
    for one in differences(planned.objects, objects(db.execute(OBJECTS))):
        for statement in one.repair():
            db.command(statement)


def _repair(db: PostgresSession, repair: str, surfaces: PostgresSurfaces) -> None:
    db.command("SET LOCAL statement_timeout = 0")
    REPAIRS[repair](db, surfaces)
