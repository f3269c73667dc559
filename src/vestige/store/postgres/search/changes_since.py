"""The first statement of every search: the rows written since the last one, the frequencies of terms, the
memories that pass the filter, and the vectors in use."""

from collections.abc import Sequence

import numpy as np
import orjson

from vestige.cognition.ranking.bm25 import Frequency, Integers
from vestige.core.lazy_dataclass import dataclass
from vestige.embed.protocol import Signature
from vestige.store.postgres.search import words
from vestige.store.postgres.search.statement import Passing, SqlPart
from vestige.store.postgres.server.values import integers
from vestige.store.sql.database import Database
from vestige.store.sql.filters import SqlConditions
from vestige.store.sql.rows import memories
from vestige.store.sql.rows.store_facts import Profile
from vestige.store.sql.search.pool import NO_KEYS
from vestige.store.sql.search.threads import COLUMNS
from vestige.store.sql.search.vectors import Version

# The server's start, the database and the table: if one differs, the rows do not continue the known ones.
PAST = (
    "SELECT concat_ws(' ', pg_postmaster_start_time(), d.oid, 'places'::regclass::oid,"
    " pg_relation_filenode('places'::regclass)), (SELECT coalesce(max(p.seq), 0) FROM places p),"
    " (SELECT coalesce(max(v.position), 0) FROM dead_vectors v)"
    " FROM pg_database d WHERE d.datname = current_database()"
)
# The id of each by its key: a join would read all memories where the server expects many to have changed.
CHANGED = (
    "SELECT array_send(array_agg(ARRAY[key, coalesce(thread, 0), coalesce(source, 0),"
    " coalesce(position, 0), length, speaker,"
    " 256 * form + 2 * flags + CASE WHEN position IS NULL THEN 1 ELSE 0 END, born])),"
    " array_agg((SELECT m.id FROM memories m WHERE m.key = p.key)) FROM places p WHERE seq > ?"
)
NOTHING = SqlPart(sql="SELECT NULL::bytea")
KEYS = "SELECT array_send(array_agg(m.key)) FROM memories m WHERE {where}"
PROFILE = (
    "SELECT p.id, p.signature,"
    " (SELECT i.indisvalid FROM pg_index i WHERE i.indexrelid = to_regclass('vectors_near_' || p.id)"
    " AND i.indrelid = 'vectors'::regclass),"
    " (SELECT c.reltuples FROM pg_class c WHERE c.oid = 'vectors'::regclass),"
    " set_config('hnsw.ef_search', ?::text, TRUE),"
    " set_config('hnsw.iterative_scan', 'relaxed_order', TRUE)"
    " FROM profiles p WHERE p.active = 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The version of a store: its identity, the last `seq` of its places, the number of deleted vectors."""

    where: str
    seq: int = 0
    deaths: int = 0

    def leads_to(self, later: "Past") -> bool:
        """Whether a later version continues this one. It does not after a restore, a fail-over to a server
        that lags, or in tables that were created anew."""
        return self.where == later.where and self.seq <= later.seq and self.deaths <= later.deaths


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The vectors in use: their profile, whether an index finds them, the approximate number of rows, and the
    number deleted so far."""

    profile: Profile
    indexed: bool
    rows: int
    deaths: int

    @property
    def version(self) -> Version:
        """The version by which a cache knows that its entries are valid."""
        return self.profile.id, self.deaths


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangesSince:
    """The result of the first statement; `past`, `changed` and `ids` are for the cache. `common` is of the
    whole store, `readable` are the memories within the access, `passing` those of them that match."""

    past: Past
    changed: Integers
    ids: Sequence[str | None]
    space: Space | None
    common: dict[str, Frequency]
    passing: Passing
    readable: Passing


def look(
    db: Database,
    since: int,
    terms: Sequence[str],
    wanted: SqlConditions,
    accessible: SqlConditions,
    *,
    pieces: int,
) -> ChangesSince:
    """Read the rows since a `seq`. A filter by retention takes one more statement. An HNSW index considers
    `pieces` rows while this transaction searches it, and continues where a filter leaves too few."""
    plain, begun = words.counting(terms)
    through, few = wanted.parted()
    allowed = _keys(through)
    left_out = [SqlPart(sql=KEYS.format(where=one.excluded), params=one.params) for one in few]
    readable = _keys(accessible)
    same = readable == allowed
    columns = [plain, begun, allowed, NOTHING if same else readable, *left_out]
    selected = ", ".join(f"({one.sql})" for one in columns)
    row = db.execute(
        f"SELECT b.*, n.*, p.*, {selected} FROM ({PAST}) b CROSS JOIN ({CHANGED}) n"
        f" LEFT JOIN ({PROFILE}) p ON TRUE",
        (*(param for one in columns for param in one.params), since, pieces),
    ).fetchone()
    past = Past(where=row[0], seq=row[1], deaths=row[2])
    changed, ids, *space = row[3:11]
    frequencies, prefixes, keys, within, *gone = row[11:]
    limited = bool(through.conditions) or through.retained is not None
    if through.retained is not None:
        passed: Integers | None = memories.keys(db, through)
    else:
        passed = integers(keys) if limited else None
    seen = integers(keys if same else within) if accessible.conditions else None
    return ChangesSince(
        past=past,
        changed=integers(changed).reshape(-1, 1 + COLUMNS),
        ids=ids or (),
        space=None if space[0] is None else _space(*space[:4], deaths=past.deaths),
        common=words.frequencies(terms, frequencies, prefixes),
        passing=Passing(keys=passed, left_out=np.concatenate((NO_KEYS, *map(integers, gone)))),
        readable=Passing(keys=seen, left_out=NO_KEYS),
    )


def _keys(through: SqlConditions) -> SqlPart:
    """The keys of what passes; nothing where that is all, or where SQL cannot decide it."""
    if not through.conditions or through.retained is not None:
        return NOTHING
    only = through.conditions[0].keys if len(through.conditions) == 1 else None
    sql = (
        KEYS.format(where=through.sql)
        if only is None
        else f"SELECT array_send(array_agg(key)) FROM ({only}) m"
    )
    return SqlPart(sql=sql, params=through.params)


def _space(number: int, signature: str, indexed: bool | None, rows: float, *, deaths: int) -> Space:
    profile = Profile(id=number, signature=Signature(**orjson.loads(signature)))
    return Space(profile=profile, indexed=bool(indexed), rows=round(max(rows, 0)), deaths=deaths)
