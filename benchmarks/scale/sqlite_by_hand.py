"""The statements of a search on SQLite. It searches no vectors by SQL: a matrix product stands for that."""

import json
import sqlite3
from pathlib import Path

import numpy as np

from benchmarks.scale.by_hand import Integers, Vectors, Wanted
from vestige.cognition.ranking.bm25 import Frequency, affordable
from vestige.core.models import Filter
from vestige.settings.settings import DATABASE_NAME
from vestige.store.contract.search import POSTINGS_BUDGET

IN_SCOPE = "SELECT group_concat(key) FROM memories WHERE scope >= ? AND scope < ? AND archived_at IS NULL"
WITH_TAG = "SELECT group_concat(key) FROM memory_tags WHERE tag = ?"
FREQUENCY = "SELECT coalesce(sum(doc), 0), coalesce(sum(cnt), 0) FROM words_seen WHERE term = ?"
POSTINGS = "SELECT group_concat(doc) FROM words_at WHERE term = ?"
TRAITS = """
SELECT m.key, m.id, m.created_at, m.occurred_at, m.suppression_count, s.stability, s.decay_from, s.retrieval,
    s.storage, s.times_retrieved, s.times_useful
FROM json_each(?) asked CROSS JOIN memories m ON m.key = asked.value
    CROSS JOIN strengths s ON s.key = asked.value"""
TOKENS = "SELECT key, bits, asked FROM token_bits WHERE key IN (SELECT value FROM json_each(?))"


class SqliteByHand:
    """A connection to a store's file, and its vectors in memory."""

    def __init__(self, data_dir: Path, vectors: Vectors) -> None:
        self._db = sqlite3.connect(f"file:{data_dir / DATABASE_NAME}?mode=ro", uri=True)
        self._vectors = vectors
        self._keys = np.array(sorted(self.keys().values()), dtype=np.int64)

    def keys(self) -> dict[str, int]:
        """The key of each memory, by id."""
        return dict(self._db.execute("SELECT id, key FROM memories"))

    def fetch(self, wanted: Wanted) -> int:
        """Fetch everything; how many rows and postings there were."""
        near = self._nearest(wanted.vector, self._allowed(wanted.where), wanted.near)
        common = [self._frequency(term) for term in wanted.terms]
        postings = [_numbers(self._one(POSTINGS, term)) for term in affordable(common, POSTINGS_BUDGET)]
        traits = self._db.execute(TRAITS, (json.dumps(wanted.candidates),)).fetchall()
        tokens = self._db.execute(TOKENS, (json.dumps(wanted.surrounded),)).fetchall()
        return len(near) + sum(map(len, postings)) + len(traits) + len(tokens)

    def close(self) -> None:
        """Let go of the connection."""
        self._db.close()

    def _one(self, statement: str, *params: str) -> str | None:
        found: str | None = self._db.execute(statement, params).fetchone()[0]
        return found

    def _frequency(self, term: str) -> Frequency:
        memories, occurrences = self._db.execute(FREQUENCY, (term,)).fetchone()
        return Frequency(term=term, memories=memories, occurrences=occurrences)

    def _allowed(self, where: Filter) -> Integers | None:
        if where.scope is not None:
            return _numbers(self._one(IN_SCOPE, where.scope, f"{where.scope}0"))
        if where.tags_any:
            return _numbers(self._one(WITH_TAG, where.tags_any[0]))
        return None

    def _nearest(self, query: Vectors, allowed: Integers | None, most: int) -> Integers:
        scores = self._vectors @ query
        if allowed is not None:
            mask = np.isin(self._keys, allowed)
            scores[~mask] = -np.inf
        if most < len(scores):
            return self._keys[np.argpartition(-scores, most)[:most]]
        return self._keys


def _numbers(text: str | None) -> Integers:
    return np.fromstring(text, dtype=np.int64, sep=",") if text else np.empty(0, dtype=np.int64)
