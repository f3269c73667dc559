"""What a SQLite store finds wrong in itself: every check by name, each a function over one snapshot."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from vestige.errors import StoreCorrupt, StoreError
from vestige.store import migrate
from vestige.store.sql import blueprint, checkup_log, checkup_rows, checkup_text, checkup_vectors
from vestige.store.sqlite import checkup_files, checkup_references, checkup_words, segments
from vestige.store.sqlite.blueprint import lacking
from vestige.store.sqlite.connection import Connections
from vestige.store.sqlite.opening import applied, schema
from vestige.store.trouble import MOST_IDS, Trouble

Look = Callable[[sqlite3.Connection], Iterator[Trouble]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that is looked at."""

    name: str
    look: Look


def examine(connections: Connections, now: datetime, *, deep: bool) -> list[Trouble]:
    """Everything that is wrong, in the order of the checks."""
    troubles: list[Trouble] = []
    try:
        with connections.reading() as db:
            for check in checks(connections.path, now, deep=deep):
                troubles.extend(found(db, check))
        if all(one.check != "pages" for one in troubles):  # it takes the writer, and nothing is written then
            troubles.extend(checkup_words.word_index(connections))
    except StoreCorrupt:
        if not troubles:  # else the same damage has also spoilt the end of the transaction
            raise
    return troubles


def checks(path: Path, now: datetime, *, deep: bool) -> tuple[Check, ...]:
    """All there is to look at in the store at a path."""
    return (
        Check(name="pages", look=lambda db: _pages(db, deep=deep)),
        Check(name="schema", look=_schema),
        Check(name="references", look=checkup_references.references),
        Check(name="values", look=checkup_rows.values),
        Check(name="strays", look=lambda db: checkup_rows.strays(db, "rowid")),
        Check(name="missing rows", look=lambda db: checkup_rows.missing(db, "rowid")),
        Check(name="tags", look=checkup_rows.tags),
        Check(name="citations", look=checkup_rows.citations),
        Check(name="texts", look=lambda db: checkup_text.texts(db, "rowid")),
        Check(name="vectors", look=checkup_vectors.vectors),
        Check(name="tokens", look=checkup_vectors.tokens),
        Check(name="index files", look=_index),
        Check(name="log", look=checkup_log.log),
        Check(name="clock", look=checkup_log.clock),
        Check(name="deletions", look=checkup_log.deletions),
        Check(name="memories", look=checkup_log.lost),
        Check(name="permissions", look=lambda db: checkup_files.permissions(path)),
        Check(name="leftovers", look=lambda db: checkup_files.leftovers(path, now)),
        Check(name="journal", look=lambda db: checkup_files.journal(path)),
        Check(name="disk", look=lambda db: checkup_files.disk(path)),
    )


def found(db: sqlite3.Connection, check: Check) -> Iterator[Trouble]:
    """What a check finds. One that stumbles over damage says so, and the others go on."""
    try:
        yield from check.look(db)
    except (sqlite3.Error, StoreError, OSError, ValueError) as exc:
        yield Trouble(check=check.name, message=f"This cannot be read to its end: {exc}.")


def _pages(db: sqlite3.Connection, *, deep: bool) -> Iterator[Trouble]:
    """SQLite's own verdict; the quick one does not compare indexes with their tables."""
    how = "integrity_check" if deep else "quick_check"
    told = [str(row[0]) for row in db.execute(f"PRAGMA {how}({MOST_IDS})") if row[0] != "ok"]
    # From 3.44 on SQLite also asks FTS5. The word index is derived, and looked at by itself.
    verdict = [line for line in told if "fts5" not in line.casefold()]
    if verdict:
        yield Trouble(
            check="pages", message=f"The file is damaged: {'; '.join(verdict[:3])}.", count=len(verdict)
        )


def _schema(db: sqlite3.Connection) -> Iterator[Trouble]:
    try:
        pending = migrate.pending(schema(), applied(db))
    except StoreError as exc:  # of the future, or another's
        yield Trouble(check="schema", message=exc.message)
        return
    if pending:
        names = ", ".join(step.label for step in pending)
        yield Trouble(check="schema", message=f"The schema lacks {names}.")
        return
    yield from blueprint.troubles(lacking(db))


def _index(db: sqlite3.Connection) -> Iterator[Trouble]:
    for name, problem in segments.status(db).problems.items():
        yield Trouble(
            check="index files",
            message=f"{name} is not used: {problem}. Its vectors are read from the database.",
            severity="warning",
            repair="index",
        )
