"""Arrays of numbers between PostgreSQL and numpy, without a Python object for each number.

`array_send` gives the bytes of an array as the server would send it: dimensions, then each element after its
length. So a statement can return arrays of any type in columns of one type, and they are read at once.
"""

import struct
from collections.abc import Iterable

import numpy as np

from vestige.cognition.bm25 import Floats, Integers

_DIMENSIONS = struct.Struct(">i")
_FIXED, _PER_DIMENSION = 12, 8


def integers(sent: bytes | None) -> Integers:
    """The numbers of a `bigint[]` or `integer[]` of any shape without NULLs; none for NULL."""
    return _elements(sent, "i").astype(np.int64)


def floats(sent: bytes | None) -> Floats:
    """The numbers of a `double precision[]`."""
    return _elements(sent, "f").astype(np.float64)


def array_text(keys: Integers | Iterable[int]) -> str:
    """Keys as the text of a `bigint[]`, which costs a fifth of what the driver takes for a list."""
    values = keys.tolist() if isinstance(keys, np.ndarray) else keys
    return "{" + ",".join(map(str, values)) + "}"


def _elements(sent: bytes | None, kind: str) -> Integers | Floats:
    dimensions = _DIMENSIONS.unpack_from(sent)[0] if sent else 0
    if not sent or not dimensions:
        return np.empty(0, dtype=np.int64)
    begin = _FIXED + _PER_DIMENSION * dimensions
    width = _DIMENSIONS.unpack_from(sent, begin)[0]
    elements = np.frombuffer(sent, dtype=[("length", ">i4"), ("value", f">{kind}{width}")], offset=begin)
    values: Integers | Floats = elements["value"]
    return values
