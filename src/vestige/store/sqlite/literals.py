"""The literal arm: memories that hold a text as it is. The word index finds them, their text decides."""

import sqlite3
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.cognition import verbatim
from vestige.cognition.bm25 import Integers
from vestige.cognition.verbatim import literal_terms
from vestige.store.sqlite import memories, search
from vestige.store.sqlite.columns import json_text, keys_from_text, keys_text
from vestige.store.sqlite.directory import Directory
from vestige.store.sqlite.places import source_hash

Mask = NDArray[np.bool_]

BATCH = 200
"""Texts read at a time."""


def find(
    db: sqlite3.Connection, directory: Directory, literals: Sequence[str], allowed: Mask | None, limit: int
) -> Integers:
    """The keys of the memories that hold most of the literals, at least one; ties by id."""
    if not literals:
        return search.NO_KEYS
    keys = np.unique(np.concatenate([_candidates(db, directory, one, allowed) for one in literals]))
    held = count(db, literals, keys)
    keys, held = keys[held > 0], held[held > 0]
    return keys[search.highest(db, keys, (held.astype(np.float64),), limit)]


def count(db: sqlite3.Connection, literals: Sequence[str], keys: Integers) -> Integers:
    """How many of the literals each of these memories holds."""
    if not literals or not len(keys):
        return np.zeros(len(keys), dtype=np.int64)
    terms = _terms_of(db, keys)
    distinct = list(dict.fromkeys(literals))
    held = {
        key: verbatim.held(distinct, memory, terms.get(key, frozenset()))
        for at in range(0, len(keys), BATCH)
        for key, memory in memories.texts_of(db, keys[at : at + BATCH])
    }
    return np.array([held.get(key, 0) for key in keys.tolist()], dtype=np.int64)


def _candidates(db: sqlite3.Connection, directory: Directory, literal: str, allowed: Mask | None) -> Integers:
    """The memories that have all terms of a literal, unless that tells nothing, or are named by it."""
    plain = literal.strip()
    named = db.execute(
        "SELECT group_concat(key) FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (json_text([plain, plain.lower()]),),
    ).fetchone()[0]
    found = [keys_from_text(named), _with_all_terms(db, sorted(literal_terms(literal)))]
    found.append(directory.of_source(source_hash(plain)))
    if allowed is not None:
        found = [keys[allowed[keys]] for keys in found]
    return np.concatenate([keys for keys in found if len(keys) <= verbatim.COMMON] or [search.NO_KEYS])


def _with_all_terms(db: sqlite3.Connection, terms: Sequence[str]) -> Integers:
    if not terms or not all(search.TERM.fullmatch(term) for term in terms):
        return search.NO_KEYS
    match = " AND ".join(f'"{term}"' for term in terms)
    found = db.execute("SELECT group_concat(rowid) FROM words WHERE words MATCH ?", (match,))
    return keys_from_text(found.fetchone()[0])


def _terms_of(db: sqlite3.Connection, keys: Integers) -> Mapping[int, frozenset[str]]:
    rows = db.execute(
        "SELECT rowid, terms FROM words WHERE rowid IN (SELECT value FROM json_each(?))", (keys_text(keys),)
    )
    return {key: frozenset(terms.split(" ")) for key, terms in rows}
