"""The vectors of a store as one matrix in memory, kept up with the database by its journals.

Rows are in the order of vector ids. All pieces of a memory are written together, so they are neighbours
here: a *group*. A view is taken under the lock and never changes afterwards: arrays only grow beyond
its end, and deaths go into a new `alive` array.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vestige.store.sqlite.registry import Profile

FIRST_CAPACITY = 256
COMPACT_ABOVE = 0.25
LOAD_BATCH = 4096

LOAD = 'SELECT id, key, start, "end", vector FROM vectors WHERE id > ? AND profile = ? ORDER BY id'
DEATHS = "SELECT position, vector_id FROM dead_vectors WHERE position > ? ORDER BY position"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The matrix at one moment. `starts` is the first row of each group."""

    rows: NDArray[np.float32]
    keys: NDArray[np.int64]
    spans: NDArray[np.int64]
    alive: NDArray[np.bool_]
    starts: NDArray[np.int64]
    group_keys: NDArray[np.int64]

    def pieces_of(self, groups: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The living rows of these groups, and the group each belongs to."""
        if len(self.starts) == len(self.keys):
            return groups, groups
        ends = np.append(self.starts[1:], len(self.keys))
        lengths = ends[groups] - self.starts[groups]
        owners = np.repeat(groups, lengths)
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        rows = self.starts[owners] + within
        living = self.alive[rows]
        return rows[living], owners[living]


@dataclass(slots=True)
class Matrix:
    """The cache of one store; shared by its threads."""

    _profile: int = 0
    _count: int = 0
    _last_id: int = 0
    _last_death: int = 0
    _rows: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), dtype=np.float32))
    _meta: NDArray[np.int64] = field(default_factory=lambda: np.empty((4, 0), dtype=np.int64))
    _starts: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _groups: int = 0
    _alive: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    _view: View | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the cache while a read transaction begins and `catch_up` runs in it: then the view is of
        exactly that transaction's moment, and the cache never goes back in time."""
        with self._lock:
            yield

    def catch_up(self, db: sqlite3.Connection, profile: Profile) -> View:
        """The matrix as this read transaction sees it, whoever wrote it. Call it under `locked`."""
        if self._profile != profile.id:
            self._reset(db, profile)
        deaths = db.execute(DEATHS, (self._last_death,)).fetchall()
        if deaths:
            self._bury(np.array([row[1] for row in deaths], dtype=np.int64))
            self._last_death = deaths[-1][0]
        born = db.execute(LOAD, (self._last_id, profile.id))
        while rows := born.fetchmany(LOAD_BATCH):
            self._append(rows, profile.signature.dimension)
        if self._view is None:
            self._view = self._look()
        return self._view

    def _reset(self, db: sqlite3.Connection, profile: Profile) -> None:
        last = db.execute("SELECT coalesce(max(position), 0) FROM dead_vectors").fetchone()
        self._profile, self._count, self._last_id, self._last_death = profile.id, 0, 0, last[0]
        self._rows = np.empty((0, profile.signature.dimension), dtype=np.float32)
        self._meta = np.empty((4, 0), dtype=np.int64)
        self._starts, self._groups = np.empty(0, dtype=np.int64), 0
        self._alive = np.empty(0, dtype=np.bool_)
        self._view = None

    def _bury(self, dead: NDArray[np.int64]) -> None:
        ids = self._meta[0, : self._count]
        alive = self._alive.copy()
        alive[: self._count] &= np.isin(ids, dead, invert=True)
        self._alive, self._view = alive, None
        if self._count - int(alive[: self._count].sum()) > COMPACT_ABOVE * self._count:
            living = np.flatnonzero(alive[: self._count])
            self._rows, self._meta = self._rows[living], self._meta[:, living]
            self._alive, self._count = np.ones(len(living), dtype=np.bool_), len(living)
            self._starts = np.empty(len(living), dtype=np.int64)
            self._groups = 0
            self._begin_groups(0)

    def _append(self, born: list[tuple[int, int, int, int, bytes]], dimension: int) -> None:
        start, end = self._count, self._count + len(born)
        if end > len(self._rows):
            self._grow(max(end, 2 * len(self._rows), FIRST_CAPACITY))
        blob = b"".join(row[4] for row in born)
        self._rows[start:end] = np.frombuffer(blob, dtype="<f4").reshape(len(born), dimension)
        self._meta[:, start:end] = np.array([row[:4] for row in born], dtype=np.int64).T
        self._alive[start:end] = True
        self._count, self._last_id, self._view = end, born[-1][0], None
        self._begin_groups(start)

    def _begin_groups(self, start: int) -> None:
        """Note where the groups of the rows from `start` on begin."""
        keys = self._meta[1, : self._count]
        before = int(keys[start - 1]) if start else -1
        begun = start + np.flatnonzero(np.diff(keys[start:], prepend=before))
        self._starts[self._groups : self._groups + len(begun)] = begun
        self._groups += len(begun)

    def _grow(self, capacity: int) -> None:
        rows = np.empty((capacity, self._rows.shape[1]), dtype=np.float32)
        meta = np.empty((4, capacity), dtype=np.int64)
        starts = np.empty(capacity, dtype=np.int64)
        alive = np.zeros(capacity, dtype=np.bool_)
        rows[: self._count] = self._rows[: self._count]
        meta[:, : self._count] = self._meta[:, : self._count]
        starts[: self._groups] = self._starts[: self._groups]
        alive[: self._count] = self._alive[: self._count]
        self._rows, self._meta, self._alive, self._starts = rows, meta, alive, starts

    def _look(self) -> View:
        keys, starts = self._meta[1, : self._count], self._starts[: self._groups]
        return View(
            rows=self._rows[: self._count],
            keys=keys,
            spans=self._meta[2:, : self._count],
            alive=self._alive[: self._count],
            starts=starts,
            group_keys=keys if len(starts) == len(keys) else keys[starts],
        )
