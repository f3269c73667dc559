"""What a store finds wrong in itself."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal

from vestige.core.errors import InvalidInput, StoreTooNew

Severity = Literal["warning", "broken"]

MOST_IDS = 20
"""How many memories a trouble names; `count` says how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One thing that is not as it should be.

    `broken` means that answers are wrong or something is lost. `ids` are memories it is about, some of
    `count`. `repair` is what `MemoryStore.mend` takes; None where nothing derived can put it right.
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
    """The trouble of these memories, told once for all of them; nothing when there are none."""
    if not memory_ids:
        return []
    first = tuple(sorted(memory_ids)[:MOST_IDS])
    return [
        Trouble(
            check=check, message=message, count=len(memory_ids), ids=first, repair=repair, severity=severity
        )
    ]


def no_repair(name: str) -> InvalidInput:
    """The refusal of a repair that a store does not have."""
    return InvalidInput(f"There is no repair called {name!r}.", details={"repair": name})


def file_software() -> dict[str, str]:
    """The SQLite in this Python: it decides which files can be read, and how well they are checked."""
    return {"sqlite": sqlite3.sqlite_version}


# -- How the database of a store is, seen from outside the store: what people who look after it ask for.


@dataclass(frozen=True, slots=True, kw_only=True)
class Upgrade:
    """The schema a database has (0: there is none yet), the one it would have, the steps between them, and
    where the backup is made that comes first (None: nothing is copied before). `newer` is the version of
    Vestige that wrote a schema which this one does not know."""

    schema: int
    known: int
    steps: tuple[str, ...]
    backups: Path | None = None
    newer: str | None = None


def of_newer(why: StoreTooNew) -> Upgrade:
    """What can be said of the schema of a store that is refused for it."""
    told = why.details
    return Upgrade(schema=told["schema"], known=told["known"], steps=(), newer=told["written_by"])


@dataclass(frozen=True, slots=True, kw_only=True)
class TableStatus:
    """A table with the number of its rows, which is an estimate for a very long one, and its bytes with those
    of its indexes, where that can be told."""

    name: str
    rows: int
    size_bytes: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Connected:
    """A session of the database's server: its number there, who it is, from where, what it does."""

    session: int
    user: str
    program: str
    address: str | None
    state: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseStatus:
    """A database and the store in it, if there is one.

    `extensions` are those a store needs there, with their versions; one without a version is not installed.
    `writer` is who holds the lock of all writers at this moment. A store that is not `complete` is being
    carried there from elsewhere, and cannot be opened yet. `missing` names what its schema should have.
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
