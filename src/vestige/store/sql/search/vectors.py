"""Vectors of memories in the database, and exact cosines."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import OFFSETS, Bits, Flags, Floats, Integers, Sketch, Vectors, tokens_kept
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, Access
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import ProfileState, ProfileStatus, still_in_use
from vestige.store.contract.changes import Embedded, Tokens
from vestige.store.sql.database import Database
from vestige.store.sql.filters import clause, listed, vector_bytes
from vestige.store.sql.rows import store_facts
from vestige.store.sql.search.threads import Directory

# -- Token bits of memories: one row each, written and deleted with the vectors, cached for searches

MOST_BYTES = 32 * 1024 * 1024
"""The capacity of the cache: the tokens of about 25,000 turns. One search needs less, MOST_TOKENS tokens."""

Version = tuple[int, int]
"""The profile in use, and the number of deleted vectors so far."""


def check_tokens(tokens: Tokens, dimension: int) -> None:
    """Refuse tokens whose shape is not what their signature says."""
    bits, asked = tokens.bits, tokens.asked
    if bits.dtype != np.uint8 or bits.ndim != 2 or bits.shape[1] != width(dimension):
        raise InvalidInput(f"`bits` must have {width(dimension)} bytes per token of {dimension} dimensions.")
    if asked.shape != bits.shape[:1] or asked.dtype != np.bool_:
        raise InvalidInput("`asked` must have one boolean per token.")


def width(dimension: int) -> int:
    """The bytes that hold one bit per dimension."""
    return -(-dimension // 8)


def put_tokens(db: Database, profile: int, embedded: Mapping[int, Embedded]) -> None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenColumns:
    """The first tokens of some memories, whose `keys` ascend. Memory i has `lengths[i]` tokens,
    LONGEST_TOKENS at most; `counts[i]` of them are here, one memory after the other."""

    keys: Integers
    lengths: Integers
    counts: Integers
    bits: Bits
    asked: Flags

    @classmethod
    def of(cls, rows: Iterable[tuple[int, int, bytes, bytes]], size: int) -> "TokenColumns":
        """From keys, lengths, and tokens of `size` bytes each. Those of another size are left out: they are
        damaged (`check.vectors`)."""
        whole = sorted(row for row in rows if len(row[2]) == size * len(row[3]))
        return cls(
            keys=np.array([row[0] for row in whole], dtype=np.int64),
            lengths=np.array([row[1] for row in whole], dtype=np.int64),
            counts=np.array([len(row[3]) for row in whole], dtype=np.int64),
            bits=np.frombuffer(b"".join([row[2] for row in whole]), dtype=np.uint8).reshape(-1, size),
            asked=np.frombuffer(b"".join([row[3] for row in whole]), dtype=np.bool_),
        )

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def starts(self) -> Integers:
        return np.cumsum(self.counts) - self.counts

    def among(self, chosen: Flags) -> "TokenColumns":
        """Those memories of which `chosen` is true."""
        if chosen.all():
            return self
        return self._taken(np.flatnonzero(chosen), self.counts[chosen])

    def cut(self, counts: Integers) -> "TokenColumns":
        """No more than these numbers of tokens."""
        if (self.counts <= counts).all():
            return self
        return self._taken(np.arange(len(self)), np.minimum(self.counts, counts))

    def lacking(self, keys: Integers) -> Integers:
        """Those of the keys, which ascend, that are not here."""
        if not len(self):
            return keys
        at = np.minimum(np.searchsorted(self.keys, keys), len(self) - 1)
        missing: Integers = keys[self.keys[at] != keys]
        return missing

    def and_also(self, others: "TokenColumns") -> "TokenColumns":
        """With other memories, or with more tokens of the same ones."""
        if not len(self) or not len(others):
            return others if len(others) else self
        mine = self.among(~np.isin(self.keys, others.keys))
        if not len(mine):
            return others
        joined = TokenColumns(
            keys=np.concatenate((mine.keys, others.keys)),
            lengths=np.concatenate((mine.lengths, others.lengths)),
            counts=np.concatenate((mine.counts, others.counts)),
            bits=np.concatenate((mine.bits, others.bits)),
            asked=np.concatenate((mine.asked, others.asked)),
        )
        order = np.argsort(joined.keys)
        return joined._taken(order, joined.counts[order])

    def _taken(self, at: Integers, counts: Integers) -> "TokenColumns":
        rows = token_rows(self.starts[at], counts)
        return TokenColumns(
            keys=self.keys[at],
            lengths=self.lengths[at],
            counts=counts,
            bits=self.bits.take(rows, axis=0),
            asked=self.asked.take(rows),
        )


def token_rows(starts: Integers, counts: Integers) -> Integers:
    """The rows of the tokens of several memories, one memory after the other."""
    return np.repeat(starts - (np.cumsum(counts) - counts), counts) + np.arange(int(counts.sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kept:
    """What a cache holds at one moment: for each of `keys`, which ascend, the first row and the number of its
    tokens. Later rows are written behind `used`, or into new arrays, so that a reader needs no lock."""

    keys: Integers
    lengths: Integers
    counts: Integers
    starts: Integers
    bits: Bits
    asked: Flags
    used: int

    @classmethod
    def of(cls, tokens: TokenColumns) -> "_Kept":
        return cls(
            keys=tokens.keys,
            lengths=tokens.lengths,
            counts=tokens.counts,
            starts=tokens.starts,
            bits=tokens.bits,
            asked=tokens.asked,
            used=len(tokens.asked),
        )

    def taken(self, keys: Integers) -> TokenColumns:
        at = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        at = at[self.keys[at] == keys]
        counts = self.counts[at]
        rows = token_rows(self.starts[at], counts)
        return TokenColumns(
            keys=self.keys[at],
            lengths=self.lengths[at],
            counts=counts,
            bits=self.bits.take(rows, axis=0),
            asked=self.asked.take(rows),
        )

    def and_also(self, read: TokenColumns) -> "_Kept":
        """With what was read; where that has more of a memory's tokens, its rows from before are unused."""
        end = self.used + len(read.asked)
        bits, asked = self.bits, self.asked
        if end > len(asked):
            room = max(end, 2 * self.used)
            bits = np.empty((room, bits.shape[1]), dtype=np.uint8)
            asked = np.empty(room, dtype=np.bool_)
            bits[: self.used], asked[: self.used] = self.bits[: self.used], self.asked[: self.used]
        bits[self.used : end], asked[self.used : end] = read.bits, read.asked
        left = ~np.isin(self.keys, read.keys)
        keys = np.concatenate((self.keys[left], read.keys))
        order = np.argsort(keys, kind="stable")
        return _Kept(
            keys=keys[order],
            lengths=np.concatenate((self.lengths[left], read.lengths))[order],
            counts=np.concatenate((self.counts[left], read.counts))[order],
            starts=np.concatenate((self.starts[left], self.used + read.starts))[order],
            bits=bits,
            asked=asked,
            used=end,
        )


@dataclass(slots=True)
class TokenCache:
    """Token bits as they were last read, for any number of threads. They are deleted only together with
    vectors, and every deleted vector is in the journal: when that has grown, or another profile is in use,
    everything is read again."""

    _version: Version = (0, 0)
    _kept: _Kept | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def counts(self) -> dict[int, int]:
        """The number of tokens that are kept of each memory."""
        kept = self._kept
        return {} if kept is None else dict(zip(kept.keys.tolist(), kept.counts.tolist(), strict=True))

    @property
    def size(self) -> int:
        """The bytes of token bits in use."""
        return 0 if self._kept is None else self._kept.used * self._kept.bits.shape[1]

    def held(self, version: Version, keys: Integers, size: int) -> TokenColumns:
        """What is known of these memories, whose keys ascend; a token has `size` bytes."""
        with self._lock:
            if version != self._version:
                self._version, self._kept = version, None
            kept = self._kept
        return TokenColumns.of((), size) if kept is None else kept.taken(keys)

    def keep(self, version: Version, read: TokenColumns, used: TokenColumns) -> None:
        """Keep what was read. Where the capacity is exceeded, only what this search used stays."""
        with self._lock:
            if version != self._version or not len(read):
                return
            full = (
                self._kept is not None
                and (self._kept.used + len(read.asked)) * used.bits.shape[1] > MOST_BYTES
            )
            if self._kept is None or full:
                self._kept = _Kept.of(used)
            else:
                self._kept = self._kept.and_also(read)


def around(directory: Directory, keys: Integers) -> Integers:
    """The keys at each of `OFFSETS` of each key, negative without one."""
    before, after = directory.beside(keys, -1), directory.beside(keys, 1)
    there = {0: keys, -1: before, 1: after, -2: directory.beside(before, -1), 2: directory.beside(after, 1)}
    return np.stack([there[offset] for offset in OFFSETS], axis=1)


def sketch(beside: Integers, tokens: TokenColumns) -> Sketch | None:
    """The tokens of the memories of `around` that have any; None when none has."""
    if not len(tokens):
        return None
    kept = tokens.cut(tokens_kept(tokens.lengths))
    at = np.searchsorted(kept.keys, beside)
    there = kept.keys[np.minimum(at, len(kept) - 1)] == beside
    return Sketch(
        bits=kept.bits,
        asked=kept.asked,
        starts=kept.starts,
        lengths=kept.counts,
        around=np.where(there, at, -1),
    )


# -- Vectors of memories

OF_IDS = (
    "SELECT m.id, v.vector FROM memories m JOIN vectors v ON v.key = m.key"
    " WHERE m.id IN (SELECT value FROM json_each(?)) AND +v.profile = ? AND v.text_hash = m.text_hash"
    " AND {reach} ORDER BY v.id"
)
LACKING = (
    "SELECT EXISTS (SELECT 1 FROM memories m WHERE NOT EXISTS"
    " (SELECT 1 FROM vectors v WHERE v.key = m.key AND +v.profile = ?))"
)
PIECES = "SELECT count(*) FROM vectors WHERE profile = ?"
OWNERS = (
    "SELECT count(*) FROM memories m"
    " WHERE EXISTS (SELECT 1 FROM vectors v WHERE v.key = m.key AND +v.profile = ?)"
)
LEAVING = 500
"""Pieces removed in one transaction, with the others of their memories: a few milliseconds."""
INSERT = 'INSERT INTO vectors (profile, key, start, "end", text_hash, vector) VALUES (?, ?, ?, ?, ?, ?)'


def check(embedded: Embedded) -> None:
    """Refuse vectors that are not what their signature says."""
    dimension = embedded.signature.dimension
    for piece in embedded.pieces:
        if piece.vector.shape != (dimension,) or not np.isfinite(piece.vector).all():
            raise InvalidInput(f"A vector of {embedded.signature.name} must have {dimension} finite numbers.")
        if piece.tokens is not None:
            check_tokens(piece.tokens, dimension)


def put(db: Database, profile: int, embedded: Mapping[int, Embedded]) -> None:
    """Write the vectors and token bits of memories that have none."""
    db.executemany(
        INSERT,
        [
            (profile, key, piece.start, piece.end, one.text_hash, vector_bytes(piece.vector))
            for key, one in embedded.items()
            for piece in one.pieces
        ],
    )
    put_tokens(db, profile, embedded)


def put_by_id(db: Database, embedded: Mapping[str, Embedded], coming: Signature | None = None) -> int:
    """Write the vectors of memories that still have the text they were made from; the number of those. With
    `coming`, under the profile of that signature, beside those in use."""
    held = store_facts.profile(db)
    if embedded and held is not None and coming not in (None, held.signature):
        held = store_facts.of_signature(db, coming) or store_facts.enlist(db, coming)
    for one in embedded.values():
        store_facts.require(held, one.signature)
        check(one)
    taken = _fitting(db, embedded)
    if held is not None:
        delete(db, taken, held)
    write(db, held, taken)
    return len(taken)


def _fitting(db: Database, embedded: Mapping[str, Embedded]) -> dict[int, Embedded]:
    """The vectors that were made from a memory's present text, by key."""
    rows = db.execute(
        "SELECT id, key, text_hash FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (listed(embedded),),
    ).fetchall()
    return {
        key: embedded[memory_id]
        for memory_id, key, text_hash in rows
        if embedded[memory_id].text_hash == text_hash and embedded[memory_id].pieces
    }


def by_id(
    db: Database, profile: store_facts.Profile, memory_ids: Iterable[str], access: Access
) -> dict[str, NDArray[np.float32]]:
    """The vectors of these memories within the access, a row for each piece."""
    visible = clause(ANYTHING, access)
    found: dict[str, list[NDArray[np.float32]]] = {}
    asked = (listed(memory_ids), profile.id, *visible.params)
    rows = db.execute(OF_IDS.format(reach=visible.sql), asked)
    for memory_id, packed in rows:
        found.setdefault(memory_id, []).append(np.frombuffer(packed, dtype="<f4"))
    return {memory_id: np.array(pieces, dtype=np.float32) for memory_id, pieces in found.items()}


def write(db: Database, held: store_facts.Profile | None, taken: Mapping[int, Embedded]) -> None:
    """Write vectors of memories that have none under a profile; the first decide the profile in use."""
    for one in taken.values():
        store_facts.require(held, one.signature)
        if held is None:
            held = store_facts.enlist(db, one.signature)
            store_facts.activate(db, held)
    if held is not None:
        put(db, held.id, taken)


def delete(db: Database, keys: Iterable[int], profile: store_facts.Profile | None = None) -> None:
    """Remove the vectors and token bits of memories, of one profile or of all, and record it in the journal
    that other processes read."""
    dying = list(keys)
    if not dying:
        return
    where = "key IN (SELECT value FROM json_each(?))" + ("" if profile is None else " AND +profile = ?")
    gone = (listed(dying),) if profile is None else (listed(dying), profile.id)
    db.execute(f"INSERT INTO dead_vectors (vector_id) SELECT id FROM vectors WHERE {where} ORDER BY id", gone)
    db.execute(f"DELETE FROM vectors WHERE {where}", gone)
    db.execute(f"DELETE FROM token_bits WHERE {where}", gone)


def profiles(db: Database) -> list[ProfileStatus]:
    """The signatures that have vectors, the one in use first."""
    known = store_facts.kept(db)
    return [
        ProfileStatus(
            signature=known[state].signature,
            state=state,
            memories=db.execute(OWNERS, (known[state].id,)).fetchone()[0],
            pieces=db.execute(PIECES, (known[state].id,)).fetchone()[0],
        )
        for state in ProfileState
        if state in known
    ]


def adopt(db: Database, signature: Signature) -> bool:
    """Put a signature in use if every memory has vectors of it; whether it is."""
    held = store_facts.profile(db)
    if held is None or held.signature != signature:
        chosen = store_facts.of_signature(db, signature)
        if db.execute(LACKING, (chosen.id if chosen else 0,)).fetchone()[0]:
            return False
        store_facts.activate(db, chosen or store_facts.enlist(db, signature))
    store_facts.give_up_coming(db)
    return True


def drop_some(db: Database, signature: Signature) -> bool:
    """Remove some of the vectors of a signature that is not in use; False without any. The profile
    keeps its state until the last of them is removed, so that an interrupted removal can be continued."""
    known = store_facts.kept(db)
    held = known.get(ProfileState.IN_USE)
    if held is not None and held.signature == signature:
        raise still_in_use(signature)
    left = next((one for one in known.values() if one.signature == signature), None)
    if left is None or _remove_some(db, left):
        return left is not None
    store_facts.give_up(db, left)
    return False


def drop_unkept(db: Database) -> bool:
    """Remove some of the vectors of abandoned profiles; False without any."""
    left = store_facts.unused_profile(db)
    return left is not None and _remove_some(db, left)


def _remove_some(db: Database, left: store_facts.Profile) -> bool:
    """All vectors of a memory are removed together, so that the rest of a profile is always whole."""
    some = db.execute("SELECT key FROM vectors WHERE profile = ? LIMIT ?", (left.id, LEAVING)).fetchall()
    delete(db, sorted({key for (key,) in some}), left)
    return bool(some)


# -- Exact cosines of pieces: the same numbers to the last bit, whatever database the vectors come from


@dataclass(frozen=True, slots=True, kw_only=True)
class Closest:
    """The best piece of each of some memories: its cosine, its span and its vector; NaN and 0 for none."""

    cosine: Floats
    starts: Integers
    ends: Integers
    vectors: Vectors

    @classmethod
    def none(cls, count: int, dimension: int) -> "Closest":
        nowhere = np.zeros(count, dtype=np.int64)
        return cls(
            cosine=np.full(count, np.nan),
            starts=nowhere,
            ends=nowhere.copy(),
            vectors=np.zeros((count, dimension), dtype=np.float32),
        )


def check_queries(queries: NDArray[np.float32], signature: Signature) -> Vectors:
    """The queries as float32 rows, or InvalidInput."""
    rows = np.ascontiguousarray(queries, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != signature.dimension or not np.isfinite(rows).all():
        raise InvalidInput(f"A query of {signature.name} must have {signature.dimension} finite numbers.")
    return rows


def cosines(vectors: Vectors, query: Vectors) -> Floats:
    """The cosine of each vector and the query, all of unit length."""
    # einsum goes row by row in a fixed order: a score depends neither on the BLAS in use nor on the others.
    scores: Floats = np.einsum("ij,j->i", vectors.astype(np.float64), query.astype(np.float64))
    return scores


def best_of_each(owners: Integers, scores: Floats) -> tuple[Integers, Integers]:
    """The owners, ascending, and the position of the best piece of each: the earliest of those that tie."""
    order = np.lexsort((np.arange(len(owners)), -scores, owners))
    found, firsts = np.unique(owners[order], return_index=True)
    return found, order[firsts]
