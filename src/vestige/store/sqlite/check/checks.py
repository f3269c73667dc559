"""The checks of a SQLite store, by name, each a function over one snapshot."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

from vestige.core.errors import StoreBusy, StoreCorrupt, StoreError
from vestige.store import migrations
from vestige.store.contract.trouble import MOST_IDS, UNREADABLE, Trouble
from vestige.store.sql.check import fields, log, rows, vectors
from vestige.store.sqlite.check import files
from vestige.store.sqlite.check.schema import schema_differences
from vestige.store.sqlite.connection import SqliteConnections, primary_code
from vestige.store.sqlite.opening import applied, schema
from vestige.store.sqlite.search import segments

# -- Rows that refer to a missing row: another program may have deleted it

DERIVED = frozenset({
    "memory_tags", "fingerprints", "strengths", "edges", "vectors", "token_bits", "segments",
    "document_cites", "claim_memories",
})  # fmt: skip
"""The tables whose rows can be derived again, so that one without its parent may be removed. Edges come from
the log."""


def references(db: sqlite3.Connection) -> Iterator[Trouble]:
    found = Counter((str(row[0]), str(row[2])) for row in db.execute("PRAGMA foreign_key_check"))
    for (table, parent), number in sorted(found.items()):
        yield Trouble(
            check="references",
            message=f"Rows of {table} refer to missing rows of {parent}.",
            count=number,
            repair="references" if table in DERIVED else None,
        )


def drop(db: sqlite3.Connection) -> None:
    """Remove derived rows whose parent is missing. A row may lack more than one."""
    for table in sorted(DERIVED):
        for parent, column, target in _parents(db, table):
            db.execute(f'DELETE FROM {table} WHERE "{column}" NOT IN (SELECT {target} FROM {parent})')


def _parents(db: sqlite3.Connection, table: str) -> list[tuple[str, str, str]]:
    """The tables a table refers to: (parent, its own column, the parent's key)."""
    referred = db.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    return [(row[2], row[3], _primary(db, row[2])) for row in referred]


def _primary(db: sqlite3.Connection, table: str) -> str:
    return str(next(row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]))


# -- The word index: the tables of FTS5

# FTS5's own check reads page by page: it misses a lost link to a page, which a search finds.
UNREACHED = (
    "SELECT count(*) FROM words_seen s WHERE NOT EXISTS"
    " (SELECT 1 FROM words_seen t WHERE t.term = s.term AND t.doc = s.doc)"
)
READ_THROUGH = "INSERT INTO words (words) VALUES ('integrity-check')"
"""FTS5's own check. It changes nothing, but SQLite takes it for a write."""
OF_THE_INDEX = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR})
"""The errors of FTS5 where its tables do not fit together. Others are of the disk, or of the file."""


def word_index(connections: SqliteConnections) -> Iterator[Trouble]:
    """Check that every word is found where it is indexed, and that the index fits its rows."""
    try:
        wrong = _not_found(connections) or _not_whole(connections)
    except StoreBusy:
        yield Trouble(
            check="word index",
            message="The index of words was not checked: other processes kept writing. Run the check again.",
            severity="warning",
        )
        return
    if wrong is not None:
        yield Trouble(check="word index", message=f"The index of words is damaged: {wrong}.", repair="words")


def _not_found(connections: SqliteConnections) -> str | None:
    with connections.reading(snapshot=False) as db:
        try:
            (number,) = db.execute(UNREACHED).fetchone()
        except sqlite3.Error as exc:
            return _fault(exc)
    return f"{number:,} words in it are not found" if number else None


def _not_whole(connections: SqliteConnections) -> str | None:
    """Other writers wait for this, about 0.1 s with 10,000 memories; a read-only store skips it."""
    if connections.read_only:
        return None
    with connections.writing() as db:
        try:
            db.execute(READ_THROUGH)
        except sqlite3.Error as exc:
            return _fault(exc)
    return None


def _fault(exc: sqlite3.Error) -> str:
    if primary_code(exc) not in OF_THE_INDEX:
        raise exc
    return str(exc)


# -- Every check of the file, in order

STOP = (
    "It acknowledges no more writes, and what it reads may be incomplete. Stop all processes of this store,"
    " then check it again."
)

Look = Callable[[sqlite3.Connection], Iterator[Trouble]]


def examine(connections: SqliteConnections, now: datetime, *, deep: bool) -> list[Trouble]:
    """Everything that is wrong, in the order of the checks."""
    troubles: list[Trouble] = []
    if connections.journal.lost is not None:
        what = f"{connections.path.name}-wal {connections.journal.lost} while this process had it open."
        return [Trouble(check="journal", message=f"{what} {STOP}")]
    try:
        with connections.reading() as db:
            for name, look in checks(connections.path, now, deep=deep).items():
                troubles.extend(found(db, name, look))
        if all(one.check != "pages" for one in troubles):  # it takes the writer, and nothing is written then
            troubles.extend(word_index(connections))
    except StoreCorrupt:
        if not troubles:  # else the same damage has also spoilt the end of the transaction
            raise
    return troubles


def checks(path: Path, now: datetime, *, deep: bool) -> dict[str, Look]:
    """All checks of the store at a path, by name."""
    return {
        "pages": lambda db: _pages(db, deep=deep),
        "schema": _schema,
        "references": references,
        "values": rows.values,
        "strays": lambda db: rows.strays(db, "rowid"),
        "missing rows": lambda db: rows.missing(db, "rowid"),
        "tags": rows.tags,
        "citations": rows.citations,
        "texts": lambda db: rows.texts(db, "rowid"),
        "vectors": vectors.vectors,
        "tokens": vectors.tokens,
        "index files": _index,
        "events": fields.events,
        "documents": fields.documents,
        "log": log.log,
        "clock": log.clock,
        "clocks": lambda db: fields.clocks(db, now),
        "deletions": log.deletions,
        "memories": log.lost,
        "lost writes": lambda db: files.lost_writes(db, path),
        "permissions": lambda db: files.permissions(path),
        "leftovers": lambda db: files.leftovers(path, now),
        "journal": lambda db: files.journal(path),
        "disk": lambda db: files.disk(path),
    }


def found(db: sqlite3.Connection, name: str, look: Look) -> Iterator[Trouble]:
    """The problems that a check finds. A check that fails on damage reports that, and the others go on."""
    try:
        yield from look(db)
    except (sqlite3.Error, StoreError, OSError, *UNREADABLE) as exc:
        yield Trouble(check=name, message=f"The check could not finish: {exc}.")


def _pages(db: sqlite3.Connection, *, deep: bool) -> Iterator[Trouble]:
    """SQLite's own check; the quick one does not compare indexes with their tables."""
    how = "integrity_check" if deep else "quick_check"
    lines = [str(row[0]) for row in db.execute(f"PRAGMA {how}({MOST_IDS})") if row[0] != "ok"]
    # From 3.44 on SQLite also checks FTS5. The word index is derived, and has a check of its own.
    verdict = [line for line in lines if "fts5" not in line.casefold()]
    if verdict:
        yield Trouble(
            check="pages", message=f"The file is damaged: {'; '.join(verdict[:3])}.", count=len(verdict)
        )


def _schema(db: sqlite3.Connection) -> Iterator[Trouble]:
    try:
        pending = migrations.pending(schema(), applied(db))
    except StoreError as exc:  # of a newer Vestige, or a modified one
        yield Trouble(check="schema", message=exc.message)
        return
    if pending:
        names = ", ".join(step.label for step in pending)
        yield Trouble(check="schema", message=f"The schema lacks {names}.")
        return
    yield from (one.trouble() for one in schema_differences(db))


def _index(db: sqlite3.Connection) -> Iterator[Trouble]:
    for name, problem in segments.status(db).problems.items():
        yield Trouble(
            check="index files",
            message=f"{name} is not used: {problem}. Its vectors are read from the database.",
            severity="warning",
            repair="index",
        )
