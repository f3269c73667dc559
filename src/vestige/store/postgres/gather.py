"""Gathering the candidates of a search in three statements: what is new, the arms, every signal of their
union; in one more where the index of vectors found too few. What is decided between them is decided by the
same functions as in SQLite."""

import numpy as np

from vestige.cognition.bm25 import Integers
from vestige.pool import Pool, Sketch
from vestige.store.pool import Probe
from vestige.store.postgres import dense, literals, search, signals
from vestige.store.postgres.dense import Query
from vestige.store.postgres.news import News
from vestige.store.postgres.parts import together
from vestige.store.postgres.shelf import Edition
from vestige.store.sql import pooling, scoring, tokens
from vestige.store.sql.closeness import Closest
from vestige.store.sql.database import Database, Row
from vestige.store.sql.directory import Directory
from vestige.store.sql.scoring import Mask, Sought
from vestige.store.sql.tokens import Entry


def gather(db: Database, held: Edition, news: News, query: Query | None, probe: Probe) -> Pool:
    """The candidates of all arms that are allowed, with every signal."""
    directory = held.directory
    arms = _arms(db, held, news, query, probe, news.passing.mask(directory.size))
    beside = tokens.around(directory, arms.keys)
    told = signals.read(db, held.tokens, query, probe.literals, arms.keys, beside)
    ordered = pooling.tell(directory, told.traits)
    return pooling.pool(
        directory,
        probe,
        arms,
        ordered,
        closest=_closest(query, probe, ordered.keys, told.pieces),
        literals=np.array([told.literals.get(key, 0) for key in ordered.keys.tolist()], dtype=np.int64),
        sketch=_sketch(query, directory, ordered.keys, told.entries),
    )


def _arms(
    db: Database, held: Edition, news: News, query: Query | None, probe: Probe, mask: Mask | None
) -> pooling.Arms:
    """What each arm finds, from the second statement."""
    directory, names = held.directory, held.names
    sought = Sought.of(probe.terms)
    common = None
    if sought.must_choose(directory.total, probe.postings):
        common = [news.common[term] for term in sought.indexable]
    terms = scoring.looked_up(sought, common, probe.postings)
    parts = [*search.postings(terms)]
    parts += literals.arm(
        literals.Sought(literals=probe.literals, common=news.common), directory, news.passing, mask
    )
    most, pieces = pooling.most_near(probe, directory), dense.reach(probe.per_arm)
    if query is not None and most:
        parts.append(dense.arm(query, news.passing, most, pieces=pieces))
    answers = list(together(db, parts))
    close = dense.found(answers, pieces=pieces)
    if query is not None and close.lacking:
        close = dense.found(together(db, [dense.scanned(query, news.passing, most)]), pieces=pieces)
    near, nearby = pooling.nearest(
        names.of, close.keys, close.scores, probe, directory, sampled=close.sampled
    )
    literal = literals.best(names.of, literals.held(probe.literals, answers), probe.per_arm)
    found = scoring.score(
        sought, common, search.occurrences(terms, answers), directory, np.concatenate((near, literal))
    )
    return pooling.Arms(
        near=near,
        literal=literal,
        worded=pooling.worded(names.of, found, mask, probe.per_arm),
        nearby=nearby,
        lexical=found,
    )


def _closest(query: Query | None, probe: Probe, keys: Integers, pieces: list[Row]) -> Closest:
    if query is None:
        return Closest.none(len(keys), 0 if probe.vector is None else len(probe.vector))
    return dense.closest(keys, pieces, query.vector)


def _sketch(
    query: Query | None, directory: Directory, keys: Integers, entries: dict[int, Entry]
) -> Sketch | None:
    if query is None:
        return None
    dimension = query.space.profile.signature.dimension
    return tokens.sketch(dimension, tokens.around(directory, keys), entries)
