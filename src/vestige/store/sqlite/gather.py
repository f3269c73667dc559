"""Gathering the candidates of a search: three arms over one snapshot, and every signal for their union."""

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from vestige.cognition import bm25
from vestige.cognition.bm25 import Floats, Integers
from vestige.cognition.rarity import idf, mass
from vestige.pool import NEARBY, Pool, Sketch, Traits
from vestige.store.pool import Probe
from vestige.store.sql import reviews
from vestige.store.sql.columns import listed
from vestige.store.sql.directory import Directory
from vestige.store.sql.places import ASKS, FIRST_PERSON, TIMED
from vestige.store.sql.registry import Profile
from vestige.store.sql.tokens import TokenCache
from vestige.store.sqlite import literals, scan, search
from vestige.store.sqlite.matrix import View

Mask = NDArray[np.bool_]

MICROSECONDS = 1e-6
WITHOUT_ZONE = len("2026-01-01T00:00:00.000000")
TRAITS = (
    "SELECT m.key, m.id, m.created_at, m.occurred_at, m.suppression_count, s.stability,"
    f" s.decay_from, s.retrieval, s.storage, s.times_retrieved, s.times_useful, {reviews.CURVE}"
    " FROM json_each(?) asked CROSS JOIN memories m ON m.key = asked.value"
    " CROSS JOIN strengths s ON s.key = asked.value"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """The vectors to search, and the query as a checked row of their space."""

    view: View
    profile: Profile
    query: NDArray[np.float32]


def gather(
    db: sqlite3.Connection,
    directory: Directory,
    tokens: TokenCache,
    dense: Dense | None,
    probe: Probe,
    allowed: Mask | None,
) -> Pool:
    """The candidates of all arms that are allowed, with every signal."""
    near, nearby = _nearest(db, directory, dense, probe, allowed)
    literal = literals.find(db, directory, probe.literals, allowed, probe.per_arm)
    found = search.score(db, directory, probe.terms, probe.postings, np.union1d(near, literal))
    worded = found.scores.rows[search.best_rows(db, found.scores, allowed, probe.per_arm)]
    keys = np.unique(np.concatenate((near, literal, worded)))
    told = _told(db, directory, keys)
    at = np.searchsorted(keys, told.keys)
    counted = _counted(found, directory, nearby)
    own, window, thread, covered = _levels(found, counted, told.keys)
    closest = _closest(dense, probe, told.keys)
    return Pool(
        ids=told.ids,
        own=own,
        window=window,
        thread=thread,
        cosine=closest.cosine,
        starts=closest.starts,
        ends=closest.ends,
        vectors=closest.vectors,
        literals=literals.count(db, probe.literals, told.keys),
        covered=covered,
        dated=_dated(directory, found, probe.date_terms, told.keys),
        present=directory.spoken_by(told.keys, probe.names),
        by_words=_marked(keys, worded)[at],
        by_meaning=_marked(keys, near)[at],
        by_literal=_marked(keys, literal)[at],
        traits=told.traits,
        sketch=None if dense is None else _sketch(db, directory, tokens, dense.profile, told.keys),
        frequencies=counted.frequencies,
        memories=counted.memories,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """In how many of so many memories each term is."""

    frequencies: Mapping[str, int]
    memories: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What the tables say about the candidates, in the order of their ids."""

    ids: tuple[str, ...]
    keys: Integers
    traits: Traits


def _marked(keys: Integers, found: Integers) -> Mask:
    """Which of the keys, in ascending order, were found; all of those are among them."""
    marks = np.zeros(len(keys), dtype=np.bool_)
    marks[np.searchsorted(keys, found)] = True
    return marks


def _nearest(
    db: sqlite3.Connection, directory: Directory, dense: Dense | None, probe: Probe, allowed: Mask | None
) -> tuple[Integers, Integers | None]:
    """The keys the dense arm finds, and those in whose company words are counted (None: all of them)."""
    neighbourhood = directory.memories > NEARBY
    if dense is None or not (probe.per_arm or neighbourhood):
        return search.NO_KEYS, None
    most = max(probe.per_arm, (NEARBY + 1) * neighbourhood)
    keys, scores = scan.top(dense.view, dense.query, allowed, most)
    close = np.flatnonzero(scores >= probe.least_cosine)
    near = keys[close][search.highest(db, keys[close], (scores[close],), probe.per_arm)]
    if not neighbourhood or len(keys) <= NEARBY:
        return near, None
    return near, keys[search.highest(db, keys, (scores,), NEARBY)]


def _counted(found: search.Lexical, directory: Directory, nearby: Integers | None) -> Counted:
    if nearby is None:
        return Counted(frequencies=found.frequencies, memories=directory.memories)
    inside = np.zeros(int(max(nearby.max(), found.postings.rows.max(initial=0))) + 1, dtype=np.bool_)
    inside[nearby] = True
    counts = np.bincount(found.postings.terms, inside[found.postings.rows], len(found.terms))
    # What the budget left out is as common here as anywhere.
    frequencies = {
        term: round(count * NEARBY / directory.memories) for term, count in found.frequencies.items()
    }
    frequencies |= {term: int(count) for term, count in zip(found.terms, counts, strict=True)}
    return Counted(frequencies=frequencies, memories=NEARBY)


def _dated(directory: Directory, found: search.Lexical, date_terms: Sequence[str], keys: Integers) -> Floats:
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
    known = keys[directory.standing(keys)]
    scores = bm25.score(postings, directory.collection(), known)
    return _at_keys(scores.rows, scores.window, keys)


def _closest(dense: Dense | None, probe: Probe, keys: Integers) -> scan.Closest:
    if dense is not None:
        return scan.closest(dense.view, keys, dense.query)
    nowhere = np.zeros(len(keys), dtype=np.int64)
    return scan.Closest(
        cosine=np.full(len(keys), np.nan),
        starts=nowhere,
        ends=nowhere,
        vectors=np.zeros((len(keys), 0 if probe.vector is None else len(probe.vector)), dtype=np.float32),
    )


def _sketch(
    db: sqlite3.Connection, directory: Directory, tokens: TokenCache, profile: Profile, keys: Integers
) -> Sketch | None:
    return tokens.sketch(db, profile.id, profile.signature.dimension, directory, keys)


def _levels(found: search.Lexical, counted: Counted, keys: Integers) -> tuple[Floats, Floats, Floats, Floats]:
    """The BM25 of these keys at the three levels, and the share of the query their windows hold."""
    scores = found.scores
    left_out = counted.frequencies.keys() - set(found.terms)
    sought = [*found.terms, *(term for term in left_out if not found.frequencies[term])]
    whole = mass(sought, counted.frequencies, counted.memories)
    weights = np.array([idf(counted.frequencies[term], counted.memories) for term in found.terms])
    terms, places = scores.held
    held = np.zeros(len(scores.rows))
    if whole:
        held += np.bincount(places, weights[terms] / whole, len(scores.rows))
    own, window, thread, covered = (
        _at_keys(scores.rows, level, keys) for level in (scores.own, scores.window, scores.thread, held)
    )
    return own, window, thread, covered


def _at_keys(rows: Integers, level: Floats, keys: Integers) -> Floats:
    """The numbers of these keys, 0 for one that has none; rows ascend."""
    if not len(rows):
        return np.zeros(len(keys))
    at = np.minimum(np.searchsorted(rows, keys), len(rows) - 1)
    return np.where(rows[at] == keys, level[at], 0.0)


def _told(db: sqlite3.Connection, directory: Directory, keys: Integers) -> Told:
    """Ids and traits of the candidates, from narrow columns only."""
    rows = db.execute(TRAITS, (listed(keys),)).fetchall()
    rows.sort(key=itemgetter(1))  # by id; faster here than in SQL
    columns = list(zip(*rows, strict=True)) or [()] * 12
    ordered = np.array(columns[0], dtype=np.int64)
    flags = directory.flags(ordered)
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
        thread=directory.threads(ordered),
        form=directory.forms(ordered),
        first_person=flags & FIRST_PERSON > 0,
        asks=flags & ASKS > 0,
        timed=flags & TIMED > 0,
        speaker=directory.speakers(ordered),
    )
    return Told(ids=tuple(columns[1]), keys=ordered, traits=traits)


def _seconds(moments: Sequence[str | None]) -> Floats:
    """Times as seconds since 1970; NaN for one that was not told."""
    seconds = np.full(len(moments), np.nan)
    told = [one[:WITHOUT_ZONE] for one in moments if one is not None]
    if told:
        there = np.array([one is not None for one in moments])
        seconds[there] = np.array(told, dtype="datetime64[us]").astype(np.int64) * MICROSECONDS
    return seconds
