"""The lexical arm: BM25 from the postings of the word index and the directory of places."""

import re
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vestige.cognition import bm25
from vestige.cognition.bm25 import Floats, Frequency, Integers, Scores, is_prefix
from vestige.pool import TermStatistics, Worded
from vestige.store.sql import memories
from vestige.store.sql.columns import keys_from_text
from vestige.store.sql.directory import Directory

Mask = NDArray[np.bool_]

# What FTS5's `ascii` tokenizer takes as one token without changing it. No other term can be indexed.
TERM = re.compile(r"[a-z0-9_\x80-\ud7ff\ue000-\U0010ffff]+")
NO_KEYS: Integers = np.empty(0, dtype=np.int64)

# One number per occurrence.
OCCURRENCES = "SELECT group_concat(doc) FROM words_at WHERE {where}"
FREQUENCY = "SELECT coalesce(sum(doc), 0), coalesce(sum(cnt), 0) FROM words_seen WHERE {where}"
# No term has it: it is not a letter and never will be.
LAST_CHARACTER = "\U0010ffff"


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """The scores of all rows that share a term with the query, and in how many memories each term is.

    `terms` are those that were looked up, in the numbering of the postings.
    """

    scores: Scores
    frequencies: Mapping[str, int]
    terms: tuple[str, ...]
    postings: bm25.Postings


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
    at = best_rows(db, scores, allowed, limit)
    ids = memories.ids_of(db, scores.rows[at].tolist())
    found = [
        Worded(
            memory_id=ids[int(scores.rows[one])],
            own=float(scores.own[one]),
            window=float(scores.window[one]),
            thread=float(scores.thread[one]),
        )
        for one in at.tolist()
    ]
    return sorted(found, key=lambda one: (-one.window, -one.own, one.memory_id))


def score(
    db: sqlite3.Connection,
    directory: Directory,
    terms: Sequence[str],
    budget: int | None,
    also: Integers = NO_KEYS,
) -> Lexical:
    """The scores of every memory that matches, and of those in `also`, with store-wide statistics."""
    times = Counter(terms)
    frequencies = dict.fromkeys(bm25.considered(times), 0)
    visited = [term for term in frequencies if TERM.fullmatch(term.removesuffix("*"))]
    if _must_choose(visited, directory.total, budget):
        common = [_frequency(db, term) for term in visited]
        frequencies |= {one.term: min(one.memories, directory.memories) for one in common}
        visited = bm25.affordable(common, budget)
    visited.sort()  # in whatever order terms are asked for, scores are the same to the last bit
    rows: list[Integers] = []
    counts: list[Integers] = []
    for term in visited:
        found, often = _counted(_occurrences(db, term))
        standing = directory.standing(found)
        rows.append(found[standing])
        counts.append(often[standing])
        frequencies[term] = len(rows[-1])
    postings = bm25.Postings(
        terms=np.repeat(np.arange(len(visited)), [len(one) for one in rows]),
        rows=np.concatenate((NO_KEYS, *rows)),
        counts=np.concatenate((NO_KEYS, *counts)),
        weights=np.array([times[term] for term in visited], dtype=np.float64),
    )
    known = also[directory.standing(also)]
    return Lexical(
        scores=bm25.score(postings, directory.collection(), known),
        frequencies=frequencies,
        terms=tuple(visited),
        postings=postings,
    )


def statistics(
    db: sqlite3.Connection, directory: Directory, terms: Sequence[str], budget: int | None
) -> TermStatistics:
    """How common the terms are that count: those that are looked up, and those that occur nowhere."""
    found = score(db, directory, terms, budget)
    return TermStatistics(
        frequencies={
            term: count for term, count in found.frequencies.items() if term in found.terms or not count
        },
        memories=directory.memories,
        words=directory.total,
    )


def best_rows(db: sqlite3.Connection, scores: Scores, allowed: Mask | None, limit: int) -> Integers:
    """Where in `scores` the best memories are that match a term and are allowed; not in order."""
    matching = scores.window > 0
    if allowed is not None:
        matching &= allowed[scores.rows]
    at = np.flatnonzero(matching)
    return at[highest(db, scores.rows[at], (scores.window[at], scores.own[at]), limit)]


def highest(db: sqlite3.Connection, keys: Integers, scores: Sequence[Floats], limit: int) -> Integers:
    """Where the `limit` highest scores are, the later scores and then the ids deciding ties; not in order.

    Ids are only read when a tie crosses the limit.
    """
    if len(keys) <= limit:
        return np.arange(len(keys))
    if not limit:
        return NO_KEYS
    least = np.partition(scores[0], len(keys) - limit)[len(keys) - limit]
    high = np.flatnonzero(scores[0] >= least)
    order = high[np.lexsort([-one[high] for one in reversed(scores)])]
    last = order[limit - 1]
    tied = np.ones(len(order), dtype=np.bool_)
    for one in scores:
        tied &= one[order] == one[last]
    if len(order) == limit or not tied[limit]:
        return order[:limit]
    ids = memories.ids_of(db, keys[order[tied]].tolist())
    surely = order[: int(np.argmax(tied))]
    by_id = sorted(order[tied].tolist(), key=lambda one: ids[int(keys[one])])
    return np.concatenate((surely, np.array(by_id[: limit - len(surely)], dtype=np.int64)))


def _must_choose(terms: Sequence[str], occurrences: int, budget: int | None) -> bool:
    """Whether not all of the terms can be looked up in a store with so many occurrences of all terms."""
    prefixes = sum(map(is_prefix, terms))
    return bm25.too_many(terms) or (budget is not None and occurrences * (1 + prefixes) > budget)


def _frequency(db: sqlite3.Connection, term: str) -> Frequency:
    where, params = _matching(term)
    found = db.execute(FREQUENCY.format(where=where), params).fetchone()
    return Frequency(term=term, memories=found[0], occurrences=found[1])


def _occurrences(db: sqlite3.Connection, term: str) -> Integers:
    """The key of the memory of every occurrence."""
    where, params = _matching(term)
    return keys_from_text(db.execute(OCCURRENCES.format(where=where), params).fetchone()[0])


def _counted(occurrences: Integers) -> tuple[Integers, Integers]:
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
