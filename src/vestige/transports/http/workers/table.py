"""A table in memory that all workers of a server map: their state, and the counts behind limits.

Nothing is locked: a lock would be held while its owner waits for the interpreter, and stop the other workers.
Every number is eight aligned bytes, which a processor writes at once. Of two workers that count the same
sender in the same microsecond, one may be lost; a limit on a rate does not need more. What a worker holds
(sessions, listeners) has rows of its own that no other worker writes.
"""

import hashlib
import math
import mmap
import os
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Protocol

from vestige.core.lazy_dataclass import dataclass

MAX_SEATS = 72
"""Rows for workers: the most that a server may have, and those that are being replaced."""
SEAT_CELLS = 8
SETS, WAYS = 2_048, 8
ROW_CELLS = 6
VALUES = 3
CELL_BYTES = 8
TABLE_BYTES = CELL_BYTES * (MAX_SEATS * SEAT_CELLS + SETS * WAYS * ROW_CELLS)

_HASH, _USED, _FIRST, _SEAT = 0, 1, 2, 5
"""The cells of a row: hash of its name, when it was used last, its values, and the worker that it belongs
to."""


class CountRows(Protocol):
    """Rows of numbers by name; a new one has zeros. The one not used for longest is dropped first."""

    def of(self, name: str) -> list[float]:
        """The values of a row."""

    def put(self, name: str, values: list[float]) -> None:
        """Replace the values of a row."""


class LocalRows:
    """Rows of one process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: OrderedDict[str, list[float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def of(self, name: str) -> list[float]:
        return self._rows.get(name) or [0.0] * VALUES

    def put(self, name: str, values: list[float]) -> None:
        self._rows[name] = values
        self._rows.move_to_end(name)
        while len(self._rows) > self._most:
            self._rows.popitem(last=False)


class WorkerState(IntEnum):
    """What a worker does, in the order in which it does it."""

    ABSENT = 0
    STARTING = 1
    SERVING = 2
    STORE_AWAY = 3
    """It serves, but its store does not answer."""
    NO_WRITES = 4
    """It acknowledges no more writes until it is restarted."""
    DRAINING = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """What the table says about a worker. `number` is never used again, `index` is."""

    index: int
    number: int
    pid: int
    state: WorkerState
    beaten_at: float


class SharedTable:
    """The table, as one process sees it. Its file has no name and goes with the last process."""

    def __init__(self, handle: int, monotonic: Callable[[], float]) -> None:
        self.handle, self._monotonic = handle, monotonic
        self._memory = mmap.mmap(handle, TABLE_BYTES)
        whole = memoryview(self._memory)
        self._hashes, self._cells = whole.cast("Q"), whole.cast("d")

    @classmethod
    def create(cls, monotonic: Callable[[], float]) -> "SharedTable":
        with tempfile.TemporaryFile() as file:
            file.truncate(TABLE_BYTES)
            return cls(os.dup(file.fileno()), monotonic)

    def close(self) -> None:
        self._hashes.release()
        self._cells.release()
        self._memory.close()
        os.close(self.handle)

    # -- Workers

    def seats(self) -> Iterator[Seat]:
        """The workers that there are."""
        for index in range(MAX_SEATS):
            at = index * SEAT_CELLS
            number, pid, state, beaten_at = self._cells[at : at + 4]
            if number:
                yield Seat(
                    index=index,
                    number=int(number),
                    pid=int(pid),
                    state=WorkerState(int(state)),
                    beaten_at=beaten_at,
                )

    def take_seat(self, index: int, number: int, pid: int) -> None:
        """Enter a worker that starts."""
        at = index * SEAT_CELLS
        for cell, value in enumerate((pid, WorkerState.STARTING, self._monotonic()), 1):
            self._cells[at + cell] = value
        self._cells[at] = number  # last: it says that the others are valid

    def set_state(self, index: int, state: WorkerState) -> None:
        """Record the state of a worker, and that it is alive."""
        self._cells[index * SEAT_CELLS + 2] = state
        self._cells[index * SEAT_CELLS + 3] = self._monotonic()

    def clear_seat(self, index: int) -> None:
        """Remove a worker that has ended, and everything that it held."""
        self._cells[index * SEAT_CELLS] = 0
        start = MAX_SEATS * SEAT_CELLS
        for at in range(start, start + SETS * WAYS * ROW_CELLS, ROW_CELLS):
            if self._cells[at + _SEAT] == index + 1:
                for cell in range(ROW_CELLS):
                    self._cells[at + cell] = 0

    # -- Rows

    def rows(self, kind: str) -> "SharedRows":
        """Rows that every worker changes."""
        return SharedRows(self, kind)

    def held(self, kind: str, index: int) -> "HeldCounts":
        """Counts of what each worker holds, for the worker with this index."""
        return HeldCounts(self, kind, index)

    def read(self, name: str) -> list[float]:
        at = self._found(_hash(name))
        if at is None:
            return [0.0] * VALUES
        return [self._cells[at + _FIRST + cell] for cell in range(VALUES)]

    def write(self, name: str, values: list[float], *, seat: int | None = None) -> None:
        """Write a row, in the place of the one in its set that was used longest ago. A row with a seat stays
        until its worker removes it."""
        hashed = _hash(name)
        at = self._found(hashed)
        if at is None:
            at = min(self._set_of(hashed), key=lambda one: self._cells[one + _USED])
            self._hashes[at + _HASH] = hashed
        stays = seat is not None and any(values)
        self._cells[at + _USED] = math.inf if stays else self._monotonic()
        for cell, value in enumerate(values):
            self._cells[at + _FIRST + cell] = value
        self._cells[at + _SEAT] = 0 if seat is None else seat + 1

    def _found(self, hashed: int) -> int | None:
        return next((at for at in self._set_of(hashed) if self._hashes[at + _HASH] == hashed), None)

    def _set_of(self, hashed: int) -> range:
        start = MAX_SEATS * SEAT_CELLS + hashed % SETS * WAYS * ROW_CELLS
        return range(start, start + WAYS * ROW_CELLS, ROW_CELLS)


@dataclass(frozen=True, slots=True)
class SharedRows:
    """Rows of one kind in the table."""

    table: SharedTable
    kind: str

    def of(self, name: str) -> list[float]:
        return self.table.read(f"{self.kind}:{name}")

    def put(self, name: str, values: list[float]) -> None:
        self.table.write(f"{self.kind}:{name}", values)


class HeldElsewhere(Protocol):
    """How much of something the other workers hold, by owner, so that all together have one limit."""

    def of(self, owner: str = "") -> int:
        """What other workers hold of it for an owner, or in all."""

    def publish(self, owner: str, of_owner: int, in_all: int) -> None:
        """Tell the other workers what this one holds now."""


class NothingElsewhere:
    """For a server of one process."""

    def of(self, owner: str = "") -> int:
        return 0

    def publish(self, owner: str, of_owner: int, in_all: int) -> None:
        pass


@dataclass(frozen=True, slots=True)
class HeldCounts:
    """The counts of one kind in the table."""

    table: SharedTable
    kind: str
    index: int

    def of(self, owner: str = "") -> int:
        others = (seat.index for seat in self.table.seats() if seat.index != self.index)
        return sum(int(self.table.read(self._name(index, owner))[0]) for index in others)

    def publish(self, owner: str, of_owner: int, in_all: int) -> None:
        self.table.write(self._name(self.index, owner), [of_owner, 0, 0], seat=self.index)
        self.table.write(self._name(self.index, ""), [in_all, 0, 0], seat=self.index)

    def _name(self, index: int, owner: str) -> str:
        return f"{self.kind}/{index}:{owner}"


def _hash(name: str) -> int:
    found = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(found, "little") or 1


@contextmanager
def shared_table(monotonic: Callable[[], float]) -> Iterator[SharedTable]:
    """A new table, until the block ends."""
    table = SharedTable.create(monotonic)
    try:
        yield table
    finally:
        table.close()
