"""Memories as answers show them: the reference's field names, three levels of detail."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from vestige.cognition.fsrs.strength import accessibility, retention_of, retrieval_of, state
from vestige.core.models import Edge, Memory, Record, estimate
from vestige.operations.registry.arguments import DetailLevel, Wire
from vestige.operations.shared.text import (
    box,
    clip,
    day,
    fields,
    listed_lines,
    row_number,
    short_id,
    strength,
    styled,
    unmarked,
)

SUMMARY_CHARS = 4_000
"""Longer texts are cut unless the detail level is `full`, so that one memory cannot fill an answer."""


_IN_SUMMARY = (
    "origin", "source", "author", "thread", "position", "occurred_at", "created_at", "updated_at",
    "valid_from", "valid_until", "superseded_by",
)  # fmt: skip
_IN_FULL = (
    "agent_id", "session_id", "pinned", "suppression_count", "suppressed_at", "archived_at", "revision",
    "metadata",
)  # fmt: skip
_OF_STRENGTH = ("reps", "lapses", "last_accessed", "times_retrieved", "times_useful")
"""Fields that are shown as they are stored, by level of detail."""


class MemoryView(Wire):
    """A memory; fields that the detail level leaves out are absent.

    `ended` is true if it is no longer valid: `valid_until` is over, because of its own end or a replacement.
    If `content_length` is present, `content` is an excerpt of a text with that many characters: `memory` with
    the action `get` returns all of it.
    """

    id: str
    content: str | None = None
    content_length: int | None = None
    node_type: str
    tags: list[str]
    scope: str | None = None
    retention_strength: float
    state: str | None = None
    origin: str | None = None
    source: str | None = None
    author: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    thread: str | None = None
    position: int | None = None
    occurred_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    superseded_by: str | None = None
    ended: bool | None = None
    pinned: bool | None = None
    suppression_count: int | None = None
    suppressed_at: datetime | None = None
    archived_at: datetime | None = None
    revision: int | None = None
    phrasings: list[str] | None = None
    domains: list[str] | None = None
    metadata: Mapping[str, Any] | None = None
    retrieval_strength: float | None = None
    storage_strength: float | None = None
    accessibility: float | None = None
    stability: float | None = None
    difficulty: float | None = None
    learning_state: str | None = None
    reps: int | None = None
    lapses: int | None = None
    last_accessed: datetime | None = None
    next_review: datetime | None = None
    times_retrieved: int | None = None
    times_useful: int | None = None
    has_embedding: bool | None = None


class EdgeView(Wire):
    source: str
    target: str
    type: str
    weight: float


def view(record: Record, now: datetime, level: DetailLevel = "full") -> MemoryView:
    """A record at a level of detail. Every level that shows text also shows provenance."""
    return MemoryView(**view_fields(record, now, level))


def view_fields(record: Record, now: datetime, level: DetailLevel) -> dict[str, Any]:
    """The fields of a view, for views that add their own."""
    memory, strength = record.memory, record.strength
    shown: dict[str, Any] = {
        "id": memory.id,
        "node_type": memory.node_type,
        "tags": list(memory.tags),
        "scope": memory.scope,
        "retention_strength": round(retention_of(strength, now), 4),
        "ended": (memory.valid_until is not None and memory.valid_until <= now) or None,
    }
    if level == "brief":
        return shown
    shown |= {
        **(_beginning(memory.content) if level == "summary" else {"content": memory.content}),
        **{name: getattr(memory, name) for name in _IN_SUMMARY},
        "pinned": memory.pinned or None,
        "suppression_count": memory.suppression_count or None,
    }
    return shown if level == "summary" else shown | _full(record, now)


def _beginning(content: str) -> dict[str, Any]:  # Any: as view_fields
    if len(content) <= SUMMARY_CHARS:
        return {"content": content}
    return {"content": f"{content[:SUMMARY_CHARS].rstrip()}…", "content_length": len(content)}


def _full(record: Record, now: datetime) -> dict[str, Any]:
    memory, strength = record.memory, record.strength
    accessible = float(accessibility(retention_of(strength, now), memory.suppression_count))
    return {
        **{name: getattr(memory, name) for name in _IN_FULL},
        **{name: getattr(strength, name) for name in _OF_STRENGTH},
        "state": state(accessible).value,
        "phrasings": list(memory.phrasings),
        "domains": list(memory.domains),
        "retrieval_strength": round(retrieval_of(strength, now), 4),
        "storage_strength": round(strength.storage, 4),
        "accessibility": round(accessible, 4),
        "stability": round(strength.stability, 4),
        "difficulty": round(strength.difficulty, 4),
        "learning_state": strength.learning_state.value,
        "next_review": strength.due_at,
        "has_embedding": record.embedded,
    }


def edge_view(edge: Edge) -> EdgeView:
    """An edge on the wire."""
    return EdgeView(
        source=edge.source_id, target=edge.target_id, type=edge.kind, weight=round(edge.weight, 4)
    )


def memory_lines(memories: list[MemoryView]) -> str:
    """Memories as text: number and beginning of the text, then its facts."""
    return "\n".join(line for memory in memories for line in _memory_lines(memory))


def _memory_lines(memory: MemoryView) -> list[str]:
    number = row_number(memory.id)
    facts = [
        short_id(memory.id),
        strength(memory.retention_strength),
        day(memory.created_at),
        memory.node_type,
        styled("warning", "superseded" if memory.superseded_by else no_longer_valid(memory) or ""),
        styled("strong", "pinned") if memory.pinned else None,
        styled("warning", "suppressed") if memory.suppression_count else None,
        memory.source,
        memory.scope,
        ", ".join(memory.tags),
    ]
    text = unmarked(memory.content) if memory.content else "(text left out)"
    return listed_lines(number, text, facts)


def no_longer_valid(memory: MemoryView) -> str | None:
    """That a memory has ended, and when; None for one that is valid or begins later."""
    return f"ended {day(memory.valid_until) or ''}".rstrip() if memory.ended else None


def memory_card(memory: MemoryView) -> str:
    """One memory as text, in full."""
    facts = fields(
        (
            ("id", styled("id", memory.id)),
            ("type", memory.node_type),
            ("tags", ", ".join(memory.tags)),
            ("scope", memory.scope),
            ("origin", memory.origin),
            ("source", memory.source),
            ("author", memory.author),
            ("created", day(memory.created_at)),
            ("updated", day(memory.updated_at)),
            ("valid", _window(memory)),
            ("superseded by", short_id(memory.superseded_by) if memory.superseded_by else None),
            ("pinned", "yes" if memory.pinned else None),
            ("suppressed", day(memory.suppressed_at)),
            ("archived", day(memory.archived_at)),
            ("strength", f"{strength(memory.retention_strength)} ({memory.state})"),
            ("next review", day(memory.next_review)),
            ("revision", memory.revision),
            ("other wordings", " | ".join(memory.phrasings or [])),
        )
    )
    return f"{box(unmarked(memory.content or ''))}\n{facts}"


def _window(memory: MemoryView) -> str | None:
    if memory.valid_from is None and memory.valid_until is None:
        return None
    return f"{day(memory.valid_from) or '…'} – {day(memory.valid_until) or '…'}"


# -- Memories as evidence: with provenance and trust, alone and in contradictions

PREVIEW_CHARS = 200


class ExhibitView(Wire):
    """A memory with its provenance and trust."""

    id: str
    preview: str
    trust: float
    date: datetime
    scope: str
    source: str | None = None
    author: str | None = None


class ContradictionView(Wire):
    """Two contradicting memories, and how they differ. `settled_by` is `trust` if one is trusted clearly
    more."""

    stronger: ExhibitView
    weaker: ExhibitView
    newer: str
    kind: str
    detail: str
    settled_by: str | None = None
    # As the clients of the reference system read it.
    topic_overlap: Annotated[float, Field(alias="topic_overlap")]


def exhibit_fields(memory: Memory, trusted: float) -> dict[str, Any]:  # Any: as views.view_fields
    """The fields of a memory as evidence, for views that add their own."""
    from vestige.cognition.gate.relation import stated_at  # a list of memories does not need it

    return {
        "id": memory.id,
        "preview": clip(memory.content, PREVIEW_CHARS),
        "trust": estimate(trusted),
        "date": stated_at(memory),
        "scope": memory.scope,
        "source": memory.source,
        "author": memory.author,
    }
