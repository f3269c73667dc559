"""The literal arm: memories that hold a text as it is. The word index finds them, their text decides."""

import sqlite3
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from vestige.cognition.query import literals as verbatim
from vestige.cognition.query.literals import literal_terms
from vestige.cognition.ranking.bm25 import Integers
from vestige.cognition.text.analyser import searchable
from vestige.core.models import Memory
from vestige.store.sql.columns import keys_from_text, listed
from vestige.store.sql.rows import memories
from vestige.store.sql.search.bm25 import NO_KEYS, Mask, highest, is_indexable
from vestige.store.sql.search.index_rows import source_hash
from vestige.store.sql.search.threads import Directory

READ_CHARS = 16_000_000
"""The most characters read to check literals, those of short memories first; memories beyond them count as
without the literal."""
EVERYWHERE = 50_000
"""A literal whose terms this number of memories have, whatever the filter, is not looked for in their
texts."""

BY_LENGTH = (
    "SELECT m.key FROM memories m LEFT JOIN places p ON p.key = m.key"
    " WHERE m.key IN (SELECT value FROM json_each(?)) ORDER BY p.length, m.key"
)
# In the order given: the first table of a cross join is the outer loop. Sorting would read every text first.
TEXTS = (
    f"SELECT m.key, coalesce(w.terms, ''), {memories.MEMORY} FROM json_each(?) j"
    " CROSS JOIN memories m ON m.key = j.value LEFT JOIN words w ON w.rowid = m.key"
)
MATCHES = "SELECT group_concat(rowid) FROM (SELECT rowid FROM words WHERE words MATCH ? LIMIT ?)"


def find(
    db: sqlite3.Connection, directory: Directory, literals: Sequence[str], allowed: Mask | None, limit: int
) -> Integers:
    """The keys of the memories that hold most of the literals, at least one; ties by id."""
    if not literals:
        return NO_KEYS
    keys = np.unique(np.concatenate([_candidates(db, directory, one, allowed) for one in literals]))
    held = count(db, literals, keys)
    keys, held = keys[held > 0], held[held > 0]
    return keys[highest(partial(memories.ids_of, db), keys, (held.astype(np.float64),), limit)]


def count(db: sqlite3.Connection, literals: Sequence[str], keys: Integers) -> Integers:
    """The number of literals that each of these memories holds."""
    if not literals or not len(keys):
        return np.zeros(len(keys), dtype=np.int64)
    distinct = list(dict.fromkeys(literals))
    held = {key: verbatim.held(distinct, memory, terms) for key, terms, memory in _texts(db, keys)}
    return np.array([held.get(key, 0) for key in keys.tolist()], dtype=np.int64)


def _candidates(db: sqlite3.Connection, directory: Directory, literal: str, allowed: Mask | None) -> Integers:
    """The memories that have all terms of a literal, unless its terms are too common, or whose source it
    is."""
    plain = literal.strip()
    named = db.execute(
        "SELECT group_concat(key) FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (listed([plain, plain.lower()]),),
    ).fetchone()[0]
    found = [keys_from_text(named), _with_all_terms(db, sorted(literal_terms(literal)))]
    found.append(directory.of_source(source_hash(plain)))
    if allowed is not None:
        found = [keys[allowed[keys]] for keys in found]
    return np.concatenate([keys for keys in found if len(keys) <= verbatim.COMMON] or [NO_KEYS])


def _with_all_terms(db: sqlite3.Connection, terms: Sequence[str]) -> Integers:
    if not terms or not all(map(is_indexable, terms)):
        return NO_KEYS
    match = " AND ".join(f'"{term}"' for term in terms)
    found = keys_from_text(db.execute(MATCHES, (match, EVERYWHERE)).fetchone()[0])
    return found if len(found) < EVERYWHERE else NO_KEYS


def _texts(db: sqlite3.Connection, keys: Integers) -> Iterator[tuple[int, frozenset[str], Memory]]:
    """The memories of these keys and their terms, short ones first, until READ_CHARS are read."""
    ordered = [row[0] for row in db.execute(BY_LENGTH, (listed(keys),))]
    left = READ_CHARS
    # One row after the other: a memory can be large, and no two of them need be held.
    for key, terms, *row in db.execute(TEXTS, (listed(ordered),)):
        memory = memories.from_row(row)
        left -= len(terms) + len(searchable(memory))
        if left < 0:
            return
        yield key, frozenset(terms.split(" ")), memory
