"""The histories of entities: what stores export, exchange and merge.

A history is an entity with every event about it. Two histories of one entity are merged by the union of their
events; the order of the stamps decides what the entity is. So it does not matter in which order stores
exchange.
"""

from vestige.core.documents import Document
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Access, LogEvent, Memory, covers
from vestige.store.contract.changes import Embedded

Stamp = tuple[int, str, int]
"""The time of an event, the same on every store: (clock, node, seq)."""


def stamp(event: LogEvent) -> Stamp:
    """The position of an event in the order that all stores share."""
    return (event.clock, event.node, event.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHistory:
    """The history of a memory: all its events but those of its edges, by stamp; their positions are 0.
    `versions` are the states after each `memory.created` and `memory.revised`, in the order of
    `union.writes`; the last one is the present state. A deleted memory has none."""

    memory_id: str
    events: tuple[LogEvent, ...]
    versions: tuple[Memory, ...]
    embedded: Embedded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeHistory:
    """All events of one edge, by stamp; the last one says whether it exists, and its weight."""

    source_id: str
    target_id: str
    kind: str
    events: tuple[LogEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHistory:
    """A document as it was last written, with the stamp of that write (`clock`, `node`), and its events.
    Without a `document`, it was dropped, or deleted with a memory it cited; then clock and node are 0 and
    empty."""

    kind: str
    id: str
    events: tuple[LogEvent, ...]
    document: Document | None
    clock: int = 0
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CurveHistory:
    """Every change of the curve of forgetting, by stamp."""

    events: tuple[LogEvent, ...]


EntityHistory = MemoryHistory | EdgeHistory | DocumentHistory | CurveHistory


def ever_within(history: MemoryHistory, access: Access) -> bool:
    """Whether a memory was always accessible to a caller. A history is exported whole or not at all, so one
    with a past in a scope that the caller may not read is left out."""
    scopes, been = access.scopes, {event.scope for event in history.events}
    seen = scopes is None or all(any(covers(one, scope) for one in scopes) for scope in been)
    return seen and all(access.allows(version) for version in history.versions)


def successors(history: MemoryHistory) -> set[str]:
    """The memories that ever superseded this one: its history names them."""
    return {version.superseded_by for version in history.versions if version.superseded_by is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fork:
    """A node id under which two installations wrote, found in a merge. If it was this store's own, the store
    has the node id `successor` from then on."""

    node: str
    successor: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """The result of a merge. `events` were new here. Entities count as added, changed or ended if they differ
    from before. `waiting` are documents left out because a memory they cite is not here. `forks` are clones
    that were found."""

    events: int = 0
    memories_added: int = 0
    memories_changed: int = 0
    memories_ended: int = 0
    edges: int = 0
    documents: int = 0
    waiting: tuple[str, ...] = ()
    forks: tuple[Fork, ...] = ()

    @property
    def successor(self) -> str | None:
        """The new node id of this store, if it has one since this merge."""
        return next((fork.successor for fork in self.forks if fork.successor is not None), None)
