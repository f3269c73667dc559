"""The search arms of a SQLite store. A method is a transaction around a function of a sibling module."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import field, replace
from datetime import datetime
from functools import partial, wraps
from typing import Concatenate, ParamSpec, TypeVar

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
    distinct,
    tokens_kept,
)
from vestige.core.errors import InvalidInput, StoreError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    ANYTHING,
    EVERYTHING,
    Access,
    Filter,
    Memory,
    Order,
    Record,
    StoreStats,
    non_negative,
)
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Levels, Scored
from vestige.store.contract.search import POSTINGS_BUDGET, Probe, Reworded
from vestige.store.sql.database import Row
from vestige.store.sql.filters import SqlConditions, clause, listed
from vestige.store.sql.rows import edges, history, memories, store_facts, strengths
from vestige.store.sql.rows.store_facts import Profile
from vestige.store.sql.search import pool
from vestige.store.sql.search import vectors as sql_vectors
from vestige.store.sql.search.pool import NO_KEYS, Mask
from vestige.store.sql.search.threads import Directory
from vestige.store.sql.search.vectors import Closest, TokenCache, TokenColumns, Version, check_queries
from vestige.store.sqlite.connection import SqliteConnections
from vestige.store.sqlite.search import snapshot, words
from vestige.store.sqlite.search import vectors as sqlite_vectors
from vestige.store.sqlite.search.columns import MemoryColumns
from vestige.store.sqlite.search.masks import JournalSpan, KeptMasks
from vestige.store.sqlite.search.vector_cache import Matrix, View
from vestige.store.sqlite.search.words import PostingsCache

logger = logging.getLogger(__name__)

# -- Gathering the candidates of a search: three arms over one snapshot, and every signal for their union

MOST_VIEWS = 4
"""Directories of callers with limited access that are kept."""
EMBEDDED_UP_TO = "SELECT seq FROM embedded_up_to WHERE profile = ? AND tokens = ?"
MARK_EMBEDDED = "INSERT OR REPLACE INTO embedded_up_to (profile, tokens, seq) VALUES (?, ?, ?)"
MARK_EVERY = 1_000
"""Changes after which the mark is worth another write."""
MARK_PATIENCE_SECONDS = 0.1
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitedDirectory:
    """The directory `seen` by a caller with limited access, at one entry of the directory."""

    readable: Mask
    seq: int
    seen: Directory


def _number(text_hash: str) -> int:
    return hash(text_hash) or 1  # only compared within this process


def gather(
    db: sqlite3.Connection,
    directory: Directory,
    cache: TokenCache,
    postings: PostingsCache,
    hashes: TextHashes,
    dense: Dense | None,
    probe: Probe,
    allowed: Mask | None,
) -> CandidatePool:
    """The candidates of all arms that are allowed, with every signal."""
    ids_of = partial(memories.ids_of, db)
    near, nearby = pool.nearest(ids_of, *_top(directory, dense, probe, allowed), probe, directory)
    literal = words.find(db, directory, probe.literals, allowed, probe.per_arm)
    also = distinct(np.concatenate((near, literal)))
    found = words.score(db, directory, probe.terms, probe.postings, also, cache=postings)
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
    """The tokens of these memories and of their neighbours; None without any. They come from the published
    files and from the cache; only those are read that both lack, and no more than the sketch holds."""
    if dense is None:
        return None
    profile, version = dense.profile, dense.version
    size = sql_vectors.width(profile.signature.dimension)
    beside = sql_vectors.around(directory, keys)
    wanted = distinct(beside[beside >= 0])
    filed = dense.view.tokens_of(wanted, size)
    others = filed.lacking(wanted)
    held = cache.held(version, others, size)
    missing = held.lacking(others)
    lengths = dict[int, int]()
    if len(missing):
        lengths.update(db.execute(LENGTHS, (LONGEST_TOKENS, profile.id, listed(missing))))
    every = np.concatenate((filed.lengths, held.lengths, np.array([*lengths.values()], dtype=np.int64)))
    most = int(tokens_kept(every).max(initial=0))
    short = held.counts < np.minimum(held.lengths, most)
    lengths |= zip(held.keys[short].tolist(), held.lengths[short].tolist(), strict=True)
    if lengths:
        rows = db.execute(LOAD, (size * most, most, profile.id, listed(lengths)))
        read = TokenColumns.of(((key, lengths[key], bits, asked) for key, bits, asked in rows), size)
        held = held.and_also(read)
        cache.keep(version, read, held)
    every_one = filed.and_also(held)
    if outdated:
        every_one = every_one.among(~np.isin(every_one.keys, list(outdated)))
    return sql_vectors.sketch(beside, every_one)


# -- Searches and counts of the SQLite store


HEAD = "SELECT position, node, seq, clock FROM events ORDER BY position DESC LIMIT 1"
EVENT = "SELECT 1 FROM events WHERE position = ? AND node = ? AND seq = ? AND clock = ?"
JOURNAL_END = "SELECT coalesce(max(seq), 0) FROM changed_keys"

Asked = ParamSpec("Asked")
Answer = TypeVar("Answer")


class HistoryChanged(Exception):
    """The store is not a continuation of what is kept."""


@dataclass(slots=True)
class SearchCaches:
    """What is kept in memory of one history of the store: of its events up to `_head`, and of its journal up
    to `_journal`. A file that another program has set back to an earlier state reaches the same numbers again
    with other memories, so all of it is dropped together."""

    matrix: Matrix = field(default_factory=Matrix)
    directory: Directory = field(default_factory=Directory)
    tokens: TokenCache = field(default_factory=TokenCache)
    hashes: TextHashes = field(default_factory=TextHashes)
    masks: KeptMasks = field(default_factory=KeptMasks)
    columns: MemoryColumns = field(default_factory=MemoryColumns)
    postings: PostingsCache = field(default_factory=PostingsCache)
    views: dict[Access, LimitedDirectory] = field(default_factory=dict)
    _head: tuple[int, str, int, int] | None = None
    _journal: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def require_history(self, db: sqlite3.Connection) -> None:
        """HistoryChanged if the store of this transaction does not continue what is kept. Call it first in a
        transaction, under the locks of the caches that are used: then transactions begin in the order in
        which they get here."""
        with self._lock:
            journal, head = db.execute(JOURNAL_END).fetchone()[0], db.execute(HEAD).fetchone()
            before = self._head
            gone = before is not None and head != before and db.execute(EVENT, before).fetchone() is None
            if gone or journal < self._journal:
                raise HistoryChanged
            self._head, self._journal = head, journal

    def allowed(self, db: sqlite3.Connection, where: Filter, access: Access) -> Mask | None:
        """By key, which of the readable memories pass the filter; None for all."""
        return self.masks.allowed(db, history.clause_at(db, where, access, worded=True))

    def seen(self, db: sqlite3.Connection, access: Access) -> Directory:
        """The directory of this moment, without the memories that the caller may not read."""
        snapshot.catch_up_directory(db, self.directory)
        readable = self.masks.allowed(db, clause(ANYTHING, access))
        if readable is None:
            return self.directory
        known = self.views.pop(access, None)
        current = known is not None and known.readable is readable and known.seq == self.directory.seq
        if known is None or not current or not known.seen.is_readable():
            seen = self.directory.within(readable)
            known = LimitedDirectory(readable=readable, seq=self.directory.seq, seen=seen)
        self.views[access] = known
        while len(self.views) > MOST_VIEWS:
            del self.views[next(iter(self.views))]
        return known.seen

    def dense(self, db: sqlite3.Connection, probe: Probe) -> Dense | None:
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
        view = self.matrix.catch_up(db, profile)
        return Dense(view=view, profile=profile, query=query, version=version)


def _in_its_history(
    search: "Callable[Concatenate[SqliteSearch, Asked], Answer]",
) -> "Callable[Concatenate[SqliteSearch, Asked], Answer]":
    """Run a search again with empty caches if the history of the store changed."""

    @wraps(search)
    def run(self: "SqliteSearch", /, *args: Asked.args, **kwargs: Asked.kwargs) -> Answer:
        try:
            return search(self, *args, **kwargs)
        except HistoryChanged:
            logger.info("The history of the store has changed; what was kept of it is read again.")
            self._kept = SearchCaches()
            return search(self, *args, **kwargs)

    return run


def _counted(db: sqlite3.Connection, allowed: Mask | None, *, selected: bool) -> int:
    """The number of allowed memories. A mask that was `selected` has only those that exist; another one lets
    everything through but a few that exist."""
    if allowed is not None and selected:
        return int(np.count_nonzero(allowed))
    left_out = 0 if allowed is None else len(allowed) - int(np.count_nonzero(allowed))
    return int(db.execute("SELECT count(*) FROM memories").fetchone()[0]) - left_out


class SqliteSearch:
    """Finds candidates. `MemoryStore` has the contract."""

    def __init__(self, connections: SqliteConnections) -> None:
        self._connections = connections
        self._kept = SearchCaches()

    def unembedded(self, signature: Signature, *, limit: int, tokens: bool = False) -> list[Memory]:
        most = non_negative(limit)
        with self._connections.reading() as db:
            profile, journal = store_facts.of_signature(db, signature), JournalSpan.read(db)
            number = None if profile is None else profile.id
            row = db.execute(EMBEDDED_UP_TO, (number, tokens)).fetchone()
            since = row[0] if row is not None and journal.follows(row[0]) else None
            found = memories.unembedded(db, number, most, tokens=tokens, changed_since=since)
        late = since is None or journal.last - since >= MARK_EVERY
        if late and most and not found and number is not None and not self._connections.read_only:
            with suppress(StoreError):  # the next process looks again
                self._connections.written(
                    lambda db: db.execute(MARK_EMBEDDED, (number, tokens, journal.last)),
                    MARK_PATIENCE_SECONDS,
                )
        return found

    @_in_its_history
    def stats(self, *, access: Access, now: datetime) -> StoreStats:
        kept = self._kept
        with self._connections.reading() as db, kept.columns.locked():
            kept.require_history(db)
            snapshot.catch_up_columns(db, kept.columns)
            readable = kept.masks.allowed(db, clause(ANYTHING, access))
            valid = kept.masks.allowed(db, clause(replace(ANYTHING, valid_at=now), access))
            return kept.columns.stats(readable, valid, now, edges.count(db, access))

    @_in_its_history
    def levels(self, *, access: Access, now: datetime) -> Levels:
        kept = self._kept
        with self._connections.reading() as db, kept.columns.locked():
            kept.require_history(db)
            snapshot.catch_up_columns(db, kept.columns)
            readable = kept.masks.allowed(db, clause(ANYTHING, access))
            return kept.columns.levels(readable, now, strengths.curve(db))

    @_in_its_history
    def count(self, where: Filter, *, access: Access) -> int:
        kept = self._kept
        with self._connections.reading() as db, kept.columns.locked():
            kept.require_history(db)
            wanted = history.clause_at(db, where, access)
            timed, rest = wanted.by_creation()
            # To read all columns for a single count would take longer than to count.
            if not kept.masks.keeps(rest) or (timed.conditions and not kept.columns.loaded):
                return memories.count(db, wanted)
            allowed = kept.masks.allowed(db, rest)
            if not timed.conditions and not kept.columns.loaded:
                return _counted(db, allowed, selected=rest.selects)
            snapshot.catch_up_columns(db, kept.columns)
            return kept.columns.count(allowed, timed)

    @_in_its_history
    def find(
        self, where: Filter, *, access: Access, order: Order = Order.NEWEST, limit: int, offset: int = 0
    ) -> list[Record]:
        first, most = non_negative(offset), non_negative(limit)
        kept = self._kept
        if order is Order.DUE and kept.columns.loaded:
            return self._find_due(where, access, most, first)
        with self._connections.reading() as db:
            kept.require_history(db)
            wanted = history.clause_at(db, where, access)
            timed, rest = wanted.by_creation()
            if order not in memories.BY_CREATION or not kept.masks.keeps(rest):
                return memories.page(db, wanted, order, where.now, most, first)
            allowed = kept.masks.allowed(db, rest)
            if allowed is None:
                return memories.page(db, timed, order, where.now, most, first)
            return memories.page_of_allowed(db, allowed, timed, order, most, first, selected=rest.selects)

    def _find_due(self, where: Filter, access: Access, most: int, first: int) -> list[Record]:
        """A page by due date. The columns say which memories are on it: after some weeks most are due."""
        kept = self._kept
        with self._connections.reading() as db, kept.columns.locked():
            kept.require_history(db)
            due, rest = history.clause_at(db, where, access).apart("due_by")
            allowed = kept.masks.allowed(db, SqlConditions(conditions=rest.conditions))
            snapshot.catch_up_columns(db, kept.columns)
            keys = kept.columns.first_due(allowed, due, rest.retained, strengths.curve(db), first + most)
            return memories.page(db, memories.among(keys), Order.DUE, None, most, first)

    def has_edges(self) -> bool:
        """Whether there is any edge: every search asks for those of its candidates, twice."""
        with self._connections.reading(snapshot=False) as db:
            return bool(db.execute("SELECT EXISTS (SELECT 1 FROM edges)").fetchone()[0])

    @_in_its_history
    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        most = non_negative(limit)
        kept = self._kept
        with self._connections.reading() as db, kept.directory.locked():
            kept.require_history(db)
            directory = kept.seen(db, access)
            found = words.score(db, directory, terms, POSTINGS_BUDGET, cache=kept.postings)
            return history.reworded(db, where, access, most, pool.statistics(found, directory))

    @_in_its_history
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
        kept = self._kept
        with self._connections.reading() as db, kept.directory.locked():
            kept.require_history(db)
            allowed = kept.allowed(db, where, access)
            directory = kept.seen(db, access)
            scores = words.score(db, directory, terms, postings, cache=kept.postings).scores
            return pool.best(partial(memories.ids_of, db), scores, allowed, most)

    @_in_its_history
    def nearest(
        self, vectors: NDArray[np.float32], signature: Signature, where: Filter, *, access: Access, limit: int
    ) -> list[list[Scored]]:
        most, kept = non_negative(limit), self._kept
        with self._connections.reading() as db:
            with kept.matrix.locked():
                kept.require_history(db)
                profile = store_facts.profile(db)
                store_facts.require(profile, signature)
                queries = check_queries(vectors, signature)
                if profile is None:
                    return [[] for _ in queries]
                view = kept.matrix.catch_up(db, profile)
            allowed = kept.allowed(db, where, access)
            return sqlite_vectors.nearest(db, view, profile, queries, allowed, most)

    @_in_its_history
    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        if access != EVERYTHING:  # inaccessible memories must not show
            return Voices(speakers=frozenset(), notes=True)
        kept = self._kept
        with self._connections.reading() as db, kept.directory.locked():
            kept.require_history(db)
            return kept.seen(db, EVERYTHING).voices(names)

    @_in_its_history
    def gather(self, probe: Probe, *, access: Access) -> CandidatePool:
        non_negative(probe.per_arm)
        kept = self._kept
        with self._connections.reading() as db, kept.directory.locked():
            with kept.matrix.locked():
                kept.require_history(db)
                dense = kept.dense(db, probe)
            allowed = kept.allowed(db, probe.where, access)
            directory = kept.seen(db, access)
            return gather(db, directory, kept.tokens, kept.postings, kept.hashes, dense, probe, allowed)
