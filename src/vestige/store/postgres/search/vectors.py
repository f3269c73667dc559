"""The dense arm: exact over the vectors that pass, or by the HNSW index where those are many.

A score is the product of unit vectors, as in SQLite. Whichever way finds them, the candidates are scored
once more in float64.
"""

from collections.abc import Iterable, Sequence
from dataclasses import field

import numpy as np

from vestige.cognition.ranking.bm25 import Floats, Integers
from vestige.core.candidates import Vectors
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import MAX_INTEGER
from vestige.store.contract.answers import Scored
from vestige.store.postgres.search.changes_since import Space
from vestige.store.postgres.search.statement import Answer, Passing, SqlPart
from vestige.store.postgres.server.values import floats, integers
from vestige.store.sql.database import Database, Row
from vestige.store.sql.filters import vector_bytes
from vestige.store.sql.search.vectors import Closest, best_of_each, cosines

NEAR, SAMPLED = "near", "sampled"
EXACT_ROWS = 20_000
"""The number of vectors up to which all are scanned: about 20 ms, where an index would have to be
maintained."""
LEAST_PIECES, MOST_PIECES = 400, 1_000
"""The number of pieces requested from an HNSW index, at least and at most: twice what an arm finds, because a
memory can have several. The cost grows with it; at 400 the first ten lack one in 500."""
INDEXED_DIMENSIONS = 4_000
"""The most dimensions of an HNSW index of half precision."""
ROUNDING = 1e-5
"""More than float32 arithmetic on unit vectors can be wrong by."""

SENT = "vector_send(v.vector)"
"""A vector as bytes that the driver leaves unchanged, for `_scored`: all are read at once."""

SCANNED = (
    f"SELECT '{NEAR}', 0, array_send(array_agg(key)), array_send(array_agg(score)), NULL, NULL FROM"
    " (SELECT v.key, max(-(v.vector <#> ?)) AS score FROM vectors v WHERE v.profile = {profile} AND {passing}"
    " GROUP BY v.key ORDER BY score DESC FETCH FIRST ? ROWS WITH TIES) v"
)
# The query is bound in the inner ORDER BY itself: through a table expression it would not use the index. Its
# number is the number of pieces it found.
INDEXED = (
    f"SELECT '{SAMPLED}', coalesce(sum(pieces), 0)::bigint, array_send(array_agg(key)),"
    " array_send(array_agg(score)), NULL, NULL FROM"
    " (SELECT key, max(score) AS score, count(*) AS pieces FROM"
    " (SELECT v.key, -(v.vector <#> ?) AS score FROM vectors v WHERE v.profile = {profile} AND {passing}"
    " ORDER BY (v.vector::halfvec({dimension})) <#> (?::halfvec({dimension})) LIMIT ?) v GROUP BY key) v"
)
# The best pieces, without grouping all of them; enough where all possible first memories are among them.
# Every answer has a row that says whether it is enough.
NEAREST = (
    "WITH top AS MATERIALIZED (SELECT v.key, -(v.vector <#> ?) AS score FROM vectors v"
    " WHERE v.profile = {profile} AND {passing} ORDER BY score DESC LIMIT ?),"
    " best AS (SELECT key, max(score) AS score FROM top GROUP BY key),"
    " last AS (SELECT score FROM best ORDER BY score DESC OFFSET ? LIMIT 1),"
    f" enough AS (SELECT count(*) < ? OR min(score) < (SELECT score FROM last) - {ROUNDING} AS said FROM top)"
    " SELECT v.*, coalesce(enough.said, FALSE) FROM enough LEFT JOIN LATERAL"
    f' (SELECT v.key, v.id, v.start, v."end", {SENT}, m.id AS name FROM best'
    " JOIN vectors v ON v.key = best.key AND v.profile = {profile}"
    " JOIN memories m ON m.key = best.key AND m.text_hash = v.text_hash"
    f" WHERE enough.said AND best.score >= coalesce((SELECT score FROM last), '-infinity') - {ROUNDING})"
    " v ON TRUE"
)
PIECES_EACH, MORE = 4, 16
"""The number of pieces read for each requested memory, and the factor if that is too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A row of the space that is searched."""

    space: Space
    vector: Vectors


@dataclass(frozen=True, slots=True, kw_only=True)
class Near:
    """The nearest memories and their scores. `sampled`: found by the index among the nearest pieces.
    `incomplete`: the index ended among others that do not pass (`hnsw.max_scan_tuples`), and there may be
    more."""

    keys: Integers = field(default_factory=lambda: integers(None))
    scores: Floats = field(default_factory=lambda: floats(None))
    sampled: bool = False
    incomplete: bool = False


def pieces_wanted(per_arm: int) -> int:
    """The number of pieces requested from the index."""
    return min(max(LEAST_PIECES, 2 * per_arm), MOST_PIECES)


def arm(query: Query, passing: Passing, most: int, *, pieces: int) -> SqlPart:
    """The nearest memories, or by the index those of the nearest pieces: for `found`."""
    few = passing.keys is not None and len(passing.keys) <= EXACT_ROWS  # a scan of them is faster
    if few or not query.space.indexed:
        return scanned(query, passing, most)
    profile, vector, let = query.space.profile, vector_bytes(query.vector), passing.condition("v.key")
    sql = INDEXED.format(profile=profile.id, passing=let.sql, dimension=profile.signature.dimension)
    return SqlPart(sql=sql, params=(vector, *let.params, vector, pieces))


def scanned(query: Query, passing: Passing, most: int) -> SqlPart:
    """The nearest memories, exactly: for `found`."""
    let = passing.condition("v.key")
    sql = SCANNED.format(profile=query.space.profile.id, passing=let.sql)
    return SqlPart(sql=sql, params=(vector_bytes(query.vector), *let.params, most))


def found(answers: Iterable[Answer], *, pieces: int) -> Near:
    """The result of `arm`."""
    for one in answers:
        if one.kind in (NEAR, SAMPLED):
            return Near(
                keys=integers(one.keys),
                scores=floats(one.numbers),
                sampled=one.kind == SAMPLED,
                incomplete=one.kind == SAMPLED and one.number < pieces,
            )
    return Near()


def nearest(db: Database, space: Space, queries: Vectors, passing: Passing, limit: int) -> list[list[Scored]]:
    """For each query the best memories, exactly."""
    let = passing.condition("v.key")
    sql = NEAREST.format(profile=space.profile.id, passing=let.sql)
    answers = []
    for query in queries if limit else ():
        enough, pieces = False, min(PIECES_EACH * limit, MAX_INTEGER)
        while not enough:
            asked = (vector_bytes(query), *let.params, pieces, limit - 1, pieces)
            rows = db.execute(sql, asked).fetchall()
            enough, pieces = rows[0][-1], min(MORE * pieces, MAX_INTEGER)
        answers.append(_in_order([row for row in rows if row[0] is not None], query)[:limit])
    return answers or [[] for _ in queries]


def closest(keys: Integers, pieces: Sequence[Row], query: Vectors) -> Closest:
    """The best piece of each of these memories, from rows of key, id, start, end and vector."""
    best_pieces = Closest.none(len(keys), len(query))
    if not pieces:
        return best_pieces
    owners, scores, vectors, ordered = _scored(pieces, query)
    found, best = best_of_each(owners, scores)
    order = np.argsort(keys)
    at = order[np.searchsorted(keys, found, sorter=order)]
    best_pieces.cosine[at] = scores[best]
    best_pieces.starts[at] = [ordered[one][2] for one in best.tolist()]
    best_pieces.ends[at] = [ordered[one][3] for one in best.tolist()]
    best_pieces.vectors[at] = vectors[best]
    return best_pieces


def _in_order(rows: Sequence[Row], query: Vectors) -> list[Scored]:
    if not rows:
        return []
    owners, scores, _, ordered = _scored(rows, query)
    _, best = best_of_each(owners, scores)
    found = [
        Scored(memory_id=row[5], score=score, start=row[2], end=row[3])
        for row, score in ((ordered[one], float(scores[one])) for one in best.tolist())
    ]
    return sorted(found, key=lambda one: (-one.score, one.memory_id))


def _scored(rows: Sequence[Row], query: Vectors) -> tuple[Integers, Floats, Vectors, list[Row]]:
    """The owner, the score and the vector of each piece, in the order of pieces."""
    ordered = sorted(rows, key=lambda row: row[1])
    sent = np.frombuffer(b"".join(row[4] for row in ordered), dtype=">f4").reshape(len(rows), -1)
    vectors: Vectors = sent[:, 1:].astype(np.float32)  # after the dimension
    owners = np.array([row[0] for row in ordered], dtype=np.int64)
    return owners, cosines(vectors, query), vectors, ordered
