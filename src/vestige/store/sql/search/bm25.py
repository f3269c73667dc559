"""The lexical arm without its database: BM25 from postings, wherever they were read, and the directory."""

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
"""The keys of the memories that have a term, each once, and how often it has it."""

# What every index takes as one term without changing it: the analyser makes no other.
TERM = re.compile(r"[a-z0-9_\x80-\ud7ff\ue000-\U0010ffff]+")
LAST_CHARACTER = "\U0010ffff"
"""No term has it: it is not a letter and never will be."""
NO_KEYS: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtTerms:
    """The distinct terms of a query that count, how often each is asked for, and which an index can have."""

    times: Mapping[str, int]
    indexable: tuple[str, ...]

    @classmethod
    def of(cls, terms: Sequence[str]) -> "SoughtTerms":
        """What is sought by these terms."""
        often = Counter(terms)
        times = {term: often[term] for term in bm25.considered(often)}
        return cls(times=times, indexable=tuple(filter(is_indexable, times)))

    def must_choose(self, occurrences: int, budget: int | None) -> bool:
        """Whether not all can be looked up in a store with so many occurrences of all terms."""
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
    """Whether an index can have a term, or begin one by it."""
    return TERM.fullmatch(term.removesuffix("*")) is not None


def looked_up(sought: SoughtTerms, common: Sequence[Frequency] | None, budget: int | None) -> list[str]:
    """The terms to look up: all, or where `common` says how common they are, those that can be afforded.

    Sorted: in whatever order terms are asked for, scores are the same to the last bit.
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
    statistics. What was not looked up is as common as `common` says."""
    frequencies = dict.fromkeys(sought.times, 0)
    frequencies |= {one.term: min(one.memories, directory.memories) for one in common or ()}
    rows: list[Integers] = []
    counts: list[Integers] = []
    for term, (keys, often) in found.items():
        standing = directory.standing(keys)
        whole = bool(standing.all())  # as it is unless another program wrote the index
        rows.append(keys if whole else keys[standing])
        counts.append(often if whole else often[standing])
        frequencies[term] = len(rows[-1])
    postings = bm25.Postings(
        terms=np.repeat(np.arange(len(found)), [len(one) for one in rows]),
        rows=np.concatenate((NO_KEYS, *rows)),
        counts=np.concatenate((NO_KEYS, *counts)),
        weights=np.array([sought.times[term] for term in found], dtype=np.float64),
    )
    known = also[directory.standing(also)]
    return Lexical(
        scores=bm25.score(postings, directory.collection(), known),
        frequencies=frequencies,
        terms=tuple(found),
        postings=postings,
    )


def statistics(found: Lexical, directory: Directory) -> TermStatistics:
    """How common the terms are that count: those that are looked up, and those that occur nowhere."""
    return TermStatistics(
        frequencies={
            term: count for term, count in found.frequencies.items() if term in found.terms or not count
        },
        memories=directory.memories,
        words=directory.total,
    )


def best(ids_of: Ids, scores: Scores, allowed: Mask | None, limit: int) -> list[LexicalScores]:
    """The best memories that match a term and are allowed, in the order of the contract."""
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
    """Where in `scores` the best memories are that match a term and are allowed; not in order."""
    matching = scores.window > 0
    if allowed is not None:
        matching &= allowed[scores.rows]
    at = np.flatnonzero(matching)
    return at[highest(ids_of, scores.rows[at], (scores.window[at], scores.own[at]), limit)]


def highest(ids_of: Ids, keys: Integers, scores: Sequence[Floats], limit: int) -> Integers:
    """Where the `limit` highest scores are, the later scores and then the ids deciding ties; not in order.

    Ids are only asked for when a tie crosses the limit.
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
