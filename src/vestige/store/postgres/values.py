"""How values travel to PostgreSQL and back: vectors as the same bytes as in SQLite, integers as bigint."""

import struct
from typing import Any

import numpy as np
from psycopg import Connection
from psycopg.adapt import Buffer, Dumper, Loader
from psycopg.pq import Format
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from vestige.store.postgres.arrays import KEYS_OID, SentKeys
from vestige.store.sql.columns import VectorBytes

_HEADER = struct.Struct(">HH")  # the dimension, and two bytes that are not used


class _VectorLoader(Loader):
    """pgvector's `vector` as little-endian float32."""

    format = Format.BINARY

    def load(self, data: Buffer) -> bytes:
        """The bytes of one vector."""
        return np.frombuffer(data, dtype=">f4", offset=_HEADER.size).astype("<f4").tobytes()


class _KeysDumper(Dumper):
    """Keys that are an array already."""

    format = Format.BINARY
    oid = KEYS_OID

    def dump(self, obj: SentKeys) -> Buffer:
        """As they are."""
        return obj


def register(db: Connection[Any], vector_oid: int) -> None:
    """Teach a connection the types that stores use."""

    class VectorDumper(Dumper):
        """Little-endian float32 as pgvector's `vector`."""

        format = Format.BINARY
        oid = vector_oid

        def dump(self, obj: VectorBytes) -> Buffer:
            """One vector with its dimension."""
            numbers = np.frombuffer(obj, dtype="<f4")
            return _HEADER.pack(len(numbers), 0) + numbers.astype(">f4").tobytes()

    db.adapters.register_loader(vector_oid, _VectorLoader)
    db.adapters.register_dumper(VectorBytes, VectorDumper)
    db.adapters.register_dumper(SentKeys, _KeysDumper)
    # One type for all of them, so that a statement is prepared once whatever the numbers are. In lists they
    # go as text, and there too: else the first list of a statement would decide how wide the others are.
    db.adapters.register_dumper(int, Int8Dumper)
    db.adapters.register_dumper(int, Int8BinaryDumper)
