"""The candidate pool of a search: what its arms found, joined with rows of the tables, and BM25 scores."""

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.ranking import bm25
from vestige.cognition.ranking.bm25 import Floats, Frequency, Integers, Scores, idf, is_prefix, mass
from vestige.core.candidates import (
    NEARBY,
    CandidatePool,
    Flags,
    LexicalScores,
    Sketch,
    TermStatistics,
    Traits,
)
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.search import Probe
from vestige.store.sql.database import Row
from vestige.store.sql.rows import strengths
from vestige.store.sql.search.index_rows import ASKS, FIRST_PERSON, TIMED
from vestige.store.sql.search.threads import Directory
from vestige.store.sql.search.vectors import Closest

# -- The lexical arm: BM25 from postings of any database, and the directory

Mask = NDArray[np.bool_]
Ids = Callable[[Iterable[int]], Mapping[int, str]]
"""The public ids of keys."""
Occurrences = tuple[Integers, Integers]
"""The keys of the memories that have a term, each once, and the number of its occurrences."""

# Every index takes such a term unchanged; the analyser makes no other.
# (Written as what it does not have: a range of thousands of characters takes a millisecond to compile.)
TERM = re.compile(r"[^\x00-/:-^`{-\x7f\ud800-\udfff]+")
LAST_CHARACTER = "\U0010ffff"
"""A character that no term has."""
NO_KEYS: Integers = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class SoughtTerms:
    """The distinct terms of a query that count, how often each is requested, and which an index can hold."""

    times: Mapping[str, int]
    indexable: tuple[str, ...]

    @classmethod
    def of(cls, terms: Sequence[str]) -> "SoughtTerms":
        often = Counter(terms)
        times = {term: often[term] for term in bm25.considered(often)}
        return cls(times=times, indexable=tuple(filter(is_indexable, times)))

    def must_choose(self, occurrences: int, budget: int | None) -> bool:
        """Whether the budget is too small for all terms, where all words occur this number of times."""
        prefixes = sum(map(is_prefix, self.indexable))
        over = budget is not None and occurrences * (1 + prefixes) > budget
        return bm25.too_many(self.indexable) or over


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexical:
    """The scores of all rows that share a term with the query, and in how many memories each term is. `terms`
    are those that were looked up, in the numbering of the postings."""

    scores: Scores
    frequencies: Mapping[str, int]
    terms: tuple[str, ...]
    postings: bm25.Postings


def is_indexable(term: str) -> bool:
    """Whether an index can hold a term, or a term with this prefix."""
    return TERM.fullmatch(term.removesuffix("*")) is not None


def occurrences_in(rows: Iterable[tuple[int, str]], terms: Sequence[str]) -> dict[str, Occurrences]:
    """The occurrences of terms in these memories, from their keys and indexed terms."""
    found: dict[str, dict[int, int]] = {term: {} for term in terms}
    prefixes = tuple(filter(is_prefix, terms))
    for key, text in rows:
        words = text.split(" ")
        for word in found.keys() & words:
            found[word][key] = words.count(word)
        for prefix in prefixes:
            often = sum(word.startswith(prefix[:-1]) for word in words)
            if often:
                found[prefix][key] = often
    return {
        term: (np.array(list(held), dtype=np.int64), np.array(list(held.values()), dtype=np.int64))
        for term, held in found.items()
    }


def looked_up(sought: SoughtTerms, common: Sequence[Frequency] | None, budget: int | None) -> list[str]:
    """The terms to look up: all, or where `common` says how common they are, those within the budget. Sorted,
    so that scores are the same to the last bit for any order of the terms."""
    return sorted(sought.indexable if common is None else bm25.affordable(common, budget))


def score(
    sought: SoughtTerms,
    common: Sequence[Frequency] | None,
    found: Mapping[str, Occurrences],
    directory: Directory,
    also: Integers = NO_KEYS,
) -> Lexical:
    """The scores of every memory that has a term in `found`, and of those in `also`, with the statistics of
    the directory. Terms that were not looked up are as common as `common` says."""
    frequencies = dict.fromkeys(sought.times, 0)
    frequencies |= {one.term: min(one.memories, directory.memories) for one in common or ()}
    rows: list[Integers] = []
    counts: list[Integers] = []
    for term, (keys, often) in found.items():
        alive = directory.has(keys)
        whole = bool(alive.all())  # as it is unless some are unreadable, or another program wrote the index
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
    order. Ids are read only when a tie crosses the limit."""
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


# -- Candidate pool: the union of the arms, with its signals

MICROSECONDS = 1e-6
WITHOUT_ZONE = len("2026-01-01T00:00:00.000000")
TRAITS = (
    "m.key, m.id, m.created_at, m.occurred_at, m.suppression_count, s.stability,"
    f" s.decay_from, s.retrieval, s.storage, s.times_retrieved, s.times_useful, {strengths.CURVE},"
    " m.scope, m.text_hash"
)
"""The narrow columns of `memories m` and `strengths s` that `signals_of` reads; last the hash of the text, to
recognise vectors of an earlier text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmKeys:
    """The keys each arm found, the lexical scores, and the keys of the neighbourhood in which words are
    counted (None: all of them)."""

    near: Integers
    literal: Integers
    worded: Integers
    nearby: Integers | None
    lexical: Lexical

    @property
    def keys(self) -> Integers:
        # A few hundred: numpy's sets take ten times as long.
        every = {*self.near.tolist(), *self.literal.tolist(), *self.worded.tolist()}
        return np.array(sorted(every), dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSignals:
    """The signals from the tables, in the order of the ids."""

    ids: tuple[str, ...]
    keys: Integers
    traits: Traits


def most_near(probe: Probe, directory: Directory) -> int:
    """The number of memories the dense arm must find: for itself, and to separate the neighbourhood from the
    rest."""
    return max(probe.per_arm, NEARBY + 1 if directory.memories > NEARBY else 0)


def nearest(
    ids_of: Ids, keys: Integers, scores: Floats, probe: Probe, directory: Directory, *, sampled: bool = False
) -> tuple[Integers, Integers | None]:
    """Of the `most_near` nearest, those the dense arm finds, and the neighbourhood in which words are
    counted. `sampled`: they are a sample of a larger neighbourhood."""
    close = np.flatnonzero(scores >= probe.least_cosine)
    near = keys[close][highest(ids_of, keys[close], (scores[close],), probe.per_arm)]
    few = directory.memories <= NEARBY or len(keys) <= NEARBY
    if not len(keys) or (few and not sampled):
        return near, None
    return near, keys[highest(ids_of, keys, (scores,), NEARBY)]


def worded(ids_of: Ids, found: Lexical, allowed: Mask | None, limit: int) -> Integers:
    return found.scores.rows[best_rows(ids_of, found.scores, allowed, limit)]


def pool(
    directory: Directory,
    probe: Probe,
    arms: ArmKeys,
    signals: TableSignals,
    *,
    closest: Closest,
    literals: Integers,
    sketch: Sketch | None,
) -> CandidatePool:
    """The candidates with every signal; `closest` and `literals` are in the order of `signals`."""
    frequencies, memories = _counted(arms, directory)
    own, window, thread, covered = _levels(arms.lexical, frequencies, memories, signals.keys)
    return CandidatePool(
        ids=signals.ids,
        own=own,
        window=window,
        thread=thread,
        cosine=closest.cosine,
        starts=closest.starts,
        ends=closest.ends,
        vectors=closest.vectors,
        literals=literals,
        covered=covered,
        dated=_dated(directory, arms.lexical, probe.date_terms, signals.keys),
        present=directory.spoken_by(signals.keys, probe.names),
        by_words=_among(signals.keys, arms.worded),
        by_meaning=_among(signals.keys, arms.near),
        by_literal=_among(signals.keys, arms.literal),
        traits=signals.traits,
        sketch=sketch,
        frequencies=frequencies,
        memories=memories,
    )


def without_outdated(
    arms: ArmKeys, rows: Sequence[Row], outdated: Collection[int]
) -> tuple[ArmKeys, Sequence[Row]]:
    """The arms, and the rows of `TRAITS`, without what only vectors of an earlier text found."""
    if not outdated:
        return arms, rows
    kept = replace(arms, near=arms.near[~np.isin(arms.near, list(outdated))])
    found = set(kept.keys.tolist())
    return kept, [row for row in rows if row[0] in found]


def signals_of(directory: Directory, rows: Sequence[Row]) -> TableSignals:
    """Ids and traits of the candidates, from rows of `TRAITS`."""
    ordered = sorted(rows, key=itemgetter(1))  # by id; faster here than in SQL
    columns = list(zip(*ordered, strict=True)) or [()] * 14
    keys = np.array(columns[0], dtype=np.int64)
    flags = directory.flags(keys)
    traits = Traits(
        created=_seconds(columns[2]),
        happened=_seconds(columns[3]),
        suppressions=np.array(columns[4], dtype=np.int64),
        stability=np.array(columns[5], dtype=np.float64),
        decay_from=np.array(columns[6], dtype=np.float64) * MICROSECONDS,
        retrieval=np.array(columns[7], dtype=np.float64),
        storage=np.array(columns[8], dtype=np.float64),
        retrieved=np.array(columns[9], dtype=np.int64),
        useful=np.array(columns[10], dtype=np.int64),
        curve=np.array(columns[11], dtype=np.float64),
        thread=directory.threads(keys),
        form=directory.forms(keys),
        first_person=flags & FIRST_PERSON > 0,
        asks=flags & ASKS > 0,
        timed=flags & TIMED > 0,
        speaker=directory.speakers(keys),
        scope=np.array(columns[12], dtype=np.object_),
    )
    return TableSignals(ids=tuple(columns[1]), keys=keys, traits=traits)


def _among(keys: Integers, found: Integers) -> Flags:
    there = set(found.tolist())
    return np.array([key in there for key in keys.tolist()], dtype=np.bool_)


def _counted(arms: ArmKeys, directory: Directory) -> tuple[Mapping[str, int], int]:
    """In how many memories each term is, and the number of memories."""
    found, nearby = arms.lexical, arms.nearby
    if nearby is None:
        return found.frequencies, directory.memories
    inside = np.zeros(int(max(nearby.max(), found.postings.rows.max(initial=0))) + 1, dtype=np.bool_)
    inside[nearby] = True
    counts = np.bincount(found.postings.terms, inside[found.postings.rows], len(found.terms))
    # Terms beyond the budget are taken as equally common everywhere.
    frequencies = {
        term: round(count * NEARBY / directory.memories) for term, count in found.frequencies.items()
    }
    shares = np.rint(counts * (NEARBY / len(nearby)))
    frequencies |= {term: int(count) for term, count in zip(found.terms, shares, strict=True)}
    return frequencies, NEARBY


def _dated(directory: Directory, found: Lexical, date_terms: Sequence[str], keys: Integers) -> Floats:
    """The windows' BM25 for some of the terms alone."""
    chosen = [number for number, term in enumerate(found.terms) if term in date_terms]
    if not chosen:
        return np.zeros(len(keys))
    kept = np.isin(found.postings.terms, chosen)
    postings = bm25.Postings(
        terms=found.postings.terms[kept],
        rows=found.postings.rows[kept],
        counts=found.postings.counts[kept],
        weights=found.postings.weights,
    )
    known = keys[directory.has(keys)]
    scores = bm25.score(postings, directory.collection(), known)
    return _at_keys(scores.rows, scores.window, keys)


def _levels(
    found: Lexical, frequencies: Mapping[str, int], memories: int, keys: Integers
) -> tuple[Floats, Floats, Floats, Floats]:
    """The BM25 of these keys at the three levels, and the share of the query that their windows cover."""
    scores = found.scores
    left_out = frequencies.keys() - set(found.terms)
    sought = [*found.terms, *(term for term in left_out if not found.frequencies[term])]
    whole = mass(sought, frequencies, memories)
    weights = np.array([idf(frequencies[term], memories) for term in found.terms])
    terms, places = scores.held
    held = np.zeros(len(scores.rows))
    if whole:
        held += np.bincount(places, weights[terms] / whole, len(scores.rows))
    own, window, thread, covered = (
        _at_keys(scores.rows, level, keys) for level in (scores.own, scores.window, scores.thread, held)
    )
    return own, window, thread, covered


def _at_keys(rows: Integers, level: Floats, keys: Integers) -> Floats:
    """The values of these keys, 0 for a missing one; rows ascend."""
    if not len(rows):
        return np.zeros(len(keys))
    at = np.minimum(np.searchsorted(rows, keys), len(rows) - 1)
    return np.where(rows[at] == keys, level[at], 0.0)


def _seconds(moments: Sequence[str | None]) -> Floats:
    """Times as seconds since 1970; NaN for a missing one."""
    seconds = np.full(len(moments), np.nan)
    given = [one[:WITHOUT_ZONE] for one in moments if one is not None]
    if given:
        there = np.array([one is not None for one in moments])
        seconds[there] = np.array(given, dtype="datetime64[us]").astype(np.int64) * MICROSECONDS
    return seconds
