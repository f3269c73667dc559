"""The dense arm: vectors in the database, and an exact scan over them."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from vestige.embed.protocol import Signature
from vestige.errors import InvalidInput
from vestige.store.protocol import Embedded, Scored
from vestige.store.sqlite import memories, registry
from vestige.store.sqlite.columns import json_text, keys_text, vector_bytes
from vestige.store.sqlite.filters import Clause
from vestige.store.sqlite.matrix import View

# How far a float32 product may be from the exact one. Everything this close to the last place is
# scored again in float64, row by row, so that neither order nor ties depend on the BLAS in use.
MARGIN = 1e-5
MAX_SCORES = 16_000_000
INSERT = 'INSERT INTO vectors (profile, key, start, "end", text_hash, vector) VALUES (?, ?, ?, ?, ?, ?)'

Queries = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A memory's best piece for one query."""

    key: int
    score: float
    start: int
    end: int


# -- the table -------------------------------------------------------------------------------------


def check(embedded: Embedded) -> None:
    """Refuse vectors that are not what their signature says."""
    dimension = embedded.signature.dimension
    for piece in embedded.pieces:
        if piece.vector.shape != (dimension,) or not np.isfinite(piece.vector).all():
            raise InvalidInput(f"A vector of {embedded.signature.name} has {dimension} finite numbers.")


def put(db: sqlite3.Connection, profile: int, embedded: Mapping[int, Embedded]) -> None:
    """Write the vectors of memories that have none."""
    db.executemany(
        INSERT,
        [
            (profile, key, piece.start, piece.end, one.text_hash, vector_bytes(piece.vector))
            for key, one in embedded.items()
            for piece in one.pieces
        ],
    )


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


def write(db: sqlite3.Connection, held: registry.Profile | None, taken: Mapping[int, Embedded]) -> None:
    """Write the vectors of memories that have none, under the profile in use; the first ones choose it."""
    for one in taken.values():
        registry.require(held, one.signature)
        held = held or registry.activate(db, one.signature)
    if held is not None:
        put(db, held.id, taken)


def delete(db: sqlite3.Connection, keys: Iterable[int]) -> None:
    """Remove the vectors of memories and tell other processes through the journal."""
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


def adopt(db: sqlite3.Connection, signature: Signature) -> None:
    """Put a signature in use and drop the vectors of any other. Caches notice by the profile's id."""
    held = registry.profile(db)
    if held is None or held.signature != signature:
        fresh = registry.activate(db, signature)
        db.execute("DELETE FROM vectors WHERE profile != ?", (fresh.id,))


# -- searching -------------------------------------------------------------------------------------


def check_queries(queries: Queries, signature: Signature) -> Queries:
    """The queries as float32 rows, or InvalidInput."""
    rows = np.ascontiguousarray(queries, dtype=np.float32)
    if rows.ndim != 2 or rows.shape[1] != signature.dimension or not np.isfinite(rows).all():
        raise InvalidInput(f"Queries of {signature.name} are rows of {signature.dimension} finite numbers.")
    return rows


def nearest(
    db: sqlite3.Connection, view: View, queries: Queries, wanted: Clause, limit: int
) -> list[list[Scored]]:
    """For each query the best memories that match the filter."""
    allowed = _allowed(db, view, wanted)
    per_chunk = max(1, MAX_SCORES // max(1, len(view.keys)))
    matches: list[list[Match]] = []
    for at in range(0, len(queries), per_chunk):
        chunk = queries[at : at + per_chunk]
        matches.extend(
            _best(view, query, scores, limit)
            for query, scores in zip(chunk, _scores(view, chunk, allowed), strict=True)
        )
    ids = memories.ids_of(db, {match.key for row in matches for match in row})
    return [_in_order(row, ids, limit) for row in matches]


def _allowed(db: sqlite3.Connection, view: View, wanted: Clause) -> Mask | None:
    """Which memories of the view match the filter; None when all do."""
    if not wanted.conditions and wanted.retained is None:
        return None
    if wanted.excluded:
        rows = db.execute(wanted.excluded, wanted.params).fetchall()
        left_out = np.fromiter((row[0] for row in rows), dtype=np.int64, count=len(rows))
        return np.isin(view.group_keys, left_out, invert=True) if rows else None
    return np.isin(view.group_keys, memories.keys(db, wanted))


def _scores(view: View, queries: Queries, allowed: Mask | None) -> Queries:
    """The cosine of every memory's best piece with every query; -inf for what is out."""
    if len(queries) == 1:
        # For one query BLAS only adds overhead, and threads that spin for more work.
        scores: Queries = np.einsum("ij,j->i", view.rows, queries[0])[np.newaxis]
    else:
        scores = queries @ view.rows.T
    if not view.alive.all():
        scores[:, ~view.alive] = -np.inf
    if len(view.starts) < len(view.keys):
        scores = np.maximum.reduceat(scores, view.starts, axis=1)
    if allowed is not None:
        scores[:, ~allowed] = -np.inf
    return scores


def _best(view: View, query: Queries, scores: Queries, limit: int) -> list[Match]:
    """The candidates for the first `limit` places, scored exactly."""
    places = min(limit, int(np.isfinite(scores).sum()))
    if places == 0:
        return []
    last = np.partition(scores, -places)[-places]
    groups = np.flatnonzero(scores >= last - MARGIN)
    rows, owners = view.pieces_of(groups)
    exact = (view.rows[rows].astype(np.float64) * query.astype(np.float64)).sum(axis=1)
    # Best first, then the earliest piece: the first row seen of an owner is its best.
    order = np.lexsort((rows, -exact, owners))
    firsts = order[np.unique(owners[order], return_index=True)[1]]
    return [
        Match(
            key=int(view.keys[rows[at]]),
            score=float(exact[at]),
            start=int(view.spans[0, rows[at]]),
            end=int(view.spans[1, rows[at]]),
        )
        for at in firsts
    ]


def _in_order(matches: Sequence[Match], ids: Mapping[int, str], limit: int) -> list[Scored]:
    scored = [
        Scored(memory_id=ids[match.key], score=match.score, start=match.start, end=match.end)
        for match in matches
    ]
    return sorted(scored, key=lambda one: (-one.score, one.memory_id))[:limit]
