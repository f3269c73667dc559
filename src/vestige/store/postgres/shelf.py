"""What every search of a process holds in memory: the directory of places, and the ids that decide ties."""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.bm25 import Integers
from vestige.store.sql.directory import Directory

FIRST_CAPACITY = 1_024


class News(Protocol):
    """What was written after a `seq`."""

    @property
    def changed(self) -> Integers:
        """Rows of `directory.LOAD`."""

    @property
    def ids(self) -> Sequence[str | None]:
        """The id of each row's memory; None for one that is gone."""

    @property
    def seq(self) -> int:
        """The last one there is."""


Told = TypeVar("Told", bound=News)


@dataclass(slots=True)
class Names:
    """The ids of memories by key. A key never gets another id, so all readers share them."""

    _held: NDArray[np.bytes_] = field(default_factory=lambda: np.empty(0, dtype="S36"))

    def take(self, keys: Integers, ids: Sequence[str | None]) -> None:
        """Note the ids of keys, but for those that are gone."""
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
        """The ids of these keys."""
        asked = np.fromiter(keys, dtype=np.int64)
        found = self._held[asked].tolist()
        return {key: one.decode("utf-8") for key, one in zip(asked.tolist(), found, strict=True)}


@dataclass(slots=True)
class Edition:
    """A directory, and how many searches use it."""

    directory: Directory
    readers: int = 0


@dataclass(slots=True)
class Shelf:
    """The directory of a store, shared by its threads.

    Searches run side by side, each with the directory of its own transaction's moment: it changes only while
    nobody uses it. Otherwise a copy is made that does.
    """

    names: Names = field(default_factory=Names)
    _edition: Edition = field(default_factory=lambda: Edition(Directory()))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def caught_up(self, look: Callable[[int], Told]) -> Iterator[tuple[Directory, Told]]:
        """The directory as of a transaction. `look` runs the first statements of it and tells what is new
        since a `seq`; no other thread's transaction begins meanwhile, so none is older than the directory."""
        with self._lock:
            news = look(self._edition.directory.seq)
            if len(news.changed):
                if self._edition.readers:
                    self._edition = Edition(self._edition.directory.copy())
                self._edition.directory.take(news.changed, news.seq)
                self.names.take(news.changed[:, 0], news.ids)
            edition = self._edition
            edition.readers += 1
        try:
            yield edition.directory, news
        finally:
            with self._lock:
                edition.readers -= 1
