"""The vectors of memories in the database. Searching them is `scan`."""

import sqlite3
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput
from vestige.models import ANYTHING, Access
from vestige.store.changes import Embedded
from vestige.store.sqlite import registry, segments, tokens
from vestige.store.sqlite.columns import json_text, keys_text, vector_bytes
from vestige.store.sqlite.filters import clause

OF_IDS = (
    "SELECT m.id, v.vector FROM memories m JOIN vectors v ON v.key = m.key"
    " WHERE m.id IN (SELECT value FROM json_each(?)) AND {reach} ORDER BY v.id"
)
INSERT = 'INSERT INTO vectors (profile, key, start, "end", text_hash, vector) VALUES (?, ?, ?, ?, ?, ?)'


def check(embedded: Embedded) -> None:
    """Refuse vectors that are not what their signature says."""
    dimension = embedded.signature.dimension
    for piece in embedded.pieces:
        if piece.vector.shape != (dimension,) or not np.isfinite(piece.vector).all():
            raise InvalidInput(f"A vector of {embedded.signature.name} has {dimension} finite numbers.")
        if piece.tokens is not None:
            tokens.check(piece.tokens, dimension)


def put(db: sqlite3.Connection, profile: int, embedded: Mapping[int, Embedded]) -> None:
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


def put_by_id(db: sqlite3.Connection, embedded: Mapping[str, Embedded]) -> int:
    """Write the vectors of memories that still have the text they were made from; how many do."""
    held = registry.profile(db)
    for one in embedded.values():
        registry.require(held, one.signature)
        check(one)
    rows = db.execute(
        "SELECT id, key, text_hash FROM memories WHERE id IN (SELECT value FROM json_each(?))",
        (json_text(list(embedded)),),
    ).fetchall()
    taken = {
        key: embedded[memory_id]
        for memory_id, key, text_hash in rows
        if embedded[memory_id].text_hash == text_hash and embedded[memory_id].pieces
    }
    delete(db, taken)
    write(db, held, taken)
    return len(taken)


def by_id(
    db: sqlite3.Connection, memory_ids: Iterable[str], access: Access
) -> dict[str, NDArray[np.float32]]:
    """The vectors of these memories within the access, a row for each piece."""
    reach = clause(ANYTHING, access)
    found: dict[str, list[NDArray[np.float32]]] = {}
    rows = db.execute(OF_IDS.format(reach=reach.sql), (json_text(list(memory_ids)), *reach.params))
    for memory_id, packed in rows:
        found.setdefault(memory_id, []).append(np.frombuffer(packed, dtype="<f4"))
    return {memory_id: np.array(pieces, dtype=np.float32) for memory_id, pieces in found.items()}


def write(db: sqlite3.Connection, held: registry.Profile | None, taken: Mapping[int, Embedded]) -> None:
    """Write the vectors of memories that have none, under the profile in use; the first ones choose it."""
    for one in taken.values():
        registry.require(held, one.signature)
        held = held or registry.activate(db, one.signature)
    if held is not None:
        put(db, held.id, taken)


def delete(db: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Remove the vectors and token bits of memories and tell other processes through the journal."""
    dying = list(keys)
    if not dying:
        return
    gone = (keys_text(dying),)
    db.execute(
        "INSERT INTO dead_vectors (vector_id)"
        " SELECT id FROM vectors WHERE key IN (SELECT value FROM json_each(?)) ORDER BY id",
        gone,
    )
    db.execute("DELETE FROM vectors WHERE key IN (SELECT value FROM json_each(?))", gone)
    db.execute("DELETE FROM token_bits WHERE key IN (SELECT value FROM json_each(?))", gone)


def adopt(db: sqlite3.Connection, signature: Signature) -> None:
    """Put a signature in use and drop the vectors of any other. Caches notice by the profile's id."""
    held = registry.profile(db)
    if held is None or held.signature != signature:
        fresh = registry.activate(db, signature)
        segments.unlist_others(db, fresh.id)
        db.execute("DELETE FROM vectors WHERE profile != ?", (fresh.id,))
        db.execute("DELETE FROM token_bits WHERE profile != ?", (fresh.id,))
