"""The token bits of memories: one row each, written and deleted with the vectors, cached for searches."""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vestige.errors import InvalidInput
from vestige.pool import LONGEST_TOKENS, OFFSETS, Sketch, tokens_kept
from vestige.store.protocol import Embedded, Tokens
from vestige.store.sqlite.columns import keys_text
from vestige.store.sqlite.directory import Directory

Integers = NDArray[np.int64]

MOST_BYTES = 32 * 1024 * 1024
"""What the cache holds before it starts over: the tokens of about 20,000 turns."""

LOAD = (
    "SELECT key, substr(bits, 1, ?), substr(asked, 1, ?) FROM token_bits"
    " WHERE profile = ? AND key IN (SELECT value FROM json_each(?))"
)


def check(tokens: Tokens, dimension: int) -> None:
    """Refuse tokens whose shape is not what their signature says."""
    bits, asked = tokens.bits, tokens.asked
    if bits.dtype != np.uint8 or bits.ndim != 2 or bits.shape[1] != width(dimension):
        raise InvalidInput(f"The bits of a token of {dimension} dimensions are {width(dimension)} bytes.")
    if asked.shape != bits.shape[:1] or asked.dtype != np.bool_:
        raise InvalidInput("`asked` says yes or no for each token.")


def width(dimension: int) -> int:
    """The bytes that hold one bit per dimension."""
    return -(-dimension // 8)


def put(db: sqlite3.Connection, profile: int, embedded: Mapping[int, Embedded]) -> None:
    """Write the tokens of all pieces of memories that have none yet."""
    rows = []
    for key, one in embedded.items():
        told = [piece.tokens for piece in one.pieces if piece.tokens is not None]
        bits = b"".join(np.ascontiguousarray(tokens.bits).tobytes() for tokens in told)
        if bits:
            asked = b"".join(tokens.asked.astype(np.uint8).tobytes() for tokens in told)
            rows.append((key, profile, bits, asked))
    db.executemany("INSERT INTO token_bits (key, profile, bits, asked) VALUES (?, ?, ?, ?)", rows)


@dataclass(slots=True)
class TokenCache:
    """Token bits as they were last read. They only ever go together with vectors, and every vector that
    goes is in the journal: when it has grown, everything is read again. Used under the directory's lock."""

    _profile: int = 0
    _deaths: int = 0
    _bytes: int = 0
    _held: dict[int, tuple[bytes, bytes]] = field(default_factory=dict)

    def sketch(
        self, db: sqlite3.Connection, profile: int, dimension: int, directory: Directory, keys: Integers
    ) -> Sketch | None:
        """The tokens of these memories and of their neighbours; None when there are none at all."""
        around = _around(directory, keys)
        wanted = np.unique(around)
        self._read(db, profile, width(dimension), wanted[wanted >= 0].tolist())
        there = [key for key in wanted.tolist() if key in self._held]
        if not there:
            return None
        held = [self._held[key] for key in there]
        lengths = tokens_kept(np.array([len(asked) for _, asked in held], dtype=np.int64))
        parts = list(zip(held, lengths.tolist(), strict=True))
        owners = np.array(there, dtype=np.int64)
        at = np.searchsorted(owners, around)
        known = owners[np.minimum(at, len(owners) - 1)] == around
        size = width(dimension)
        joined = b"".join([bits[: size * kept] for (bits, _), kept in parts])
        return Sketch(
            bits=np.frombuffer(joined, dtype=np.uint8).reshape(-1, size),
            asked=np.frombuffer(b"".join([asked[:kept] for (_, asked), kept in parts]), dtype=np.bool_),
            starts=np.cumsum(lengths) - lengths,
            lengths=lengths,
            around=np.where(known, at, -1),
        )

    def _read(self, db: sqlite3.Connection, profile: int, size: int, keys: list[int]) -> None:
        """Make sure that those of the keys are held that have tokens."""
        deaths = db.execute("SELECT coalesce(max(position), 0) FROM dead_vectors").fetchone()[0]
        if (profile, deaths) != (self._profile, self._deaths) or self._bytes > MOST_BYTES:
            self._profile, self._deaths, self._bytes, self._held = profile, deaths, 0, {}
        missing = [key for key in keys if key not in self._held]
        if missing:
            for key, bits, asked in db.execute(
                LOAD, (size * LONGEST_TOKENS, LONGEST_TOKENS, profile, keys_text(missing))
            ):
                self._held[key] = (bits, asked)
                self._bytes += len(bits) + len(asked)


def _around(directory: Directory, keys: Integers) -> Integers:
    """The keys at each of `OFFSETS` of each key."""
    before, after = directory.beside(keys, -1), directory.beside(keys, 1)
    there = {
        0: keys,
        -1: before,
        1: after,
        -2: directory.beside(before, -1),
        2: directory.beside(after, 1),
    }
    return np.stack([there[offset] for offset in OFFSETS], axis=1)
