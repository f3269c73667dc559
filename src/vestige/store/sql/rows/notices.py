"""Messages between processes in the table `notices`: a short list, emptied by every deletion."""

import json
from collections.abc import Sequence

from vestige.store.contract.answers import MOST_NOTICES, Notice
from vestige.store.sql.database import Database
from vestige.store.sql.rows import history

_ADD = "INSERT INTO notices (process, message) VALUES (?, ?)"
_TRIM = "DELETE FROM notices WHERE id <= (SELECT max(n.id) FROM notices n) - ?"
# Numbers only grow. Where the last one is below the last one read, the store was restored, and all are new.
_AFTER = (
    "SELECT id, process, message FROM notices"
    " WHERE id > ? OR (SELECT max(n.id) FROM notices n) < ? ORDER BY id"
)


def add(db: Database, process: str, messages: Sequence[str]) -> None:
    """Append messages, without those that quote a deleted memory, and keep only the last ones."""
    # Looked up in the transaction that adds them: another process may just have deleted what is quoted. A
    # query may hold half a character, which orjson refuses to read.
    quotes = {message: json.loads(message).get("quotes", ()) for message in messages}
    gone = history.buried_among(db, {memory_id for quoted in quotes.values() for memory_id in quoted})
    db.executemany(_ADD, [(process, one) for one in messages if gone.isdisjoint(quotes[one])])
    db.execute(_TRIM, (MOST_NOTICES,))


def after(db: Database, position: int) -> list[Notice]:
    """The messages after a number, oldest first; all of them when that number is unknown."""
    rows = db.execute(_AFTER, (position, position))
    return [Notice(id=number, process=process, message=message) for number, process, message in rows]


def clear(db: Database) -> None:
    """Remove all messages: a memory is being deleted, and they may quote it."""
    db.execute("DELETE FROM notices")
