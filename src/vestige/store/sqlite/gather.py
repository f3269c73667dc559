"""Gathering the candidates of a search: three arms over one snapshot, and every signal for their union."""

import sqlite3
from dataclasses import dataclass
from functools import partial

import numpy as np

from vestige.cognition.bm25 import Floats, Integers
from vestige.pool import Pool, Sketch, Vectors
from vestige.store.pool import Probe
from vestige.store.sql import memories, pooling
from vestige.store.sql.closeness import Closest
from vestige.store.sql.columns import listed
from vestige.store.sql.directory import Directory
from vestige.store.sql.registry import Profile
from vestige.store.sql.scoring import NO_KEYS, Mask
from vestige.store.sql.tokens import TokenCache
from vestige.store.sqlite import literals, scan, search, tokens
from vestige.store.sqlite.matrix import View

NO_SCORES: Floats = np.empty(0)
TRAITS = (
    f"SELECT {pooling.TRAITS} FROM json_each(?) asked CROSS JOIN memories m ON m.key = asked.value"
    " CROSS JOIN strengths s ON s.key = asked.value"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dense:
    """The vectors to search, and the query as a checked row of their space."""

    view: View
    profile: Profile
    query: Vectors


def gather(
    db: sqlite3.Connection,
    directory: Directory,
    cache: TokenCache,
    dense: Dense | None,
    probe: Probe,
    allowed: Mask | None,
) -> Pool:
    """The candidates of all arms that are allowed, with every signal."""
    ids_of = partial(memories.ids_of, db)
    near, nearby = pooling.nearest(ids_of, *_top(directory, dense, probe, allowed), probe, directory)
    literal = literals.find(db, directory, probe.literals, allowed, probe.per_arm)
    found = search.score(db, directory, probe.terms, probe.postings, np.union1d(near, literal))
    arms = pooling.Arms(
        near=near,
        literal=literal,
        worded=pooling.worded(ids_of, found, allowed, probe.per_arm),
        nearby=nearby,
        lexical=found,
    )
    told = pooling.tell(directory, db.execute(TRAITS, (listed(arms.keys),)).fetchall())
    return pooling.pool(
        directory,
        probe,
        arms,
        told,
        closest=_closest(dense, probe, told.keys),
        literals=literals.count(db, probe.literals, told.keys),
        sketch=_sketch(db, directory, cache, dense, told.keys),
    )


def _top(
    directory: Directory, dense: Dense | None, probe: Probe, allowed: Mask | None
) -> tuple[Integers, Floats]:
    most = pooling.most_near(probe, directory)
    if dense is None or not most:
        return NO_KEYS, NO_SCORES
    return scan.top(dense.view, dense.query, allowed, most)


def _closest(dense: Dense | None, probe: Probe, keys: Integers) -> Closest:
    if dense is None:
        return Closest.none(len(keys), 0 if probe.vector is None else len(probe.vector))
    return scan.closest(dense.view, keys, dense.query)


def _sketch(
    db: sqlite3.Connection, directory: Directory, cache: TokenCache, dense: Dense | None, keys: Integers
) -> Sketch | None:
    return None if dense is None else tokens.sketch(db, cache, dense.profile, directory, keys)
