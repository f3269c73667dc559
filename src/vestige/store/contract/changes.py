"""The changes that `commit` takes, and their parts."""

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import Any, assert_never

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.fsrs import strength
from vestige.cognition.fsrs.formulas import LEAST_W20, MOST_W20, is_curve
from vestige.core.documents import Document, number
from vestige.core.errors import Forbidden, InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import (
    EVERYTHING,
    LABELS,
    MAX_DOCUMENT_ID_BYTES,
    NO_METADATA,
    Access,
    Edge,
    Evidence,
    Memory,
    MemoryState,
    Strength,
    check_json,
    check_name,
    check_short,
    check_text,
)
from vestige.embed.protocol import Signature

CREATED = "memory.created"
REVISED = "memory.revised"
DELETED = "memory.deleted"
REMARKED = "memory.remarked"
STATE = "memory.state"
CARRIED = "memory.carried"
LINKED = "edge.linked"
UNLINKED = "edge.unlinked"
PUT = "document.put"
DROPPED = "document.dropped"
TUNED = "curve.tuned"
"""Kinds of events that the code searches the log for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """The vector of characters `start`..`end` of a memory's searchable text."""

    start: int
    end: int
    vector: NDArray[np.float32]
    tokens: "Tokens | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The token states of a piece, one sign bit per dimension (`numpy.packbits` of `state > 0`), and for
    each token whether it stands in a question."""

    bits: NDArray[np.uint8]
    asked: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Embedded:
    """The vectors of one memory, guarded by the hash of the text they were made from.

    `text_hash` is `cognition.text.text_hash(memory)`. A store drops vectors whose hash is not the
    memory's present one, and refuses (ModelMismatch) those of another signature than its own.
    """

    signature: Signature
    text_hash: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """A new memory, encoded at its `created_at`. An id that exists, or existed, is a Conflict."""

    memory: Memory
    embedded: Embedded | None = None

    def __post_init__(self) -> None:
        check_memory(self.memory)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revise:
    """A memory's next revision; the present one moves to its history.

    `memory.revision` must be the present revision + 1, else Conflict (load again and retry).
    `created_at` stays what it was. Vectors are kept while the text hash is the same. The earlier
    revision is kept as recorded from its `updated_at` until the new one's, ended by `reason`.
    """

    memory: Memory
    reason: str
    embedded: Embedded | None = None

    def __post_init__(self) -> None:
        check_memory(self.memory)
        check_text("reason", self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordEvidence:
    """Evidence about a memory. The transaction folds it into the strength of the memory.

    `amount` (0 to 1) is the degree of the evidence.
    """

    memory_id: str
    evidence: Evidence
    at: datetime
    amount: float = 1.0
    details: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA)

    def __post_init__(self) -> None:
        check_text("memory_id", self.memory_id)
        if self.details:
            check_json("details", self.details)


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """An edge, created or given a new weight (`created_at` stays). Both ends must exist; a loop is
    InvalidInput."""

    edge: Edge

    def __post_init__(self) -> None:
        check_text("source", self.edge.source_id)
        check_text("target", self.edge.target_id)
        check_name("kind", self.edge.kind)
        if not 0.0 <= self.edge.weight <= 1.0:  # nor NaN
            raise InvalidInput("The weight of an edge must be a number from 0 to 1.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlink:
    """Removes an edge; NotFound for a missing one."""

    source_id: str
    target_id: str
    kind: str
    at: datetime

    def __post_init__(self) -> None:
        check_text("source", self.source_id)
        check_text("target", self.target_id)
        check_text("kind", self.kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeState:
    """A change of a memory's state, and its reason. The strength stays; only the snapshot of its retention is
    renewed."""

    memory_id: str
    at: datetime
    before: MemoryState
    after: MemoryState
    reason: str

    def __post_init__(self) -> None:
        check_text("memory_id", self.memory_id)
        check_text("reason", self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Carry:
    """The strength of a memory imported from another memory system; it replaces the present one. The curve
    stays the store's."""

    memory_id: str
    strength: Strength
    at: datetime

    def __post_init__(self) -> None:
        check_text("memory_id", self.memory_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tune:
    """Another curve of forgetting, for all present and future memories. It belongs to the whole store, so it
    takes an unlimited access (else Forbidden)."""

    w20: float
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """A document, new (version 1) or in its next version (the present one + 1); any other version is a
    Conflict (load again and retry). `created_at` stays. Memories it cites must exist and be accessible.

    Without `logged` there is no event: for documents that every search changes.
    """

    document: Document
    logged: bool = True

    def __post_init__(self) -> None:
        check_document(self.document)


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Removes a document; NotFound for a missing one. Its id may be used again."""

    kind: str
    id: str
    at: datetime

    def __post_init__(self) -> None:
        check_text("kind", self.kind)
        check_text("id", self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Deletes a memory: text, revisions, phrasings, vectors, lexical rows, edges and the documents that cite
    it go, and a tombstone without content stays. Its events stay too; they never held text. Claims whose
    answer quotes it go as well."""

    memory_id: str
    at: datetime
    reason: str

    def __post_init__(self) -> None:
        check_text("memory_id", self.memory_id)
        check_text("reason", self.reason)


Change = Add | Revise | RecordEvidence | Link | Unlink | ChangeState | Carry | Tune | Put | Drop | Forget


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """An idempotency key with the digest of its request and the answer given to it."""

    key: str
    digest: str
    answer: str
    at: datetime


MAX_COUNT = 2**31 - 1
_is_score = number(-1_000.0, 1_000.0)


def check_memory(memory: Memory) -> None:
    """Refuse a memory with a label that some database could not index, or a number out of its range."""
    check_name("id", memory.id)
    for name in LABELS:
        label = getattr(memory, name)
        if label is not None:
            check_short(name, label)
    for tag in (*memory.tags, *memory.domains):
        check_short("tags", tag)
    check_short("scope", memory.scope)
    for name in ("revision", "suppression_count"):
        if not 0 <= getattr(memory, name) < MAX_COUNT:
            raise InvalidInput(f"`{name}` must be a number from 0 to {MAX_COUNT:,}.")
    if not all(map(_is_score, memory.domain_scores.values())):
        raise InvalidInput("The scores of domains must be numbers from -1000 to 1000.")


def check_document(document: Document) -> None:
    """Refuse a document with a name that some database could not index: TooLarge."""
    check_name("kind", document.kind)
    check_short("id", document.id, MAX_DOCUMENT_ID_BYTES)
    check_short("scope", document.scope)
    if document.version >= MAX_COUNT:
        raise InvalidInput("The version of a document is too high.", details={"version": document.version})


def check_claim(claim: Claim | None) -> None:
    """Refuse a claim that no store can keep."""
    if claim is not None:
        check_name("key", claim.key)
        check_text("digest", claim.digest)
        check_text("answer", claim.answer)


def about(change: Change) -> tuple[str, ...]:
    """The ids of the memories that a change is about."""
    match change:
        case Add() | Revise():
            return (change.memory.id,)
        case RecordEvidence() | ChangeState() | Carry() | Forget():
            return (change.memory_id,)
        case Link():
            return (change.edge.source_id, change.edge.target_id)
        case Unlink():
            return (change.source_id, change.target_id)
        case Put():
            return change.document.cites
        case Drop() | Tune():
            return ()
        case _:
            assert_never(change)


def evidence_payload(
    change: RecordEvidence, before: Strength, after: Strength, suppressions: int
) -> dict[str, Any]:
    """The payload of an evidence event."""
    payload: dict[str, Any] = {"evidence": change.evidence.value, "details": dict(change.details)}
    if change.amount != 1.0:
        payload["amount"] = change.amount
    moved = strength.moved(before, after, suppressions)
    if moved is not None:
        payload["state"] = list(moved)
    return payload


def check_tune(change: Tune, access: Access) -> None:
    """Refuse an invalid curve, or a caller without access to the whole store."""
    if access != EVERYTHING:
        raise Forbidden("Only a caller with access to the whole store may change the curve of forgetting.")
    if not is_curve(change.w20):
        raise no_curve(change.w20)


def no_curve(w20: object) -> InvalidInput:
    return InvalidInput(
        f"The w20 of a curve must be a number from {LEAST_W20:g} to {MOST_W20:g}.",
        details={"w20": repr(w20)[:40]},
    )
