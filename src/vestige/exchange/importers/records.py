"""The records that a reader finds in a foreign file.

A reader yields memories before the records that refer to them. Records that it cannot read it yields too,
with the reason: every record of a file is accounted for.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import UUID

from vestige.cognition.intentions.intention import Intention
from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import NO_METADATA, Edge, Memory, Strength

MEMORY, CONNECTION, INTENTION, INSIGHT = "memory", "connection", "intention", "insight"
"""The kinds of records that are imported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Where foreign records go, when, and on which curve memories fade there."""

    scope: str
    now: datetime
    curve: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtMemory:
    """A memory, with the strength it had (None: the record has none, it begins as a new one).

    `place` is its position in the file, `notes` says what had to be changed or left out.
    """

    place: str
    memory: Memory
    strength: Strength | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtEdge:
    """A link between two memories, of this file or of the store."""

    place: str
    edge: Edge
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtIntention:
    place: str
    intention: Intention
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroughtInsight:
    """An insight of a dream into some memories; `extra` are fields without a use here, which are kept."""

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
    """A number of records that are not imported, and why."""

    kind: str
    place: str
    reason: str
    count: int = 1


Brought = BroughtMemory | BroughtEdge | BroughtIntention | BroughtInsight | UnreadRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A file that is being read: its records, and their number, if known."""

    records: Iterator[Brought]
    total: int | None = None


Reader = Callable[[Path, Target], AbstractContextManager[Reading]]
"""Opens a file of a format; its records are read while the context is open."""


def own_file(folder: Path, name: str) -> Path | None:
    """The file of a folder with this name, None without one; InvalidInput for a link that leads out of it, so
    that a folder from others does not bring other files of this machine."""
    file = folder / name
    if not file.is_file():
        return None
    if not file.resolve().is_relative_to(folder.resolve()):
        raise InvalidInput(
            f"{file} is a link to a file outside {folder}.", hint="If you want that file, import it itself."
        )
    return file


def derived_id(*parts: str | None) -> str:
    """An id for a record without one: equal for equal parts, so that it is imported once.

    It does not depend on the texts in the store: a memory that was reworded, archived or deleted after its
    import is still recognised, and does not come back.
    """
    joined = "\0".join("" if part is None else part for part in parts)
    # Surrogates stand for bytes that are not text; such a record is refused later, by name.
    digest = blake2b(joined.encode("utf-8", "surrogatepass"), digest_size=16, person=b"vestige import")
    return str(UUID(bytes=digest.digest(), version=5))
