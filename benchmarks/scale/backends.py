"""The stores that are measured, each with what only its own tools can tell: size on disk, its processes."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.process import own_memory
from benchmarks.scale.by_hand import ByHand, Vectors
from benchmarks.scale.sqlite_by_hand import SqliteByHand
from benchmarks.speed.disk import bytes_by_part
from vestige.app.app import open_store, system_clock
from vestige.settings.settings import load_settings
from vestige.store.contract.store import MemoryStore

SQLITE, POSTGRES = "SQLite", "PostgreSQL"
NAMES = (SQLITE, POSTGRES)


class Backend(Protocol):
    """One kind of store, empty at first."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def data_dir(self) -> Path:
        """A data directory whose settings name this store."""

    def settle(self) -> None:
        """After much was written: what the database does by itself when it has time."""

    def pids(self) -> list[int]:
        """The processes of this machine that work for those who have the store open, this one aside."""

    def disk(self) -> dict[str, int]:
        """Bytes of each part; empty where that cannot be told."""

    def by_hand(self, vectors: Vectors) -> ByHand:
        """The statements of a search on a connection of their own."""


Maker = Callable[[Path], Backend]


def opened(backend: Backend) -> MemoryStore:
    """The store itself, without an engine. Close it."""
    return open_store(load_settings({"data_dir": str(backend.data_dir)}), system_clock())


def megabytes_of(pids: list[int]) -> float:
    """What these processes hold that no other one shares."""
    return sum(own_memory(pid).megabytes for pid in pids)


@dataclass(frozen=True, slots=True, kw_only=True)
class SqliteBackend:
    """A file in a data directory."""

    data_dir: Path
    name: str = SQLITE

    def settle(self) -> None:
        """Nothing is left to do."""

    def pids(self) -> list[int]:
        """SQLite works inside the process."""
        return []

    def disk(self) -> dict[str, int]:
        """By the pages of the file, and the vector files."""
        return bytes_by_part(self.data_dir)

    def by_hand(self, vectors: Vectors) -> ByHand:
        """On the same file."""
        return SqliteByHand(self.data_dir, vectors)


@contextmanager
def makers(names: Sequence[str]) -> Iterator[list[Maker]]:
    """What makes an empty store of each kind, given a folder; what they need runs until the end."""
    made: list[Maker] = []
    if SQLITE in names:
        made.append(lambda folder: SqliteBackend(data_dir=folder / "sqlite"))
    if POSTGRES not in names:
        yield made
        return
    from benchmarks.scale.postgres import postgres_maker  # here: SQLite alone needs no driver

    with postgres_maker() as postgres:
        yield [*made, postgres]
