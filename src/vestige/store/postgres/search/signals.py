"""The last statement of a search: the signals of its candidates, and the tokens of their neighbours."""

from collections.abc import Sequence
from dataclasses import field

import numpy as np

from vestige.cognition.ranking.bm25 import Integers
from vestige.core import candidates as limits
from vestige.core.lazy_dataclass import dataclass
from vestige.store.postgres.search import words
from vestige.store.postgres.search.statement import SqlPart
from vestige.store.postgres.search.vectors import ROUNDING, SENT, Query
from vestige.store.postgres.server.values import SentKeys, sent_keys
from vestige.store.sql.database import Database, Row
from vestige.store.sql.filters import vector_bytes
from vestige.store.sql.search import pool, vectors
from vestige.store.sql.search.vectors import TokenCache, TokenColumns

# Each table is looked up key by key (OFFSET 0 keeps it so): a join might read all of it for a few hundred.
TRAITS = (
    f"CROSS JOIN LATERAL (SELECT {pool.TRAITS} FROM memories m JOIN strengths s ON s.key = m.key"
    " WHERE m.key = a.key OFFSET 0) t"
)
WIDTH = pool.TRAITS.count(",") + 1
# The pieces of a memory that may be its best one: the numbers are computed again, in float64. Vectors of an
# earlier text are left out.
PIECES = (
    f'LEFT JOIN LATERAL (SELECT v.id, v.start, v."end", {SENT} AS vector FROM (SELECT v.id, v.start, v."end",'
    " v.vector, v.vector <#> ? AS far, min(v.vector <#> ?) OVER () AS least FROM vectors v"
    " WHERE v.key = a.key AND v.profile = ? AND v.text_hash = t.text_hash OFFSET 0) v"
    f" WHERE v.far <= v.least + {ROUNDING}) v ON TRUE"
)
NO_PIECES = (
    'LEFT JOIN (SELECT NULL::bigint AS id, NULL::bigint AS start, NULL::bigint AS "end",'
    " NULL::bytea AS vector) v ON FALSE"
)
TEXTS = (
    "LEFT JOIN LATERAL (SELECT row_to_json(m)::text AS text, w.terms FROM memories m JOIN words w"
    " ON w.key = m.key WHERE m.key = a.key AND m.key IN (SELECT key FROM readable) OFFSET 0) x ON TRUE"
)
NO_TEXTS = "LEFT JOIN (SELECT NULL AS text, NULL AS terms) x ON FALSE"
CANDIDATES = (
    'SELECT t.*, a.key, v.id, v.start, v."end", v.vector, NULL::int, NULL::bytea, NULL::bytea, x.text,'
    " x.terms FROM unnest(?::bigint[]) a(key)"
)
# Each memory's tokens are looked up once, even for several candidates, and come in rows of their own.
TOKENS = (
    "SELECT a.key, b.* FROM unnest(?::bigint[]) a(key) CROSS JOIN LATERAL"
    " (SELECT least(octet_length(b.asked), ?) AS length, b.bits, b.asked FROM token_bits b"
    " WHERE b.key = a.key AND b.profile = ? AND octet_length(b.asked) > 0 OFFSET 0) b"
)
# The number of tokens of each memory in a sketch (`pool.tokens_kept`), with the cached ones.
MOST = (
    "SELECT CASE WHEN coalesce(sum(length), 0) + ? > ? THEN greatest(?::bigint, ?::bigint / (count(*) + ?))"
    " ELSE ? END::int AS tokens FROM tokens"
)
KEPT = (
    f"SELECT {'NULL, ' * WIDTH}b.key, NULL, NULL, NULL, NULL, b.length,"
    " substr(b.bits, 1, ?::int * most.tokens), substr(b.asked, 1, most.tokens), NULL, NULL"
    " FROM tokens b CROSS JOIN most"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The traits of candidates (`pool.signals_of`), their pieces (`vectors.closest`), the tokens of all
    owners, and the number of literals in each candidate."""

    traits: list[Row] = field(default_factory=list)
    pieces: list[Row] = field(default_factory=list)
    tokens: TokenColumns | None = None
    literals: dict[int, int] = field(default_factory=dict)


def read(
    db: Database,
    cache: TokenCache,
    query: Query | None,
    sought: Sequence[str],
    keys: Integers,
    beside: Integers,
) -> Signals:
    """The signals of these candidates; `beside` are the keys whose tokens are compared (`vectors.around`)."""
    if not len(keys):
        return Signals()
    owners = np.unique(beside[beside >= 0])
    held = None if query is None else _held(cache, query, owners)
    chosen = sent_keys(keys)
    missing = owners if held is None else held.lacking(owners)
    tables = _tables(query, held, sought, chosen, sent_keys(missing))
    selects = _selects(query, sought, chosen)
    given = f"WITH {', '.join(part.sql for part in tables)} " if tables else ""
    sql = given + " UNION ALL ".join(part.sql for part in selects)
    rows = db.execute(sql, [param for part in (*tables, *selects) for param in part.params]).fetchall()
    if held is not None and query is not None:
        read = [(row[WIDTH], *row[WIDTH + 5 : WIDTH + 8]) for row in rows if row[WIDTH + 5] is not None]
        fresh = TokenColumns.of(read, held.bits.shape[1])
        held = held.and_also(fresh)
        cache.keep(query.space.version, fresh, held)
    distinct = list(dict.fromkeys(sought))
    return Signals(
        traits=list({row[WIDTH]: row[:WIDTH] for row in rows if row[0] is not None}.values()),
        pieces=[row[WIDTH : WIDTH + 5] for row in rows if row[WIDTH + 1] is not None],
        tokens=held,
        literals={row[WIDTH]: words.count_in(distinct, *row[-2:]) for row in rows if row[-2] is not None},
    )


def _held(cache: TokenCache, query: Query, owners: Integers) -> TokenColumns:
    """The cached tokens; what is cached in part is read again, because it may be too short."""
    size = vectors.width(query.space.profile.signature.dimension)
    known = cache.held(query.space.version, owners, size)
    return known.among(known.counts >= known.lengths)


def _tables(
    query: Query | None, held: TokenColumns | None, sought: Sequence[str], chosen: SentKeys, missing: SentKeys
) -> list[SqlPart]:
    """The tables that are selected from, each made once."""
    parts = []
    if query is not None and held is not None:
        most, longest = limits.MOST_TOKENS, limits.LONGEST_TOKENS
        here = int(held.lengths.sum())
        read = (missing, longest, query.space.profile.id)
        counted = (here, most, limits.LEAST_TOKENS, most, len(held), longest)
        parts.append(SqlPart(sql=f"tokens AS MATERIALIZED ({TOKENS})", params=read))
        parts.append(SqlPart(sql=f"most AS MATERIALIZED ({MOST})", params=counted))
    if sought:
        readable = words.readable_texts(words.GIVEN)
        parts.append(SqlPart(sql=f"readable AS MATERIALIZED ({readable})", params=(chosen,)))
    return parts


def _selects(query: Query | None, sought: Sequence[str], chosen: SentKeys) -> list[SqlPart]:
    texts = TEXTS if sought else NO_TEXTS
    if query is None:
        return [SqlPart(sql=f"{CANDIDATES} {TRAITS} {NO_PIECES} {texts}", params=(chosen,))]
    vector, profile = vector_bytes(query.vector), query.space.profile
    return [
        SqlPart(sql=f"{CANDIDATES} {TRAITS} {PIECES} {texts}", params=(chosen, vector, vector, profile.id)),
        SqlPart(sql=KEPT, params=(vectors.width(profile.signature.dimension),)),
    ]
