"""The dense arm: an exact search over the vectors of a store.

Every row gets a number that its score cannot exceed: from int8 codes, or from a product in float32, with
its error bound. All rows that may be among the first are then scored in float64.
"""

import sqlite3
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import Floats, Integers, distinct
from vestige.core.lazy_dataclass import dataclass
from vestige.store.contract.answers import Scored
from vestige.store.sql.filters import listed
from vestige.store.sql.rows.store_facts import Profile
from vestige.store.sql.search.vectors import Closest, best_of_each, cosines
from vestige.store.sqlite.search import int8
from vestige.store.sqlite.search.vector_cache import Block, View

CHUNK = 64
CODES_FROM = 4096
"""The number of rows below which codes cost more in exact scores, because their bounds are wider, than they
save."""
MAX_SCORES = 16_000_000
CURRENT = (
    "SELECT m.key, m.id FROM memories m WHERE m.key IN (SELECT value FROM json_each(?)) AND EXISTS"
    " (SELECT 1 FROM vectors v WHERE v.key = m.key AND +v.profile = ? AND v.text_hash = m.text_hash)"
)
"""The ids of those memories whose vectors were made from their present text."""

Queries = NDArray[np.float32]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """Groups with the row of their best piece and its score."""

    groups: Integers
    rows: Integers
    scores: Floats


def nearest(
    db: sqlite3.Connection, view: View, profile: Profile, queries: Queries, allowed: Mask | None, limit: int
) -> list[list[Scored]]:
    """For each query the best memories; `allowed` is a mask by key, None allows all. Vectors of an earlier
    text do not count."""
    per_chunk = max(1, MAX_SCORES // max(1, len(view.keys)))
    found: list[tuple[Integers, Floats]] = []
    for at in range(0, len(queries), per_chunk):
        chunk = queries[at : at + per_chunk]
        found.extend(
            _best_rows(view, query, bounds, limit)
            for query, bounds in zip(chunk, _bounds(view, chunk, allowed), strict=True)
        )
    keys = {key for rows, _ in found for key in view.keys[rows].tolist()}
    ids = dict(db.execute(CURRENT, (listed(keys), profile.id)).fetchall())
    return [_in_order(view, ids, rows, scores)[:limit] for rows, scores in found]


def top(view: View, query: Queries, allowed: Mask | None, limit: int) -> tuple[Integers, Floats]:
    """The keys of the best memories for one query with their scores, in no order, and all that tie last."""
    rows, scores = _best_rows(view, query, _bounds(view, query[np.newaxis], allowed)[0], limit)
    return view.keys[rows], scores


def closest(view: View, keys: Integers, query: Queries) -> Closest:
    """The best piece of each memory, by its exact cosine."""
    closest_pieces = Closest.none(len(keys), len(query))
    groups = view.groups_of(keys)
    known = np.flatnonzero(groups >= 0)
    best = _exactly(view, query, distinct(groups[known]))
    places = np.searchsorted(best.groups, groups[known])
    living = places < len(best.groups)
    living[living] = best.groups[places[living]] == groups[known[living]]
    known, places = known[living], places[living]
    if len(known):
        rows = best.rows[places]
        closest_pieces.cosine[known] = best.scores[places]
        closest_pieces.starts[known], closest_pieces.ends[known] = view.spans[rows].T
        closest_pieces.vectors[known] = view.take(rows)
    return closest_pieces


def _bounds(view: View, queries: Queries, allowed: Mask | None) -> Queries:
    """An upper bound of the score for every query and group; -inf for excluded ones."""
    bounds = np.empty((len(queries), len(view.keys)), dtype=np.float32)
    by_codes = len(queries) == 1 and len(view.keys) >= CODES_FROM
    for block in filter(len, view.blocks):
        bounds[:, block.start : block.end] = _block_bounds(block, queries, by_codes=by_codes)
    if len(view.dead):
        bounds[:, view.dead] = -np.inf
    if len(view.starts) < len(view.keys):
        bounds = np.maximum.reduceat(bounds, view.starts, axis=1)
    if allowed is not None:
        bounds[:, ~allowed[view.group_keys]] = -np.inf
    return bounds


def _block_bounds(block: Block, queries: Queries, *, by_codes: bool) -> Queries:
    kernel = int8.kernel() if by_codes and block.coded is not None else None
    if kernel is not None and block.coded is not None:
        return int8.bounds(kernel, block.coded, queries[0])[np.newaxis]
    if len(queries) > 1:
        products: Queries = queries @ block.rows.T
    else:
        # For one query BLAS only adds overhead, and threads that spin for more work.
        products = np.einsum("ij,j->i", block.rows, queries[0])[np.newaxis]
    products += int8.ROUNDING
    return products


def _best_rows(view: View, query: Queries, bounds: Queries, limit: int) -> tuple[Integers, Floats]:
    """The rows of the memories with the first `limit` ranks and all that tie for the last, in no order. Exact
    scores of as many groups as there are ranks give a lower bound for the last rank; no group whose bound is
    below that can be among the first. `bounds` is used up."""
    likely = _highest(bounds, limit)
    if not len(likely):
        return likely, np.empty(0)
    best = _exactly(view, query, likely)
    bounds[likely] = -np.inf
    others = np.flatnonzero(bounds >= np.float32(best.scores.min()) - int8.ROUNDING)
    rows, scores = best.rows, best.scores
    if len(others):
        more = _exactly(view, query, others)
        rows, scores = np.concatenate([rows, more.rows]), np.concatenate([scores, more.scores])
        reached = scores >= np.partition(scores, -len(likely))[-len(likely)]
        rows, scores = rows[reached], scores[reached]
    return rows, scores


def _highest(bounds: Queries, limit: int) -> Integers:
    """The groups with the highest bounds, at most `limit`, ascending; no excluded one."""
    floor = np.float32(-np.inf)
    chunks = -(-len(bounds) // CHUNK)
    if 0 < limit <= chunks:
        # As many chunks as places have a group at or above this, so all we look for is there too.
        floor = np.partition(np.maximum.reduceat(bounds, np.arange(0, len(bounds), CHUNK)), -limit)[-limit]
    groups = np.flatnonzero((bounds >= floor) & (bounds > -np.inf))
    if limit < len(groups):
        groups = np.sort(groups[np.argpartition(bounds[groups], len(groups) - limit)[len(groups) - limit :]])
    return groups


def _exactly(view: View, query: Queries, groups: Integers) -> Best:
    """The best alive piece of each group that has one, in the order of groups."""
    rows, owners = view.pieces_of(groups)
    scores = cosines(view.take(rows), query)
    if len(owners) == len(groups):
        return Best(groups=groups, rows=rows, scores=scores)
    found, best = best_of_each(owners, scores)
    return Best(groups=found, rows=rows[best], scores=scores[best])


def _in_order(view: View, ids: Mapping[int, str], rows: Integers, scores: Floats) -> list[Scored]:
    pieces = zip(view.keys[rows].tolist(), scores.tolist(), view.spans[rows].tolist(), strict=True)
    scored = [
        Scored(memory_id=ids[key], score=score, start=start, end=end)
        for key, score, (start, end) in pieces
        if key in ids
    ]
    return sorted(scored, key=lambda one: (-one.score, one.memory_id))
