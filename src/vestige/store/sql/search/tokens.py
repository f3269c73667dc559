"""Token bits of memories: one row each, written and deleted with the vectors, cached for searches."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import OFFSETS, Sketch, tokens_kept
from vestige.core.errors import InvalidInput
from vestige.store.contract.changes import Embedded, Tokens
from vestige.store.sql.database import Database
from vestige.store.sql.search.threads import Directory

Integers = NDArray[np.int64]

MOST_BYTES = 32 * 1024 * 1024
"""The capacity of the cache: the tokens of about 20,000 turns. It holds more only while one search needs
more, which is MOST_TOKENS tokens."""
ENTRY_BYTES = 256
"""The memory that Python needs for an entry besides its tokens."""

Version = tuple[int, int]
"""The profile in use, and the number of deleted vectors so far."""


def check(tokens: Tokens, dimension: int) -> None:
    """Refuse tokens whose shape is not what their signature says."""
    bits, asked = tokens.bits, tokens.asked
    if bits.dtype != np.uint8 or bits.ndim != 2 or bits.shape[1] != width(dimension):
        raise InvalidInput(f"The bits of a token of {dimension} dimensions are {width(dimension)} bytes.")
    if asked.shape != bits.shape[:1] or asked.dtype != np.bool_:
        raise InvalidInput("`asked` holds a boolean for each token.")


def width(dimension: int) -> int:
    """The bytes that hold one bit per dimension."""
    return -(-dimension // 8)


def put(db: Database, profile: int, embedded: Mapping[int, Embedded]) -> None:
    """Write the tokens of all pieces of memories that have no row yet. A text without a token has a row too:
    a missing row means that the tokens were lost or never written."""
    rows = []
    for key, one in embedded.items():
        given = [piece.tokens for piece in one.pieces if piece.tokens is not None]
        if given:
            bits = b"".join(np.ascontiguousarray(tokens.bits).tobytes() for tokens in given)
            asked = b"".join(tokens.asked.astype(np.uint8).tobytes() for tokens in given)
            rows.append((key, profile, bits, asked))
    db.executemany("INSERT INTO token_bits (key, profile, bits, asked) VALUES (?, ?, ?, ?)", rows)


class TokenEntry(NamedTuple):  # a search makes hundreds: a dataclass takes three times as long
    """The first tokens of a memory that has `length` of them, LONGEST_TOKENS at most."""

    length: int
    bits: bytes
    asked: bytes

    def has(self, most: int) -> bool:
        """Whether `most` of the tokens are here, or all of them."""
        return len(self.asked) >= min(self.length, most)

    @property
    def size(self) -> int:
        """The memory it takes."""
        return len(self.bits) + len(self.asked) + ENTRY_BYTES


@dataclass(slots=True)
class TokenCache:
    """Token bits as they were last read, for any number of threads.

    They are deleted only together with vectors, and every deleted vector is in the journal: when that has
    grown, or another profile is in use, everything is read again.
    """

    _version: Version = (0, 0)
    _bytes: int = 0
    _held: dict[int, TokenEntry] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def held(self, version: Version, keys: Iterable[int]) -> dict[int, TokenEntry]:
        """The valid entries of these memories."""
        with self._lock:
            if version != self._version:
                self._version, self._bytes, self._held = version, 0, {}
            return {key: self._held[key] for key in keys if key in self._held}

    def keep(self, version: Version, read: Mapping[int, TokenEntry], used: Iterable[int]) -> None:
        """Keep what was read; where the capacity is exceeded, only the entries that this search used stay
        besides it."""
        with self._lock:
            if version != self._version:
                return
            coming = sum(entry.size for entry in read.values())
            if self._bytes + coming > MOST_BYTES:
                self._held = {key: self._held[key] for key in used if key in self._held}
                self._bytes = sum(entry.size for entry in self._held.values())
            replaced = sum(self._held[key].size for key in read if key in self._held)
            self._held |= read
            self._bytes += coming - replaced


def around(directory: Directory, keys: Integers) -> Integers:
    """The keys at each of `OFFSETS` of each key, negative without one."""
    before, after = directory.beside(keys, -1), directory.beside(keys, 1)
    there = {
        0: keys,
        -1: before,
        1: after,
        -2: directory.beside(before, -1),
        2: directory.beside(after, 1),
    }
    return np.stack([there[offset] for offset in OFFSETS], axis=1)


def sketch(dimension: int, beside: Integers, entries: Mapping[int, TokenEntry]) -> Sketch | None:
    """The tokens of the memories of `around` that have any; None when none has."""
    if not entries:
        return None
    owners = np.array(sorted(entries), dtype=np.int64)
    parts = [entries[key] for key in owners.tolist()]
    lengths = tokens_kept(np.array([entry.length for entry in parts], dtype=np.int64))
    size = width(dimension)
    kept = list(zip(parts, lengths.tolist(), strict=True))
    joined = b"".join([entry.bits[: size * count] for entry, count in kept])
    at = np.searchsorted(owners, beside)
    there = owners[np.minimum(at, len(owners) - 1)] == beside
    return Sketch(
        bits=np.frombuffer(joined, dtype=np.uint8).reshape(-1, size),
        asked=np.frombuffer(b"".join([entry.asked[:count] for entry, count in kept]), dtype=np.bool_),
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        around=np.where(there, at, -1),
    )
