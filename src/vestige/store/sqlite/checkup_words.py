"""Whether the word index of a SQLite store is whole: the tables that FTS5 keeps for itself."""

import sqlite3
from collections.abc import Iterator

from vestige.errors import StoreBusy
from vestige.store.sqlite.connection import Connections, primary_code
from vestige.store.trouble import Trouble

# FTS5's own check goes from page to page: it does not see that the way to a page is lost. A search does.
UNREACHED = (
    "SELECT count(*) FROM words_seen s WHERE NOT EXISTS"
    " (SELECT 1 FROM words_seen t WHERE t.term = s.term AND t.doc = s.doc)"
)
READ_THROUGH = "INSERT INTO words (words) VALUES ('integrity-check')"
"""FTS5's own check. It changes nothing, but SQLite takes it for a write."""
OF_THE_INDEX = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR})
"""What FTS5 answers where its tables do not fit together. Other errors are of the disk, or of the file."""


def word_index(connections: Connections) -> Iterator[Trouble]:
    """Whether every word is found where it is indexed, and the index is that of the rows it was made from."""
    try:
        wrong = _not_found(connections) or _not_whole(connections)
    except StoreBusy:
        yield Trouble(
            check="word index",
            message="The index of words was not read through: others were writing all the time. Look again.",
            severity="warning",
        )
        return
    if wrong is not None:
        yield Trouble(check="word index", message=f"The index of words is damaged: {wrong}.", repair="words")


def _not_found(connections: Connections) -> str | None:
    with connections.reading(snapshot=False) as db:
        try:
            (number,) = db.execute(UNREACHED).fetchone()
        except sqlite3.Error as exc:
            return _fault(exc)
    return f"{number:,} words are in it and are not found" if number else None


def _not_whole(connections: Connections) -> str | None:
    """Other writers wait for this, about 0.1 s with 10,000 memories; a store that is only read is spared."""
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
