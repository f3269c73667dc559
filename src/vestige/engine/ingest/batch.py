"""The values of the write path: a new text, its draft, the decision about it, the result, and the batch."""

import re
from collections.abc import Sequence
from dataclasses import field
from datetime import datetime, timedelta, tzinfo
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.gate.decide import Decision
from vestige.cognition.prediction.importance import Judgement
from vestige.cognition.text.analyser import fingerprint
from vestige.cognition.text.form import about_user, user_label
from vestige.cognition.time.calendar import LATEST
from vestige.cognition.time.validity import StatedValidity, stated_validity
from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.events import Event
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import PROJECTS_SCOPE, ROOT_SCOPE, Memory, Record, covers
from vestige.core.origin import lowest
from vestige.core.timezone import local
from vestige.engine.context import Call, in_writable_domain, may_write_to, user_scope
from vestige.engine.domains.classify import Classifier
from vestige.engine.embedding import vectors_for
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Change, Embedded

Window = tuple[datetime | None, datetime | None]
Identity = tuple[str, str, str | None, int | None, Window | None]
"""What makes two texts identical: scope and normal form; for a turn of a conversation also thread and
position, and for a text that is not valid now its validity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewText:
    """One text to remember, as the caller gave it. `given` names the fields that were set. With `hold`, the
    reason, it waits for a review."""

    content: str
    tags: tuple[str, ...] = ()
    node_type: str = "fact"
    source: str | None = None
    scope: str | None = None
    author: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    thread: str | None = None
    position: int | None = None
    occurred_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    pinned: bool = False
    domains: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    force_create: bool = False
    origin: str | None = None
    hold: str | None = None
    given: frozenset[str] = frozenset()

    @property
    def may_end(self) -> bool:
        """Whether its words may limit its validity: not for a turn of a conversation or a pinned text."""
        return self.thread is None and not self.pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One text to remember: the memory it would become, the fields the caller gave, whether to skip the gate.
    `stated` is the validity in the text itself; `expires`: it ends only as a state with a time to live."""

    memory: Memory
    given: frozenset[str] = frozenset()
    force_create: bool = False
    stated: StatedValidity | None = None
    expires: bool = False
    scope_reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The gate's decision on a draft, the rival it is about, and the importance of the text."""

    decision: Decision
    rival: Memory | None
    importance: Judgement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of a draft.

    - `memory_id` is the memory in `scope` that now holds the text, `scope_reason` why there,
      `valid_from` and `valid_until` its validity, and `validity_words` the words of the text that state it.
      `begins_at` is a time to come at which it begins, by these words: the memory is found before that.
    - `importance` stays None if it was not judged.
    - `rival_preview` is the beginning of the memory that the decision is about, as it was before; None if
      that memory is suppressed or archived.
    """

    memory_id: str
    scope: str
    scope_reason: str
    valid_from: datetime | None
    valid_until: datetime | None
    decision: Decision
    embedded: bool
    importance: float | None = None
    suppressed: bool = False
    rival_preview: str | None = None
    validity_words: str | None = None
    begins_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldText:
    """A draft that waits in the review inbox, and why."""

    pending_id: str
    scope: str
    scope_reason: str
    reason: str
    flags: tuple[str, ...] = ()


@dataclass(slots=True, kw_only=True)
class IngestBatch:
    """A batch while it is decided item by item; each item sees what the earlier ones became."""

    call: Call
    now: datetime
    vectors: list[Embedded]
    """Of every draft; empty without a model."""
    wholes: NDArray[np.float32] | None
    """One vector for each draft; None without a model."""
    classifier: Classifier
    known: dict[str, Record] = field(default_factory=dict)
    identical: dict[Identity, str] = field(default_factory=dict)
    places: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """The memory at a scope, source and position."""
    rivals: dict[int, list[Scored]] = field(default_factory=dict)
    alike: NDArray[np.float32] | None = None
    """The cosine of every draft with every other; None without a model."""
    fresh: list[tuple[str, int]] = field(default_factory=list)
    """The memories that this batch adds, with the index of their draft, if they can have rivals."""
    changes: list[Change] = field(default_factory=list)
    held: list[Change] = field(default_factory=list)
    """The changes that put texts into the inbox."""
    events: list[Event] = field(default_factory=list)
    results: list[Ingested | HeldText] = field(default_factory=list)


def draft_all(call: Call, texts: Sequence[NewText]) -> list[Draft]:
    """The memory that each text would become, in a scope and domain that the caller may write to."""
    now = call.engine.now()
    return [_draft(call, text, index, now) for index, text in enumerate(texts)]


def _draft(call: Call, text: NewText, index: int, now: datetime) -> Draft:
    scope, why = _scope(call, text)
    if not may_write_to(call, scope):
        raise Forbidden(f"This caller may not write to the scope {scope}.", details={"scope": scope})
    stated = _stated_validity(text, local(now, call.zone), call.zone)
    kept = stated.by(now) if stated else None
    start, end = (kept.valid_from, kept.valid_until) if kept else (text.valid_from, text.valid_until)
    expiry = None if end else _expiry(call, text, max(now, start or now))
    try:
        memory = Memory(
            id=call.engine.new_id(),
            created_at=now,
            updated_at=now,
            scope=scope,
            valid_from=start,
            valid_until=end or expiry,
            origin=origin_of(call, text),
            **{name: getattr(text, name) for name in _COPIED},
        )
    except InvalidInput as exc:
        exc.details.setdefault("index", index)
        raise
    return Draft(
        memory=in_writable_domain(call, memory),
        given=text.given,
        force_create=text.force_create,
        stated=stated,
        expires=expiry is not None,
        scope_reason=why,
    )


def origin_of(call: Call, text: NewText) -> str:
    """The origin of a text: what the caller says, but never above the caller's own."""
    return lowest((call.origin.value, text.origin or call.origin.value)) or call.origin.value


def _scope(call: Call, text: NewText) -> tuple[str, str]:
    """The scope of a text, and why: the given one, that of the user, or the caller's."""
    if text.scope:
        return text.scope, "as given"
    shared, reason = user_scope(call), _about_user(call, text)
    if shared is not None and reason is not None:
        return shared, f"about the user: {reason}"
    if call.scope == ROOT_SCOPE:
        return call.scope, "no project"
    return call.scope, "the current project" if covers(PROJECTS_SCOPE, call.scope) else "the default scope"


def _about_user(call: Call, text: NewText) -> str | None:
    """The words, the type or the tag by which a text is about the user; None for what another person, a
    conversation or a document says, for notes on code, and for a text that names the project."""
    said_by_user = text.author is None or text.author.casefold() in ("user", "the user", "me")
    whole = text.thread is None and text.position is None and "/" not in (text.source or "")
    if not said_by_user or not whole or text.node_type in ("decision", "pattern"):
        return None
    project = re.split("[@~]", call.scope.rsplit("/", 1)[-1])[0]
    named = len(project) > 2 and re.search(rf"\b{re.escape(project)}\b", text.content, re.IGNORECASE)
    if named:
        return None
    words = about_user(text.content)
    if words is not None:
        return f"“{words}”"
    if user_label([text.node_type], text.content):
        return f"of type {text.node_type}"
    tag = user_label(text.tags, text.content)
    return f"tagged {tag}" if tag else None


def _stated_validity(text: NewText, now: datetime, zone: tzinfo) -> StatedValidity | None:
    """The validity that the text itself states; None if the caller gave one."""
    if not text.may_end or text.node_type == "event" or text.given & {"valid_from", "valid_until"}:
        return None
    return stated_validity(text.content, local(text.occurred_at, zone) if text.occurred_at else now)


def _expiry(call: Call, text: NewText, begin: datetime) -> datetime | None:
    """When a state's time to live ends; None for other types, and if the caller gave an end."""
    lifetime = timedelta(days=call.engine.settings.memory.state_ttl_days)
    if text.node_type != "state" or not text.may_end or "valid_until" in text.given:
        return None
    return begin + lifetime if begin < LATEST - lifetime else None


_COPIED = (
    "content", "tags", "node_type", "source", "author", "agent_id", "session_id", "thread", "position",
    "occurred_at", "pinned", "domains", "metadata",
)  # fmt: skip


def embed(call: Call, drafts: Sequence[Draft]) -> list[Embedded]:
    """The vectors of some drafts; empty without a model."""
    return vectors_for(call, [draft.memory for draft in drafts]) if drafts else []


def batch_of(call: Call, drafts: Sequence[Draft], vectors: list[Embedded]) -> IngestBatch:
    """A batch of drafts with their vectors, or without any; nothing is decided yet."""
    wholes = np.stack([whole_vector(made) for made in vectors]) if vectors else None
    # One time for the whole batch: a new memory begins exactly when the one it supersedes ends.
    now = drafts[0].memory.created_at if drafts else call.engine.now()
    classifier = Classifier(call)
    batch = IngestBatch(call=call, now=now, vectors=vectors, wholes=wholes, classifier=classifier)
    batch.alike = wholes @ wholes.T if wholes is not None and len(drafts) > 1 else None
    return batch


def identity(memory: Memory, now: datetime, wording: str | None = None) -> Identity:
    """The key of identical texts. A turn has its position in it: "yes" is said more than once in a thread."""
    place = memory.position if memory.thread is not None else None
    window = None if memory.valid_at(now) else (memory.valid_from, memory.valid_until)
    return memory.scope, fingerprint(wording or memory.content), memory.thread, place, window


def source_position(memory: Memory) -> tuple[str, str, int] | None:
    """The scope, source and position of a memory, if it has them; None for a turn of a thread."""
    if memory.source is None or memory.position is None or memory.thread is not None:
        return None
    return memory.scope, memory.source, memory.position


def whole_vector(made: Embedded) -> NDArray[np.float32]:
    """One unit vector for a text of several pieces: their mean."""
    if len(made.pieces) == 1:
        return made.pieces[0].vector
    mean = np.mean([piece.vector for piece in made.pieces], axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)
