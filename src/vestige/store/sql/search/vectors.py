"""Vectors of memories in the database, and exact cosines."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import Floats, Integers, Vectors
from vestige.core.errors import InvalidInput
from vestige.core.models import ANYTHING, Access
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import ProfileState, ProfileStatus, still_in_use
from vestige.store.contract.changes import Embedded
from vestige.store.sql.columns import listed, vector_bytes
from vestige.store.sql.database import Database
from vestige.store.sql.filters import clause
from vestige.store.sql.rows import store_facts
from vestige.store.sql.search import tokens

OF_IDS = (
    "SELECT m.id, v.vector FROM memories m JOIN vectors v ON v.key = m.key"
    " WHERE m.id IN (SELECT value FROM json_each(?)) AND +v.profile = ? AND {reach} ORDER BY v.id"
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
            raise InvalidInput(f"A vector of {embedded.signature.name} has {dimension} finite numbers.")
        if piece.tokens is not None:
            tokens.check(piece.tokens, dimension)


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
    tokens.put(db, profile, embedded)


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
    """Write the vectors of memories that have none under a profile; the first ones decide the profile in
    use."""
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
    left = store_facts.unkept(db)
    return left is not None and _remove_some(db, left)


def _remove_some(db: Database, left: store_facts.Profile) -> bool:
    """All vectors of a memory are removed together, so that the rest of a profile is always whole."""
    some = db.execute("SELECT key FROM vectors WHERE profile = ? LIMIT ?", (left.id, LEAVING)).fetchall()
    delete(db, sorted({key for (key,) in some}), left)
    return bool(some)


# -- Exact cosines of pieces: the same numbers to the last bit, whatever database the vectors come from.


@dataclass(frozen=True, slots=True, kw_only=True)
class Closest:
    """The best piece of each of some memories: its cosine, its span and its vector; NaN and 0 for none."""

    cosine: Floats
    starts: Integers
    ends: Integers
    vectors: Vectors

    @classmethod
    def none(cls, count: int, dimension: int) -> "Closest":
        """The value for memories without vectors."""
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
        raise InvalidInput(f"Queries of {signature.name} are rows of {signature.dimension} finite numbers.")
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
