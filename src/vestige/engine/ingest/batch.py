"""The values of the write path: a new text, its draft, what was decided, and the batch they are in."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.gate.decide import Decision
from vestige.cognition.prediction.importance import Judgement
from vestige.cognition.text.analyser import fingerprint
from vestige.cognition.time.calendar import LATEST
from vestige.cognition.time.validity import StatedValidity, stated_validity
from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.events import Happening
from vestige.core.models import Memory, Record, covers
from vestige.engine.context import Call, placed
from vestige.engine.embedding import vectors_for
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Change, Embedded

Window = tuple[datetime | None, datetime | None]
Identity = tuple[str, str, str | None, int | None, Window | None]
"""What makes two texts one: scope and normal form, for a turn its thread and place in it, and for what is
not true now the time when it was or will be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewText:
    """One text to remember, as its caller gave it. `given` names the fields that were set."""

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
    given: frozenset[str] = frozenset()

    @property
    def may_end(self) -> bool:
        """Whether its words may limit when it is true: not for a turn of a conversation or a pinned text."""
        return self.thread is None and not self.pinned


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One text to remember: the memory it would become, the fields its teller gave, and whether to ask
    the gate at all.

    `told` is what its own words say about when it is true, where its teller does not; `expires` says that its
    end is only a state's time to live.
    """

    memory: Memory
    given: frozenset[str] = frozenset()
    force_create: bool = False
    told: StatedValidity | None = None
    expires: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """The gate's decision on a draft, the rival it was decided by, and how much the text matters."""

    decision: Decision
    rival: Memory | None
    importance: Judgement | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of a draft. `memory_id` is the record in `scope` that now holds its text, `valid_from` and
    `valid_until` its window, `validity_words` the words of the text that gave it, `importance` how much
    the text mattered, if that is judged, `suppressed` that the record is kept out of mind, `rival_preview`
    the beginning of the memory it was decided by, as that was before, unless that is out of mind."""

    memory_id: str
    scope: str
    valid_from: datetime | None
    valid_until: datetime | None
    decision: Decision
    embedded: bool
    importance: float | None = None
    suppressed: bool = False
    rival_preview: str | None = None
    validity_words: str | None = None


@dataclass(slots=True, kw_only=True)
class IngestBatch:
    """A batch while it is being decided, item by item, each seeing what the earlier ones became."""

    call: Call
    now: datetime
    vectors: list[Embedded]
    """Of every draft; none at all without a model."""
    wholes: NDArray[np.float32] | None
    """One vector for each draft; None without a model."""
    known: dict[str, Record] = field(default_factory=dict)
    identical: dict[Identity, str] = field(default_factory=dict)
    places: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """The memory at a scope, source and position."""
    rivals: dict[int, list[Scored]] = field(default_factory=dict)
    alike: NDArray[np.float32] | None = None
    """The cosine of every draft with every other; None without a model."""
    fresh: list[tuple[str, int]] = field(default_factory=list)
    """The memories this batch adds, with the draft each was, as far as they can have rivals."""
    changes: list[Change] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    results: list[Ingested] = field(default_factory=list)


def draft_all(call: Call, texts: Sequence[NewText]) -> list[Draft]:
    """The draft of each text: the memory it would become, in a scope and domain its caller may write to."""
    now = call.engine.now()
    return [_draft(call, text, index, now) for index, text in enumerate(texts)]


def _draft(call: Call, text: NewText, index: int, now: datetime) -> Draft:
    scope = text.scope or call.scope
    if call.access.scopes is not None and not any(covers(allowed, scope) for allowed in call.access.scopes):
        raise Forbidden(f"This caller may not write to the scope {scope}.", details={"scope": scope})
    told = _stated_validity(text, now)
    kept = told.by(now) if told else None
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
            **{name: getattr(text, name) for name in _COPIED},
        )
    except InvalidInput as exc:
        exc.details.setdefault("index", index)
        raise
    return Draft(
        memory=placed(call, memory),
        given=text.given,
        force_create=text.force_create,
        told=told,
        expires=expiry is not None,
    )


def _stated_validity(text: NewText, now: datetime) -> StatedValidity | None:
    """What the text itself says about when it is true; None where its caller says it."""
    if not text.may_end or text.node_type == "event" or text.given & {"valid_from", "valid_until"}:
        return None
    return stated_validity(text.content, text.occurred_at or now)


def _expiry(call: Call, text: NewText, begin: datetime) -> datetime | None:
    """When the time to live of a state is over; None for anything else and where its caller names an end."""
    life = timedelta(days=call.engine.settings.memory.state_ttl_days)
    if text.node_type != "state" or not text.may_end or "valid_until" in text.given:
        return None
    return begin + life if begin < LATEST - life else None


_COPIED = (
    "content", "tags", "node_type", "source", "author", "agent_id", "session_id", "thread", "position",
    "occurred_at", "pinned", "domains", "metadata",
)  # fmt: skip


def embed(call: Call, drafts: Sequence[Draft]) -> IngestBatch:
    """A batch of at least one draft with its vectors; nothing is decided yet."""
    vectors = vectors_for(call, [draft.memory for draft in drafts])
    wholes = np.stack([whole_vector(made) for made in vectors]) if vectors else None
    # One moment for the whole batch: what supersedes begins exactly when what it supersedes ends.
    batch = IngestBatch(call=call, now=drafts[0].memory.created_at, vectors=vectors, wholes=wholes)
    batch.alike = wholes @ wholes.T if wholes is not None and len(drafts) > 1 else None
    return batch


def identity(memory: Memory, now: datetime, wording: str | None = None) -> Identity:
    """What this text is the same as; "yes" is said more than once in a thread."""
    place = memory.position if memory.thread is not None else None
    window = None if memory.valid_at(now) else (memory.valid_from, memory.valid_until)
    return memory.scope, fingerprint(wording or memory.content), memory.thread, place, window


def place_of(memory: Memory) -> tuple[str, str, int] | None:
    """Where a memory stands, if it says so; a turn of a thread stands in its thread only."""
    if memory.source is None or memory.position is None or memory.thread is not None:
        return None
    return memory.scope, memory.source, memory.position


def whole_vector(made: Embedded) -> NDArray[np.float32]:
    """One unit vector for a text of several pieces: their mean."""
    if len(made.pieces) == 1:
        return made.pieces[0].vector
    mean = np.mean([piece.vector for piece in made.pieces], axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)
