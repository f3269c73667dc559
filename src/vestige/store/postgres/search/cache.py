"""The state that searches of a process share in memory: the directory of places, the ids that decide ties,
and the tokens read last."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.ranking.bm25 import Integers
from vestige.core.lazy_dataclass import dataclass
from vestige.store.postgres.search.changes_since import ChangesSince, Past
from vestige.store.sql.search.threads import Directory
from vestige.store.sql.search.vectors import TokenCache

FIRST_CAPACITY = 1_024


@dataclass(slots=True)
class MemoryIds:
    """The ids of memories by key. A key never gets another id, so all readers share them."""

    _held: NDArray[np.bytes_] = field(default_factory=lambda: np.empty(0, dtype="S36"))

    def take(self, keys: Integers, ids: Sequence[str | None]) -> None:
        """Record the ids of keys, except deleted ones."""
        there = np.array([one is not None for one in ids], dtype=np.bool_)
        if not there.any():
            return
        named = np.array([one.encode("utf-8") for one in ids if one is not None])
        size, width = int(keys.max()) + 1, max(named.itemsize, self._held.itemsize)
        if size > len(self._held) or width > self._held.itemsize:
            wider = np.zeros(max(size + size // 8, len(self._held), FIRST_CAPACITY), dtype=f"S{width}")
            wider[: len(self._held)] = self._held
            self._held = wider
        self._held[keys[there]] = named

    def of(self, keys: Iterable[int]) -> Mapping[int, str]:
        asked = np.fromiter(keys, dtype=np.int64)
        found = self._held[asked].tolist()
        return {key: one.decode("utf-8") for key, one in zip(asked.tolist(), found, strict=True)}


@dataclass(slots=True)
class Edition:
    """A directory, the number of searches that use it, and the parts it shares with its copies."""

    directory: Directory = field(default_factory=Directory)
    names: MemoryIds = field(default_factory=MemoryIds)
    tokens: TokenCache = field(default_factory=TokenCache)
    readers: int = 0


@dataclass(slots=True)
class Shelf:
    """The directory of a store, shared by its threads.

    Searches run in parallel, each with the directory of its own transaction's moment. A directory changes
    only while no search uses it; otherwise a copy is changed. Where the store does not continue the known
    version, a new directory is started.
    """

    _past: Past | None = None
    _edition: Edition = field(default_factory=Edition)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def caught_up(self, look: Callable[[int], ChangesSince]) -> Iterator[tuple[Edition, ChangesSince]]:
        """The directory of a transaction. `look` runs its first statements and returns the rows since a
        `seq`; no other thread's transaction begins meanwhile, so none is older than the directory."""
        with self._lock:
            news = look(self._edition.directory.seq)
            if self._past is not None and not self._past.leads_to(news.past):
                self._edition = Edition()
                news = look(0)
            self._past = news.past
            if len(news.changed):
                if self._edition.readers:
                    directory = self._edition.directory.copy()
                    self._edition = replace(self._edition, directory=directory, readers=0)
                self._edition.directory.take(news.changed, news.past.seq)
                self._edition.names.take(news.changed[:, 0], news.ids)
            edition = self._edition
            edition.readers += 1
        try:
            yield edition, news
        finally:
            with self._lock:
                edition.readers -= 1
