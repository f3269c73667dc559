"""Repairs of what a PostgreSQL store derives. Nothing that is canonical is written here."""

from vestige.store.contract.trouble import no_repair
from vestige.store.postgres.check.checks import lacking
from vestige.store.postgres.connection import PostgresConnections, PostgresSession
from vestige.store.postgres.search.words import PostgresSurfaces
from vestige.store.sql.check.repair import REPAIRS
from vestige.store.sql.check.schema import to_make_again
from vestige.store.sql.tables import Tables


def mend(connections: PostgresConnections, repair: str) -> None:
    """Do a repair in the tables; InvalidInput for one that is none."""
    surfaces = PostgresSurfaces()
    if repair == "words":
        Tables(connections, surfaces).rebuild_words()
    elif repair == "schema":
        connections.written(_make_again)
    elif repair in REPAIRS:
        connections.written(lambda db: _repair(db, repair, surfaces))
    else:
        raise no_repair(repair)


def _make_again(db: PostgresSession) -> None:
    """Indexes and views that are missing."""
    db.command("SET LOCAL statement_timeout = 0")
    for statement in to_make_again(lacking(db)):
        db.command(statement)


def _repair(db: PostgresSession, repair: str, surfaces: PostgresSurfaces) -> None:
    db.command("SET LOCAL statement_timeout = 0")
    REPAIRS[repair](db, surfaces)
