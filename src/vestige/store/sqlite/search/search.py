"""The search arms of a SQLite store. A method is a transaction around a function of a sibling module."""

import sqlite3
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
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
from vestige.core.models import ANYTHING, EVERYTHING, Access, Filter, non_negative
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Scored
from vestige.store.contract.search import POSTINGS_BUDGET, Probe, Reworded
from vestige.store.sql.database import Row
from vestige.store.sql.filters import clause, listed
from vestige.store.sql.rows import history, memories, store_facts
from vestige.store.sql.rows.store_facts import Profile
from vestige.store.sql.search import pool
from vestige.store.sql.search import vectors as sql_vectors
from vestige.store.sql.search.pool import NO_KEYS, Mask
from vestige.store.sql.search.threads import Directory
from vestige.store.sql.search.vectors import Closest, TokenCache, TokenEntry, Version, check_queries
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
MADE_FROM = (
    "SELECT asked.value, (SELECT v.text_hash FROM vectors v WHERE v.key = asked.value AND +v.profile = ?"
    " LIMIT 1) FROM json_each(?) asked"
)
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
    """The vectors to search, the query as a checked row of their space, and the `version` for caches."""

    view: View
    profile: Profile
    query: Vectors
    version: Version


@dataclass(slots=True)
class TextHashes:
    """Recognises vectors of an earlier text: the hash of the text each memory's vectors were made from, as an
    integer by key, 0 until it is read. Vectors are never changed, only deleted, which changes the version."""

    _version: Version = (0, 0)
    _held: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def outdated(self, db: sqlite3.Connection, dense: Dense, rows: Sequence[Row]) -> set[int]:
        """The keys among rows of `TRAITS` that have vectors of another text than their present one."""
        keys = np.array([row[0] for row in rows], dtype=np.int64)
        made_from = self._read(db, dense, keys)
        present = np.array([_number(row[-1]) for row in rows], dtype=np.int64)
        return set(keys[(made_from != 0) & (made_from != present)].tolist())

    def _read(self, db: sqlite3.Connection, dense: Dense, keys: Integers) -> Integers:
        with self._lock:
            size = int(keys.max(initial=-1)) + 1
            if dense.version != self._version:
                self._version, self._held = dense.version, np.zeros(size, dtype=np.int64)
            if size > len(self._held):
                self._held = np.concatenate((self._held, np.zeros(size, dtype=np.int64)))
            missing = keys[self._held[keys] == 0]
            if len(missing):
                for key, text_hash in db.execute(MADE_FROM, (dense.profile.id, listed(missing.tolist()))):
                    self._held[key] = 0 if text_hash is None else _number(text_hash)
            return self._held[keys]


def _number(text_hash: str) -> int:
    return hash(text_hash) or 1  # only compared within this process


def gather(
    db: sqlite3.Connection,
    directory: Directory,
    cache: TokenCache,
    hashes: TextHashes,
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
    rows: Sequence[Row] = db.execute(TRAITS, (listed(arms.keys),)).fetchall()
    outdated = set[int]() if dense is None else hashes.outdated(db, dense, rows)
    arms, rows = pool.without_outdated(arms, rows, outdated)
    signals = pool.signals_of(directory, rows)
    return pool.pool(
        directory,
        probe,
        arms,
        signals,
        closest=_closest(dense, probe, signals.keys, outdated),
        literals=words.count(db, probe.literals, signals.keys),
        sketch=_sketch(db, directory, cache, dense, signals.keys, outdated),
    )


def _top(
    directory: Directory, dense: Dense | None, probe: Probe, allowed: Mask | None
) -> tuple[Integers, Floats]:
    most = pool.most_near(probe, directory)
    if dense is None or not most:
        return NO_KEYS, NO_SCORES
    return sqlite_vectors.top(dense.view, dense.query, allowed, most)


def _closest(dense: Dense | None, probe: Probe, keys: Integers, outdated: set[int]) -> Closest:
    if dense is None:
        return Closest.none(len(keys), 0 if probe.vector is None else len(probe.vector))
    if outdated:
        keys = np.array([-1 if key in outdated else key for key in keys.tolist()], dtype=np.int64)
    return sqlite_vectors.closest(dense.view, keys, dense.query)


def _sketch(
    db: sqlite3.Connection,
    directory: Directory,
    cache: TokenCache,
    dense: Dense | None,
    keys: Integers,
    outdated: set[int],
) -> Sketch | None:
    """The tokens of these memories and of their neighbours; None without any. Only those are read that the
    cache lacks, and no more than the sketch holds."""
    if dense is None:
        return None
    profile, version = dense.profile, dense.version
    beside = sql_vectors.around(directory, keys)
    wanted = np.unique(beside[beside >= 0]).tolist()
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
    if outdated:
        entries = {key: entry for key, entry in entries.items() if key not in outdated}
    return sql_vectors.sketch(profile.signature.dimension, beside, entries)


# -- Searches of the SQLite store


def _readable(db: sqlite3.Connection, access: Access) -> Mask | None:
    """By key, which memories are within the access; None for all."""
    return memories.allowed(db, clause(ANYTHING, access), next_key(db))


def _allowed(db: sqlite3.Connection, where: Filter, access: Access, readable: Mask | None) -> Mask | None:
    """By key, which of the readable memories pass the filter; None for all."""
    wanted = history.clause_at(db, where, access, worded=True)
    if readable is None:
        return memories.allowed(db, wanted, next_key(db))
    passing = memories.allowed(db, wanted.without(clause(ANYTHING, access)), next_key(db))
    return readable if passing is None else readable & passing


class SqliteSearch:
    """Finds candidates. `MemoryStore` has the contract."""

    def __init__(self, connections: SqliteConnections) -> None:
        self._connections = connections
        self._matrix = Matrix()
        self._directory = Directory()
        self._tokens = TokenCache()
        self._hashes = TextHashes()

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        most = non_negative(limit)
        with self._connections.reading() as db, self._directory.locked():
            directory = self._seen(db, _readable(db, access))
            found = words.score(db, directory, terms, POSTINGS_BUDGET)
            return history.reworded(db, where, access, most, pool.statistics(found, directory))

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
            readable = _readable(db, access)
            allowed = _allowed(db, where, access, readable)
            scores = words.score(db, self._seen(db, readable), terms, postings).scores
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
            allowed = _allowed(db, where, access, _readable(db, access))
            return sqlite_vectors.nearest(db, view, profile, queries, allowed, most)

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        if access != EVERYTHING:  # inaccessible memories must not show
            return Voices(speakers=frozenset(), notes=True)
        with self._connections.reading() as db, self._directory.locked():
            return self._seen(db, None).voices(names)

    def gather(self, probe: Probe, *, access: Access) -> CandidatePool:
        non_negative(probe.per_arm)
        if probe.vector is not None:
            self._publish_index()
        with self._connections.reading() as db, self._directory.locked():
            with self._matrix.locked():
                dense = self._dense(db, probe)
            readable = _readable(db, access)
            allowed = _allowed(db, probe.where, access, readable)
            directory = self._seen(db, readable)
            return gather(db, directory, self._tokens, self._hashes, dense, probe, allowed)

    def _seen(self, db: sqlite3.Connection, readable: Mask | None) -> Directory:
        """The directory of this moment, without the memories that the caller may not read."""
        self._directory.catch_up(db)
        return self._directory.within(readable)

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
        version = (profile.id, db.execute(DEATHS).fetchone()[0])
        view = self._matrix.catch_up(db, profile)
        return Dense(view=view, profile=profile, query=query, version=version)

    def _publish_index(self) -> None:
        """Publish index files, before a dense search, when enough vectors are outside them."""
        if not self._connections.read_only and self._matrix.overgrown():
            segments.publish(self._connections)
