"""Edges between memories, by their integer keys."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from vestige.core.errors import InvalidInput
from vestige.core.models import ANYTHING, MAX_INTEGER, Access, Edge, weight_of
from vestige.store.sql.database import Database
from vestige.store.sql.filters import SqlConditions, clause, listed, moment_text

# An edge keeps the time it was created; linking again changes its weight.
PUT = (
    "INSERT INTO edges (source, target, kind, weight, created_at) VALUES (?, ?, ?, ?, ?)"
    " ON CONFLICT (source, target, kind) DO UPDATE SET weight = excluded.weight"
)
ASKED = "SELECT key FROM memories WHERE id IN (SELECT value FROM json_each(?))"

EdgeKey = tuple[int, int, str]
FIRST: EdgeKey = (0, 0, "")
"""A key before every edge."""


def check(edge: Edge) -> None:
    """Refuse a loop."""
    if edge.source_id == edge.target_id:
        raise InvalidInput("A memory cannot be linked to itself.", details={"memory_id": edge.source_id})


def put(db: Database, edges: Mapping[EdgeKey, Edge]) -> None:
    """Create edges, or give them a new weight."""
    db.executemany(
        PUT,
        [
            (source, target, kind, edge.weight, moment_text(edge.created_at))
            for (source, target, kind), edge in edges.items()
        ],
    )


def replace(db: Database, edges: Mapping[EdgeKey, Edge | None]) -> None:
    """Write edges with these values, or remove them."""
    db.executemany("DELETE FROM edges WHERE source = ? AND target = ? AND kind = ?", list(edges))
    put(db, {key: edge for key, edge in edges.items() if edge is not None})


def delete(db: Database, key: EdgeKey) -> bool:
    """Delete an edge; whether it was there."""
    gone = db.execute("DELETE FROM edges WHERE source = ? AND target = ? AND kind = ? RETURNING source", key)
    return gone.fetchone() is not None


def after_key(
    db: Database, kinds: Sequence[str] | None, access: Access, after: EdgeKey, limit: int
) -> tuple[list[Edge], EdgeKey | None]:
    """The next edges with both ends accessible, and the key to continue from (None at the end)."""
    visible = clause(ANYTHING, access)
    of_kind = "TRUE" if kinds is None else "e.kind IN (SELECT value FROM json_each(?))"
    named = () if kinds is None else (listed(kinds),)
    rows = db.execute(
        "SELECT a.id, b.id, e.kind, e.weight, e.created_at, e.source, e.target FROM edges e"
        " JOIN memories a ON a.key = e.source JOIN memories b ON b.key = e.target"
        f" WHERE (e.source, e.target, e.kind) > (?, ?, ?) AND {of_kind}"
        f" AND {_both_visible(visible)}"
        " ORDER BY e.source, e.target, e.kind LIMIT ?",
        (*after, *named, *visible.params, *visible.params, limit),
    ).fetchall()
    last = (rows[-1][5], rows[-1][6], rows[-1][2]) if len(rows) == limit else None
    return [_edge(row) for row in rows], last


def touching(
    db: Database,
    memory_ids: Sequence[str],
    access: Access,
    *,
    among: bool = False,
    heaviest: int | None = None,
) -> list[Edge]:
    """Edges at any of the ids with both ends accessible, sorted by (source, target, kind)."""
    visible = clause(ANYTHING, access)
    edges = "SELECT source, target, kind, weight, created_at FROM edges WHERE"
    # The + keeps SQLite from looking up every pair of a source and a target.
    both = "AND +" if among else f"UNION {edges} "
    rows = db.execute(
        f"WITH asked AS MATERIALIZED ({ASKED}),"
        f" touched AS ({edges} source IN (SELECT key FROM asked) {both}target IN (SELECT key FROM asked))"
        " SELECT a.id, b.id, e.kind, e.weight, e.created_at FROM touched e"
        " JOIN memories a ON a.key = e.source JOIN memories b ON b.key = e.target"
        f" WHERE {_both_visible(visible)}"
        f" ORDER BY {'e.weight DESC, ' if heaviest is not None else ''}a.id, b.id, e.kind LIMIT ?",
        (listed(memory_ids), *visible.params, *visible.params, MAX_INTEGER if heaviest is None else heaviest),
    )
    return sorted(map(_edge, rows), key=lambda edge: (edge.source_id, edge.target_id, edge.kind))


def _edge(row: Sequence[Any]) -> Edge:  # a row of the driver
    return Edge(
        source_id=row[0],
        target_id=row[1],
        kind=row[2],
        weight=weight_of(row[3]),
        created_at=datetime.fromisoformat(row[4]),
    )


def count(db: Database, access: Access) -> int:
    """The number of edges with both ends accessible."""
    visible = clause(ANYTHING, access)
    row = db.execute(
        f"SELECT count(*) FROM edges e WHERE {_both_visible(visible)}", (*visible.params, *visible.params)
    ).fetchone()
    return int(row[0])


def _both_visible(visible: SqlConditions) -> str:
    if not visible.conditions:
        return "TRUE"
    exists = f"EXISTS (SELECT 1 FROM memories m WHERE {visible.sql} AND m.key ="
    return f"{exists} e.source) AND {exists} e.target)"
