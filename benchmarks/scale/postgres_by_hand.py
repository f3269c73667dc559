"""The statements of a search on PostgreSQL, as one writes them who knows pgvector and measures.

Whole columns come as one value each: a Python object for every posting would cost more than the query.
"""

from typing import Any

import numpy as np
import psycopg

from benchmarks.scale.by_hand import PER_ARM, Integers, Wanted
from vestige.cognition.ranking.bm25 import Frequency, affordable
from vestige.store.contract.search import POSTINGS_BUDGET
from vestige.store.postgres.search.vectors import pieces_wanted

SCHEMA = "vestige"
"""Where a store is unless its settings say otherwise."""
SESSION = (
    "LOAD 'vector'; SET search_path TO vestige, public; SET jit = off;"
    " SET hnsw.iterative_scan = relaxed_order; SET hnsw.ef_search = {reach}"
)
INDEXED = """
SELECT EXISTS (SELECT FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
    WHERE i.indrelid = 'vectors'::regclass AND i.indisvalid AND a.amname = 'hnsw')"""
FREQUENCIES = "SELECT term, memories, occurrences FROM terms WHERE term = ANY(%s)"
POSTINGS = """
SELECT array_send(array_agg(key)), array_send(array_agg(count)) FROM postings WHERE term = ANY(%s)
GROUP BY term"""
IN_SCOPE = "memories m WHERE m.scope >= %s AND m.scope < %s AND m.archived_at IS NULL"
WITH_TAG = "memory_tags m WHERE m.tag = %s"
# What a filter lets through is little: to compare all of it is exact, and faster than to walk the index.
AMONG = """
SELECT v.key, v.vector <#> %s::vector FROM vectors v WHERE v.key IN (SELECT m.key FROM {source}) ORDER BY 2"""
TRAITS = """
SELECT m.key, m.id, m.created_at, m.occurred_at, m.suppression_count, s.stability, s.decay_from, s.retrieval,
    s.storage, s.times_retrieved, s.times_useful, v.start, v."end", v.vector
FROM memories m JOIN strengths s ON s.key = m.key JOIN vectors v ON v.key = m.key WHERE m.key = ANY(%s)"""
TOKENS = "SELECT key, bits, asked FROM token_bits WHERE key = ANY(%s)"


class PostgresByHand:
    """A session of its own in a store's database."""

    def __init__(self, url: str, dimension: int) -> None:
        self._db: psycopg.Connection[Any] = psycopg.connect(url, autocommit=True)
        self._db.execute(SESSION.format(reach=pieces_wanted(PER_ARM)).encode())
        ((profile,),) = self._rows("SELECT id FROM profiles WHERE active = 1")
        ((indexed,),) = self._rows(INDEXED)
        # An index is asked for as many as `gather` asks it for; without one all are looked at anyway.
        self._most = pieces_wanted(PER_ARM) if indexed else None
        # The numbers stand in the text: only so does the planner see that the index is of this profile.
        self._nearest = (
            f"SELECT key, vector <#> %s::vector FROM vectors WHERE profile = {int(profile)}"
            f" ORDER BY vector::halfvec({dimension}) <#> %s::halfvec({dimension}) LIMIT %s"
        )

    def keys(self) -> dict[str, int]:
        """The key of each memory, by id."""
        return dict(self._rows("SELECT id, key FROM memories"))

    def fetch(self, wanted: Wanted) -> int:
        """Fetch everything; how many rows and postings there were."""
        common = [
            Frequency(term=term, memories=memories, occurrences=occurrences)
            for term, memories, occurrences in self._rows(FREQUENCIES, list(wanted.terms))
        ]
        near = self._near(wanted)
        postings = [
            (_numbers(keys, ">i8"), _numbers(counts, ">i4"))
            for keys, counts in self._rows(POSTINGS, affordable(common, POSTINGS_BUDGET))
        ]
        traits = self._rows(TRAITS, list(wanted.candidates))
        tokens = self._rows(TOKENS, list(wanted.surrounded))
        return len(near) + sum(len(keys) for keys, _ in postings) + len(traits) + len(tokens)

    def close(self) -> None:
        """End the session."""
        self._db.close()

    def _near(self, wanted: Wanted) -> list[Any]:
        query = f"[{','.join(map(str, wanted.vector.tolist()))}]"
        if wanted.where.scope is not None:
            scope = wanted.where.scope
            return self._rows(AMONG.format(source=IN_SCOPE), query, scope, f"{scope}0")
        if wanted.where.tags_any:
            return self._rows(AMONG.format(source=WITH_TAG), query, wanted.where.tags_any[0])
        return self._rows(self._nearest, query, query, self._most or wanted.near)

    def _rows(self, statement: str, *params: object) -> list[Any]:
        return self._db.execute(statement.encode(), params, binary=True).fetchall()


def _numbers(sent: bytes, kind: str) -> Integers:
    """The elements of an array as the server sends it: a head of 20 bytes, then each after its length."""
    return np.frombuffer(sent, dtype=[("length", ">i4"), ("value", kind)], offset=20)["value"].astype(
        np.int64
    )
