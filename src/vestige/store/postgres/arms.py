"""The search arms of a PostgreSQL store. A method is a transaction around a sibling module."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput
from vestige.models import ANYTHING, EVERYTHING, Access, Filter
from vestige.pool import Pool, Worded
from vestige.store.answers import IndexStatus, Scored
from vestige.store.pool import POSTINGS_BUDGET, Probe, Reworded, Voices
from vestige.store.postgres import dense, news, search, tending
from vestige.store.postgres import gather as gathering
from vestige.store.postgres.connection import Connections
from vestige.store.postgres.dense import Query
from vestige.store.postgres.literals import Sought as Literals
from vestige.store.postgres.news import News, Space
from vestige.store.postgres.parts import together
from vestige.store.postgres.shelf import Edition, Shelf
from vestige.store.postgres.tending import Tending
from vestige.store.sql import history, registry, scoring
from vestige.store.sql.closeness import check_queries
from vestige.store.sql.columns import natural
from vestige.store.sql.database import Database
from vestige.store.sql.directory import Directory
from vestige.store.sql.scoring import Lexical, Sought


class SearchArms:
    """What finds candidates. What each method promises is said in `MemoryStore`."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._shelf = Shelf()
        self._tending = Tending(connections=connections)

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        """What passes the filter and was worded otherwise at `where.known_at`, as it was then."""
        most = natural(limit)
        sought = Sought.of(terms)

        def look() -> Reworded:
            with self._looking(sought.indexable) as (db, held, seen):
                found = _score(db, held.directory, sought, POSTINGS_BUDGET, seen)
                return history.reworded(db, where, access, most, scoring.statistics(found, held.directory))

        return self._connections.repeated(look)

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
        sought = Sought.of(terms)

        def look() -> list[Worded]:
            with self._looking(sought.indexable, where, access) as (db, held, seen):
                found = _score(db, held.directory, sought, postings, seen)
                mask = seen.passing.mask(held.directory.size)
                return scoring.best(held.names.of, found.scores, mask, most)

        return self._connections.repeated(look)

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

        def look() -> list[list[Scored]]:
            with self._looking((), where, access) as (db, _, seen):
                registry.require(_profile(seen.space), signature)
                queries = check_queries(vectors, signature)
                if seen.space is None:
                    return [[] for _ in queries]
                return dense.nearest(db, seen.space, queries, seen.passing, most)

        return self._connections.repeated(look)

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        """Which of these names speak in a talk in reach, and whether any note is in reach."""
        if access != EVERYTHING:  # what is out of reach must not show
            return Voices(speakers=frozenset(), notes=True)
        with self._looking((), snapshot=False) as (_, held, _):
            return held.directory.voices(names)

    def gather(self, probe: Probe, *, access: Access) -> Pool:
        """The candidates of all arms with every signal, from one snapshot."""
        natural(probe.per_arm)
        terms = dict.fromkeys((*Sought.of(probe.terms).indexable, *Literals.terms(probe.literals)))
        reach = dense.reach(probe.per_arm)

        def look() -> Pool:
            with self._looking(tuple(terms), probe.where, access, reach=reach) as (db, held, seen):
                query = _query(probe, seen.space)
                if query is not None:
                    self._tending.look_after(seen.space, held.directory.memories)
                return gathering.gather(db, held, seen, query, probe)

        return self._connections.repeated(look)

    def index_status(self) -> IndexStatus:
        """How much of the vectors in use is in an index."""
        return self._connections.read(tending.status)

    def rebuild_index(self) -> IndexStatus:
        """Build the index if it is missing and needed, and remove what is left of others."""
        if not self._connections.read_only:
            self._tending.join()
            self._tending.tend()
        return self.index_status()

    @contextmanager
    def _looking(
        self,
        terms: Sequence[str],
        where: Filter = ANYTHING,
        access: Access = EVERYTHING,
        *,
        reach: int = dense.REACH,
        snapshot: bool = True,
    ) -> Iterator[tuple[Database, Edition, News]]:
        """A snapshot of the store, what is held of the same moment, and what the first statement tells. Who
        asks nothing more needs no `snapshot`."""
        with self._connections.reading(snapshot=snapshot) as db:

            def look(since: int) -> News:
                wanted = history.clause_at(db, where, access, worded=True)
                return news.look(db, since, terms, wanted, reach=reach)

            with self._shelf.caught_up(look) as (held, seen):
                yield db, held, seen


def _score(db: Database, directory: Directory, sought: Sought, budget: int | None, seen: News) -> Lexical:
    """The scores of every memory that matches, with store-wide statistics."""
    common = None
    if sought.must_choose(directory.total, budget):
        common = [seen.common[term] for term in sought.indexable]
    chosen = scoring.looked_up(sought, common, budget)
    found = search.occurrences(chosen, together(db, search.postings(chosen)))
    return scoring.score(sought, common, found, directory)


def _query(probe: Probe, space: Space | None) -> Query | None:
    """What the dense arm of a probe searches by; None without vectors here or there."""
    if probe.vector is None:
        return None
    if probe.signature is None:
        raise InvalidInput("A probe with a vector needs the signature of its space.")
    registry.require(_profile(space), probe.signature)
    vector = check_queries(probe.vector[np.newaxis], probe.signature)[0]
    return None if space is None else Query(space=space, vector=vector)


def _profile(space: Space | None) -> registry.Profile | None:
    return None if space is None else space.profile
