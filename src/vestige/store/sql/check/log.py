"""Checks of the log, and of the rows that follow from it."""

from collections.abc import Iterator

from vestige.store.contract.trouble import Trouble, about
from vestige.store.sql.database import Database

GAPS = "SELECT coalesce(max(seq), 0) - count(*) FROM events WHERE node = (SELECT node FROM installation)"
"""Only the events of this installation must be complete; those of others may have gaps."""
UNBORN = (
    "SELECT m.id FROM memories m WHERE NOT EXISTS"
    " (SELECT 1 FROM events e WHERE e.memory_id = m.id AND e.kind = 'memory.created')"
)
HIGHEST = (
    "SELECT coalesce(max(seen.clock), 0) FROM"
    " (SELECT max(e.clock) AS clock FROM events e UNION ALL SELECT max(d.clock) FROM documents d) seen"
)
UNDEAD = (
    "SELECT DISTINCT e.memory_id FROM events e JOIN memories m ON m.id = e.memory_id"
    " WHERE e.kind = 'memory.deleted'"
)
UNBURIED = (
    "SELECT DISTINCT e.memory_id FROM events e WHERE e.kind = 'memory.deleted'"
    " AND e.memory_id NOT IN (SELECT id FROM tombstones) AND e.memory_id NOT IN (SELECT id FROM memories)"
)
UNLOGGED = (
    "SELECT t.id FROM tombstones t WHERE NOT EXISTS"
    " (SELECT 1 FROM events e WHERE e.memory_id = t.id AND e.kind = 'memory.deleted')"
)
LOST = (
    "SELECT DISTINCT e.memory_id FROM events e WHERE e.kind = 'memory.created'"
    " AND NOT EXISTS (SELECT 1 FROM memories m WHERE m.id = e.memory_id)"
    " AND NOT EXISTS (SELECT 1 FROM tombstones t WHERE t.id = e.memory_id)"
    " AND NOT EXISTS (SELECT 1 FROM events d WHERE d.memory_id = e.memory_id AND d.kind = 'memory.deleted')"
)


def ids(db: Database, sql: str) -> list[str]:
    """The first column of every row."""
    return [row[0] for row in db.execute(sql)]


def log(db: Database) -> Iterator[Trouble]:
    """Missing events, and memories without a creation event."""
    gaps = db.execute(GAPS).fetchone()[0]
    if gaps:
        yield Trouble(check="log", message="Events of this installation are missing.", count=abs(gaps))
    yield from about("log", "These memories have no creation event.", ids(db, UNBORN))


def clock(db: Database) -> Iterator[Trouble]:
    """The clock must be ahead of every event seen, or later events are ordered before earlier ones."""
    if db.execute(f"SELECT ({HIGHEST}) > coalesce((SELECT reading FROM clock), -1)").fetchone()[0]:
        yield Trouble(check="clock", message="The clock is behind the events it has given.", repair="clock")


def deletions(db: Database) -> Iterator[Trouble]:
    """Deleted memories must be gone and have a tombstone, and no others may have one."""
    yield from about("deletions", "Memories are here that the log says were deleted.", ids(db, UNDEAD))
    unburied = ids(db, UNBURIED)
    yield from about("deletions", "Deleted memories have no tombstone.", unburied, repair="tombstones")
    yield from about("deletions", "Memories have a tombstone without a deletion event.", ids(db, UNLOGGED))


def lost(db: Database) -> Iterator[Trouble]:
    """Memories of which only the log and stray rows are left. Removing those does not bring them back."""
    yield from about(
        "memories",
        "Memories that were created are neither here nor deleted. Restore a backup that holds them, or"
        " import an export that does into a new store.",
        ids(db, LOST),
    )
