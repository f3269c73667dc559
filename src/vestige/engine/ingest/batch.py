"""A batch of texts on their way in: what each is, what is known, what will be written and told."""

from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.gate.decide import Decision
from vestige.cognition.text.analyser import fingerprint
from vestige.cognition.time.validity import StatedValidity
from vestige.core.events import Happening
from vestige.core.models import Memory, Record
from vestige.engine.context import Call
from vestige.store.contract.answers import Scored
from vestige.store.contract.changes import Change, Embedded

Window = tuple[datetime | None, datetime | None]
Identity = tuple[str, str, str | None, int | None, Window | None]
"""What makes two texts one: scope and normal form, for a turn its thread and place in it, and for what is
not true now the time when it was or will be."""


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
