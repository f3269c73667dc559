"""The lexical arm: BM25 from postings of any database, and the directory."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.ranking import bm25
from vestige.cognition.ranking.bm25 import Floats, Frequency, Integers, Scores, is_prefix
from vestige.core.candidates import LexicalScores, TermStatistics
from vestige.store.sql.search.threads import Directory

Mask = NDArray[np.bool_]
Ids = Callable[[Iterable[int]], Mapping[int, str]]
"""The public ids of keys."""
Occurrences = tuple[Integers, Integers]
"""The keys of the memories that have a term, each once, and the number of its occurrences."""

# Every index takes such a term unchanged; the analyser makes no other.
TERM = re.compile(r"[a-z0-9_\x80-\ud7ff\ue000-\U0010ffff]+")
LAST_CHARACTER = "\U0010ffff"
"""A character that no term has."""
NO_KEYS: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtTerms:
    """The distinct terms of a query that count, the number of times each is requested, and which an index can
    hold."""

    times: Mapping[str, int]
    indexable: tuple[str, ...]

    @classmethod
    def of(cls, terms: Sequence[str]) -> "SoughtTerms":
        """The sought terms of a query."""
        often = Counter(terms)
        times = {term: often[term] for term in bm25.considered(often)}
        return cls(times=times, indexable=tuple(filter(is_indexable, times)))

    def must_choose(self, occurrences: int, budget: int | None) -> bool:
        """Whether the budget is too small for all terms, in a store with this number of occurrences."""
        prefixes = sum(map(is_prefix, self.indexable))
        over = budget is not None and occurrences * (1 + prefixes) > budget
        return bm25.too_many(self.indexable) or over


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """The scores of all rows that share a term with the query, and in how many memories each term is.

    `terms` are those that were looked up, in the numbering of the postings.
    """

    scores: Scores
    frequencies: Mapping[str, int]
    terms: tuple[str, ...]
    postings: bm25.Postings


def is_indexable(term: str) -> bool:
    """Whether an index can hold a term, or a term with this prefix."""
    return TERM.fullmatch(term.removesuffix("*")) is not None


def looked_up(sought: SoughtTerms, common: Sequence[Frequency] | None, budget: int | None) -> list[str]:
    """The terms to look up: all, or where `common` says how common they are, those within the budget.

    Sorted, so that scores are the same to the last bit for any order of the terms.
    """
    return sorted(sought.indexable if common is None else bm25.affordable(common, budget))


def score(
    sought: SoughtTerms,
    common: Sequence[Frequency] | None,
    found: Mapping[str, Occurrences],
    directory: Directory,
    also: Integers = NO_KEYS,
) -> Lexical:
    """The scores of every memory that has a term in `found`, and of those in `also`, with store-wide
    statistics. Terms that were not looked up are as common as `common` says."""
    frequencies = dict.fromkeys(sought.times, 0)
    frequencies |= {one.term: min(one.memories, directory.memories) for one in common or ()}
    rows: list[Integers] = []
    counts: list[Integers] = []
    for term, (keys, often) in found.items():
        alive = directory.has(keys)
        whole = bool(alive.all())  # as it is unless another program wrote the index
        rows.append(keys if whole else keys[alive])
        counts.append(often if whole else often[alive])
        frequencies[term] = len(rows[-1])
    postings = bm25.Postings(
        terms=np.repeat(np.arange(len(found)), [len(one) for one in rows]),
        rows=np.concatenate((NO_KEYS, *rows)),
        counts=np.concatenate((NO_KEYS, *counts)),
        weights=np.array([sought.times[term] for term in found], dtype=np.float64),
    )
    known = also[directory.has(also)]
    return Lexical(
        scores=bm25.score(postings, directory.collection(), known),
        frequencies=frequencies,
        terms=tuple(found),
        postings=postings,
    )


def statistics(found: Lexical, directory: Directory) -> TermStatistics:
    """The frequencies of the terms that count: those that are looked up, and those that occur nowhere."""
    return TermStatistics(
        frequencies={
            term: count for term, count in found.frequencies.items() if term in found.terms or not count
        },
        memories=directory.memories,
        words=directory.total,
    )


def best(ids_of: Ids, scores: Scores, allowed: Mask | None, limit: int) -> list[LexicalScores]:
    """The best allowed memories that match a term, in the order of the contract."""
    at = best_rows(ids_of, scores, allowed, limit)
    ids = ids_of(scores.rows[at].tolist())
    found = [
        LexicalScores(
            memory_id=ids[int(scores.rows[one])],
            own=float(scores.own[one]),
            window=float(scores.window[one]),
            thread=float(scores.thread[one]),
        )
        for one in at.tolist()
    ]
    return sorted(found, key=lambda one: (-one.window, -one.own, one.memory_id))


def best_rows(ids_of: Ids, scores: Scores, allowed: Mask | None, limit: int) -> Integers:
    """The positions in `scores` of the best allowed memories that match a term; not in order."""
    matching = scores.window > 0
    if allowed is not None:
        matching &= allowed[scores.rows]
    at = np.flatnonzero(matching)
    return at[highest(ids_of, scores.rows[at], (scores.window[at], scores.own[at]), limit)]


def highest(ids_of: Ids, keys: Integers, scores: Sequence[Floats], limit: int) -> Integers:
    """The positions of the `limit` highest scores, the later scores and then the ids deciding ties; not in
    order.

    Ids are read only when a tie crosses the limit.
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
    ids = ids_of(keys[order[tied]].tolist())
    surely = order[: int(np.argmax(tied))]
    by_id = sorted(order[tied].tolist(), key=lambda one: ids[int(keys[one])])
    return np.concatenate((surely, np.array(by_id[: limit - len(surely)], dtype=np.int64)))
