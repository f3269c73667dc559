"""Memories from foreign records: a row of a database, an object of a JSON file."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from vestige.core.errors import VestigeError
from vestige.core.models import Memory, check_metadata
from vestige.core.origin import Origin, lowest
from vestige.exchange.importers.fields import ForeignRecord, usable
from vestige.exchange.importers.records import MEMORY, BroughtMemory, Target, UnreadRecords, derived_id
from vestige.exchange.importers.strengths import carried

KEPT = "imported"
"""The metadata key for fields without a place of their own."""

CONTENT = ("content", "text", "memory")
COMPUTED = (
    "accessibility", "combined_score", "content_length", "content_preview", "embedding", "embedding_model",
    "has_embedding", "keyword_score", "match_type", "revision", "score", "semantic_score", "state",
)  # fmt: skip
"""Fields that are computed again here."""
EMPTY: tuple[object, ...] = (0, 0.0, "", "[]", [], {}, False)
USUAL = {"scope": "user", "memory_system": "semantic"}
"""Default values of the reference system."""
MAX_ID_CHARS = 64
"""A longer id could not be used in a call."""


def memory_of(record: Mapping[str, object], place: str, target: Target) -> BroughtMemory | UnreadRecords:
    """The memory of a record."""
    fields = ForeignRecord(record, target.now)
    content = fields.text(*CONTENT)
    if content is None:
        other = any(not isinstance(fields.rest().get(name, ""), str) for name in CONTENT)
        return UnreadRecords(
            kind=MEMORY, place=place, reason="its content is not text" if other else "no content"
        )
    try:
        return _read(fields, content, place, target)
    except VestigeError as exc:
        return UnreadRecords(kind=MEMORY, place=place, reason=exc.message)


def _read(fields: ForeignRecord, content: str, place: str, target: Target) -> BroughtMemory:
    source = fields.label("source")
    created_at, updated_at = _made(fields, target)
    strength = carried(fields, created_at, target)
    fields.ignore(*COMPUTED, *(() if strength else ("retention_strength",)))
    valid_from, valid_until = _window(fields)
    if fields.rest().get("scope") == target.scope:
        fields.ignore("scope")
    own = fields.rest().get("metadata")
    if isinstance(own, Mapping):
        fields.ignore("metadata")
    memory = Memory(
        id=_own_id(fields) or derived_id("record", target.scope, source, content),
        content=content,
        created_at=created_at,
        updated_at=updated_at,
        node_type=fields.label("node_type") or "fact",
        tags=fields.names("tags"),
        scope=target.scope,
        source=source,
        author=fields.label("author"),
        agent_id=fields.label("agent_id"),
        session_id=fields.label("session_id"),
        thread=fields.label("thread"),
        position=_position(fields),
        occurred_at=fields.moment("occurred_at"),
        valid_from=valid_from,
        valid_until=valid_until,
        superseded_by=fields.label("superseded_by"),
        pinned=fields.flag("pinned"),
        suppression_count=fields.count("suppression_count"),
        suppressed_at=fields.moment("suppressed_at", past=True),
        archived_at=fields.moment("archived_at", past=True),
        phrasings=_phrasings(fields),
        origin=lowest((Origin.IMPORT.value, fields.label("origin"))),
        metadata=_metadata(own if isinstance(own, Mapping) else {}, fields),
    )
    return BroughtMemory(place=place, memory=memory, strength=strength, notes=tuple(fields.notes))


def _own_id(fields: ForeignRecord) -> str | None:
    memory_id = fields.label("id")
    if memory_id is None or len(memory_id) <= MAX_ID_CHARS:
        return memory_id
    fields.note(f"an id of more than {MAX_ID_CHARS} characters was replaced")
    fields.keep("id", memory_id)
    return None


def _made(fields: ForeignRecord, target: Target) -> tuple[datetime, datetime]:
    """When it was stored and last changed; without a time it is stored now."""
    names = ("created_at", "timestamp", "date", "created")
    given = [fields.moment(name, past=True) for name in names]
    created_at = next((moment for moment in given if moment is not None), None)
    updated_at = fields.moment("updated_at", past=True)
    begun = created_at or updated_at or target.now
    return begun, max(begun, updated_at or begun)


def _window(fields: ForeignRecord) -> tuple[datetime | None, datetime | None]:
    begin, end = fields.moment("valid_from"), fields.moment("valid_until")
    if begin is not None and end is not None and end < begin:
        fields.note("a validity that ends before it begins was left out")
        fields.keep("valid_from", begin.isoformat())
        fields.keep("valid_until", end.isoformat())
        return None, None
    return begin, end


def _position(fields: ForeignRecord) -> int | None:
    number = fields.number("position", -(2.0**53), 2.0**53)
    return None if number is None else int(number)


def _phrasings(fields: ForeignRecord) -> tuple[str, ...]:
    given = fields.rest().get("phrasings")
    if not isinstance(given, list):
        return ()
    fields.ignore("phrasings")
    return tuple(one for one in given if isinstance(one, str) and one.strip())


def _metadata(own: Mapping[Any, Any], fields: ForeignRecord) -> dict[str, Any]:  # Any: JSON
    """The record's metadata and all fields without a place here; left out if no store can hold it."""
    rest = {
        name: value
        for name, value in fields.rest().items()
        if value not in EMPTY and USUAL.get(name) != value and usable(name)
    }
    metadata: dict[str, Any] = {**own, **({KEPT: rest} if rest else {})}
    try:
        check_metadata(metadata)
    except VestigeError as exc:
        fields.note(f"its metadata was left out: {exc.message}")
        return {}
    return metadata
