"""What counts and ranking read of every memory, in memory as arrays by key, kept up to date by the journal of
changed keys. Texts stay in the database."""

import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.fsrs.strength import accessibility, recall_chance, retention_from
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import StoreStats
from vestige.store.contract.answers import Levels
from vestige.store.sql.filters import Retained, SqlConditions, from_microseconds, microseconds
from vestige.store.sql.rows import store_facts
from vestige.store.sql.rows.strengths import MICROSECONDS_PER_DAY
from vestige.store.sql.search.pool import Mask
from vestige.store.sqlite.search.masks import JournalSpan, moments
from vestige.store.sqlite.search.words import next_key

PRESENT, PINNED, SUPPRESSED, SUPERSEDED, ARCHIVED, EMBEDDED = (1 << bit for bit in range(6))
LOAD_BATCH = 20_000
LOAD = (
    "SELECT m.key, m.scope, m.node_type, m.created_at, s.due_at, m.suppression_count,"
    f" {PRESENT} + {PINNED} * (m.pinned = 1) + {SUPPRESSED} * (m.suppression_count > 0)"
    f" + {SUPERSEDED} * (m.superseded_by IS NOT NULL) + {ARCHIVED} * (m.archived_at IS NOT NULL)"
    f" + {EMBEDDED} * ({store_facts.HAS_VECTORS}),"
    " s.stability, s.retrieval, s.storage, s.decay_from"
    " FROM memories m CROSS JOIN strengths s ON s.key = m.key"
)
SINCE = "SELECT key FROM changed_keys WHERE seq > ?"

Array = NDArray[Any]  # of whatever kind the column has
Integers = NDArray[np.int64]
KINDS: dict[str, str] = {
    "scope": "i4",
    "node_type": "i4",
    "created": "i8",
    "due": "i8",
    "suppressions": "i4",
    "flags": "u1",
    "stability": "f8",
    "retrieval": "f8",
    "storage": "f8",
    "decay_from": "i8",
}


@dataclass(slots=True)
class MemoryColumns:
    """The columns of one store after the entry `seq` of the journal, shared by its threads. Scopes and types
    are numbers: their places in `names`."""

    seq: int = -1
    names: dict[str, list[str]] = field(default_factory=lambda: {"scope": [], "node_type": []})
    _profile: int | None = None
    _size: int = 0
    _columns: dict[str, Array] = field(default_factory=dict)
    is_readable: Callable[[], bool] = lambda: True
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the columns while a read transaction begins and `catch_up` runs in it, and as long as they are
        used: then they are of exactly that transaction's moment."""
        with self._lock:
            yield

    def saved(self) -> tuple[dict[str, Any], dict[str, Array]]:
        """The facts and the arrays it consists of, for `restore`."""
        facts = {"names": self.names, "profile": self._profile, "size": self._size, "kinds": KINDS}
        return facts, dict(self._columns)

    def restore(
        self, seq: int, facts: Mapping[str, Any], arrays: Mapping[str, Array], intact: Callable[[], bool]
    ) -> None:
        """Take over what was `saved` after an entry of the journal, while the arrays are `intact`; they are
        changed from here on. Those of another version are left aside."""
        if facts["kinds"] == KINDS:
            self.names, self._profile, self._size = facts["names"], facts["profile"], facts["size"]
            self._columns = {name: arrays[name] for name in KINDS}
            self.seq, self.is_readable = seq, intact

    def clear(self) -> None:
        """Begin again with nothing."""
        self.seq, self.is_readable = -1, lambda: True
        self.names = {"scope": [], "node_type": []}

    @property
    def loaded(self) -> bool:
        return self.seq >= 0

    def column(self, name: str) -> Array:
        return self._columns[name][: self._size]

    def catch_up(self, db: sqlite3.Connection) -> None:
        """Read what changed since the last time. Call it under `locked`."""
        journal, held = JournalSpan.read(db), store_facts.profile(db)
        profile = None if held is None else held.id
        if self.seq == journal.last and profile == self._profile:
            return
        since = self.seq
        if not journal.follows(since) or profile != self._profile:
            since = -1
        self.seq = -1  # the next one reads everything again if an error interrupts this
        self._profile = profile
        if since < 0:
            self.clear()
            self._columns = {name: np.zeros(0, dtype=kind) for name, kind in KINDS.items()}
            self._size = 0
        self._make_room(next_key(db))
        if since < 0:
            rows = db.execute(LOAD)
        else:
            changed = np.fromiter((row[0] for row in db.execute(SINCE, (since,))), dtype=np.int64)
            self._columns["flags"][changed] = 0
            rows = db.execute(f"{LOAD} WHERE m.key IN ({SINCE})", (since,))
        while some := rows.fetchmany(LOAD_BATCH):
            self._take(some)
        self.seq = journal.last

    def stats(self, readable: Mask | None, valid: Mask | None, now: datetime, edges: int) -> StoreStats:
        """The counts over the readable memories, of which `valid` are valid now; None for all."""
        flags = self.column("flags")
        there = _within(flags & PRESENT > 0, readable)
        shown = there & (flags & ARCHIVED == 0)
        due = _within(shown & (flags & SUPPRESSED == 0) & (self.column("due") <= microseconds(now)), valid)
        memories = int(np.count_nonzero(shown))
        created, ends = self.column("created"), np.iinfo(np.int64)
        return StoreStats(
            memories=memories,
            embedded=_counted(flags, EMBEDDED, shown),
            pinned=_counted(flags, PINNED, shown),
            suppressed=_counted(flags, SUPPRESSED, shown),
            archived=_counted(flags, ARCHIVED, there),
            superseded=_counted(flags, SUPERSEDED, shown),
            edges=edges,
            due=int(np.count_nonzero(due)),
            oldest=from_microseconds(int(created.min(where=shown, initial=ends.max))) if memories else None,
            newest=from_microseconds(int(created.max(where=shown, initial=ends.min))) if memories else None,
            by_type=self._by_name("node_type", shown),
            by_scope=self._by_name("scope", shown),
        )

    def levels(self, readable: Mask | None, now: datetime, curve: float) -> Levels:
        """The strength of the readable memories that are not archived."""
        flags = self.column("flags")
        shown = np.flatnonzero(_within(flags & (PRESENT | ARCHIVED) == PRESENT, readable))
        recalled = self._recall_chances(shown, now, curve)
        kept = retention_from(recalled, self.column("storage")[shown])
        return Levels(
            retentions=kept,
            retrievals=recalled,
            accessibilities=accessibility(kept, self.column("suppressions")[shown]),
        )

    def first_due(
        self, allowed: Mask | None, due: SqlConditions, retained: Retained | None, curve: float, most: int
    ) -> Integers:
        """The keys of the allowed memories that are due and `retained`, as many as asked, those due longest,
        with all that are due at the same moment as the last of them."""
        times = self.column("due")
        there = _within(self.column("flags") & PRESENT > 0, allowed)
        for one in due.conditions:
            there = there & (times <= moments([str(one.params[0])]).astype(np.int64)[0])
        keys: Integers = np.flatnonzero(there)
        if retained is not None:
            recalled = self._recall_chances(keys, retained.now, curve)
            kept = retention_from(recalled, self.column("storage")[keys])
            keys = keys[(kept >= retained.low) & (kept <= retained.high)]
        if not most or len(keys) <= most:
            return keys
        chosen: Integers = keys[times[keys] <= np.partition(times[keys], most - 1)[most - 1]]
        return chosen

    def count(self, allowed: Mask | None, timed: SqlConditions) -> int:
        """The number of memories that exist, are allowed, and match conditions on their creation."""
        counted = _within(self.column("flags") & PRESENT > 0, allowed)
        for one in timed.conditions:
            moment = moments([str(one.params[0])]).astype(np.int64)[0]
            created = self.column("created")
            counted &= created >= moment if one.bound == "created_from" else created < moment
        return int(np.count_nonzero(counted))

    def _recall_chances(self, keys: Integers, now: datetime, curve: float) -> NDArray[np.float64]:
        elapsed = np.maximum(microseconds(now) - self.column("decay_from")[keys], 0) / MICROSECONDS_PER_DAY
        return recall_chance(self.column("stability")[keys], self.column("retrieval")[keys], elapsed, curve)

    def _by_name(self, column: str, shown: Mask) -> dict[str, int]:
        names = self.names[column]
        counts = np.bincount(self.column(column)[shown], minlength=len(names))
        return {name: count for name, count in sorted(zip(names, counts.tolist(), strict=True)) if count}

    def _take(self, rows: Sequence[tuple[Any, ...]]) -> None:
        keys, scopes, types, created, due, *numbers = zip(*rows, strict=True)
        at = np.array(keys, dtype=np.int64)
        self._columns["scope"][at] = self._numbered("scope", scopes)
        self._columns["node_type"][at] = self._numbered("node_type", types)
        self._columns["created"][at] = moments(created).astype(np.int64)
        self._columns["due"][at] = moments(due).astype(np.int64)
        for name, values in zip(list(KINDS)[4:], numbers, strict=True):
            self._columns[name][at] = values

    def _numbered(self, column: str, labels: Sequence[str]) -> list[int]:
        """The numbers of labels; a new one gets the next number."""
        names = self.names[column]
        known = {name: number for number, name in enumerate(names)}
        for one in labels:
            if one not in known:
                known[one] = len(names)
                names.append(one)
        return [known[one] for one in labels]

    def _make_room(self, size: int) -> None:
        held = len(self._columns["flags"])
        if size > held:
            more = size + size // 8 - held  # the next write must not copy it all again
            for name, column in self._columns.items():
                self._columns[name] = np.concatenate((column, np.zeros(more, dtype=column.dtype)))
        self._size = size


def _within(mask: Mask, other: Mask | None) -> Mask:
    return mask if other is None else mask & other


def _counted(flags: NDArray[np.uint8], flag: int, among: Mask) -> int:
    return int(np.count_nonzero(among & (flags & flag > 0)))
