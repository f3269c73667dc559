"""The lexical rows of memories: terms, fingerprints and places, all derived from the text."""

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from vestige.cognition.text import ANALYSER_VERSION, fingerprint, memory_terms
from vestige.models import Memory
from vestige.store.sqlite import memories, places
from vestige.store.sqlite.places import Place

TABLES = {
    "words": "fts5 (terms, tokenize = \"ascii tokenchars '_'\")",
    "words_seen": "fts5vocab (words, row)",
    "words_at": "fts5vocab (words, instance)",
}
"""The word index, as the migrations make it."""
NEEDED_TO_OPEN = (
    "INSERT OR REPLACE INTO words_config (k, v) VALUES ('version', 4)",
    "INSERT OR REPLACE INTO words_data (id, block) VALUES (10, zeroblob(7))",
)
"""The rows without which FTS5 opens no table, not even to drop it, as they are in an empty one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What is derived from one revision of a memory."""

    revision: int
    terms: str
    fingerprints: frozenset[str]
    place: Place


def analyse(memory: Memory) -> Analysis:
    """What is derived from a memory."""
    terms = memory_terms(memory)
    return Analysis(
        revision=memory.revision,
        terms=" ".join(terms),
        fingerprints=fingerprints(memory),
        place=places.of(memory, len(terms)),
    )


def fingerprints(memory: Memory) -> frozenset[str]:
    """The fingerprints of a memory's wordings."""
    return frozenset(fingerprint(wording) for wording in (memory.content, *memory.phrasings))


def put(db: sqlite3.Connection, analysed: Mapping[int, Analysis]) -> None:
    """Write the terms and places of memories, replacing what is there."""
    db.executemany(
        "INSERT OR REPLACE INTO words (rowid, terms) VALUES (?, ?)",
        [(key, one.terms) for key, one in analysed.items()],
    )
    places.put(db, {key: one.place for key, one in analysed.items()})


def delete(db: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Remove the terms of memories, from the index pages too, and their places.

    FTS5 only marks terms as deleted until segments merge, so they are merged now. Its own secure-delete
    (SQLite 3.42) would make the file unreadable to older SQLite versions.
    """
    gone = list(keys)
    db.executemany("DELETE FROM words WHERE rowid = ?", [(key,) for key in gone])
    db.execute("INSERT INTO words (words) VALUES ('optimize')")
    places.bury(db, gone)


def are_current(db: sqlite3.Connection) -> bool:
    """Whether the lexical rows were made by the present analyser."""
    row = db.execute("SELECT version FROM analysed").fetchone()
    return row is not None and row[0] == ANALYSER_VERSION


def _start_over(db: sqlite3.Connection) -> None:
    """Make the index anew and empty, whatever state it is in: rows can only be deleted from a whole one."""
    try:
        db.execute("DROP TABLE IF EXISTS words")
    except sqlite3.DatabaseError:
        for row in NEEDED_TO_OPEN:
            db.execute(row)
        db.execute("DROP TABLE words")
    for name, made_of in TABLES.items():
        db.execute(f"DROP TABLE IF EXISTS {name}")
        db.execute(f"CREATE VIRTUAL TABLE {name} USING {made_of}")


def rebuild(db: sqlite3.Connection, analysed: Mapping[int, Analysis]) -> int:
    """Write all lexical rows anew, from analyses made before the write lock was taken; what has changed
    since is analysed again."""
    present = dict(db.execute("SELECT key, revision FROM memories").fetchall())
    fresh = {key: one for key, one in analysed.items() if present.get(key) == one.revision}
    stale = np.array([key for key in present if key not in fresh], dtype=np.int64)
    for key, record in zip(stale.tolist(), memories.by_key(db, stale), strict=True):
        fresh[key] = analyse(record.memory)
    _start_over(db)
    put(db, fresh)
    places.bury_strays(db)
    memories.refresh_fingerprints(db, {key: one.fingerprints for key, one in fresh.items()})
    db.execute("INSERT OR REPLACE INTO analysed (one, version) VALUES (1, ?)", (ANALYSER_VERSION,))
    return len(present)
