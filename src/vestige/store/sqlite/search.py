"""The lexical arm: FTS5 over the analyser's terms. Its bm25() is the contract's formula."""

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vestige.cognition.text import fingerprint, memory_terms
from vestige.models import Memory
from vestige.store.protocol import Scored
from vestige.store.sqlite import memories
from vestige.store.sqlite.filters import Clause

# What FTS5's `ascii` tokenizer takes as one token without changing it. No other term can be indexed.
TERM = re.compile(r"[a-z0-9_\x80-\ud7ff\ue000-\U0010ffff]+")
# FTS5 gives lower-is-better. CROSS JOIN keeps the word index as the outer loop.
BEST = (
    "SELECT m.key, m.id, -bm25(words) AS score FROM words CROSS JOIN memories m ON m.key = words.rowid"
    " WHERE words MATCH ? AND {where} ORDER BY score DESC, m.id LIMIT ?"
)
EVERYTHING = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """What is derived from the text of one revision of a memory."""

    revision: int
    terms: str
    fingerprints: frozenset[str]


def put(db: sqlite3.Connection, terms: Mapping[int, str]) -> None:
    """Write the terms of memories, replacing what is there."""
    db.executemany("INSERT OR REPLACE INTO words (rowid, terms) VALUES (?, ?)", list(terms.items()))


def delete(db: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Remove the terms of memories, from the index pages too.

    FTS5 only marks terms as deleted until segments merge, so they are merged now. Its own secure-delete
    (SQLite 3.42) would make the file unreadable to older SQLite versions.
    """
    db.executemany("DELETE FROM words WHERE rowid = ?", [(key,) for key in keys])
    db.execute("INSERT INTO words (words) VALUES ('optimize')")


def terms_text(memory: Memory) -> str:
    """The terms of a memory as the index takes them."""
    return " ".join(memory_terms(memory))


def fingerprints(memory: Memory) -> frozenset[str]:
    """The fingerprints of a memory's wordings."""
    return frozenset(fingerprint(wording) for wording in (memory.content, *memory.phrasings))


def lexical(db: sqlite3.Connection, terms: Sequence[str], wanted: Clause, limit: int) -> list[Scored]:
    """The best memories by BM25."""
    match = _match(terms)
    if not match:
        return []
    if wanted.retained is None:
        rows = db.execute(BEST.format(where=wanted.sql), (match, *wanted.params, limit)).fetchall()
    else:
        rows = db.execute(BEST.format(where=wanted.sql), (match, *wanted.params, EVERYTHING)).fetchall()
        retained = set(memories.keys(db, wanted).tolist())
        rows = [row for row in rows if row[0] in retained][:limit]
    return [Scored(memory_id=memory_id, score=score) for _, memory_id, score in rows]


def analyse(memory: Memory) -> Analysis:
    """What is derived from a memory's text."""
    return Analysis(revision=memory.revision, terms=terms_text(memory), fingerprints=fingerprints(memory))


def rebuild(db: sqlite3.Connection, analysed: Mapping[int, Analysis]) -> int:
    """Write all terms and fingerprints anew, from analyses made before the write lock was taken; what
    has changed since is analysed again."""
    present = dict(db.execute("SELECT key, revision FROM memories").fetchall())
    fresh = {key: one for key, one in analysed.items() if present.get(key) == one.revision}
    stale = np.array([key for key in present if key not in fresh], dtype=np.int64)
    for key, record in zip(stale.tolist(), memories.by_key(db, stale), strict=True):
        fresh[key] = analyse(record.memory)
    db.execute("DELETE FROM words")
    put(db, {key: one.terms for key, one in fresh.items()})
    memories.refresh_fingerprints(db, {key: one.fingerprints for key, one in fresh.items()})
    return len(present)


def _match(terms: Sequence[str]) -> str:
    """The terms as an FTS5 expression: quoted, joined by OR, a prefix marked outside its quotes."""
    parts = []
    for term in dict.fromkeys(terms):
        word = term.removesuffix("*")
        if TERM.fullmatch(word):
            parts.append(f'"{word}"' + (" *" if word != term else ""))
    return " OR ".join(parts)
