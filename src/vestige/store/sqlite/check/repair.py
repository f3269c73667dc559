"""Repairs of derived rows and files of a SQLite store. Canonical rows are never written here."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from vestige.store.contract.trouble import no_repair
from vestige.store.sql.check import fields
from vestige.store.sql.check.repair import REPAIRS
from vestige.store.sql.tables import Tables
from vestige.store.sqlite.check import checks, files
from vestige.store.sqlite.check.schema import schema_differences
from vestige.store.sqlite.connection import SqliteConnections
from vestige.store.sqlite.search import segments
from vestige.store.sqlite.search.words import SqliteSurfaces


def repair_store(connections: SqliteConnections, repair: str, now: datetime) -> None:
    """Run a repair; InvalidInput for an unknown one."""
    if repair in IN_STEPS:
        IN_STEPS[repair](connections, now)
    elif repair in REPAIRS:
        with connections.writing() as db:
            REPAIRS[repair](db, SqliteSurfaces())
    else:
        raise no_repair(repair)


def _references(connections: SqliteConnections, now: datetime) -> None:
    with connections.writing() as db:
        checks.drop(db)


def _words(connections: SqliteConnections, now: datetime) -> None:
    Tables(connections, SqliteSurfaces()).rebuild_words()


def _index(connections: SqliteConnections, now: datetime) -> None:
    segments.rebuild(connections)


def _schema(connections: SqliteConnections, now: datetime) -> None:
    """Create indexes, views and triggers that are missing or have another definition."""
    with connections.writing() as db:
        for one in schema_differences(db):
            for statement in one.repair():
                db.execute(statement)


def _permissions(connections: SqliteConnections, now: datetime) -> None:
    for one in files.exposed(connections.path):
        with suppress(OSError):  # another user's file
            one.chmod(one.stat().st_mode & 0o700)


def _leftovers(connections: SqliteConnections, now: datetime) -> None:
    for one in list(files.abandoned(connections.path, now)):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one, ignore_errors=True)
        else:
            with suppress(OSError):
                one.unlink()


def _clocks(connections: SqliteConnections, now: datetime) -> None:
    with connections.writing() as db:
        fields.repair_clocks(db, now)


IN_STEPS: Mapping[str, Callable[[SqliteConnections, datetime], None]] = {
    "clocks": _clocks,
    "references": _references,
    "schema": _schema,
    "words": _words,
    "index": _index,
    "permissions": _permissions,
    "leftovers": _leftovers,
}
