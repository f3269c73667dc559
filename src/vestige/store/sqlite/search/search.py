"""The search arms of a SQLite store. A method is a transaction around a function of a sibling module."""

import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.ranking.bm25 import Floats, Integers
from vestige.core.candidates import (
    LONGEST_TOKENS,
    CandidatePool,
    LexicalScores,
    Sketch,
    Vectors,
    Voices,
    tokens_kept,
)
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING, Access, Filter, non_negative
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Scored
from vestige.store.contract.search import POSTINGS_BUDGET, Probe, Reworded
from vestige.store.sql.filters import listed
from vestige.store.sql.rows import history, memories, store_facts
from vestige.store.sql.rows.store_facts import Profile
from vestige.store.sql.search import pool
from vestige.store.sql.search import vectors as sql_vectors
from vestige.store.sql.search.pool import NO_KEYS, Mask
from vestige.store.sql.search.threads import Directory
from vestige.store.sql.search.vectors import Closest, TokenCache, TokenEntry, check_queries
from vestige.store.sqlite.connection import SqliteConnections
from vestige.store.sqlite.search import segments, words
from vestige.store.sqlite.search import vectors as sqlite_vectors
from vestige.store.sqlite.search.vector_cache import Matrix, View
from vestige.store.sqlite.search.words import next_key

# -- Gathering the candidates of a search: three arms over one snapshot, and every signal for their union

NO_SCORES: Floats = np.empty(0)
TRAITS = (
    f"SELECT {pool.TRAITS} FROM json_each(?) asked CROSS JOIN memories m ON m.key = asked.value"
    " CROSS JOIN strengths s ON s.key = asked.value"
)
DEATHS = "SELECT coalesce(max(position), 0) FROM dead_vectors"
LENGTHS = (
    "SELECT key, min(length(asked), ?) FROM token_bits"
    " WHERE profile = ? AND length(asked) > 0 AND key IN (SELECT value FROM json_each(?))"
)
LOAD = (
    "SELECT key, substr(bits, 1, ?), substr(asked, 1, ?) FROM token_bits"
    " WHERE profile = ? AND key IN (SELECT value FROM json_each(?))"
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
) -> CandidatePool:
    """The candidates of all arms that are allowed, with every signal."""
    ids_of = partial(memories.ids_of, db)
    near, nearby = pool.nearest(ids_of, *_top(directory, dense, probe, allowed), probe, directory)
    literal = words.find(db, directory, probe.literals, allowed, probe.per_arm)
    found = words.score(db, directory, probe.terms, probe.postings, np.union1d(near, literal))
    arms = pool.ArmKeys(
        near=near,
        literal=literal,
        worded=pool.worded(ids_of, found, allowed, probe.per_arm),
        nearby=nearby,
        lexical=found,
    )
    signals = pool.signals_of(directory, db.execute(TRAITS, (listed(arms.keys),)).fetchall())
    return pool.pool(
        directory,
        probe,
        arms,
        signals,
        closest=_closest(dense, probe, signals.keys),
        literals=words.count(db, probe.literals, signals.keys),
        sketch=_sketch(db, directory, cache, dense, signals.keys),
    )


def _top(
    directory: Directory, dense: Dense | None, probe: Probe, allowed: Mask | None
) -> tuple[Integers, Floats]:
    most = pool.most_near(probe, directory)
    if dense is None or not most:
        return NO_KEYS, NO_SCORES
    return sqlite_vectors.top(dense.view, dense.query, allowed, most)


def _closest(dense: Dense | None, probe: Probe, keys: Integers) -> Closest:
    if dense is None:
        return Closest.none(len(keys), 0 if probe.vector is None else len(probe.vector))
    return sqlite_vectors.closest(dense.view, keys, dense.query)


def _sketch(
    db: sqlite3.Connection, directory: Directory, cache: TokenCache, dense: Dense | None, keys: Integers
) -> Sketch | None:
    """The tokens of these memories and of their neighbours; None without any. Only those are read that the
    cache lacks, and no more than the sketch holds."""
    if dense is None:
        return None
    profile = dense.profile
    beside = sql_vectors.around(directory, keys)
    wanted = np.unique(beside[beside >= 0]).tolist()
    version = (profile.id, db.execute(DEATHS).fetchone()[0])
    entries = cache.held(version, wanted)
    lengths = {key: entry.length for key, entry in entries.items()}
    missing = listed(key for key in wanted if key not in entries)
    if missing:
        lengths |= db.execute(LENGTHS, (LONGEST_TOKENS, profile.id, missing))
    most = int(tokens_kept(np.array([*lengths.values()], dtype=np.int64)).max(initial=0))
    short = listed(key for key in lengths if key not in entries or not entries[key].has(most))
    if short:
        size = sql_vectors.width(profile.signature.dimension)
        rows = db.execute(LOAD, (size * most, most, profile.id, short))
        read = {key: TokenEntry(length=lengths[key], bits=bits, asked=asked) for key, bits, asked in rows}
        entries |= read
        cache.keep(version, read, entries)
    return sql_vectors.sketch(profile.signature.dimension, beside, entries)


# -- Searches of the SQLite store


def _allowed(db: sqlite3.Connection, where: Filter, access: Access) -> Mask | None:
    return memories.allowed(db, history.clause_at(db, where, access, worded=True), next_key(db))


class SqliteSearch:
    """Finds candidates. `MemoryStore` has the contract."""

    def __init__(self, connections: SqliteConnections) -> None:
        self._connections = connections
        self._matrix = Matrix()
        self._directory = Directory()
        self._tokens = TokenCache()

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        most = non_negative(limit)
        with self._connections.reading() as db, self._directory.locked():
            self._directory.catch_up(db)
            found = words.score(db, self._directory, terms, POSTINGS_BUDGET)
            return history.reworded(db, where, access, most, pool.statistics(found, self._directory))

    def lexical(
        self,
        terms: Sequence[str],
        where: Filter,
        *,
        access: Access,
        limit: int,
        postings: int | None = POSTINGS_BUDGET,
    ) -> list[LexicalScores]:
        most = non_negative(limit)
        with self._connections.reading() as db, self._directory.locked():
            self._directory.catch_up(db)
            allowed = _allowed(db, where, access)
            scores = words.score(db, self._directory, terms, postings).scores
            return pool.best(partial(memories.ids_of, db), scores, allowed, most)

    def nearest(
        self, vectors: NDArray[np.float32], signature: Signature, where: Filter, *, access: Access, limit: int
    ) -> list[list[Scored]]:
        most = non_negative(limit)
        self._publish_index()
        with self._connections.reading() as db:
            with self._matrix.locked():
                profile = store_facts.profile(db)
                store_facts.require(profile, signature)
                queries = check_queries(vectors, signature)
                if profile is None:
                    return [[] for _ in queries]
                view = self._matrix.catch_up(db, profile)
            allowed = _allowed(db, where, access)
            return sqlite_vectors.nearest(db, view, queries, allowed, most)

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        if access != EVERYTHING:  # inaccessible memories must not show
            return Voices(speakers=frozenset(), notes=True)
        with self._connections.reading() as db, self._directory.locked():
            self._directory.catch_up(db)
            return self._directory.voices(names)

    def gather(self, probe: Probe, *, access: Access) -> CandidatePool:
        non_negative(probe.per_arm)
        if probe.vector is not None:
            self._publish_index()
        with self._connections.reading() as db, self._directory.locked():
            with self._matrix.locked():
                dense = self._dense(db, probe)
            self._directory.catch_up(db)
            allowed = _allowed(db, probe.where, access)
            return gather(db, self._directory, self._tokens, dense, probe, allowed)

    def _dense(self, db: sqlite3.Connection, probe: Probe) -> Dense | None:
        """The input of the dense arm of a probe; None without vectors in the store or in the probe."""
        if probe.vector is None:
            return None
        if probe.signature is None:
            raise InvalidInput("A probe with a vector needs the signature of its space.")
        profile = store_facts.profile(db)
        store_facts.require(profile, probe.signature)
        query = check_queries(probe.vector[np.newaxis], probe.signature)[0]
        if profile is None:
            return None
        return Dense(view=self._matrix.catch_up(db, profile), profile=profile, query=query)

    def _publish_index(self) -> None:
        """Publish index files, before a dense search, when enough vectors are outside them."""
        if not self._connections.read_only and self._matrix.overgrown():
            segments.publish(self._connections)
