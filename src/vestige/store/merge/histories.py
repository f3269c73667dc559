"""Everything canonical, entity by entity: what a store gives away and takes in, and how two tellings unite.

A life is an entity with every event about it. Lives of the same entity unite: the union of the events, in the
order of their stamps, decides what the entity is. So the order in which stores meet does not matter.
"""

from dataclasses import dataclass

from vestige.core.documents import Document
from vestige.core.models import Access, LogEvent, Memory, covers
from vestige.store.contract.changes import Embedded

Stamp = tuple[int, str, int]
"""When something happened, on every store alike: (clock, node, seq)."""


def stamp(event: LogEvent) -> Stamp:
    """An event's place in the order that all stores share."""
    return (event.clock, event.node, event.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryHistory:
    """A memory from its creation on. All events about it but those of its edges, by stamp; their positions
    are 0.

    `versions` are its states after each `memory.created` and `memory.revised` among them, in the order of
    `uniting.writes`; the last one is the present. A deleted memory has none.
    """

    memory_id: str
    events: tuple[LogEvent, ...]
    versions: tuple[Memory, ...]
    embedded: Embedded | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeHistory:
    """All events about one edge, by stamp; the last one says whether it is there, and how heavy."""

    source_id: str
    target_id: str
    kind: str
    events: tuple[LogEvent, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHistory:
    """A document as it was last put, with the stamp of that (`clock`, `node`), and the events about it.

    None was dropped, or went with a memory it cited; then clock and node are 0 and empty.
    """

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
    """Whether a memory was always within this access. A life cannot be told in part, so one that was
    elsewhere before is not told at all to who may not read there."""
    scopes, been = access.scopes, {event.scope for event in history.events}
    seen = scopes is None or all(any(covers(one, scope) for one in scopes) for scope in been)
    return seen and all(access.allows(version) for version in history.versions)


def successors(history: MemoryHistory) -> set[str]:
    """The memories that this one was ever superseded by: whoever is told its life is told of them."""
    return {version.superseded_by for version in history.versions if version.superseded_by is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Absorbed:
    """What came of taking lives in. `events` were new here; of the entities, those that are another than
    before count as added, changed or ended. `waiting` are documents left out because a memory they cite is
    not here."""

    events: int = 0
    memories_added: int = 0
    memories_changed: int = 0
    memories_ended: int = 0
    edges: int = 0
    documents: int = 0
    waiting: tuple[str, ...] = ()
