"""Events of the memory, sent to listeners: the dashboard, the autopilot, tests.

The bus is not the log. The log (`models.LogEvent`) is the store's durable record; the bus carries live events
after a commit and may drop some for a slow listener. Events of other processes that use the same store arrive
through `engine.reactions.relay`.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, Field, field, fields, replace
from datetime import datetime
from typing import Any, get_origin

from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import EVERYTHING, Access, Memory

logger = logging.getLogger(__name__)

PREVIEW_CHARS = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class EventScope:
    """Scope of an event; for an event of a memory, also the domains of the memory."""

    scope: str
    domains: tuple[str, ...] = ()


def scopes_of(*memories: Memory) -> tuple[EventScope, ...]:
    """The scopes and domains of these memories, without repeats."""
    return tuple(dict.fromkeys(EventScope(scope=one.scope, domains=one.domains) for one in memories))


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who makes a call: the label of its key, or "local user", and the program that the client names, if it
    does."""

    by: str
    client: str | None = None


_ACTOR: ContextVar[Actor | None] = ContextVar("actor", default=None)


@contextmanager
def acting(actor: Actor | None) -> Iterator[None]:
    """Run a block for a caller. Its events say so; those of reactions, on other threads, do not."""
    before = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(before)


ACTOR_FIELDS = ("by", "client", "session")
"""Which caller an event is of, as far as known. Only listeners who may list the keys are sent it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """An event: what happened, when, in which scopes, and of which caller."""

    timestamp: datetime
    scopes: tuple[EventScope, ...] | None
    """Scopes of everything it concerns; None is the whole store. They decide who receives it, and are not
    sent.
    """
    scope: str | None = field(default=None, init=False)
    """The scope, if there is only one. Receivers have access to it."""
    by: str | None = None
    client: str | None = None
    session: str | None = None
    """The session that the call stated, as agents name it."""

    def __post_init__(self) -> None:
        names = {one.scope for one in self.scopes or ()}
        if self.scope is None and len(names) == 1:
            object.__setattr__(self, "scope", *names)

    def within(self, access: Access) -> bool:
        """Whether the access includes all of it. An event of the whole store needs access to everything. An
        access limited to domains includes no scope as such."""
        if access == EVERYTHING:
            return True
        return bool(self.scopes) and all(access.includes(one.scope, one.domains) for one in self.scopes or ())

    def details(self) -> dict[str, Any]:
        """The fields that listeners receive, by name."""
        return {one.name: getattr(self, one.name) for one in sent_fields(type(self))}

    def actor_fields(self) -> dict[str, str]:
        """Which caller it is of, as far as known."""
        return {name: value for name in ACTOR_FIELDS if (value := getattr(self, name)) is not None}

    def message(self, *, actor: bool = True) -> dict[str, Any]:
        """The event for listeners outside this process: `{type, data}`, with its caller or without."""
        data = {
            name: value.isoformat() if isinstance(value, datetime) else value
            for name, value in self.details().items()
        }
        return {"type": type(self).__name__, "data": {**data, **(self.actor_fields() if actor else {})}}


def sent_fields(kind: type[Event]) -> tuple[Field[Any], ...]:
    """The fields of an event that every listener receives."""
    return tuple(one for one in fields(kind) if one.name not in ("scopes", *ACTOR_FIELDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCreated(Event):
    """A new memory was written."""

    id: str
    content_preview: str
    node_type: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUpdated(Event):
    """A memory got a new revision; `field` names what changed."""

    id: str
    content_preview: str
    field: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDeleted(Event):
    """A memory was deleted."""

    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryPromoted(Event):
    """A memory was rated right or helpful."""

    id: str
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryDemoted(Event):
    """A memory was rated wrong or unhelpful."""

    id: str
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPerformed(Event):
    """A search was answered."""

    query: str
    result_count: int
    result_ids: tuple[str, ...]
    duration_ms: float
    scope: str = "/"
    """The scope that was searched; results may be in others."""
    topics: tuple[str, ...] = ()
    recorded: bool = True
    """Whether it may be recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionDiscovered(Event):
    """Two memories were linked."""

    source_id: str
    target_id: str
    connection_type: str
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySuppressed(Event):
    """A memory was suppressed; it can be reversed until the given time."""

    id: str
    suppression_count: int
    estimated_cascade: int
    reversible_until: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryUnsuppressed(Event):
    """A suppression was reversed."""

    id: str
    remaining_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rac1CascadeSwept(Event):
    """Final suppressions weakened their linked memories."""

    seeds: int
    neighbors_affected: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesArchived(Event):
    """Faded memories were archived."""

    ids: tuple[str, ...]
    archive_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesRestored(Event):
    """Memories were restored from the archive."""

    ids: tuple[str, ...]
    archive_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamStarted(Event):
    """A dream began."""

    memory_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamProgress(Event):
    """Progress of a dream."""

    phase: str
    progress_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamCompleted(Event):
    """A dream ended; its results are stored."""

    memories_replayed: int
    connections_found: int
    insights_generated: int
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryClassified(Event):
    """A new memory was assigned to the domains of its topic."""

    id: str
    domains: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DomainsChanged(Event):
    """Domains were found, or changed at a caller's request: `moved` memories are now in others than before.
    With the action `propose`, changes of `domains` wait for a decision."""

    action: str
    domains: tuple[str, ...]
    moved: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationStarted(Event):
    """A consolidation began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidationCompleted(Event):
    """A consolidation ended."""

    nodes_processed: int
    decay_applied: int
    embeddings_generated: int
    duration_ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecayed(Event):
    """A memory has faded into another state."""

    id: str
    old_retention: float
    new_retention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationSpread(Event):
    """Activation spread from a memory to its linked memories."""

    source_id: str
    activated_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportanceScored(Event):
    """A text was scored; `memory_id` is null if it was not stored."""

    memory_id: str | None
    content_preview: str
    composite_score: float
    novelty: float
    arousal: float
    reward: float
    attention: float


@dataclass(frozen=True, slots=True, kw_only=True)
class IntentionTriggered(Event):
    """An intention is due now."""

    id: str
    description: str
    priority: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewWaiting(Event):
    """A text waits in the review inbox. The event does not quote it."""

    id: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreMerged(Event):
    """Memories of another store were merged into this one."""

    source: str
    added: int
    changed: int
    ended: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupCompleted(Event):
    """A backup was made and verified. `rotated`: it is one of the rotating backups."""

    file: str
    """Its file name; not every listener may know its folder."""
    size_bytes: int
    rotated: bool


KINDS: Mapping[str, type[Event]] = {
    name: kind
    for name, kind in list(globals().items())
    if isinstance(kind, type) and issubclass(kind, Event) and kind is not Event
}
"""Every event by its type name."""


def event_from(message: Mapping[str, Any]) -> Event | None:
    """The event of an `Event.message` with its `places`; None for a type that this version does not know.

    Unknown fields of newer versions are ignored. A message of an older version without scopes concerns the
    whole store.
    """
    kind, data = KINDS.get(message.get("type", "")), message.get("data", {})
    if kind is None or any(one.name not in data and one.default is MISSING for one in sent_fields(kind)):
        return None
    given = [one for one in sent_fields(kind) if one.init and one.name in data]
    stated = {one.name: _read(one.type, data[one.name]) for one in given}
    stated |= {name: data[name] for name in ACTOR_FIELDS if isinstance(data.get(name), str)}
    return kind(**stated, scopes=_scopes(message.get("places")))


def _scopes(stated: Any) -> tuple[EventScope, ...] | None:
    """Scopes from JSON: pairs of a scope and its domains."""
    if stated is None:
        return None
    return tuple(EventScope(scope=scope, domains=tuple(domains)) for scope, domains in stated)


def _read(kind: object, value: Any) -> Any:
    """The value of a field from JSON."""
    if kind is datetime:
        return datetime.fromisoformat(value)
    return tuple(value) if get_origin(kind) is tuple else value


Listener = Callable[[Event], None]


class EventBus:
    """Sends every event to every listener, in order, on the emitting thread. An error of a listener is logged
    and does not affect other listeners or the emitter: the change is already committed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._listeners: tuple[tuple[Listener, bool], ...] = ()
        self._on_followed: Callable[[], None] = lambda: None

    @property
    def followed(self) -> bool:
        """Whether a listener wants events of other processes."""
        return any(everywhere for _, everywhere in self._listeners)

    def on_followed(self, stated: Callable[[], None]) -> None:
        """Set the callback for the first listener that wants events of other processes."""
        self._on_followed = stated

    @contextmanager
    def listening(self, listener: Listener, *, everywhere: bool = False) -> Iterator[None]:
        """Subscribe while the block runs: to events of this process, or `everywhere` on this store. Reactions
        listen to this process only: other processes have their own reactions."""
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
                # Only one subscription ends if a listener has several.
                at = self._listeners.index(subscribed)
                self._listeners = (*self._listeners[:at], *self._listeners[at + 1 :])

    def emit(self, *events: Event) -> None:
        """Send events of this process to every listener, with the caller that they are of."""
        actor = _ACTOR.get()
        for event in events:
            if actor is not None:
                event = replace(event, by=actor.by, client=actor.client)
            for listener, _ in self._listeners:
                _send(listener, event)

    def pass_on(self, event: Event) -> None:
        """Send an event of another process to listeners of events everywhere."""
        for listener, everywhere in self._listeners:
            if everywhere:
                _send(listener, event)


def _send(listener: Listener, event: Event) -> None:
    try:
        listener(event)
    except Exception:  # a listener is foreign code; the change is already committed
        logger.exception("A listener failed on %s", type(event).__name__)


def preview(text: str, limit: int = PREVIEW_CHARS) -> str:
    """The beginning of a text on one line, at most `limit` characters."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1] + "…"
