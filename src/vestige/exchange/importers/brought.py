"""What a reader finds in a foreign file, record by record.

A reader yields memories before what speaks of them. What it cannot read it yields too, with the reason: every
record of a file is accounted for.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any
from uuid import UUID

from vestige.cognition.intentions.intention import Intention
from vestige.core.models import NO_METADATA, Edge, Memory, Strength


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where foreign records go, when, and on which curve memories fade there."""

    scope: str
    now: datetime
    curve: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtMemory:
    """A memory, with the strength it had (None: none was told, it begins as a new one).

    `place` says where it stands in the file, `notes` what of it had to be changed or left out.
    """

    place: str
    memory: Memory
    strength: Strength | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtEdge:
    """A link between two memories, of this file or already here."""

    place: str
    edge: Edge
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtIntention:
    """Something to do."""

    place: str
    intention: Intention
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtInsight:
    """What a dream found in some memories; `extra` is what we have no use for and keep."""

    place: str
    id: str
    kind: str
    text: str
    sources: tuple[str, ...]
    confidence: float
    novelty: float
    at: datetime
    extra: Mapping[str, Any] = field(default_factory=lambda: NO_METADATA)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadRecords:
    """So many records that are not taken, and why."""

    kind: str
    place: str
    reason: str
    count: int = 1


Brought = BroughtMemory | BroughtEdge | BroughtIntention | BroughtInsight | UnreadRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A file that is being read: its records, and how many there are, if that is known."""

    records: Iterator[Brought]
    total: int | None = None


def derived_id(*parts: str | None) -> str:
    """An id for a record that has none: the same for the same parts, so that it is imported once.

    An id and not a look at the texts that are here: a memory that was reworded, archived or deleted after it
    was imported is still known by it, and does not come back.
    """
    told = "\0".join("" if part is None else part for part in parts)
    # Surrogates stand for bytes that are no text; such a record is refused later, by name.
    digest = blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16, person=b"vestige import")
    return str(UUID(bytes=digest.digest(), version=5))
