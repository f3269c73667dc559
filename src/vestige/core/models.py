"""Core values: frozen, checked when created, without IO.

A `Memory` is canonical: the text, with its origin and times. A `Strength` is derived: how well it is
remembered, folded from the event log. A `Record` is the two together.
"""

import enum
from collections.abc import Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

import orjson

from vestige.core.errors import InvalidInput, TooLarge
from vestige.core.lazy_dataclass import dataclass
from vestige.core.patterns import lazy_pattern

MOST_SURE = 0.99
"""The highest value of a judgement about meaning: of trust, confidence, the similarity of different texts."""


def estimate(value: float) -> float:
    """A judgement between 0 and 1 as answers show it: rounded, and never certain."""
    return min(MOST_SURE, round(value, 4))


# -- Checks of values before they are stored; errors state the problem and what to do

MAX_CONTENT_BYTES = 1_000_000
MAX_LABEL_CHARS = 1_000
MAX_LABEL_BYTES = 2_000
MAX_NAME_BYTES = 500
MAX_DOCUMENT_ID_BYTES = 1_100
"""Limits of database indexes: PostgreSQL allows 2,700 bytes a row, and finds an edge by two ids, a kind and a
node. The id of a document may combine two others.
"""
MAX_METADATA_BYTES = 100_000
MAX_PENDING_BYTES = 7 * MAX_CONTENT_BYTES
"""As JSON, a control character has six bytes."""
MAX_INTEGER = 2**63 - 1

SCHEMA_NAMES = (
    "Use lower-case letters, digits and _, at most 63; start with a letter or _. It must not start with "
    "pg_ (reserved by the server) or be information_schema."
)
_SCHEMA_NAME = lazy_pattern(r"(?!pg_|information_schema$)[a-z_][a-z0-9_]{0,62}")
_NUL_IN_JSON = lazy_pattern(rb"(?<!\\)(?:\\\\)*\\u0000")


def check_content(content: str) -> None:
    """Reject text that is empty, too long, or not storable."""
    size = len(check_text("content", content))
    if not content.strip():
        raise InvalidInput("The content is empty.", hint="Give the text to remember.")
    if size > MAX_CONTENT_BYTES:
        raise TooLarge(
            f"The content has {size:,} bytes; the limit is {MAX_CONTENT_BYTES:,}.",
            hint="Split it into several memories that share a `thread`, with a `position` each.",
            details={"bytes": size, "limit": MAX_CONTENT_BYTES},
        )


def is_schema_name(name: str) -> bool:
    """Whether a database schema can have this name: `SCHEMA_NAMES` states the rule."""
    return _SCHEMA_NAME.fullmatch(name) is not None


def check_label(name: str, label: str) -> None:
    """Reject a short text field that is blank, too long, or not storable."""
    check_text(name, label)
    if not label.strip():
        raise InvalidInput(f"`{name}` is blank.", hint="Omit it instead.")
    if len(label) > MAX_LABEL_CHARS:
        raise TooLarge(f"`{name}` has {len(label):,} characters; the limit is {MAX_LABEL_CHARS:,}.")


def check_short(name: str, label: str, most_bytes: int = MAX_LABEL_BYTES) -> None:
    """Reject a label that a database cannot index. Only for writes: earlier versions stored longer ones."""
    check_label(name, label)
    if 4 * len(label) <= most_bytes:
        return
    size = len(label.encode())
    if size > most_bytes:
        raise TooLarge(
            f"`{name}` has {size:,} bytes in UTF-8; the limit is {most_bytes:,}.",
            hint="Shorten it.",
            details={"bytes": size, "limit": most_bytes},
        )


def check_name(name: str, value: str) -> None:
    """Reject an id or kind that a database cannot index together with others."""
    check_short(name, value, MAX_NAME_BYTES)


def check_text(name: str, text: str) -> bytes:
    """The text as UTF-8; InvalidInput for another type, NUL characters and lone surrogates."""
    if not isinstance(text, str):
        raise InvalidInput(f"`{name}` is not text.")
    if "\0" in text:
        raise InvalidInput(f"`{name}` contains a NUL character.", hint="Remove it and send the text again.")
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as exc:
        raise InvalidInput(
            f"`{name}` is not valid Unicode: a lone surrogate at character {exc.start}.",
            hint="Send valid Unicode: unpaired surrogates cannot be stored.",
            details={"position": exc.start},
        ) from exc


def check_metadata(metadata: Mapping[str, Any], most_bytes: int = MAX_METADATA_BYTES) -> None:
    """Reject metadata that is not a storable JSON object, or too large."""
    size = len(check_json("metadata", metadata))
    if size > most_bytes:
        raise TooLarge(f"`metadata` has {size:,} bytes; the limit is {most_bytes:,}.")


def check_json(name: str, value: object) -> bytes:
    """The value as JSON; InvalidInput for values JSON cannot hold, NUL characters and lone surrogates."""
    try:
        written = orjson.dumps(value, default=dict)
    except (orjson.JSONEncodeError, TypeError) as exc:
        raise InvalidInput(f"`{name}` cannot be stored as JSON: {exc}.") from exc
    if nul_in_json(written):
        raise InvalidInput(f"`{name}` contains a NUL character.", hint="Remove it and send it again.")
    return written


def nul_in_json(written: bytes) -> bool:
    """Whether a text in this JSON contains NUL, which PostgreSQL stores but then cannot query."""
    # The plain search is much faster and usually enough.
    return b"\\u0000" in written and _NUL_IN_JSON.search(written) is not None


def check_moment(name: str, moment: datetime | None) -> None:
    """Reject a datetime that is not aware and in UTC."""
    if moment is not None and moment.tzinfo is not UTC and moment.utcoffset() != timedelta(0):
        raise InvalidInput(f"`{name}` must be a UTC time.")


def check_window(begin: datetime | None, end: datetime | None) -> None:
    """Reject a time window that ends before it starts."""
    if begin is not None and end is not None and end < begin:
        raise InvalidInput(
            "`valid_until` is before `valid_from`.", hint="Give a `valid_until` later than `valid_from`."
        )


def non_negative(count: int) -> int:
    """A limit or offset that a database can take; InvalidInput when it is negative."""
    if count < 0:
        raise InvalidInput("A limit or offset cannot be negative.", details={"given": count})
    return min(count, MAX_INTEGER)


def utc(moment: datetime) -> datetime:
    """The time in UTC; without a zone it is taken as UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


FIRST_MOMENT, LAST_MOMENT = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def moved(moment: datetime, by: timedelta) -> datetime:
    """The time so much later; beyond the calendar, its first or last time."""
    try:
        return moment + by
    except OverflowError:
        return LAST_MOMENT if by > timedelta(0) else FIRST_MOMENT


# -- Memories and what belongs to them

MAX_TAGS = 100
ROOT_SCOPE = "/"
PROJECTS_SCOPE = "/project"  # One scope below it for each project.
SHARED_SCOPE = "/user"
"""Facts about the user, which every project inherits."""

LABELS = (
    "id", "node_type", "source", "author", "agent_id", "session_id", "thread", "superseded_by", "origin",
)  # fmt: skip
MOMENTS = (
    "created_at", "updated_at", "occurred_at", "valid_from", "valid_until", "suppressed_at", "archived_at",
)  # fmt: skip

NO_METADATA: Mapping[str, Any] = MappingProxyType({})
"""The empty mapping that records without metadata can share."""


class LearningState(enum.StrEnum):
    """The FSRS learning state of a memory."""

    NEW = "new"
    REVIEW = "review"
    RELEARNING = "relearning"


class Evidence(enum.StrEnum):
    """Events that change the strength of a memory."""

    ENCODED = "encoded"
    EXPOSED = "exposed"
    AGAIN = "again"
    HARD = "hard"
    GOOD = "good"
    EASY = "easy"
    PROMOTED = "promoted"
    DEMOTED = "demoted"
    USEFUL = "useful"
    REINFORCED = "reinforced"
    RECONSOLIDATED = "reconsolidated"
    IMPORTANT = "important"
    CAPTURED = "captured"
    REPLAYED = "replayed"
    INHIBITED = "inhibited"


class MemoryState(enum.StrEnum):
    """How easily a memory is recalled, from its accessibility (cognition/fsrs/strength.py)."""

    ACTIVE = "active"
    DORMANT = "dormant"
    SILENT = "silent"
    UNAVAILABLE = "unavailable"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing remembered.

    `created_at`/`updated_at` are transaction time (when the store learned it), `valid_from`/ `valid_until`
    valid time (when it was true; the end is exclusive, None is open), `occurred_at` when it happened.
    `revision` counts every change of any field here; earlier revisions are kept. `phrasings` are other
    wordings of the same fact, stored later. No search finds an archived memory; it can be read by its id.
    `origin` is the kind of source (`core.origin`) of its text, the least trusted of several; it never rises.
    """

    id: str
    content: str
    created_at: datetime
    updated_at: datetime
    node_type: str = "fact"
    tags: tuple[str, ...] = ()
    scope: str = ROOT_SCOPE
    source: str | None = None
    author: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    thread: str | None = None
    position: int | None = None
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    superseded_by: str | None = None
    pinned: bool = False
    suppression_count: int = 0
    suppressed_at: datetime | None = None
    archived_at: datetime | None = None
    revision: int = 1
    phrasings: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    domain_scores: Mapping[str, float] = field(default_factory=lambda: NO_METADATA)
    metadata: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA)
    origin: str | None = None

    def __post_init__(self) -> None:
        for wording in (self.content, *self.phrasings):
            check_content(wording)
        for name in LABELS:
            label = getattr(self, name)
            if label is not None:
                check_label(name, label)
        if self.metadata:
            check_metadata(self.metadata)
        if len(self.tags) > MAX_TAGS:
            raise TooLarge(f"A memory has at most {MAX_TAGS} tags; this one has {len(self.tags)}.")
        for tag in (*self.tags, *self.domains):
            check_label("tags", tag)
        if self.scope != normal_scope(self.scope):
            raise InvalidInput(f"The scope {self.scope!r} is not in normal form.")
        if self.position is not None and not -(2**63) <= self.position < 2**63:
            raise InvalidInput("`position` does not fit in 64 bits.")
        for name in MOMENTS:
            check_moment(name, getattr(self, name))
        check_window(self.valid_from, self.valid_until)

    def valid_at(self, moment: datetime) -> bool:
        begun = self.valid_from is None or self.valid_from <= moment
        return begun and (self.valid_until is None or moment < self.valid_until)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryContext:
    """What of a memory says where and when it was made."""

    id: str
    content: str
    created_at: datetime
    tags: tuple[str, ...] = ()
    scope: str = ROOT_SCOPE
    source: str | None = None
    session_id: str | None = None
    occurred_at: datetime | None = None

    @classmethod
    def of(cls, memory: Memory) -> "MemoryContext":
        return cls(
            id=memory.id,
            content=memory.content,
            created_at=memory.created_at,
            tags=memory.tags,
            scope=memory.scope,
            source=memory.source,
            session_id=memory.session_id,
            occurred_at=memory.occurred_at,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Strength:
    """The strength of a memory. Derived: a fold over its evidence in the event log.

    Retrievability decays on the FSRS-6 curve from `decay_from` with `stability` (days); `retrieval` is the
    level it decays from (1 unless demoted), `storage` (0..10) only grows. `due_at` is the next review.
    `retention` is a snapshot of the blend of the two taken at `retention_at`. `curve` is the w20 of the
    curve, the same for all memories of a store.
    """

    stability: float
    difficulty: float
    decay_from: datetime
    due_at: datetime
    last_accessed: datetime
    retention: float
    retention_at: datetime
    retrieval: float = 1.0
    storage: float = 1.0
    learning_state: LearningState = LearningState.NEW
    reps: int = 0
    lapses: int = 0
    exposed_at: datetime | None = None
    times_retrieved: int = 0
    times_useful: int = 0
    curve: float = 0.1542  # the default of FSRS-6, `cognition.fsrs.fsrs.W20`

    @property
    def recalled(self) -> bool:
        """Whether anything has come back to the memory since it was written: it was shown in an answer, used,
        reviewed, rated, corrected or stored again."""
        return self.times_retrieved + self.times_useful + self.reps > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A memory with its strength, as a store returns it."""

    memory: Memory
    strength: Strength
    embedded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """An earlier state of a memory, as stored from `recorded_at` until `ended_at`."""

    memory: Memory
    recorded_at: datetime
    ended_at: datetime
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tombstone:
    """The mark of a deleted memory, without content."""

    memory_id: str
    deleted_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """A directed link between two memories of the same access."""

    source_id: str
    target_id: str
    kind: str
    weight: float = 1.0
    created_at: datetime


def weight_of(stored: object) -> float:
    """The weight of an edge as it is stored; one out of range, which an older version took in, is limited."""
    return min(1.0, max(0.0, stored)) if isinstance(stored, int | float) and stored == stored else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEvent:
    """One line of the append-only log.

    `position` is this store's commit order; (`node`, `seq`) names the event everywhere; `clock` is a
    hybrid logical clock (milliseconds << 16 | counter). The payload never holds a memory's text.
    """

    position: int
    node: str
    seq: int
    clock: int
    at: datetime
    kind: str
    memory_id: str | None
    scope: str
    payload: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """The memories that a call may see and change. None means everything; a scope covers scopes below it."""

    scopes: tuple[str, ...] | None = None
    domains: tuple[str, ...] | None = None

    def allows(self, memory: Memory) -> bool:
        return self.includes(memory.scope, memory.domains)

    def includes(self, scope: str, domains: tuple[str, ...]) -> bool:
        """Whether this access includes a scope and one of the domains in it."""
        if self.scopes is not None and not any(covers(one, scope) for one in self.scopes):
            return False
        return self.domains is None or not set(self.domains).isdisjoint(domains)


EVERYTHING = Access()  # The access of the local user: the CLI and a stdio server on the user's own machine.


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Which memories a search, list or count is about. Unset fields do not filter.

    `scope` covers what is below it, unless `scope_only` is set; `inherited` adds what the scope inherits:
    memories of exactly an enclosing scope, and everything under SHARED_SCOPE. `tags_any`/`tags_all` compare
    exactly. `created_from` is inclusive, `created_to` exclusive. `valid_at` keeps what was true then (and
    drops what was superseded by then). `known_at` filters each memory by the revision stored at that time,
    and drops later memories; strengths are today's. `due_by` keeps what is due then or before.
    `min_retention` and `max_retention` (both inclusive) are computed at `now`, which is then required.
    `include_suppressed` includes suppressed memories; `suppressed_by` keeps only those whose last suppression
    was then or before. `archived` keeps only what is archived, or not; None does not filter. What is
    suppressed or archived now stays hidden whatever `known_at` is. `recalled` keeps only what was recalled
    (`Strength.recalled`), or not.
    """

    scope: str | None = None
    scope_only: bool = False
    inherited: bool = False
    domains: tuple[str, ...] = ()
    tags_any: tuple[str, ...] = ()
    tags_all: tuple[str, ...] = ()
    node_types: tuple[str, ...] = ()
    exclude_types: tuple[str, ...] = ()
    source: str | None = None
    author: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    thread: str | None = None
    position: int | None = None
    origin: str | None = None
    created_from: datetime | None = None
    created_to: datetime | None = None
    valid_at: datetime | None = None
    known_at: datetime | None = None
    pinned: bool | None = None
    include_suppressed: bool = True
    suppressed_by: datetime | None = None
    archived: bool | None = False
    min_retention: float | None = None
    max_retention: float | None = None
    due_by: datetime | None = None
    recalled: bool | None = None
    now: datetime | None = None


ANYTHING = Filter(archived=None)  # Every memory, including archived ones.


class Order(enum.StrEnum):
    """Sort order of a list; ties are ordered by id, ascending."""

    NEWEST = "newest"
    OLDEST = "oldest"
    DUE = "due"
    RETENTION = "retention"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreStats:
    """Counts over the memories of an access that are not archived; `archived` counts the others."""

    memories: int
    embedded: int
    pinned: int
    suppressed: int
    archived: int
    superseded: int
    edges: int
    due: int
    oldest: datetime | None
    newest: datetime | None
    by_type: Mapping[str, int]
    by_scope: Mapping[str, int]


def covers(scope: str, other: str) -> bool:
    """Whether `scope` is `other` or above it."""
    return scope == ROOT_SCOPE or other == scope or other.startswith(scope + "/")


def nested(scope: str, other: str) -> bool:
    """Whether one of two scopes is the other or above it. Only then can memories of both be rivals: what
    holds in one project says nothing about another."""
    return covers(scope, other) or covers(other, scope)


def scope_filter(scopes: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Scopes as the filter of an access: None if the root is among them."""
    return None if scopes is None or ROOT_SCOPE in scopes else scopes


def enclosing(scope: str) -> tuple[str, ...]:
    """The scopes above this one, outermost first."""
    parts = scope.strip("/").split("/")[:-1]
    return (ROOT_SCOPE, *("/" + "/".join(parts[: depth + 1]) for depth in range(len(parts))))


def normal_scope(scope: str) -> str:
    """A scope as a normalised absolute path, or InvalidInput."""
    check_label("scope", scope)
    parts = [part for part in scope.strip().split("/") if part]
    if any(part in (".", "..") or part != part.strip() for part in parts):
        raise InvalidInput(
            f"The scope {scope!r} is not a plain path.",
            hint="Use a path such as /project/vestige or /user/ada.",
        )
    return "/" + "/".join(parts)
