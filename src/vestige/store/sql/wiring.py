"""The edges of one commit, as it leaves them."""

from dataclasses import dataclass, field, replace

from vestige.errors import NotFound
from vestige.models import Edge
from vestige.store.changes import Unlink
from vestige.store.sql import graph
from vestige.store.sql.database import Database
from vestige.store.sql.graph import EdgeKey


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """An edge that the commit ends; `fresh` when it was made in the same one."""

    change: Unlink
    fresh: bool


@dataclass(slots=True, kw_only=True)
class Wiring:
    """The edges a commit makes, or gives a new weight, after those that it ends."""

    made: dict[EdgeKey, Edge] = field(default_factory=dict)
    ended: dict[EdgeKey, Ended] = field(default_factory=dict)

    def link(self, key: EdgeKey, edge: Edge) -> None:
        """Make an edge or give it a new weight."""
        known = self.made.get(key)
        self.made[key] = edge if known is None else replace(known, weight=edge.weight)

    def unlink(self, key: EdgeKey, change: Unlink) -> None:
        """End an edge; whether the store has it shows when it is written."""
        fresh = self.made.pop(key, None) is not None
        if key in self.ended and not fresh:
            raise _no_edge(change)
        self.ended.setdefault(key, Ended(change=change, fresh=fresh))

    def forget(self, key: int) -> None:
        """What was made at a memory that is deleted in the same commit goes too."""
        self.made = {ends: edge for ends, edge in self.made.items() if key not in ends[:2]}

    def write(self, db: Database) -> None:
        """Write what ended, then what was made."""
        for key, ended in self.ended.items():
            if not graph.delete(db, key) and not ended.fresh:
                raise _no_edge(ended.change)
        graph.put(db, self.made)


def _no_edge(change: Unlink) -> NotFound:
    return NotFound(
        f"There is no {change.kind} link from {change.source_id} to {change.target_id}.",
        details={"source": change.source_id, "target": change.target_id, "kind": change.kind},
    )
