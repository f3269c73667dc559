"""Strengths: the narrow table of scheduling state, and retention computed over its columns."""

from collections.abc import Mapping
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.fsrs.formulas import LEAST_W20, MOST_W20, W20
from vestige.cognition.fsrs.strength import recall_chance, retention, retention_of
from vestige.core.errors import InvalidInput
from vestige.core.models import Strength
from vestige.store.merge.strength_log import FOLDED_FROM
from vestige.store.sql.database import Database
from vestige.store.sql.filters import (
    Retained,
    RowCodec,
    SqlConditions,
    json_text,
    listed,
    microseconds,
    moment_text,
)

SPEC = (
    "stability difficulty decay_from:microseconds due_at:moment last_accessed:moment retention"
    " retention_at:moment retrieval storage learning_state:state reps lapses exposed_at:moment?"
    " times_retrieved times_useful"
)
CODEC = RowCodec(SPEC)
from_row = RowCodec(f"{SPEC} curve").reader(Strength)
"""The strength of its columns and the curve."""
COLUMNS, to_row = CODEC.columns, CODEC.to_row
CURVE = f"(SELECT CASE WHEN w20 BETWEEN {LEAST_W20} AND {MOST_W20} THEN w20 ELSE {W20} END FROM curve)"
"""The curve in use; one out of range, which an older version took in, counts nothing."""
STRENGTH = ", ".join([*(f"s.{column}" for column in COLUMNS), CURVE])
PUT = (
    f"INSERT INTO strengths (key, {', '.join(COLUMNS)}) VALUES (?, {', '.join('?' * len(COLUMNS))})"
    f" ON CONFLICT (key) DO UPDATE SET {', '.join(f'{column} = excluded.{column}' for column in COLUMNS)}"
)
MICROSECONDS_PER_DAY = 86_400_000_000

Keys = NDArray[np.int64]
Levels = NDArray[np.float64]


def as_json(strength: Strength) -> str:
    """The scheduling numbers as `review_events` shows them."""
    numbers = dict(zip(COLUMNS, to_row(strength), strict=True))
    numbers["decay_from"] = moment_text(strength.decay_from)
    return json_text(numbers)


def put(db: Database, strengths: Mapping[int, Strength]) -> None:
    """Write strengths under their memories' keys, replacing what is there."""
    db.executemany(PUT, [(key, *to_row(strength)) for key, strength in strengths.items()])


def put_by_id(db: Database, strengths: Mapping[str, Strength], after: int) -> int:
    """Write strengths of the memories that exist and have no events after the position that the strengths are
    folded from; the number written."""
    rows = db.execute(
        "SELECT m.id, m.key FROM memories m WHERE m.id IN (SELECT value FROM json_each(?))"
        " AND NOT EXISTS (SELECT 1 FROM events e"
        f" WHERE e.memory_id = m.id AND e.position > ? AND e.kind IN ({', '.join('?' * len(FOLDED_FROM))}))",
        (listed(strengths), after, *FOLDED_FROM),
    ).fetchall()
    put(db, {key: strengths[memory_id] for memory_id, key in rows})
    return len(rows)


def curve(db: Database) -> float:
    w20: float = db.execute(f"SELECT {CURVE}").fetchone()[0]
    return w20


def tune(db: Database, w20: float) -> None:
    db.execute("UPDATE curve SET w20 = ?", (w20,))


def retentions(db: Database, wanted: SqlConditions, order: str, now: datetime | None) -> tuple[Keys, Levels]:
    """The keys of everything that matches, in this order, with their retention at `now`."""
    if now is None:
        raise InvalidInput("A filter or an order by retention needs `now`, the moment to compute it at.")
    rows = db.execute(
        f"SELECT m.key, s.stability, s.retrieval, s.storage, s.decay_from, {CURVE}"
        f" FROM memories m JOIN strengths s ON s.key = m.key WHERE {wanted.sql} ORDER BY {order}",
        wanted.params,
    ).fetchall()
    if not rows:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64)
    keys, stability, retrieval, storage, decay_from, curve = zip(*rows, strict=True)
    elapsed = np.maximum(microseconds(now) - np.array(decay_from, dtype=np.int64), 0)
    levels = retention(stability, retrieval, storage, elapsed / MICROSECONDS_PER_DAY, curve)
    found = np.array(keys, dtype=np.int64)
    if wanted.retained is None:
        return found, levels
    kept = (levels >= wanted.retained.low) & (levels <= wanted.retained.high)
    return found[kept], levels[kept]


def retrievals(db: Database, wanted: SqlConditions, order: str, now: datetime) -> Levels:
    """The chance of everything that matches, in this order, to be recalled at `now`."""
    rows = db.execute(
        f"SELECT s.stability, s.retrieval, s.decay_from, {CURVE}"
        f" FROM memories m JOIN strengths s ON s.key = m.key WHERE {wanted.sql} ORDER BY {order}",
        wanted.params,
    ).fetchall()
    stability, retrieval, decay_from, curve = np.array(rows, dtype=np.float64).reshape(-1, 4).T
    elapsed = np.maximum(microseconds(now) - decay_from, 0)
    return recall_chance(stability, retrieval, elapsed / MICROSECONDS_PER_DAY, curve)


def is_retained(strength: Strength, bounds: Retained) -> bool:
    return bounds.low <= retention_of(strength, bounds.now) <= bounds.high
