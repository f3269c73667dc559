"""Memories as evidence on the wire: with provenance and trust, alone and in contradiction."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from vestige.cognition.relation import told_at
from vestige.models import Memory
from vestige.operations.prose import clip
from vestige.operations.wire import Wire

PREVIEW_CHARS = 200


class ExhibitView(Wire):
    """A memory with its provenance and how far it is trusted."""

    id: str
    preview: str
    trust: float
    date: datetime
    source: str | None = None
    author: str | None = None


class ContradictionView(Wire):
    """Two memories that cannot both hold, and what they differ in."""

    stronger: ExhibitView
    weaker: ExhibitView
    newer: str
    kind: str
    detail: str
    # As the clients of the reference system read it.
    topic_overlap: Annotated[float, Field(alias="topic_overlap")]


def exhibit_fields(memory: Memory, trusted: float) -> dict[str, Any]:  # Any: as views.view_fields
    """The fields of a memory as evidence, for views that add their own."""
    return {
        "id": memory.id,
        "preview": clip(memory.content, PREVIEW_CHARS),
        "trust": round(trusted, 4),
        "date": told_at(memory),
        "source": memory.source,
        "author": memory.author,
    }
