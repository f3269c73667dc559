"""Values that stores answer with besides records, and errors that every store raises alike."""

import enum
from collections.abc import Mapping
from dataclasses import field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.graph.neighbour_lists import NeighbourLists
from vestige.core.errors import InvalidInput, ModelMismatch
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Evidence, LogEvent
from vestige.embed.protocol import Signature
from vestige.store.filter_rule import in_scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """A memory with one arm's score; for vectors, the piece that matched best."""

    memory_id: str
    score: float
    start: int = 0
    end: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Levels:
    """The strength of memories, one number each and in the same order: retention, the probability of recall
    now, and retention reduced by suppression, which decides a memory's state."""

    retentions: NDArray[np.float64]
    retrievals: NDArray[np.float64]
    accessibilities: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestMemories:
    """The lists of the nearest memories. `ids` ascend; the lists name a memory by its place in them."""

    ids: tuple[str, ...]
    lists: NeighbourLists

    @classmethod
    def of(cls, ids: Mapping[int, str], lists: NeighbourLists) -> "NearestMemories":
        """The part of the lists whose vectors have one of these ids."""
        ordered = sorted(ids, key=lambda name: ids[name])
        chosen = np.array(ordered, dtype=np.int64)
        return cls(ids=tuple(ids[name] for name in ordered), lists=lists.renamed(chosen))


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How much of the vectors is in index files (`path` None: the store has no such files).

    Of `vectors`, `indexed` are in `segments` files of `size_bytes`, beside `dead` ones; the others are read
    from the store itself. `problems` says by name which files are not used, and why.
    """

    path: str | None = None
    vectors: int
    segments: int = 0
    indexed: int = 0
    dead: int = 0
    size_bytes: int = 0
    problems: Mapping[str, str] = field(default_factory=dict)


class ProfileState(enum.StrEnum):
    """The use of the vectors of a signature: searched, still being written, or kept for a return to the
    former model."""

    IN_USE = "in use"
    COMING = "coming"
    FORMER = "former"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileStatus:
    """A signature with how many memories have vectors of it, and in how many pieces."""

    signature: Signature
    state: ProfileState
    memories: int
    pieces: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message in JSON from one process to the others. Ids only grow."""

    id: int
    process: str
    message: str


MOST_NOTICES = 1_000


def other_model(held: Signature, offered: Signature) -> ModelMismatch:
    """The error for vectors of another signature, with its remedy."""
    return ModelMismatch(
        f"This store holds vectors of {held.profile}, not of {offered.profile}.",
        hint=f"Set the embeddings back to {held.name}, or run `vestige rebuild --vectors` to embed every "
        f"memory with {offered.name}.",
        details={"held": held.profile, "offered": offered.profile},
    )


def still_in_use(held: Signature) -> InvalidInput:
    return InvalidInput(
        f"The vectors of {held.profile} are in use.",
        hint="Put another signature in use first.",
        details={"held": held.profile},
    )


# -- Queries of the log


@dataclass(frozen=True, slots=True, kw_only=True)
class LogQuery:
    """A filter of the log; unset fields do not filter.

    `since` is inclusive and `until` exclusive, both over the time of an event; `before` is exclusive and over
    its position, which is unique. `scope` and `inherited` mean what they do in a `Filter`, over the scope of
    an event. `kinds` are kinds of events, `evidence` kinds of evidence. Without `exposures`, events that a
    memory was merely shown are left out.
    """

    memory_id: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    before: int | None = None
    scope: str | None = None
    inherited: bool = False
    kinds: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    exposures: bool = True

    def takes(self, event: LogEvent) -> bool:
        """Whether an event passes: the one definition every store obeys."""
        if self.memory_id not in (None, event.memory_id) or not self._in_time(event.at):
            return False
        if self.before is not None and event.position >= self.before:
            return False
        if not self._of_kind(event):
            return False
        return self.scope is None or in_scope(event.scope, self.scope, inherited=self.inherited)

    def _of_kind(self, event: LogEvent) -> bool:
        said = event.payload.get("evidence")
        if (self.kinds and event.kind not in self.kinds) or (self.evidence and said not in self.evidence):
            return False
        return self.exposures or said != Evidence.EXPOSED

    def _in_time(self, at: datetime) -> bool:
        return (self.since is None or at >= self.since) and (self.until is None or at < self.until)
