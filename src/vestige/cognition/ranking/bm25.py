"""BM25 of memories at three levels: own terms, terms with the neighbours', and terms of the thread.

A memory is a *row* of the collection's arrays. Only the rows that share a term with the query are read, so
the cost grows with the number of postings, not with the size of the store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import log

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

K1 = 1.2
B = 0.75
LEAST_IDF = 1e-6
MOST_TERMS = 64
MOST_PREFIXES = 16
"""The limits of terms and prefixes of a query that are looked up."""
MOST_COUNTED = 512  # The limit of terms of a query whose frequency is asked for, to find the rarest.
MOST_CELLS = 8_000_000
"""Above this number of pairs of term and row the postings are sorted instead of entered into a table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """All memories of a store, by row: their number of terms, the rows before and after in the thread (-1 for
    none), and the thread (-1 for none). `thread_lengths` is by thread; a total is over all rows."""

    lengths: Integers
    before: Integers
    after: Integers
    threads: Integers
    thread_lengths: Integers
    memories: int
    total: int
    window_total: int
    thread_count: int
    thread_total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Postings:
    """Which term occurs how often in which row, one entry per term and row; terms are numbered, and `weights`
    says how often each is in the query."""

    terms: Integers
    rows: Integers
    counts: Integers
    weights: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Frequency:
    """How common a term is: the number of memories with it, and of its occurrences. For a prefix, those of
    its terms are added up."""

    term: str
    memories: int
    occurrences: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Scores:
    """The score of each row at each level; rows ascend. Outside any thread `window` is `own` and `thread` is
    0. `held` are pairs of a term and an index in `rows`, one for each term a window holds."""

    rows: Integers
    own: Floats
    window: Floats
    thread: Floats
    held: tuple[Integers, Integers]


def is_prefix(term: str) -> bool:
    """Whether a term of a query is a prefix (`word*`)."""
    return len(term) > 1 and term.endswith("*")


def considered(terms: Iterable[str]) -> list[str]:
    """The distinct terms of a query that count: the first MOST_COUNTED, and the longest MOST_PREFIXES
    prefixes, because these begin the fewest terms."""
    distinct = list(dict.fromkeys(terms))
    plain = [term for term in distinct if not is_prefix(term)]
    prefixes = sorted((term for term in distinct if is_prefix(term)), key=lambda term: (-len(term), term))
    return [*plain[:MOST_COUNTED], *prefixes[:MOST_PREFIXES]]


def too_many(terms: Iterable[str]) -> bool:
    """Whether some of these considered terms cannot be looked up."""
    return sum(not is_prefix(term) for term in terms) > MOST_TERMS


def affordable(common: Iterable[Frequency], budget: int | None) -> list[str]:
    """The terms to look up: the rarest MOST_TERMS, and the prefixes while their occurrences fit into the
    budget, at least the first. A term that does not occur uses no budget."""
    there = sorted((one for one in common if one.occurrences), key=lambda one: (one.memories, one.term))
    rarest = frozenset([one.term for one in there if not is_prefix(one.term)][:MOST_TERMS])
    taken = [one for one in there if is_prefix(one.term) or one.term in rarest]
    if budget is None:
        return [one.term for one in taken]
    spent = np.cumsum([one.occurrences for one in taken])
    return [one.term for one in taken[: max(1, int(np.searchsorted(spent, budget, side="right")))]]


def score(postings: Postings, collection: Collection, also: Integers) -> Scores:
    """The scores of every row that has a term, or a neighbour that has one, and of the rows in `also`."""
    near = _with_neighbours(postings, collection)
    rows = _distinct(np.concatenate((near.rows, also)), len(collection.lengths))
    slots = np.zeros(len(collection.lengths), dtype=np.int64)
    slots[rows] = np.arange(len(rows))
    own_lengths = collection.lengths[rows].astype(np.float64)
    alone, windows = (replace(some, rows=slots[some.rows]) for some in (postings, near))
    return Scores(
        rows=rows,
        own=_level(alone, own_lengths, collection.memories, collection.total),
        window=_level(
            windows,
            own_lengths
            + _length_at(collection, collection.before[rows])
            + _length_at(collection, collection.after[rows]),
            collection.memories,
            collection.window_total,
        ),
        thread=_thread_scores(postings, collection, rows),
        held=_added_up(windows, len(rows))[:2],
    )


def _thread_scores(postings: Postings, collection: Collection, rows: Integers) -> Floats:
    threads = collection.threads[postings.rows]
    inside = threads >= 0
    there = collection.threads[rows]
    met = _distinct(np.concatenate((threads[inside], there[there >= 0])), len(collection.thread_lengths))
    slots = np.zeros(len(collection.thread_lengths) + 1, dtype=np.int64)
    slots[met] = np.arange(len(met))
    entries = Postings(
        terms=postings.terms[inside],
        rows=slots[threads[inside]],
        counts=postings.counts[inside],
        weights=postings.weights,
    )
    lengths = collection.thread_lengths[met].astype(np.float64)
    scores = _level(entries, lengths, collection.thread_count, collection.thread_total)
    return np.where(there >= 0, np.append(scores, 0.0)[np.where(there >= 0, slots[there], len(met))], 0.0)


def _level(entries: Postings, lengths: Floats, documents: int, total: int) -> Floats:
    """BM25 of the documents of these lengths. Entries that repeat a term and a document add up."""
    if not len(entries.rows):
        return np.zeros(len(lengths))
    terms, rows, counts = _added_up(entries, len(lengths))
    found = np.bincount(terms, minlength=len(entries.weights))
    idf = np.maximum(LEAST_IDF, np.log((documents - found + 0.5) / (found + 0.5)))
    norms = K1 * (1 - B + B * lengths / (total / documents))
    gains = (entries.weights * idf * (K1 + 1))[terms] * counts / (counts + norms[rows])
    scores: Floats = np.bincount(rows, weights=gains, minlength=len(lengths)).astype(np.float64)
    return scores


def _added_up(entries: Postings, documents: int) -> tuple[Integers, Integers, Floats]:
    """Every pair of a term and a document once, with the sum of its counts, by term."""
    cells = entries.terms * documents + entries.rows
    order = np.arange(len(cells))
    if len(entries.weights) * documents > MOST_CELLS:
        last = np.unique(cells, return_inverse=True)[1]
        last = _last_of_each(last, len(cells), order)
    else:
        last = _last_of_each(cells, len(entries.weights) * documents, order)
    counts = np.bincount(last, weights=entries.counts, minlength=len(cells))
    kept = last == order
    return entries.terms[kept], entries.rows[kept], counts[kept]


def _last_of_each(cells: Integers, size: int, order: Integers) -> Integers:
    """For each entry the last one in its cell. The table's previous content is never read."""
    table = np.empty(size, dtype=np.int64)
    table[cells] = order
    return table[cells]


def _with_neighbours(postings: Postings, collection: Collection) -> Postings:
    """The postings of each row, also given to the rows beside it, still in the order of terms, so that equal
    scores are sums of equal numbers in the same order."""
    rows = np.stack(
        (postings.rows, collection.before[postings.rows], collection.after[postings.rows]), axis=1
    ).ravel()
    there = np.flatnonzero(rows >= 0)
    entries = there // 3
    return Postings(
        terms=postings.terms[entries],
        rows=rows[there],
        counts=postings.counts[entries],
        weights=postings.weights,
    )


def _length_at(collection: Collection, rows: Integers) -> Integers:
    return np.where(rows >= 0, collection.lengths[rows], 0)


def _distinct(numbers: Integers, size: int) -> Integers:
    """The numbers that occur, all below `size`, ascending."""
    seen = np.zeros(size, dtype=np.bool_)
    seen[numbers] = True
    return np.flatnonzero(seen)


# -- Term rarity: the weight of a query's words in late interaction and confidence

BACKGROUND = 100  # The number of imaginary memories without the word: rarity means little among few.
LEAST = 1e-6


def idf(frequency: int, memories: int) -> float:
    """The inverse document frequency of a word that this many memories have (as in BM25), always above 0."""
    without = memories + BACKGROUND - frequency
    return max(LEAST, log((without + 0.5) / (frequency + 0.5)))


def mass(terms: Iterable[str], frequencies: Mapping[str, int], memories: int) -> float:
    """The total weight of these terms."""
    return sum(idf(frequencies.get(term, 0), memories) for term in terms)
