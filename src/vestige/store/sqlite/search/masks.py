"""Which memories pass a filter, by key: kept in memory and brought up to date by the journal of changed
keys.

A filter is split into what lasts from search to search (scope, access, labels, suppression, archive), whose
answer is kept as a mask, and the validity at a moment, for which the bounds of those memories are kept that
have any. Both are read from the tables once, and then again for changed keys only, by the same conditions.
"""

import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass
from vestige.store.sql.filters import Condition, SqlConditions, keys_from_text
from vestige.store.sql.rows import memories
from vestige.store.sql.search.pool import Mask
from vestige.store.sqlite.search.words import next_key

MOST_KEPT = 16
"""Masks: a byte each for every memory."""
WITHOUT_ZONE = len("2026-01-01T00:00:00.000000")
JOURNAL = (
    "SELECT coalesce((SELECT max(seq) FROM changed_keys), 0),"
    " coalesce((SELECT min(seq) FROM changed_keys), 1)"
)
CHANGED = "SELECT key FROM changed_keys WHERE seq > ? AND part = 0"
CHANGED_KEYS = "SELECT group_concat(DISTINCT key) FROM changed_keys WHERE seq > ? AND part = 0"

NOTHING = SqlConditions(conditions=())

Integers = NDArray[np.int64]
Named = tuple[str, tuple[object, ...]]
"""Conditions by their text and their values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalSpan:
    """The entries of the journal at one moment: the last one, and the first that is still kept."""

    last: int
    first: int

    @classmethod
    def read(cls, db: sqlite3.Connection) -> "JournalSpan":
        last, first = db.execute(JOURNAL).fetchone()
        return cls(last=last, first=first)

    def follows(self, seq: int) -> bool:
        """Whether the journal has every change since the entry `seq`."""
        return self.first - 1 <= seq <= self.last


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptMask:
    """The mask of some conditions after the entry `seq` of the journal; None where everything passes."""

    seq: int
    mask: Mask | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptBounds:
    """The times in one column of validity after the entry `seq` of the journal, by ascending key."""

    seq: int
    keys: Integers
    times: NDArray[np.datetime64]


@dataclass(slots=True)
class KeptMasks:
    """The masks of one store, shared by its threads. None of them is ever changed, only replaced."""

    _masks: dict[Named, KeptMask] = field(default_factory=dict)
    _bounds: dict[str, KeptBounds] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def keeps(wanted: SqlConditions) -> bool:
        """Whether these conditions are of the kind that is kept."""
        return wanted.retained is None and not any(one.fleeting for one in wanted.conditions)

    def allowed(self, db: sqlite3.Connection, wanted: SqlConditions) -> Mask | None:
        """By key, which memories match at the moment of this read transaction; None when all do."""
        size = next_key(db)
        if not self.keeps(wanted):
            return memories.allowed(db, wanted, size)
        bounds = [one for one in wanted.conditions if one.bound is not None]
        lasting = SqlConditions(conditions=tuple(one for one in wanted.conditions if one.bound is None))
        with self._lock:
            journal = JournalSpan.read(db)
            mask = self._mask(db, journal, lasting, size) if lasting.conditions else None
            outside = [self._outside(db, journal, one) for one in bounds]
        left_out = np.concatenate([np.empty(0, dtype=np.int64), *outside])
        if not len(left_out):
            return mask
        mask = np.ones(size, dtype=np.bool_) if mask is None else mask.copy()
        mask[left_out] = False
        return mask

    def _mask(
        self, db: sqlite3.Connection, journal: JournalSpan, wanted: SqlConditions, size: int
    ) -> Mask | None:
        name = _named(wanted)
        kept = self._masks.pop(name, None)  # and put at the end, as the one used last
        if kept is not None and kept.seq > journal.last:  # this transaction began before another's
            self._masks[name] = kept
            return memories.allowed(db, wanted, size)
        if kept is None or not journal.follows(kept.seq):
            mask = memories.allowed(db, wanted, size)
        elif kept.seq == journal.last:
            mask = kept.mask
        else:
            mask = _after_changes(db, kept, wanted, size)
        if mask is not None:
            mask.setflags(write=False)
        self._masks[name] = KeptMask(seq=journal.last, mask=mask)
        while len(self._masks) > MOST_KEPT:
            del self._masks[next(iter(self._masks))]
        return mask

    def _outside(self, db: sqlite3.Connection, journal: JournalSpan, bound: Condition) -> Integers:
        """The keys that a condition on validity excludes."""
        column, moment = str(bound.bound), moments([str(bound.params[0])])[0]
        kept = self._bounds.get(column)
        if kept is None or not journal.follows(kept.seq):
            fresh = _read_bounds(db, column, journal.last)
            if kept is None or journal.last > kept.seq:
                self._bounds[column] = fresh
            kept = fresh
        elif kept.seq < journal.last:
            kept = self._bounds[column] = _bounds_after(db, column, kept, journal.last)
        begun = kept.times > moment if column == "valid_from" else kept.times <= moment
        found: Integers = kept.keys[begun]
        return found


def _named(wanted: SqlConditions) -> Named:
    return wanted.sql, tuple(tuple(one) if isinstance(one, list) else one for one in wanted.params)


def _after_changes(db: sqlite3.Connection, kept: KeptMask, wanted: SqlConditions, size: int) -> Mask | None:
    """The mask with the keys decided again that changed since; the very same one if all are decided as
    before. Keys without a memory are as `memories.allowed` has them."""
    unlimited = not wanted.selects
    changed = np.sort(keys_from_text(db.execute(CHANGED_KEYS, (kept.seq,)).fetchone()[0]))
    passes = np.full(len(changed), unlimited, dtype=np.bool_)
    if unlimited:
        passes[np.searchsorted(changed, _changed_among(db, kept.seq, NOTHING))] = False
    passes[np.searchsorted(changed, _changed_among(db, kept.seq, wanted))] = True
    before = np.full(size, unlimited, dtype=np.bool_)
    if kept.mask is not None:
        before[: len(kept.mask)] = kept.mask
    if np.array_equal(before[changed], passes) and (kept.mask is None or len(kept.mask) == size):
        return kept.mask
    before[changed] = passes
    return None if unlimited and bool(before.all()) else before


def _changed_among(db: sqlite3.Connection, seq: int, wanted: SqlConditions) -> Integers:
    """The keys of the memories that changed since, exist and match."""
    found = db.execute(f"{memories.KEYS} WHERE m.key IN ({CHANGED}) AND {wanted.sql}", (seq, *wanted.params))
    return keys_from_text(found.fetchone()[0])


def _read_bounds(db: sqlite3.Connection, column: str, seq: int) -> KeptBounds:
    rows = db.execute(f"SELECT m.key, m.{column} FROM memories m WHERE m.{column} IS NOT NULL").fetchall()
    return _in_order(seq, _keys(rows), moments([row[1] for row in rows]))


def _bounds_after(db: sqlite3.Connection, column: str, kept: KeptBounds, seq: int) -> KeptBounds:
    changed = keys_from_text(db.execute(CHANGED_KEYS, (kept.seq,)).fetchone()[0])
    rows = db.execute(
        f"SELECT m.key, m.{column} FROM memories m WHERE m.{column} IS NOT NULL AND m.key IN ({CHANGED})",
        (kept.seq,),
    ).fetchall()
    at = np.searchsorted(kept.keys, changed)
    there = at < len(kept.keys)
    at = at[there][kept.keys[at[there]] == changed[there]]
    if not rows and not len(at):
        return KeptBounds(seq=seq, keys=kept.keys, times=kept.times)
    keys = np.concatenate((np.delete(kept.keys, at), _keys(rows)))
    times = np.concatenate((np.delete(kept.times, at), moments([row[1] for row in rows])))
    return _in_order(seq, keys, times)


def _in_order(seq: int, keys: Integers, times: NDArray[np.datetime64]) -> KeptBounds:
    order = np.argsort(keys)
    return KeptBounds(seq=seq, keys=keys[order], times=times[order])


def _keys(rows: Sequence[tuple[int, str]]) -> Integers:
    return np.array([row[0] for row in rows], dtype=np.int64)


def moments(texts: Sequence[str]) -> NDArray[np.datetime64]:
    """Times as they are stored, in microseconds."""
    return np.array([one[:WITHOUT_ZONE] for one in texts], dtype="datetime64[us]")
