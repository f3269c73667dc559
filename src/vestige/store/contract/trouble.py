"""Problems that a store finds in itself, and the status of its database."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime
from pathlib import Path
from typing import Literal

from vestige.core.errors import InvalidInput, StoreTooNew
from vestige.core.lazy_dataclass import dataclass

Severity = Literal["warning", "broken"]

UNREADABLE = (ValueError, KeyError, TypeError, AttributeError, OverflowError)
"""The errors of reading damaged data."""
MOST_IDS = 20
"""The most memories that a trouble names; `count` is the number of all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """A problem found by a check.

    `broken` means that answers are wrong or something is lost. `ids` are some of the `count` memories
    concerned. `repair` is the name that `MemoryStore.repair` takes; None where there is no repair.
    """

    check: str
    message: str
    severity: Severity = "broken"
    count: int = 1
    ids: tuple[str, ...] = ()
    repair: str | None = None


def about(
    check: str,
    message: str,
    memory_ids: Sequence[str],
    *,
    repair: str | None = None,
    severity: Severity = "broken",
) -> list[Trouble]:
    """One trouble for all of these memories; empty without any."""
    if not memory_ids:
        return []
    first = tuple(sorted(memory_ids)[:MOST_IDS])
    return [
        Trouble(
            check=check, message=message, count=len(memory_ids), ids=first, repair=repair, severity=severity
        )
    ]


def no_repair(name: str) -> InvalidInput:
    return InvalidInput(f"There is no repair called {name!r}.", details={"repair": name})


def file_software() -> dict[str, str]:
    """The version of SQLite in this Python: it decides which files can be read and how they are checked."""
    return {"sqlite": sqlite3.sqlite_version}


# -- The status of a database, for `vestige db status`


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """The schema version of a database (0: none yet), the version it would get, the migrations in between,
    and the folder of the backup that is made first (None: no backup). `newer` is the version of Vestige that
    wrote a schema unknown to this one."""

    schema: int
    known: int
    steps: tuple[str, ...]
    backups: Path | None = None
    newer: str | None = None


def of_newer(why: StoreTooNew) -> Upgrade:
    """The schema status of a store that was refused as too new."""
    details = why.details
    return Upgrade(schema=details["schema"], known=details["known"], steps=(), newer=details["written_by"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """A table with its number of rows (an estimate for a very long one) and its bytes including indexes,
    where known."""

    name: str
    rows: int
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """A session on the database server: its number, user, program, address and state."""

    session: int
    user: str
    program: str
    address: str | None
    state: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStatus:
    """A database and the store in it, if there is one.

    `extensions` are the required ones with their versions; None means not installed. `writer` is the session
    that holds the writers' lock now. A store that is not `complete` is the destination of an unfinished
    transfer and cannot be opened yet. `missing` names what its schema lacks.
    """

    place: str
    server: str
    upgrade: Upgrade
    read_only: bool
    size_bytes: int
    extensions: Mapping[str, str | None] = field(default_factory=dict)
    tables: tuple[TableStatus, ...] = ()
    connections: tuple[Connected, ...] = ()
    writer: Connected | None = None
    complete: bool = True
    missing: tuple[str, ...] = ()
