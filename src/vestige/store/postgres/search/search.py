"""The search arms of a PostgreSQL store. A method is a transaction around a function of a sibling module."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.ranking.bm25 import Frequency
from vestige.core.candidates import CandidatePool, LexicalScores, Voices
from vestige.core.errors import InvalidInput
from vestige.core.models import ANYTHING, EVERYTHING, Access, Filter, non_negative
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import IndexStatus, Scored
from vestige.store.contract.search import POSTINGS_BUDGET, Probe, Reworded
from vestige.store.postgres.connection import PostgresConnections
from vestige.store.postgres.search import changes_since, hnsw, signals, words
from vestige.store.postgres.search import vectors as pg_vectors
from vestige.store.postgres.search.cache import Edition, Shelf
from vestige.store.postgres.search.changes_since import ChangesSince, Space
from vestige.store.postgres.search.hnsw import HnswUpkeep
from vestige.store.postgres.search.statement import together
from vestige.store.postgres.search.vectors import Query
from vestige.store.sql.database import Database
from vestige.store.sql.filters import clause
from vestige.store.sql.rows import history, store_facts
from vestige.store.sql.search import pool
from vestige.store.sql.search import vectors as sql_vectors
from vestige.store.sql.search.pool import Lexical, SoughtTerms
from vestige.store.sql.search.threads import Directory
from vestige.store.sql.search.vectors import Closest, TokenColumns, check_queries

# -- Candidates of a search, gathered in three statements

# The statements read the new rows, the arms, and every signal of their union; one more is needed where the
# index of vectors found too few. The decisions between them are made by the same functions as in SQLite.


def gather(
    db: Database, held: Edition, news: ChangesSince, query: Query | None, probe: Probe
) -> CandidatePool:
    """The candidates of all arms that are allowed, with every signal."""
    directory = _seen(held, news)
    arms = _arms(db, held, directory, news, query, probe)
    beside = sql_vectors.around(directory, arms.keys)
    found = signals.read(db, held.tokens, query, probe.literals, arms.keys, beside)
    outdated = set[int]() if query is None else _outdated(arms, found)
    arms, rows = pool.without_outdated(arms, found.traits, outdated)
    ordered = pool.signals_of(directory, rows)
    if query is None:
        sketch = None
        closest = Closest.none(len(ordered.keys), 0 if probe.vector is None else len(probe.vector))
    else:
        dimension = query.space.profile.signature.dimension
        tokens = found.tokens or TokenColumns.of((), sql_vectors.width(dimension))
        if outdated:
            tokens = tokens.among(~np.isin(tokens.keys, list(outdated)))
        sketch = sql_vectors.sketch(sql_vectors.around(directory, ordered.keys), tokens)
        closest = pg_vectors.closest(ordered.keys, found.pieces, query.vector)
    return pool.pool(
        directory,
        probe,
        arms,
        ordered,
        closest=closest,
        literals=np.array([found.literals.get(key, 0) for key in ordered.keys.tolist()], dtype=np.int64),
        sketch=sketch,
    )


def _outdated(arms: pool.ArmKeys, found: signals.Signals) -> set[int]:
    """The candidates that have vectors, but none of their present text."""
    owners = set[int]() if found.tokens is None else set(found.tokens.keys.tolist())
    having = set(arms.near.tolist()) | (owners & set(arms.keys.tolist()))
    return having - {piece[0] for piece in found.pieces}


def _arms(
    db: Database, held: Edition, directory: Directory, news: ChangesSince, query: Query | None, probe: Probe
) -> pool.ArmKeys:
    """The keys that each arm finds, from the second statement."""
    names, mask = held.names, news.passing.mask(directory.size)
    sought = SoughtTerms.of(probe.terms)
    common, terms = _looked_up(db, sought, directory, probe.postings, news)
    parts = [*words.postings(terms, news.readable)]
    parts += words.arm(probe.literals, news.common, directory, news.passing, news.readable, mask)
    most, pieces = pool.most_near(probe, directory), pg_vectors.pieces_wanted(probe.per_arm)
    if query is not None and most:
        parts.append(pg_vectors.arm(query, news.passing, most, pieces=pieces))
    answers = list(together(db, parts))
    close = pg_vectors.found(answers, pieces=pieces)
    if query is not None and close.incomplete:
        close = pg_vectors.found(together(db, [pg_vectors.scanned(query, news.passing, most)]), pieces=pieces)
    near, nearby = pool.nearest(names.of, close.keys, close.scores, probe, directory, sampled=close.sampled)
    literal = words.best(names.of, words.held(probe.literals, answers), probe.per_arm)
    found = pool.score(
        sought, common, words.occurrences(terms, answers), directory, np.concatenate((near, literal))
    )
    return pool.ArmKeys(
        near=near,
        literal=literal,
        worded=pool.worded(names.of, found, mask, probe.per_arm),
        nearby=nearby,
        lexical=found,
    )


class PostgresSearch:
    """Finds candidates. `MemoryStore` has the contract."""

    def __init__(self, connections: PostgresConnections) -> None:
        self._connections = connections
        self._shelf = Shelf()
        self._hnsw = HnswUpkeep(connections=connections)

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        most = non_negative(limit)
        sought = SoughtTerms.of(terms)

        def look() -> Reworded:
            with self._looking(sought.indexable, access=access) as (db, held, seen):
                directory = _seen(held, seen)
                found = _score(db, directory, sought, POSTINGS_BUDGET, seen)
                return history.reworded(db, where, access, most, pool.statistics(found, directory))

        return self._connections.repeated(look)

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
        sought = SoughtTerms.of(terms)

        def look() -> list[LexicalScores]:
            with self._looking(sought.indexable, where, access) as (db, held, seen):
                found = _score(db, _seen(held, seen), sought, postings, seen)
                mask = seen.passing.mask(held.directory.size)
                return pool.best(held.names.of, found.scores, mask, most)

        return self._connections.repeated(look)

    def nearest(
        self, vectors: NDArray[np.float32], signature: Signature, where: Filter, *, access: Access, limit: int
    ) -> list[list[Scored]]:
        most = non_negative(limit)

        def look() -> list[list[Scored]]:
            with self._looking((), where, access) as (db, _, seen):
                store_facts.require(_profile(seen.space), signature)
                queries = check_queries(vectors, signature)
                if seen.space is None:
                    return [[] for _ in queries]
                return pg_vectors.nearest(db, seen.space, queries, seen.passing, most)

        return self._connections.repeated(look)

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        if access != EVERYTHING:  # inaccessible memories must not show
            return Voices(speakers=frozenset(), notes=True)
        with self._looking((), snapshot=False) as (_, held, _):
            return held.directory.voices(names)

    def gather(self, probe: Probe, *, access: Access) -> CandidatePool:
        non_negative(probe.per_arm)
        terms = dict.fromkeys((*SoughtTerms.of(probe.terms).indexable, *words.terms_of(probe.literals)))
        pieces = pg_vectors.pieces_wanted(probe.per_arm)

        def look() -> CandidatePool:
            with self._looking(tuple(terms), probe.where, access, pieces=pieces) as (db, held, seen):
                query = _query(probe, seen.space)
                if query is not None:
                    self._hnsw.look_after(seen.space, held.directory.memories)
                return gather(db, held, seen, query, probe)

        return self._connections.repeated(look)

    def index_status(self) -> IndexStatus:
        return self._connections.read(hnsw.status)

    def rebuild_index(self) -> IndexStatus:
        if not self._connections.read_only:
            self._hnsw.join()
            self._hnsw.update()
        return self.index_status()

    @contextmanager
    def _looking(
        self,
        terms: Sequence[str],
        where: Filter = ANYTHING,
        access: Access = EVERYTHING,
        *,
        pieces: int = pg_vectors.LEAST_PIECES,
        snapshot: bool = True,
    ) -> Iterator[tuple[Database, Edition, ChangesSince]]:
        """A snapshot of the store, the cache of the same moment, and the result of the first statement. A
        call without further statements needs no `snapshot`."""
        with self._connections.reading(snapshot=snapshot) as db:

            def look(since: int) -> ChangesSince:
                wanted = history.clause_at(db, where, access, worded=True)
                return changes_since.look(db, since, terms, wanted, clause(ANYTHING, access), pieces=pieces)

            with self._shelf.caught_up(look) as (held, seen):
                yield db, held, seen


def _seen(held: Edition, news: ChangesSince) -> Directory:
    """The directory without the memories that the caller may not read."""
    return held.directory.within(news.readable.mask(held.directory.size))


def _looked_up(
    db: Database, sought: SoughtTerms, directory: Directory, budget: int | None, seen: ChangesSince
) -> tuple[list[Frequency] | None, list[str]]:
    """The frequencies of the terms where the budget is too small for all, and the terms to look up. Where
    some memories are unreadable, their words are not counted, which takes one more statement."""
    common = None
    if sought.must_choose(directory.total, budget):
        every = seen.common
        if directory.unseen:
            every = words.counted_in(db, sought.indexable, seen.readable)
        common = [every[term] for term in sought.indexable]
    return common, pool.looked_up(sought, common, budget)


def _score(
    db: Database, directory: Directory, sought: SoughtTerms, budget: int | None, seen: ChangesSince
) -> Lexical:
    """The scores of every memory that matches, with the statistics of what the directory has."""
    common, chosen = _looked_up(db, sought, directory, budget, seen)
    found = words.occurrences(chosen, together(db, words.postings(chosen, seen.readable)))
    return pool.score(sought, common, found, directory)


def _query(probe: Probe, space: Space | None) -> Query | None:
    """The input of the dense arm of a probe; None without vectors in the store or in the probe."""
    if probe.vector is None:
        return None
    if probe.signature is None:
        raise InvalidInput("A probe with a vector needs the signature of its space.")
    store_facts.require(_profile(space), probe.signature)
    vector = check_queries(probe.vector[np.newaxis], probe.signature)[0]
    return None if space is None else Query(space=space, vector=vector)


def _profile(space: Space | None) -> store_facts.Profile | None:
    return None if space is None else space.profile
