"""The search arms of a SQLite store. A method is a transaction around a sibling module."""

import sqlite3
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput
from vestige.models import (
    EVERYTHING,
    Access,
    Filter,
)
from vestige.pool import Pool, Worded
from vestige.store.answers import Scored
from vestige.store.pool import POSTINGS_BUDGET, Probe, Reworded, Voices
from vestige.store.sql import history, memories, registry
from vestige.store.sql.closeness import check_queries
from vestige.store.sql.columns import natural
from vestige.store.sql.directory import Directory
from vestige.store.sql.tokens import TokenCache
from vestige.store.sqlite import gather as gathering
from vestige.store.sqlite import scan, search, segments
from vestige.store.sqlite.connection import Connections
from vestige.store.sqlite.matrix import Matrix
from vestige.store.sqlite.words import next_key


class SearchArms:
    """What finds candidates. What each method promises is said in `MemoryStore`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._matrix = Matrix()
        self._directory = Directory()
        self._tokens = TokenCache()

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        """What passes the filter and was worded otherwise at `where.known_at`, as it was then."""
        most = natural(limit)
        with self._connections.reading() as db, self._directory.locked():
            self._directory.catch_up(db)
            statistics = search.statistics(db, self._directory, terms, POSTINGS_BUDGET)
            return history.reworded(db, where, access, most, statistics)

    def lexical(
        self,
        terms: Sequence[str],
        where: Filter,
        *,
        access: Access,
        limit: int,
        postings: int | None = POSTINGS_BUDGET,
    ) -> list[Worded]:
        """The best memories by BM25 with their neighbours."""
        most = natural(limit)
        with self._connections.reading() as db, self._directory.locked():
            self._directory.catch_up(db)
            allowed = memories.allowed(db, history.clause_at(db, where, access, worded=True), next_key(db))
            return search.lexical(db, self._directory, terms, allowed, most, postings)

    def nearest(
        self,
        vectors: NDArray[np.float32],
        signature: Signature,
        where: Filter,
        *,
        access: Access,
        limit: int,
    ) -> list[list[Scored]]:
        """For each row of `vectors`, the memories whose best piece has the highest cosine, exactly."""
        most = natural(limit)
        self._tend_index()
        with self._connections.reading() as db:
            with self._matrix.locked():
                profile = registry.profile(db)
                registry.require(profile, signature)
                queries = check_queries(vectors, signature)
                if profile is None:
                    return [[] for _ in queries]
                view = self._matrix.catch_up(db, profile)
            allowed = memories.allowed(db, history.clause_at(db, where, access, worded=True), next_key(db))
            return scan.nearest(db, view, queries, allowed, most)

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        """Which of these names speak in a talk in reach, and whether any note is in reach."""
        if access != EVERYTHING:  # what is out of reach must not show
            return Voices(speakers=frozenset(), notes=True)
        with self._connections.reading() as db, self._directory.locked():
            self._directory.catch_up(db)
            return self._directory.voices(names)

    def gather(self, probe: Probe, *, access: Access) -> Pool:
        """The candidates of all arms with every signal, from one snapshot."""
        natural(probe.per_arm)
        if probe.vector is not None:
            self._tend_index()
        with self._connections.reading() as db, self._directory.locked():
            with self._matrix.locked():
                dense = self._dense(db, probe)
            self._directory.catch_up(db)
            allowed = memories.allowed(
                db, history.clause_at(db, probe.where, access, worded=True), next_key(db)
            )
            return gathering.gather(db, self._directory, self._tokens, dense, probe, allowed)

    def _dense(self, db: sqlite3.Connection, probe: Probe) -> gathering.Dense | None:
        """What the dense arm of a probe searches; None without vectors here or there."""
        if probe.vector is None:
            return None
        if probe.signature is None:
            raise InvalidInput("A probe with a vector needs the signature of its space.")
        profile = registry.profile(db)
        registry.require(profile, probe.signature)
        query = check_queries(probe.vector[np.newaxis], probe.signature)[0]
        if profile is None:
            return None
        return gathering.Dense(view=self._matrix.catch_up(db, profile), profile=profile, query=query)

    def _tend_index(self) -> None:
        """Before a dense search: publish what has grown large enough."""
        if not self._connections.read_only and self._matrix.overgrown():
            segments.publish(self._connections)
