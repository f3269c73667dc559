"""What happened, told to whoever listens: the dashboard, autopilot, tests.

The bus is not the log. The log (`models.LogEvent`) is the store's durable truth; the bus carries
live news after a commit and may lose some for a listener that does not keep up. What happens in other
processes at work on the same store comes in through `engine.relay`.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields
from datetime import datetime
from typing import Any, get_origin

from vestige.core.models import EVERYTHING, Access, Memory, covers

logger = logging.getLogger(__name__)

PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class EventScope:
    """Where something happened: in a scope; to a memory, then with the domains it had."""

    scope: str
    domains: tuple[str, ...] = ()

    def reached_by(self, access: Access) -> bool:
        """Whether this access reaches what is there; one limited by domains reaches no scope as such."""
        if access.scopes is not None and not any(covers(scope, self.scope) for scope in access.scopes):
            return False
        return access.domains is None or not set(access.domains).isdisjoint(self.domains)


def places_of(*memories: Memory) -> tuple[EventScope, ...]:
    """Where these memories are, each place once."""
    return tuple(dict.fromkeys(EventScope(scope=one.scope, domains=one.domains) for one in memories))


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happened, when, and where."""

    timestamp: datetime
    places: tuple[EventScope, ...] | None
    """Of everything it is about; None is the whole store. They decide who is told, and are not told."""
    scope: str | None = field(default=None, init=False)
    """Where all of it lies in one scope, that. Whoever is told reaches it."""

    def __post_init__(self) -> None:
        scopes = {place.scope for place in self.places or ()}
        if self.scope is None and len(scopes) == 1:
            object.__setattr__(self, "scope", *scopes)

    def within(self, access: Access) -> bool:
        """Whether all of it lies in reach. What concerns the whole store does only for who reaches that."""
        if access == EVERYTHING:
            return True
        return bool(self.places) and all(place.reached_by(access) for place in self.places or ())

    def details(self) -> dict[str, Any]:
        """What listeners are told of it, by name."""
        return {one.name: getattr(self, one.name) for one in told_fields(type(self))}

    def message(self) -> dict[str, Any]:
        """The event as listeners outside this process get it: `{type, data}`."""
        data = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in self.details().items()
        }
        return {"type": type(self).__name__, "data": data}


def told_fields(kind: type[Happening]) -> tuple[Field[Any], ...]:
    """The fields of an event that listeners are told."""
    return tuple(one for one in fields(kind) if one.name != "places")


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCreated(Happening):
    """A new memory was written."""

    id: str
    content_preview: str
    node_type: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdated(Happening):
    """A memory got a new revision; `field` names what changed."""

    id: str
    content_preview: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDeleted(Happening):
    """A memory was deleted."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPromoted(Happening):
    """Somebody said a memory was right or helpful."""

    id: str
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDemoted(Happening):
    """Somebody said a memory was wrong or unhelpful."""

    id: str
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPerformed(Happening):
    """A search was answered."""

    query: str
    result_count: int
    result_ids: tuple[str, ...]
    duration_ms: float
    scope: str = "/"
    """That was searched; what was found may lie in others."""
    topics: tuple[str, ...] = ()
    recorded: bool = True
    """Whether it may leave a trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionDiscovered(Happening):
    """Two memories were linked."""

    source_id: str
    target_id: str
    connection_type: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySuppressed(Happening):
    """A memory was suppressed; until then it can be taken back."""

    id: str
    suppression_count: int
    estimated_cascade: int
    reversible_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUnsuppressed(Happening):
    """A suppression was taken back."""

    id: str
    remaining_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rac1CascadeSwept(Happening):
    """Suppressions that are final have weakened what is linked to them."""

    seeds: int
    neighbors_affected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesArchived(Happening):
    """Memories that had faded were put into the archive."""

    ids: tuple[str, ...]
    archive_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesRestored(Happening):
    """Memories came back from the archive."""

    ids: tuple[str, ...]
    archive_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamStarted(Happening):
    """A dream began."""

    memory_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamProgress(Happening):
    """How far a dream is."""

    phase: str
    progress_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamCompleted(Happening):
    """A dream ended; what it found is stored."""

    memories_replayed: int
    connections_found: int
    insights_generated: int
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationStarted(Happening):
    """A consolidation began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationCompleted(Happening):
    """A consolidation ended."""

    nodes_processed: int
    decay_applied: int
    embeddings_generated: int
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecayed(Happening):
    """A memory was seen to have faded into another state."""

    id: str
    old_retention: float
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationSpread(Happening):
    """Activation went from a memory to those linked to it."""

    source_id: str
    activated_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceScored(Happening):
    """A text was judged; `memory_id` is None when it was not stored."""

    memory_id: str | None
    content_preview: str
    composite_score: float
    novelty: float
    arousal: float
    reward: float
    attention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentionTriggered(Happening):
    """Something that was to be remembered is due now."""

    id: str
    description: str
    priority: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMerged(Happening):
    """Another store's memories were united with this one's."""

    source: str
    added: int
    changed: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupCompleted(Happening):
    """A backup was made and checked. A rotated one takes its turn with others."""

    file: str
    """Its name; where it lies is not for everybody who listens."""
    size_bytes: int
    rotated: bool


KINDS: Mapping[str, type[Happening]] = {
    name: kind
    for name, kind in list(globals().items())
    if isinstance(kind, type) and issubclass(kind, Happening) and kind is not Happening
}
"""Every event by the name it travels under."""


def happening_from(message: Mapping[str, Any]) -> Happening | None:
    """The event that `Happening.message` told, with the `places` beside it; None for one that this version
    does not know.

    Fields that a newer version added are left out. An older one told no places: that concerns the whole
    store as far as anybody knows.
    """
    kind, data = KINDS.get(message.get("type", "")), message.get("data", {})
    if kind is None or any(one.name not in data and one.default is MISSING for one in told_fields(kind)):
        return None
    given = [one for one in told_fields(kind) if one.init and one.name in data]
    told = {one.name: _read(one.type, data[one.name]) for one in given}
    return kind(**told, places=_places(message.get("places")))


def _places(told: Any) -> tuple[EventScope, ...] | None:
    """Places from what JSON made of them: pairs of a scope and its domains."""
    if told is None:
        return None
    return tuple(EventScope(scope=scope, domains=tuple(domains)) for scope, domains in told)


def _read(kind: object, value: Any) -> Any:
    """A field's value from what JSON made of it."""
    if kind is datetime:
        return datetime.fromisoformat(value)
    return tuple(value) if get_origin(kind) is tuple else value


Listener = Callable[[Happening], None]


class EventBus:
    """Hands every event to every listener, in order, on the thread that emits it.

    A listener that raises is logged and does not disturb the others or the emitter: what it was
    told has already been committed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: tuple[tuple[Listener, bool], ...] = ()
        self._on_followed: Callable[[], None] = lambda: None

    @property
    def followed(self) -> bool:
        """Whether anybody wants to hear of other processes."""
        return any(everywhere for _, everywhere in self._listeners)

    def on_followed(self, told: Callable[[], None]) -> None:
        """Have this called when somebody begins to want that and nobody did before."""
        self._on_followed = told

    @contextmanager
    def listening(self, listener: Listener, *, everywhere: bool = False) -> Iterator[None]:
        """Subscribe for as long as the block runs: to what happens here, or `everywhere` on this store.

        What reacts listens here only: the other process has its own reactions.
        """
        subscribed = (listener, everywhere)
        with self._lock:
            first = everywhere and not self.followed
            self._listeners = (*self._listeners, subscribed)
        try:
            if first:
                self._on_followed()
            yield
        finally:
            with self._lock:
                # Only one of them goes, should somebody listen twice.
                at = self._listeners.index(subscribed)
                self._listeners = (*self._listeners[:at], *self._listeners[at + 1 :])

    def emit(self, *happenings: Happening) -> None:
        """Tell every listener what happened here."""
        for happening in happenings:
            for listener, _ in self._listeners:
                _tell(listener, happening)

    def pass_on(self, happening: Happening) -> None:
        """Tell those who listen everywhere what happened in another process."""
        for listener, everywhere in self._listeners:
            if everywhere:
                _tell(listener, happening)


def _tell(listener: Listener, happening: Happening) -> None:
    try:
        listener(happening)
    except Exception:  # a listener is foreign code; what it hears is already committed
        logger.exception("A listener failed on %s", type(happening).__name__)


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The beginning of a text on one line, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
