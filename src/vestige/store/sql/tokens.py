"""The token bits of memories: one row each, written and deleted with the vectors, cached for searches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from vestige.errors import InvalidInput
from vestige.pool import LONGEST_TOKENS, OFFSETS, Sketch, tokens_kept
from vestige.store.changes import Embedded, Tokens
from vestige.store.sql.columns import listed
from vestige.store.sql.database import Database
from vestige.store.sql.directory import Directory

Integers = NDArray[np.int64]

MOST_BYTES = 32 * 1024 * 1024
"""What the cache holds: the tokens of about 20,000 turns. It holds more only while one search needs more,
which is MOST_TOKENS tokens."""
ENTRY_BYTES = 256
"""What Python takes for an entry beside its tokens."""

LENGTHS = (
    "SELECT key, min(length(asked), ?) FROM token_bits"
    " WHERE profile = ? AND key IN (SELECT value FROM json_each(?))"
)
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


def put(db: Database, profile: int, embedded: Mapping[int, Embedded]) -> None:
    """Write the tokens of all pieces of memories that have none yet."""
    rows = []
    for key, one in embedded.items():
        told = [piece.tokens for piece in one.pieces if piece.tokens is not None]
        bits = b"".join(np.ascontiguousarray(tokens.bits).tobytes() for tokens in told)
        if bits:
            asked = b"".join(tokens.asked.astype(np.uint8).tobytes() for tokens in told)
            rows.append((key, profile, bits, asked))
    db.executemany("INSERT INTO token_bits (key, profile, bits, asked) VALUES (?, ?, ?, ?)", rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """The first tokens of a memory that has `length` of them, LONGEST_TOKENS at most."""

    length: int
    bits: bytes
    asked: bytes

    def has(self, most: int) -> bool:
        """Whether so many of the tokens are here, or all of them."""
        return len(self.asked) >= min(self.length, most)

    @property
    def size(self) -> int:
        """How much room it takes."""
        return len(self.bits) + len(self.asked) + ENTRY_BYTES


@dataclass(slots=True)
class TokenCache:
    """Token bits as they were last read. They only ever go together with vectors, and every vector that
    goes is in the journal: when it has grown, everything is read again. Used under the directory's lock."""

    _profile: int = 0
    _deaths: int = 0
    _bytes: int = 0
    _held: dict[int, Entry] = field(default_factory=dict)

    def sketch(
        self, db: Database, profile: int, dimension: int, directory: Directory, keys: Integers
    ) -> Sketch | None:
        """The tokens of these memories and of their neighbours; None when there are none at all."""
        around = _around(directory, keys)
        wanted = np.unique(around)
        self._forget_if_changed(db, profile)
        known = self._lengths(db, wanted[wanted >= 0].tolist())
        if not known:
            return None
        owners = np.array(sorted(known), dtype=np.int64)
        lengths = tokens_kept(np.array([known[key] for key in owners.tolist()], dtype=np.int64))
        size = width(dimension)
        self._read(db, size, known, most=int(lengths.max()))
        parts = [(self._held[key], kept) for key, kept in zip(owners.tolist(), lengths.tolist(), strict=True)]
        at = np.searchsorted(owners, around)
        there = owners[np.minimum(at, len(owners) - 1)] == around
        joined = b"".join([entry.bits[: size * kept] for entry, kept in parts])
        return Sketch(
            bits=np.frombuffer(joined, dtype=np.uint8).reshape(-1, size),
            asked=np.frombuffer(b"".join([entry.asked[:kept] for entry, kept in parts]), dtype=np.bool_),
            starts=np.cumsum(lengths) - lengths,
            lengths=lengths,
            around=np.where(there, at, -1),
        )

    def _forget_if_changed(self, db: Database, profile: int) -> None:
        deaths = db.execute("SELECT coalesce(max(position), 0) FROM dead_vectors").fetchone()[0]
        if (profile, deaths) != (self._profile, self._deaths):
            self._profile, self._deaths, self._bytes, self._held = profile, deaths, 0, {}

    def _lengths(self, db: Database, keys: Sequence[int]) -> dict[int, int]:
        """How many tokens each of the keys has that has any, by what is here or by a look at their size."""
        known = {key: self._held[key].length for key in keys if key in self._held}
        missing = [key for key in keys if key not in known]
        if missing:
            known |= db.execute(LENGTHS, (LONGEST_TOKENS, self._profile, listed(missing)))
        return known

    def _read(self, db: Database, size: int, known: Mapping[int, int], most: int) -> None:
        """Hold the first tokens of these keys, `most` of each; what is not asked for makes room for them."""
        missing = [key for key in known if key not in self._held or not self._held[key].has(most)]
        coming = sum(min(known[key], most) * (size + 1) + ENTRY_BYTES for key in missing)
        if self._bytes + coming > MOST_BYTES:
            self._held = {key: self._held[key] for key in known if key in self._held}
            self._bytes = sum(entry.size for entry in self._held.values())
        if missing:
            asked = (size * most, most, self._profile, listed(missing))
            for key, bits, flags in db.execute(LOAD, asked):
                before = self._held.get(key)
                self._held[key] = Entry(length=known[key], bits=bits, asked=flags)
                self._bytes += self._held[key].size - (before.size if before else 0)


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
