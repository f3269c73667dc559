"""BM25 of memories at three levels: own terms, terms with the neighbours', and terms of the thread.

A memory is a *row* of the collection's arrays. Only the rows that share a term with the query are read, so
the cost grows with the number of postings, not with the size of the store.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.native.kernel import Kernel, kernel
from vestige.core.lazy_dataclass import dataclass

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
    """Which term occurs how often in which row, one entry per term and row, in the order of terms; terms are
    numbered, and `weights` says how often each is in the query."""

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
    native = kernel()
    if native is None:
        return _score(postings, collection, also)
    return _score_by_kernel(native, postings, collection, also)


def _score_by_kernel(native: Kernel, postings: Postings, collection: Collection, also: Integers) -> Scores:
    before, after, threads = collection.before, collection.after, collection.threads
    entries = (postings.terms, postings.rows, postings.counts)
    rows, slots = native.rows(postings.rows, before, after, also)
    held = native.windows(entries, before, after, slots, len(rows))
    memories, windows, spoken_in = _memories(collection), _windows(collection), _threads(collection)
    own, window = native.norms(
        rows, collection.lengths, before, after, k1=K1, b=B, averages=(memories.average, windows.average)
    )
    spoken = native.threads(entries, threads, len(collection.thread_lengths))
    thread = native.scores(
        spoken, _factors(postings, spoken[0], spoken_in), _norms(collection.thread_lengths, spoken_in)
    )
    return Scores(
        rows=rows,
        own=native.scores(entries, _factors(postings, postings.terms, memories), own, slots),
        window=native.scores(held, _factors(postings, held[0], windows), window),
        thread=np.append(thread, 0.0)[threads[rows]],  # -1, outside any thread, is the last
        held=held[:2],
    )


def _score(postings: Postings, collection: Collection, also: Integers) -> Scores:
    near = _with_neighbours(postings, collection)
    rows = _distinct(np.concatenate((near.rows, also)), len(collection.lengths))
    slots = np.empty(len(collection.lengths), dtype=np.int64)
    slots[rows] = np.arange(len(rows))
    own, window = _lengths(collection, rows)
    held = _added_up(replace(near, rows=slots[near.rows]), len(rows))
    alone = (postings.terms, slots[postings.rows], postings.counts)
    return Scores(
        rows=rows,
        own=_level(alone, *_worth(postings, postings.terms, own, _memories(collection))),
        window=_level(held, *_worth(postings, held[0], window, _windows(collection))),
        thread=_thread_scores(postings, collection, rows),
        held=held[:2],
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
    spoken = _added_up(entries, len(met))
    lengths = collection.thread_lengths[met]
    scores = _level(spoken, *_worth(postings, spoken[0], lengths, _threads(collection)))
    return np.where(there >= 0, np.append(scores, 0.0)[np.where(there >= 0, slots[there], len(met))], 0.0)


class _Level(NamedTuple):
    """What is scored: the number of documents, and of their terms in total."""

    documents: int
    total: int

    @property
    def average(self) -> float:
        return self.total / self.documents if self.total else 1.0


def _memories(collection: Collection) -> _Level:
    return _Level(collection.memories, collection.total)


def _windows(collection: Collection) -> _Level:
    return _Level(collection.memories, collection.window_total)


def _threads(collection: Collection) -> _Level:
    return _Level(collection.thread_count, collection.thread_total)


def _lengths(collection: Collection, rows: Integers) -> tuple[Integers, Integers]:
    """The number of terms of each row, and of its window."""
    own = collection.lengths[rows]
    before, after = collection.before[rows], collection.after[rows]
    return own, own + _length_at(collection, before) + _length_at(collection, after)


def _worth(postings: Postings, terms: Integers, lengths: Integers, level: _Level) -> tuple[Floats, Floats]:
    return _factors(postings, terms, level), _norms(lengths, level)


def _factors(postings: Postings, terms: Integers, level: _Level) -> Floats:
    """The factor of each term; `terms` has one entry for each document with it."""
    found = np.bincount(terms, minlength=len(postings.weights))
    idf = np.maximum(LEAST_IDF, np.log((level.documents - found + 0.5) / (found + 0.5)))
    return postings.weights * idf * (K1 + 1)


def _norms(lengths: Integers, level: _Level) -> Floats:
    """The norm of documents of these lengths."""
    return K1 * (1 - B + B * lengths.astype(np.float64) / level.average)


def _level(entries: tuple[Integers, Integers, Integers | Floats], factors: Floats, norms: Floats) -> Floats:
    """The sum of what the entries of each document are worth."""
    terms, rows, counts = entries
    gains = factors[terms] * counts / (counts + norms[rows])
    scores: Floats = np.bincount(rows, weights=gains, minlength=len(norms)).astype(np.float64, copy=False)
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
