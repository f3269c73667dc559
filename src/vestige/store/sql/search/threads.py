"""The directory: all rows of `places` in memory, as arrays by memory key: lengths, threads, neighbours,
forms.

The `seq` of the rows keeps it up to date with the database, whichever process wrote them. A change affects
only the threads it belongs to.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Collection as Collection_
from contextlib import contextmanager
from dataclasses import field, replace
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.ranking.bm25 import Collection
from vestige.cognition.text.form import Form
from vestige.core.candidates import Voices, distinct
from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.database import Database

Integers = NDArray[np.int64]

FIRST_CAPACITY = 1_024
FEW_THREADS = 16
"""Up to this number are searched one by one; more are worth sorting."""
NO_KEY = -1

# The key, then the columns of the directory in its order. Small numbers share one: fewer are read.
LOAD = (
    "SELECT key, coalesce(thread, 0), coalesce(source, 0), coalesce(position, 0), length, speaker,"
    " 256 * form + 2 * flags + CASE WHEN position IS NULL THEN 1 ELSE 0 END, born FROM places WHERE seq > ?"
)
COLUMNS = 7
THREAD, SOURCE, POSITION, LENGTH, SPEAKER, SMALL, BORN = range(COLUMNS)
GONE = -1  # The length of a key without a memory.


SAVED_NUMBERS = (
    *("memories", "total", "unseen", "seq", "_window_total", "_thread_total", "_size", "_groups"),
    *("_hidden_groups", "_noted"),
)
SAVED_ARRAYS = ("_columns", "_lengths", "_beside", "_group", "_group_lengths")


@dataclass(slots=True)
class Directory:
    """The cache of one store, shared by its threads. `group` numbers threads as the contract has them,
    `before` and `after` are keys; -1 (`NO_KEY`) means no neighbour. A key without a memory has the length
    -1. `total` counts words; `unseen` those of memories that `within` left out. `noted` counts notes,
    `spoken` what each speaker said elsewhere."""

    memories: int = 0
    total: int = 0
    unseen: int = 0
    seq: int = 0
    _window_total: int = 0
    _thread_total: int = 0
    _size: int = 0
    _columns: Integers = field(default_factory=lambda: np.empty((COLUMNS, 0), dtype=np.int64))
    _lengths: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _beside: Integers = field(default_factory=lambda: np.empty((2, 0), dtype=np.int64))
    _group: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _group_lengths: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    _groups: int = 0
    _hidden_groups: int = 0
    _noted: int = 0
    _spoken: dict[int, int] = field(default_factory=dict)
    _free: list[int] = field(default_factory=list)
    is_readable: Callable[[], bool] = lambda: True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def saved(self) -> tuple[dict[str, int], dict[str, Integers]]:
        """The numbers and the arrays it consists of, for `restore`."""
        numbers = {name: getattr(self, name) for name in SAVED_NUMBERS}
        arrays = {name: getattr(self, name) for name in SAVED_ARRAYS}
        spoken = np.array(list(self._spoken.items()), dtype=np.int64).reshape(-1, 2)
        return numbers, arrays | {"_free": np.array(self._free, dtype=np.int64), "_spoken": spoken}

    def restore(
        self, numbers: Mapping[str, int], arrays: Mapping[str, Integers], intact: Callable[[], bool]
    ) -> None:
        """Take over what was `saved`, while the arrays are `intact`; they are changed from here on."""
        for name in SAVED_NUMBERS:
            setattr(self, name, numbers[name])
        for name in SAVED_ARRAYS:
            setattr(self, name, arrays[name])
        self._free = arrays["_free"].tolist()
        self._spoken = dict(arrays["_spoken"].tolist())
        self.is_readable = intact

    def clear(self) -> None:
        """Begin again with nothing."""
        empty = Directory()
        self.restore(*empty.saved(), empty.is_readable)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the directory while a read transaction begins and `catch_up` runs in it, and as long as its
        arrays are used: then they are of exactly that transaction's moment."""
        with self._lock:
            yield

    def catch_up(self, db: Database) -> None:
        """Read the rows written since the last time. Call it under `locked`."""
        # Number by number into an array: rows of Python's numbers would take six times the memory.
        numbers = chain.from_iterable(db.execute(LOAD, (self.seq,)))
        changed = np.fromiter(numbers, dtype=np.int64).reshape(-1, 1 + COLUMNS)
        if len(changed):
            self.take(changed, db.execute("SELECT max(seq) FROM places").fetchone()[0])

    def take(self, changed: Integers, seq: int) -> None:
        """Take over rows of `LOAD`: all rows written since the last time, up to `seq`."""
        self._take(changed[:, 0], changed[:, 1:].T)
        self.seq = seq

    def copy(self) -> "Directory":
        """A copy of the same moment, independent from here on."""
        return replace(
            self,
            _columns=self._columns.copy(),
            _lengths=self._lengths.copy(),
            _beside=self._beside.copy(),
            _group=self._group.copy(),
            _group_lengths=self._group_lengths.copy(),
            _spoken=dict(self._spoken),
            _free=list(self._free),
            _lock=threading.Lock(),
        )

    def within(self, readable: NDArray[np.bool_] | None) -> "Directory":
        """The directory of a caller who may read only these keys (None: all): the others are as if they did
        not exist, in every count too. It shares the other arrays, so it is valid as long as this one is
        locked. A thread is readable as a whole or not at all: its members share scope and domains."""
        if readable is None:
            return self
        hidden = np.ones(self._size, dtype=np.bool_)
        hidden[: len(readable)] = ~readable[: self._size]
        lengths = np.where(hidden, GONE, self._lengths[: self._size])
        seen = replace(
            self,
            memories=0,
            total=0,
            _window_total=0,
            _thread_total=0,
            _noted=0,
            _spoken={},
            _lengths=lengths,
        )
        living = np.flatnonzero(lengths >= 0)
        seen._count(living, 1)
        seen.unseen = self.total - seen.total
        there = np.zeros(self._groups + 1, dtype=np.bool_)
        there[self._group[living]] = True
        seen._hidden_groups = self._groups - len(self._free) - int(np.count_nonzero(there[:-1]))
        return seen

    @property
    def size(self) -> int:
        """A bound above all keys."""
        return self._size

    def collection(self) -> Collection:
        return Collection(
            lengths=self._lengths[: self._size],
            before=self._beside[0, : self._size],
            after=self._beside[1, : self._size],
            threads=self._group[: self._size],
            thread_lengths=self._group_lengths[: self._groups],
            memories=self.memories,
            total=self.total,
            window_total=self._window_total,
            thread_count=self._groups - len(self._free) - self._hidden_groups,
            thread_total=self._thread_total,
        )

    def has(self, keys: Integers) -> NDArray[np.bool_]:
        """Which of the keys exist. One is missing where another program wrote the index."""
        return self._look_up(self._lengths, keys, GONE) >= 0

    def forms(self, keys: Integers) -> Integers:
        return self._look_up(self._columns[SMALL], keys, 0) >> 8

    def flags(self, keys: Integers) -> Integers:
        return self._look_up(self._columns[SMALL], keys, 0) >> 1 & 0x7F

    def speakers(self, keys: Integers) -> Integers:
        """The speaker's hash of each key, 0 for none."""
        return self._look_up(self._columns[SPEAKER], keys, 0)

    def voices(self, names: Collection_[int]) -> Voices:
        """Which of the names speak in a conversation, and whether there are notes."""
        return Voices(
            speakers=frozenset(name for name in names if name in self._spoken), notes=self._noted > 0
        )

    def spoken_by(self, keys: Integers, names: Collection_[int]) -> NDArray[np.bool_]:
        """Which of the keys are in a thread in which one of these speaks."""
        if not names:
            return np.zeros(len(keys), dtype=np.bool_)
        there = np.isin(self._columns[SPEAKER, : self._size], np.array(sorted(names), dtype=np.int64))
        heard = np.zeros(self._groups + 1, dtype=np.bool_)
        heard[self._group[: self._size][there]] = True
        heard[NO_KEY] = False
        return heard[self.threads(keys)]

    def threads(self, keys: Integers) -> Integers:
        return self._look_up(self._group, keys, NO_KEY)

    def beside(self, keys: Integers, side: int) -> Integers:
        """The key before (side -1) or after (side 1) each key."""
        return self._look_up(self._beside[(side + 1) // 2], keys, NO_KEY)

    def of_source(self, source: int) -> Integers:
        return np.flatnonzero(
            (self._columns[SOURCE, : self._size] == source) & (self._lengths[: self._size] >= 0)
        )

    def _look_up(self, column: Integers, keys: Integers, missing: int) -> Integers:
        inside = (keys >= 0) & (keys < self._size)
        if inside.all():
            return column[keys]
        found = np.full(len(keys), missing, dtype=np.int64)
        found[inside] = column[keys[inside]]
        return found

    def _take(self, keys: Integers, columns: Integers) -> None:
        """Write new columns, and link the threads anew that they leave and join."""
        self._make_room(int(keys.max()) + 1)
        left = self._columns[THREAD, keys]
        hashes = distinct(np.concatenate((left, columns[THREAD])))
        # A key that was in a thread is one of the members of what it leaves.
        touched = np.concatenate((self._members(hashes[hashes != 0]), keys[left == 0]))
        self._count(touched, -1)
        self._release(self._group[touched])
        self._columns[:, keys] = columns
        self._lengths[keys] = columns[LENGTH]
        self._group[touched] = NO_KEY
        self._beside[:, touched] = NO_KEY
        self._link(touched[self._columns[THREAD, touched] != 0])
        self._count(touched, 1)

    def _members(self, hashes: Integers) -> Integers:
        """The keys that have one of these thread hashes."""
        if not self.memories:
            return np.empty(0, dtype=np.int64)
        threads = self._columns[THREAD, : self._size]
        if len(hashes) > FEW_THREADS:
            return np.flatnonzero(np.isin(threads, hashes))
        found = [np.flatnonzero(threads == one) for one in hashes]
        return np.concatenate(found) if found else np.empty(0, dtype=np.int64)

    def _link(self, keys: Integers) -> None:
        """Make threads of the keys of whole threads, and link neighbours."""
        if not len(keys):
            return
        labels = _labels(self._columns[THREAD, keys], self._columns[SOURCE, keys])
        unplaced = self._columns[SMALL, keys] & 1
        born = self._columns[BORN, keys]
        order = np.lexsort((keys, born, self._columns[POSITION, keys], unplaced, labels))
        ordered, labels = keys[order], labels[order]
        follows = labels[1:] == labels[:-1]
        self._beside[0, ordered[1:][follows]] = ordered[:-1][follows]
        self._beside[1, ordered[:-1][follows]] = ordered[1:][follows]
        starts = np.flatnonzero(np.concatenate(([True], ~follows)))
        groups = self._allot(len(starts))
        self._group[ordered] = np.repeat(groups, np.diff(np.append(starts, len(ordered))))
        self._group_lengths[groups] = np.add.reduceat(self._lengths[ordered], starts)

    def _count(self, keys: Integers, sign: int) -> None:
        """Add the keys to the totals, or subtract them."""
        living = keys[self._lengths[keys] >= 0]
        lengths = self._lengths[living]
        neighbours = (self._beside[:, living] >= 0).sum(axis=0)
        self.memories += sign * len(living)
        self.total += sign * int(lengths.sum())
        self._window_total += sign * int((lengths * (1 + neighbours)).sum())
        self._thread_total += sign * int(lengths[self._group[living] >= 0].sum())
        noted = self._columns[SMALL, living] >> 8 == Form.NOTE
        self._noted += sign * int(np.count_nonzero(noted))
        spoken = np.unique(self._columns[SPEAKER, living[~noted]], return_counts=True)
        for speaker, times in zip(*(one.tolist() for one in spoken), strict=True):
            left = self._spoken.pop(speaker, 0) + sign * times
            if left and speaker:
                self._spoken[speaker] = left

    def _allot(self, count: int) -> Integers:
        """Numbers for new threads, first those of removed threads."""
        used = [self._free.pop() for _ in range(min(count, len(self._free)))]
        fresh = count - len(used)
        if self._groups + fresh > len(self._group_lengths):
            larger = np.zeros(max(2 * len(self._group_lengths), self._groups + fresh), dtype=np.int64)
            larger[: self._groups] = self._group_lengths[: self._groups]
            self._group_lengths = larger
        self._groups += fresh
        return np.array([*used, *range(self._groups - fresh, self._groups)], dtype=np.int64)

    def _release(self, groups: Integers) -> None:
        gone = distinct(groups[groups >= 0])
        self._group_lengths[gone] = 0
        self._free.extend(gone.tolist())

    def _make_room(self, size: int) -> None:
        if size > self._columns.shape[1]:
            capacity = max(size + size // 8, FIRST_CAPACITY)  # the next write must not copy it all again
            self._columns = _widened(self._columns, capacity, 0)
            self._lengths = _widened(self._lengths, capacity, GONE)
            self._beside = _widened(self._beside, capacity, NO_KEY)
            self._group = _widened(self._group, capacity, NO_KEY)
        self._size = max(self._size, size)


def _labels(threads: Integers, sources: Integers) -> Integers:
    """A number per thread. Where the members of one have different sources with at least two members on
    average, each source is a thread of its own."""
    if (threads == threads[0]).all() and (sources == sources[0]).all():
        return np.zeros(len(threads), dtype=np.int64)
    by_thread = np.unique(threads, return_inverse=True)[1]
    by_source = np.unique(sources, return_inverse=True)[1]
    count = int(by_source.max()) + 1
    pairs, by_pair = np.unique(by_thread * count + by_source, return_inverse=True)
    several = np.bincount(pairs // count)
    apart = (several > 1) & (np.bincount(by_thread) >= 2 * several)
    labels: Integers = np.where(apart[by_thread], by_pair, -1 - by_thread)
    return labels


def _widened(array: Integers, capacity: int, blank: int) -> Integers:
    wider = np.full((*array.shape[:-1], capacity), blank, dtype=np.int64)
    wider[..., : array.shape[-1]] = array
    return wider
