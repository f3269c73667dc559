"""Counts over the accessible memories."""

from datetime import datetime

from vestige.cognition.fsrs.strength import accessibility
from vestige.core.models import Access, Filter, StoreStats
from vestige.store.contract.answers import Levels
from vestige.store.sql.database import Database
from vestige.store.sql.filters import SqlConditions, clause, moment_text, optional_moment
from vestige.store.sql.rows import edges, store_facts, strengths
from vestige.store.sql.rows.memories import count

TOTALS = (
    f"SELECT count(*), count(*) FILTER (WHERE {store_facts.HAS_VECTORS}),"
    " count(*) FILTER (WHERE m.pinned = 1), count(*) FILTER (WHERE m.suppression_count > 0),"
    " count(*) FILTER (WHERE m.superseded_by IS NOT NULL),"
    " count(*) FILTER (WHERE s.due_at <= ? AND m.suppression_count = 0"
    " AND (m.valid_from IS NULL OR m.valid_from <= ?) AND (m.valid_until IS NULL OR m.valid_until > ?)),"
    " min(m.created_at), max(m.created_at)"
    " FROM memories m JOIN strengths s ON s.key = m.key WHERE {where}"
)


def stats(db: Database, access: Access, now: datetime) -> StoreStats:
    """The counts; what is due is so at `now`."""
    visible = clause(Filter(), access)
    totals = db.execute(
        TOTALS.format(where=visible.sql), (*3 * (moment_text(now),), *visible.params)
    ).fetchone()
    memories, embedded, pinned, suppressed, superseded, due, oldest, newest = totals
    return StoreStats(
        memories=memories,
        embedded=embedded,
        pinned=pinned,
        suppressed=suppressed,
        archived=count(db, clause(Filter(archived=True), access)),
        superseded=superseded,
        edges=edges.count(db, access),
        due=due,
        oldest=optional_moment(oldest),
        newest=optional_moment(newest),
        by_type=_counted(db, "node_type", visible),
        by_scope=_counted(db, "scope", visible),
    )


def levels(db: Database, access: Access, now: datetime) -> Levels:
    """The strength of each memory at `now`."""
    visible = clause(Filter(), access)
    keys, retentions = strengths.retentions(db, visible, "m.key", now)
    return Levels(
        retentions=retentions,
        retrievals=strengths.retrievals(db, visible, "m.key", now),
        accessibilities=accessibility(retentions, _suppressions(db, keys)),
    )


def _suppressions(db: Database, keys: strengths.Keys) -> list[int]:
    """The number of suppressions of these memories; an index finds the few that have any."""
    rows = db.execute("SELECT key, suppression_count FROM memories WHERE suppression_count > 0")
    counts: dict[int, int] = dict(rows.fetchall())
    return [counts.get(key, 0) for key in keys.tolist()]


def _counted(db: Database, column: str, visible: SqlConditions) -> dict[str, int]:
    rows = db.execute(
        f"SELECT m.{column}, count(*) FROM memories m WHERE {visible.sql} GROUP BY 1 ORDER BY 1",
        visible.params,
    )
    return dict(rows.fetchall())
