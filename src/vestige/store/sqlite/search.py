"""The lexical arm: the postings of the word index, read from FTS5 and scored by `store.sql.scoring`."""

import sqlite3
from collections.abc import Sequence
from functools import partial

import numpy as np

from vestige.cognition.bm25 import Frequency, Integers, is_prefix
from vestige.pool import TermStatistics, Worded
from vestige.store.sql import memories, scoring
from vestige.store.sql.columns import keys_from_text
from vestige.store.sql.directory import Directory
from vestige.store.sql.scoring import LAST_CHARACTER, NO_KEYS, Lexical, Mask, Sought

# One number per occurrence.
OCCURRENCES = "SELECT group_concat(doc) FROM words_at WHERE {where}"
FREQUENCY = "SELECT coalesce(sum(doc), 0), coalesce(sum(cnt), 0) FROM words_seen WHERE {where}"


def lexical(
    db: sqlite3.Connection,
    directory: Directory,
    terms: Sequence[str],
    allowed: Mask | None,
    limit: int,
    budget: int | None,
) -> list[Worded]:
    """The best memories by BM25."""
    scores = score(db, directory, terms, budget).scores
    return scoring.best(partial(memories.ids_of, db), scores, allowed, limit)


def score(
    db: sqlite3.Connection,
    directory: Directory,
    terms: Sequence[str],
    budget: int | None,
    also: Integers = NO_KEYS,
) -> Lexical:
    """The scores of every memory that matches, and of those in `also`, with store-wide statistics."""
    sought = Sought.of(terms)
    common = None
    if sought.must_choose(directory.total, budget):
        common = [_frequency(db, term) for term in sought.indexable]
    found = {term: _counted(_occurrences(db, term)) for term in scoring.looked_up(sought, common, budget)}
    return scoring.score(sought, common, found, directory, also)


def statistics(
    db: sqlite3.Connection, directory: Directory, terms: Sequence[str], budget: int | None
) -> TermStatistics:
    """How common the terms are that count."""
    return scoring.statistics(score(db, directory, terms, budget), directory)


def _frequency(db: sqlite3.Connection, term: str) -> Frequency:
    where, params = _matching(term)
    found = db.execute(FREQUENCY.format(where=where), params).fetchone()
    return Frequency(term=term, memories=found[0], occurrences=found[1])


def _occurrences(db: sqlite3.Connection, term: str) -> Integers:
    """The key of the memory of every occurrence."""
    where, params = _matching(term)
    return keys_from_text(db.execute(OCCURRENCES.format(where=where), params).fetchone()[0])


def _counted(occurrences: Integers) -> scoring.Occurrences:
    """Each memory's key once, and how often it was there; the index gives them in order, but for prefixes."""
    ordered = np.sort(occurrences, kind="stable")
    firsts = np.flatnonzero(np.diff(ordered, prepend=-1))
    return ordered[firsts], np.diff(firsts, append=len(ordered))


def _matching(term: str) -> tuple[str, tuple[str, ...]]:
    """The condition on the vocabulary for a term, or for everything a prefix begins."""
    if not is_prefix(term):
        return "term = ?", (term,)
    first = term[:-1]
    return "term >= ? AND term < ?", (first, first + LAST_CHARACTER)
