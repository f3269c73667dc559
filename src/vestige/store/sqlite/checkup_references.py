"""Rows of a SQLite file that belong to a row which is not there: another program may have deleted it."""

import sqlite3
from collections import Counter
from collections.abc import Iterator

from vestige.store.trouble import Trouble

DERIVED = frozenset({
    "memory_tags", "fingerprints", "strengths", "edges", "vectors", "token_bits", "segments",
    "document_cites", "claim_memories",
})  # fmt: skip
"""The tables whose rows can be made again, so that one without its parent may go. The log tells the edges."""


def references(db: sqlite3.Connection) -> Iterator[Trouble]:
    """Rows that belong to a row which is not there."""
    found = Counter((str(row[0]), str(row[2])) for row in db.execute("PRAGMA foreign_key_check"))
    for (table, parent), number in sorted(found.items()):
        yield Trouble(
            check="references",
            message=f"Rows of {table} belong to none of {parent}.",
            count=number,
            repair="references" if table in DERIVED else None,
        )


def drop(db: sqlite3.Connection) -> None:
    """Remove derived rows whose parent is not there. A row may lack more than one."""
    for table in sorted(DERIVED):
        for parent, column, target in _parents(db, table):
            db.execute(f'DELETE FROM {table} WHERE "{column}" NOT IN (SELECT {target} FROM {parent})')


def _parents(db: sqlite3.Connection, table: str) -> list[tuple[str, str, str]]:
    """The tables a table refers to: (parent, its own column, the parent's key)."""
    referred = db.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    return [(row[2], row[3], _primary(db, row[2])) for row in referred]


def _primary(db: sqlite3.Connection, table: str) -> str:
    return str(next(row[1] for row in db.execute(f"PRAGMA table_info({table})") if row[5]))
