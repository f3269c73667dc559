"""Converts values for PostgreSQL and back: vectors as the same bytes as in SQLite, integers as bigint."""

import struct
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.postgres import types
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from vestige.cognition.ranking.bm25 import Floats, Integers
from vestige.store.sql.filters import VectorBytes

# -- Arrays of numbers between PostgreSQL and numpy, without a Python object for each number

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
    """Keys in the binary form of a `bigint[]`: the driver leaves them unchanged."""


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


# -- Adapters of psycopg

_HEADER = struct.Struct(">HH")  # the dimension, and two bytes that are not used


class _VectorLoader(Loader):
    """pgvector's `vector` as little-endian float32."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        return np.frombuffer(data, dtype=">f4", offset=_HEADER.size).astype("<f4").tobytes()


class _KeysDumper(Dumper):
    """Keys that are an array already."""

    format = Format.BINARY
    oid = KEYS_OID

    def dump(self, obj: SentKeys) -> Buffer:
        return obj


def register(db: Connection[Any], vector_oid: int) -> None:
    """Register the types that stores use with a connection."""

    class VectorDumper(Dumper):
        """Little-endian float32 as pgvector's `vector`."""

        format = Format.BINARY
        oid = vector_oid

        def dump(self, obj: VectorBytes) -> Buffer:
            numbers = np.frombuffer(obj, dtype="<f4")
            return _HEADER.pack(len(numbers), 0) + numbers.astype(">f4").tobytes()

    db.adapters.register_loader(vector_oid, _VectorLoader)
    db.adapters.register_dumper(VectorBytes, VectorDumper)
    db.adapters.register_dumper(SentKeys, _KeysDumper)
    # One type for all of them, so that a statement is prepared once whatever the numbers are. In lists they
    # go as text, and there too: else the first list of a statement would decide how wide the others are.
    db.adapters.register_dumper(int, Int8Dumper)
    db.adapters.register_dumper(int, Int8BinaryDumper)
