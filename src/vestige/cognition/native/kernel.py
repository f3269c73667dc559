"""Loads the compiled library and calls it with numpy arrays.

A library is built with the package where a compiler is (supply/kernel.py), and is found by its name, which
says the platform. It belongs to no Python version. Without one, or when it is switched off, `kernel` returns
None, and the callers do the same in numpy.
"""

import ctypes
from functools import cache
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.native.platforms import file_name
from vestige.core.lazy_dataclass import dataclass

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
States = NDArray[np.float32]
Number = TypeVar("Number", bound=np.generic)

FOLDER: Final = Path(__file__).parent
TOKENS: Final = 16
ALIGNMENT: Final = 64
INTERFACE: Final = 1
"""The number of `vestige_interface` in kernel.c. Both are raised when a function changes its arguments, so
that a library of another version is never called."""


class Kernel:
    """The functions of a library. `lanes` says which instructions are used: how many numbers are added at
    once."""

    def __init__(self, library: ctypes.CDLL, lanes: int | None = None) -> None:
        number, real = ctypes.c_int64, ctypes.c_float
        lane, array = ctypes.c_int32, ctypes.c_void_p
        self._maxsim = library.vestige_maxsim
        self._maxsim.argtypes = [
            lane, array, number, number, array, number, array, array, array, number, real, real,
            array, array, array,
        ]  # fmt: skip
        self._context = library.vestige_context
        self._context.argtypes = [
            array, array, number, array, number, number, array, array, array, number, array, array,
        ]  # fmt: skip
        self._rows = library.vestige_rows
        self._rows.argtypes = [array, number, array, array, array, number, number, array, array]
        self._windows = library.vestige_windows
        self._windows.argtypes = [
            array,
            array,
            array,
            number,
            array,
            array,
            array,
            array,
            array,
            array,
            array,
        ]
        self._threads = library.vestige_threads
        self._threads.argtypes = [array, array, array, number, array, array, array, array, array]
        self._scores = library.vestige_scores
        self._scores.argtypes = [array, array, array, number, array, array, array, array]
        self._norms = library.vestige_norms
        double = ctypes.c_double
        self._norms.argtypes = [
            array, number, array, array, array, double, double, double, double, array, array,
        ]  # fmt: skip
        for silent in (self._maxsim, self._context, self._norms, self._scores):
            silent.restype = None
        for counting in (self._rows, self._windows, self._threads):
            counting.restype = number
        self.lanes = int(library.vestige_lanes()) if lanes is None else lanes

    def best(
        self,
        states: States,
        bits: NDArray[np.uint8],
        asked: NDArray[np.bool_],
        starts: Integers,
        lengths: Integers,
        *,
        scale: float,
        worth: float,
    ) -> tuple[States, States]:
        """For every owner and query token the best counterpart: anywhere, where one in a question counts by
        `worth`, and in questions (at least 0)."""
        query = _in_order(np.ascontiguousarray(states, dtype=np.float32))
        rows, marks = np.ascontiguousarray(bits), np.ascontiguousarray(asked)
        first, count = _integers(starts), _integers(lengths)
        if len(marks) != len(rows) or len(count) != len(first) or (count <= 0).any() or (first < 0).any():
            raise ValueError("The tokens of a sketch are not those of its owners.")
        if len(first) and int((first + count).max()) > len(rows):
            raise ValueError("A sketch has fewer tokens than its owners.")
        said = np.empty((len(first), len(query)), dtype=np.float32)
        inside = np.empty_like(said)
        table = _aligned(2 * rows.shape[1] * 16 * TOKENS)
        self._maxsim(
            self.lanes, _at(query), len(query), query.shape[1], _at(rows), rows.shape[1], _at(marks),
            _at(first), _at(count), len(first), scale, worth, _at(table), _at(said), _at(inside),
        )  # fmt: skip
        return said, inside

    def context(
        self,
        said: States,
        asked: States,
        around: Integers,
        *,
        reach: States,
        answers: States,
        weights: Floats,
    ) -> tuple[Floats, Floats]:
        """The similarity of each candidate alone and with its neighbours, a row for each weighting."""
        beside = _integers(around)
        if int(beside.max(initial=-1)) >= len(said):
            raise ValueError("A candidate of a sketch has a neighbour without tokens.")
        shape = (len(weights), len(beside))
        own, context = np.empty(shape), np.empty(shape)
        weighed = _reals(weights)
        self._context(
            _at(said), _at(asked), said.shape[1], _at(beside), len(beside), beside.shape[1], _at(reach),
            _at(answers), _at(weighed), len(weighed), _at(own), _at(context),
        )  # fmt: skip
        return own, context

    def rows(
        self, rows: Integers, before: Integers, after: Integers, also: Integers
    ) -> tuple[Integers, NDArray[np.int32]]:
        """The rows that occur, or have a neighbour that does, or are in `also`; and 1 + the place of each
        among them, 0 for the others."""
        size = len(before)
        rows, before, after, also = map(_integers, (rows, before, after, also))
        for given in (rows, also):
            if len(given) and (int(given.min()) < 0 or int(given.max()) >= size):
                raise ValueError("A row is not one of the collection.")
        slots = np.zeros(size, dtype=np.int32)
        found = np.empty(min(size, 3 * len(rows) + len(also)), dtype=np.int64)
        count = self._rows(
            _at(rows), len(rows), _at(before), _at(after), _at(also), len(also), size, _at(slots), _at(found)
        )
        return found[:count], slots

    def norms(
        self,
        rows: Integers,
        lengths: Integers,
        before: Integers,
        after: Integers,
        *,
        k1: float,
        b: float,
        averages: tuple[float, float],
    ) -> tuple[Floats, Floats]:
        """The norms of rows as `rows` found them, by their own length and by that of their window."""
        rows, lengths, before, after = map(_integers, (rows, lengths, before, after))
        own, window = np.empty(len(rows)), np.empty(len(rows))
        self._norms(
            _at(rows),
            len(rows),
            _at(lengths),
            _at(before),
            _at(after),
            k1,
            b,
            *averages,
            _at(own),
            _at(window),
        )
        return own, window

    def windows(
        self,
        entries: tuple[Integers, Integers, Integers],
        before: Integers,
        after: Integers,
        slots: NDArray[np.int32],
        places: int,
    ) -> tuple[Integers, Integers, Integers]:
        """The terms, places and counts of windows, from those of rows; `slots` as `rows` made them."""
        terms, rows, counts = map(_integers, entries)
        before, after = map(_integers, (before, after))
        made = _entries(3 * len(rows))
        table = np.zeros(places, dtype=np.int32)
        count = self._windows(
            _at(terms), _at(rows), _at(counts), len(rows), _at(before), _at(after), _at(slots), _at(table),
            *map(_at, made),
        )  # fmt: skip
        return made[0][:count], made[1][:count], made[2][:count]

    def threads(
        self, entries: tuple[Integers, Integers, Integers], threads: Integers, count: int
    ) -> tuple[Integers, Integers, Integers]:
        """The terms, threads and counts of `count` threads, from those of rows that are in one."""
        terms, rows, counts = map(_integers, entries)
        threads, made = _integers(threads), _entries(len(rows))
        table = np.zeros(count, dtype=np.int32)
        met = self._threads(
            _at(terms), _at(rows), _at(counts), len(rows), _at(threads), _at(table), *map(_at, made)
        )
        return made[0][:met], made[1][:met], made[2][:met]

    def scores(
        self,
        entries: tuple[Integers, Integers, Integers],
        factors: Floats,
        norms: Floats,
        slots: NDArray[np.int32] | None = None,
    ) -> Floats:
        """The sum of what entries are worth, by place; with `slots` their places are rows."""
        terms, places, counts = map(_integers, entries)
        factors, norms = map(_reals, (factors, norms))
        scores = np.zeros(len(norms))
        self._scores(
            _at(terms), _at(places), _at(counts), len(terms), None if slots is None else _at(slots),
            _at(factors), _at(norms), _at(scores),
        )  # fmt: skip
        return scores


@dataclass(slots=True)
class _Choice:
    """Whether a library may be used: one choice of the process, because both forms give the same results."""

    allowed: bool = True


_choice = _Choice()


def allow(allowed: bool) -> None:
    """Use the library if there is one, or never."""
    _choice.allowed = allowed


def kernel() -> Kernel | None:
    """The library in use; None for numpy."""
    return _loaded() if _choice.allowed else None


def description() -> str:
    """What the inner loops of a search run in, in words."""
    used = kernel()
    if used is not None:
        return f"native ({file_name()}, {32 * used.lanes}-bit vectors)"
    return "numpy (no library for this platform)" if _choice.allowed else "numpy (search.native is off)"


@cache
def _loaded() -> Kernel | None:
    name = file_name()
    if name is None or not (FOLDER / name).is_file():
        return None
    try:
        library = ctypes.CDLL(str(FOLDER / name))
        return Kernel(library) if library.vestige_interface() == INTERFACE else None
    except (OSError, AttributeError):  # damaged, or for another C library
        return None


def _at(array: NDArray[np.generic]) -> int:
    """The address of an array's first number. The caller keeps the array, and has it in C order."""
    address: int = array.__array_interface__["data"][0]
    return address


def _integers(array: Integers) -> Integers:
    return _in_order(np.ascontiguousarray(array, dtype=np.int64))


def _reals(array: Floats) -> Floats:
    return _in_order(np.ascontiguousarray(array, dtype=np.float64))


def _in_order(array: NDArray[Number]) -> NDArray[Number]:
    """The array, or a copy at an address that C may read its numbers from."""
    return array if array.flags.aligned else array.copy()


def _entries(count: int) -> tuple[Integers, Integers, Integers]:
    return np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)


def _aligned(count: int) -> States:
    """Room for float32 numbers at an address that vectors of any width can be read from."""
    room = np.empty(count + ALIGNMENT // 4, dtype=np.float32)
    return room[-_at(room) % ALIGNMENT // 4 :][:count]
