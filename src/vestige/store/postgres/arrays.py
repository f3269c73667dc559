"""Arrays of numbers between PostgreSQL and numpy, without a Python object for each number.

`array_send` gives the bytes of an array as the server would send it: dimensions, then each element after its
length. So a statement can return arrays of any type in columns of one type, and they are read at once.
What is sent has the same form.
"""

import struct

import numpy as np
from psycopg.postgres import types

from vestige.cognition.bm25 import Floats, Integers

_DIMENSIONS = struct.Struct(">i")
_FIXED, _PER_DIMENSION = 12, 8
_ONE_DIMENSION = struct.Struct(">5i")  # how many dimensions, no NULLs, the type, how many elements, from 1 on

INT8_OID, KEYS_OID = types["int8"].oid, types["int8"].array_oid


def integers(sent: bytes | None) -> Integers:
    """The numbers of a `bigint[]` or `integer[]` of any shape without NULLs; none for NULL."""
    return _elements(sent, "i").astype(np.int64)


def floats(sent: bytes | None) -> Floats:
    """The numbers of a `double precision[]`."""
    return _elements(sent, "f").astype(np.float64)


class SentKeys(bytes):
    """Keys as a `bigint[]` is sent: the driver leaves them as they are."""


def sent_keys(keys: Integers) -> SentKeys:
    """Keys for a parameter."""
    elements = np.empty(len(keys), dtype=[("length", ">i4"), ("value", ">i8")])
    elements["length"], elements["value"] = 8, keys
    return SentKeys(_ONE_DIMENSION.pack(1, 0, INT8_OID, len(keys), 1) + elements.tobytes())


def _elements(sent: bytes | None, kind: str) -> Integers | Floats:
    dimensions = _DIMENSIONS.unpack_from(sent)[0] if sent else 0
    if not sent or not dimensions:
        return np.empty(0, dtype=np.int64)
    begin = _FIXED + _PER_DIMENSION * dimensions
    width = _DIMENSIONS.unpack_from(sent, begin)[0]
    elements = np.frombuffer(sent, dtype=[("length", ">i4"), ("value", f">{kind}{width}")], offset=begin)
    values: Integers | Floats = elements["value"]
    return values
