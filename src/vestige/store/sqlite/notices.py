"""What processes tell each other through the table `notices`: kept short, and gone with any deletion."""

import sqlite3
from collections.abc import Sequence
from dataclasses import replace

import orjson

from vestige.store.answers import MOST_NOTICES, Notice
from vestige.store.sqlite.connection import Connections

PATIENCE_SECONDS = 0.2
"""How long notices wait for other writers: late ones are worth little."""

# Decided in the transaction that adds it: another process may just have deleted what is quoted.
_ADD = """
INSERT INTO notices (process, message)
SELECT ?, told.value FROM json_each(?) told
WHERE NOT EXISTS (
    SELECT 1 FROM json_each(told.value, '$.quotes') quoted JOIN tombstones t ON t.id = quoted.value
)
ORDER BY told.key
"""
_TRIM = "DELETE FROM notices WHERE id <= (SELECT max(n.id) FROM notices n) - ?"
_AFTER = "SELECT id, process, message FROM notices WHERE id > ? ORDER BY id"


def hasty(connections: Connections) -> Connections:
    """Connections of their own for notices: nobody who writes waits behind one that waits."""
    waiting = replace(connections.waiting, deadline_seconds=PATIENCE_SECONDS)
    return Connections(path=connections.path, waiting=waiting, uri=connections.uri)


def add(db: sqlite3.Connection, process: str, messages: Sequence[str]) -> None:
    """Add these at the end, without those that quote a deleted memory, and keep the last ones."""
    db.execute(_ADD, (process, orjson.dumps(list(messages)).decode("utf-8")))
    db.execute(_TRIM, (MOST_NOTICES,))


def after(db: sqlite3.Connection, position: int) -> list[Notice]:
    """What was told after a notice, oldest first."""
    rows = db.execute(_AFTER, (position,))
    return [Notice(id=number, process=process, message=message) for number, process, message in rows]


def clear(db: sqlite3.Connection) -> None:
    """Take all of them away: a memory is being deleted, and they may speak of it."""
    db.execute("DELETE FROM notices")
