"""The vectors of a store in memory for searching, kept up to date by the journals of the database.

Published files are mapped, not read; the vectors outside them are held in memory (the *tail*). Files have the
token bits of their memories too. The facts that a scan needs are held for all rows: the memory, the span and
whether the row is alive. All pieces of a memory are written together, so they are neighbours here: a *group*.
A view is taken under the lock and never changes afterwards: arrays only grow beyond its end, and deletions go
into a new `alive` array.
"""

import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import chain, pairwise
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.rows.store_facts import Profile
from vestige.store.sql.search.vectors import TokenColumns, token_rows
from vestige.store.sqlite.search import int8, segments
from vestige.store.sqlite.search.int8 import Coded
from vestige.store.sqlite.search.segment_file import Content, FiledTokens

FIRST_CAPACITY = 256
COMPACT_ABOVE = 0.25
COMPACT_WITH_FILES = 1024
"""With files, starting again is not worth it for fewer deleted vectors."""
LOAD_BATCH = 4096
LAST_ID = 2**63 - 1

BORN = (
    'SELECT id, key, start, "end", vector FROM vectors WHERE profile = ? AND id BETWEEN ? AND ? ORDER BY id'
)
DEATHS = "SELECT position, vector_id FROM dead_vectors WHERE position > ? ORDER BY position"

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Some rows of the matrix, from row `start` on, with their codes if they are scanned by those."""

    start: int
    rows: Vectors
    coded: Coded | None

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def end(self) -> int:
        return self.start + len(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBlock:
    """The token bits of a file whose rows end before `end` in the matrix; `ends` says where the tokens of
    each row end."""

    end: int
    filed: FiledTokens | None
    ends: NDArray[np.int32]

    @classmethod
    def of(cls, end: int, filed: FiledTokens | None) -> "TokenBlock":
        none = np.empty(0, dtype=np.int32)
        return cls(
            end=end, filed=filed, ends=none if filed is None else np.cumsum(filed.counts, dtype=np.int32)
        )

    def where(self, rows: Integers) -> tuple[Integers, Integers]:
        """The number of tokens of these rows of the matrix, and where they start."""
        if self.filed is None:
            return np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        at = rows - (self.end - len(self.ends))
        counts = self.filed.counts[at].astype(np.int64)
        return counts, self.ends[at] - counts

    def copy(
        self, starts: Integers, counts: Integers, into: Integers, bits: NDArray[np.uint8], asked: Flags
    ) -> None:
        """Copy the tokens of some memories to other rows."""
        if self.filed is None or not len(starts):
            return
        taken = token_rows(starts, counts)
        first, end = int(into[0]), int(into[-1] + counts[-1])
        if end - first == len(taken):  # as always where files follow the order of keys
            self.filed.bits.take(taken, axis=0, out=bits[first:end], mode="clip")
            self.filed.asked.take(taken, out=asked[first:end], mode="clip")
        else:
            put = token_rows(into, counts)
            bits[put], asked[put] = self.filed.bits[taken], self.filed.asked[taken]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The matrix at one moment: files first, then the tail. `starts` is the first row of each group,
    `group_keys` its memory, `newest` the last group of each key, `dead` the rows that are not `alive`.
    `spans` has a start and an end for each row."""

    blocks: tuple[Block, ...]
    keys: Integers
    spans: Integers
    alive: Flags
    dead: Integers
    starts: Integers
    group_keys: Integers
    newest: Integers
    tokens: tuple["TokenBlock", ...]

    def tokens_of(self, keys: Integers, size: int) -> TokenColumns:
        """The token bits of those of the memories whose files have them. The keys ascend; a token has `size`
        bytes."""
        if not self.tokens:
            return TokenColumns.of((), size)
        groups = self.groups_of(keys)
        first = np.where(groups >= 0, self.starts[groups], -1)
        filed = self.tokens[-1].end
        there = np.flatnonzero((first >= 0) & (first < filed))
        there = there[self.alive[first[there]]]
        rows, counts = first[there], np.zeros(len(there), dtype=np.int64)
        starts = np.zeros(len(there), dtype=np.int64)
        owners = np.searchsorted([block.end for block in self.tokens], rows, side="right")
        blocks = [(number, np.flatnonzero(owners == number)) for number in np.unique(owners).tolist()]
        for number, mine in blocks:
            counts[mine], starts[mine] = self.tokens[number].where(rows[mine])
        bits = np.empty((int(counts.sum()), size), dtype=np.uint8)
        asked = np.empty(len(bits), dtype=np.bool_)
        into = np.cumsum(counts) - counts
        for number, mine in blocks:
            self.tokens[number].copy(starts[mine], counts[mine], into[mine], bits, asked)
        held = counts > 0
        return TokenColumns(
            keys=keys[there][held], lengths=counts[held], counts=counts[held], bits=bits, asked=asked
        )

    def take(self, rows: Integers) -> Vectors:
        if len(self.blocks) == 1:
            return self.blocks[0].rows.take(rows, axis=0)
        taken = np.empty((len(rows), self.blocks[0].rows.shape[1]), dtype=np.float32)
        owners = np.searchsorted([block.end for block in self.blocks], rows, side="right")
        for number in np.unique(owners):
            block, mine = self.blocks[number], owners == number
            taken[mine] = block.rows.take(rows[mine] - block.start, axis=0)
        return taken

    def groups_of(self, keys: Integers) -> Integers:
        """The group of each memory; -1 where it has none."""
        groups = np.full(len(keys), -1, dtype=np.int64)
        known = np.flatnonzero((keys >= 0) & (keys < len(self.newest)))
        groups[known] = self.newest[keys[known]]
        # `newest` is shared with later moments: what was written again since then is looked for.
        for at in np.flatnonzero(groups >= len(self.starts)):
            earlier = np.flatnonzero(self.group_keys == keys[at])
            groups[at] = earlier[-1] if len(earlier) else -1
        return groups

    def pieces_of(self, groups: Integers) -> tuple[Integers, Integers]:
        """The living rows of these groups, and the group each belongs to."""
        rows = owners = groups
        if len(self.starts) < len(self.keys):
            ends = np.append(self.starts[1:], len(self.keys))
            lengths = ends[groups] - self.starts[groups]
            owners = np.repeat(groups, lengths)
            within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
            rows = self.starts[owners] + within
        living = self.alive[rows]
        return rows[living], owners[living]


class GrowingArray(Generic[Number]):
    """An array that grows at its end; views of it stay unchanged."""

    __slots__ = ("_held", "_used")

    def __init__(self, held: NDArray[Number]) -> None:
        self._held, self._used = held, len(held)

    @property
    def seen(self) -> NDArray[Number]:
        return self._held[: self._used]

    def extend(self, more: NDArray[Number]) -> None:
        end = self._used + len(more)
        if end > len(self._held):
            room = max(end, 2 * self._used, FIRST_CAPACITY)
            held = np.empty((room, *self._held.shape[1:]), dtype=self._held.dtype)
            held[: self._used] = self.seen
            self._held = held
        self._held[self._used : end] = more
        self._used = end


class ProfileRows:
    """The rows of one profile: the files, and columns for the rest."""

    def __init__(self, contents: Sequence[Content], dimension: int, *, coded: bool) -> None:
        self._coded = coded
        self._contents = contents
        self._files: list[Block] = []
        for one in contents:
            start = self._files[-1].end if self._files else 0
            self._files.append(Block(start=start, rows=one.vectors, coded=one.coded if coded else None))
        self.filed = self._files[-1].end if self._files else 0
        ends = [block.end for block in self._files]
        self._tokens = tuple(TokenBlock.of(end, one.tokens) for end, one in zip(ends, contents, strict=True))
        none = np.empty(0, dtype=np.int64)
        self.ids = GrowingArray(np.concatenate([none, *(one.ids for one in contents)]))
        self._keys = GrowingArray(np.concatenate([none, *(one.keys for one in contents)]))
        self._spans = GrowingArray(np.concatenate([none.reshape(0, 2), *(one.spans for one in contents)]))
        self._alive = GrowingArray(np.ones(self.filed, dtype=np.bool_))
        self._starts, self._group_keys = GrowingArray(none), GrowingArray(none)
        self._newest = none
        self._tail = GrowingArray(np.empty((0, dimension), dtype=np.float32))
        self._codes = GrowingArray(np.empty((0, dimension), dtype=np.int8))
        self._scales = GrowingArray(np.empty(0, dtype=np.float32))
        self._rests = GrowingArray(np.empty(0, dtype=np.float32))
        self._longest = 0.0
        self._begin_groups(0)

    @property
    def unfiled(self) -> int:
        """The number of rows in the tail."""
        return len(self._tail.seen)

    def intact(self) -> bool:
        """Whether all files can still be read to their end."""
        return all(one.intact() for one in self._contents)

    def append(self, born: Sequence[segments.Row]) -> None:
        """Add rows of the database to the tail; they have higher ids than those there."""
        start, vectors = len(self.ids.seen), segments.unpacked(born)
        meta = np.array([row[:4] for row in born], dtype=np.int64)
        self.ids.extend(meta[:, 0])
        self._keys.extend(meta[:, 1])
        self._spans.extend(meta[:, 2:])
        self._alive.extend(np.ones(len(born), dtype=np.bool_))
        self._tail.extend(vectors)
        if self._coded:
            more = int8.encode(vectors)
            self._codes.extend(more.codes)
            self._scales.extend(more.scales)
            self._rests.extend(more.rests)
            self._longest = max(self._longest, more.longest)
        self._begin_groups(start)

    def bury(self, dead: Integers) -> None:
        alive = self._alive.seen.copy()
        borders = [*(block.start for block in self._files), self.filed, len(alive)]
        for start, end in pairwise(borders):
            ids = self.ids.seen[start:end]  # they ascend within a file, and within the tail
            places = np.searchsorted(ids, dead)
            there = places < len(ids)
            places, wanted = places[there], dead[there]
            alive[start + places[ids[places] == wanted]] = False
        self._alive = GrowingArray(alive)

    def worn(self) -> bool:
        """Whether so large a part of the tail is deleted that it should be read again."""
        dead = self.unfiled - int(np.count_nonzero(self._alive.seen[self.filed :]))
        return dead > max(COMPACT_ABOVE * self.unfiled, COMPACT_WITH_FILES if self.filed else 0)

    def look(self) -> View:
        blocks = list(self._files)
        if self.unfiled or not blocks:
            coded = Coded(
                codes=self._codes.seen,
                scales=self._scales.seen,
                rests=self._rests.seen,
                longest=self._longest,
            )
            blocks.append(Block(start=self.filed, rows=self._tail.seen, coded=coded if self._coded else None))
        alive = self._alive.seen
        return View(
            blocks=tuple(blocks),
            keys=self._keys.seen,
            spans=self._spans.seen,
            alive=alive,
            dead=np.flatnonzero(~alive),
            starts=self._starts.seen,
            group_keys=self._group_keys.seen,
            newest=self._newest,
            tokens=self._tokens,
        )

    def _begin_groups(self, start: int) -> None:
        """Record the first rows of groups from `start` on."""
        keys = self._keys.seen
        before = int(keys[start - 1]) if start else -1
        begun = start + np.flatnonzero(np.diff(keys[start:], prepend=before))
        first = len(self._starts.seen)
        self._starts.extend(begun)
        self._group_keys.extend(keys[begun])
        highest = int(keys[start:].max(initial=-1))
        if highest >= len(self._newest):
            newest = np.full(max(highest + 1, 2 * len(self._newest)), -1, dtype=np.int64)
            newest[: len(self._newest)] = self._newest
            self._newest = newest
        self._newest[keys[begun]] = np.arange(first, first + len(begun))


@dataclass(slots=True)
class Matrix:
    """The cache of one store; shared by its threads. With `coded`, scans go by codes."""

    coded: bool | None = None
    _stamp: tuple[int, int, int] | None = None
    _rows: ProfileRows = field(default_factory=lambda: ProfileRows((), 0, coded=False))
    _view: View | None = None
    _last_id: int = 0
    _last_death: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the cache while a read transaction begins and `catch_up` runs in it: then the view is of
        exactly that transaction's moment, and the cache never goes back in time."""
        with self._lock:
            yield

    def catch_up(self, db: sqlite3.Connection, profile: Profile) -> View:
        """The matrix of this read transaction, whichever process wrote it. Call it under `locked`."""
        stamp = (profile.id, *segments.listing(db))
        current = self._stamp == stamp and self._rows.intact()
        self._stamp = None  # the next search reads again what an error interrupts
        if not current:
            self._read(db, profile)
        self._bury(db, self._last_death)
        if self._rows.worn():
            self._read(db, profile)
        self._load(db, profile, self._last_id + 1, LAST_ID)
        view = self._view or self._rows.look()
        self._view, self._stamp = view, stamp
        return view

    def _read(self, db: sqlite3.Connection, profile: Profile) -> None:
        """Read the files, and the alive rows outside them."""
        if self.coded is None:
            self.coded = int8.kernel() is not None
        contents = segments.open_all(db, profile)
        self._rows = ProfileRows(contents, profile.signature.dimension, coded=self.coded)
        self._view, self._last_id = None, 0
        self._last_death = db.execute("SELECT coalesce(max(position), 0) FROM dead_vectors").fetchone()[0]
        if contents:
            self._bury(db, min(one.deaths for one in contents))
        covered = [(int(one.ids[0]), int(one.ids[-1])) for one in contents]
        for first, last in segments.gaps(covered, LAST_ID):
            self._load(db, profile, first, last)
            self._last_id = max(self._last_id, first - 1)

    def _bury(self, db: sqlite3.Connection, since: int) -> None:
        """Mark the vectors deleted after the position `since`."""
        # One array: a change of the model deletes every vector.
        died = np.fromiter(chain.from_iterable(db.execute(DEATHS, (since,))), np.int64).reshape(-1, 2)
        if len(died):
            self._last_death, self._view = int(died[-1, 0]), None
            self._rows.bury(died[:, 1])

    def _load(self, db: sqlite3.Connection, profile: Profile, first: int, last: int) -> None:
        born = db.execute(BORN, (profile.id, first, last))
        while rows := born.fetchmany(LOAD_BATCH):
            self._rows.append(rows)
            self._last_id, self._view = rows[-1][0], None
