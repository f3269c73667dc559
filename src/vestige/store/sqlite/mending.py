"""Repairs of what a SQLite store derives, its files included. Nothing that is canonical is written here."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime

from vestige.store.sql.mending import REPAIRS
from vestige.store.sql.tables import Tables
from vestige.store.sqlite import checkup_files, checkup_references, segments
from vestige.store.sqlite.connection import Connections
from vestige.store.sqlite.words import SqliteSurfaces
from vestige.store.trouble import no_repair


def mend(connections: Connections, repair: str, now: datetime) -> None:
    """Do a repair; InvalidInput for one that is none."""
    if repair in IN_STEPS:
        IN_STEPS[repair](connections, now)
    elif repair in REPAIRS:
        with connections.writing() as db:
            REPAIRS[repair](db, SqliteSurfaces())
    else:
        raise no_repair(repair)


def _references(connections: Connections, now: datetime) -> None:
    with connections.writing() as db:
        checkup_references.drop(db)


def _words(connections: Connections, now: datetime) -> None:
    Tables(connections, SqliteSurfaces()).rebuild_words()


def _index(connections: Connections, now: datetime) -> None:
    segments.rebuild(connections)


def _permissions(connections: Connections, now: datetime) -> None:
    for one in checkup_files.exposed(connections.path):
        with suppress(OSError):  # somebody else's
            one.chmod(one.stat().st_mode & 0o700)


def _leftovers(connections: Connections, now: datetime) -> None:
    for one in list(checkup_files.abandoned(connections.path, now)):
        if one.is_dir() and not one.is_symlink():
            shutil.rmtree(one, ignore_errors=True)
        else:
            with suppress(OSError):
                one.unlink()


IN_STEPS: Mapping[str, Callable[[Connections, datetime], None]] = {
    "references": _references,
    "words": _words,
    "index": _index,
    "permissions": _permissions,
    "leftovers": _leftovers,
}
