"""What every commit must know of its store before it writes, in one statement."""

from dataclasses import dataclass

from vestige.store.sql import registry
from vestige.store.sql.database import Database
from vestige.store.sql.registry import Profile

STANDING = (
    "SELECT c.reading, f.w20, (SELECT coalesce(max(position), 0) FROM events),"
    " (SELECT coalesce(max(seq), 0) FROM events WHERE node = ?), p.id, p.signature"
    " FROM clock c CROSS JOIN curve f LEFT JOIN profiles p ON p.active = 1"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The last reading of the clock, the curve of forgetting, the last position of the log, the last number
    of this node in it, and the profile in use."""

    clock: int
    curve: float
    position: int
    seq: int
    profile: Profile | None


def read(db: Database, node: str) -> Standing:
    """How things stand. Nobody changes it while the write transaction lasts."""
    clock, curve, position, seq, *profile = db.execute(STANDING, (node,)).fetchone()
    return Standing(clock=clock, curve=curve, position=position, seq=seq, profile=registry.from_row(*profile))
