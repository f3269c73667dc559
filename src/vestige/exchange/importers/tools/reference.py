"""A database of the reference system, schemas V1 to V11: memories, links, intentions and insights."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Literal

import orjson

from vestige.cognition.graph.kinds import KINDS, SEMANTIC, SHARED_CONCEPTS
from vestige.cognition.intentions.intention import KEPT, Firing, Intention, IntentionStatus, Priority
from vestige.cognition.intentions.triggers import ContextTrigger, EventTrigger, Manual, Time, Trigger
from vestige.core.errors import InvalidInput, VestigeError
from vestige.core.models import Edge, check_content
from vestige.exchange.importers.fields import ForeignRecord, as_json
from vestige.exchange.importers.memories import memory_of
from vestige.exchange.importers.records import (
    CONNECTION,
    INSIGHT,
    INTENTION,
    MEMORY,
    Brought,
    BroughtEdge,
    BroughtInsight,
    BroughtIntention,
    BroughtMemory,
    Reading,
    Target,
    UnreadRecords,
)
from vestige.exchange.importers.tools.tables import unread_tables
from vestige.store.sqlite.file.foreign import ForeignDatabase, Row, opened

# -- Links

RENAMED = {"shared_concept": SHARED_CONCEPTS, "sequential": "temporal"}
"""Kinds of links with another name here."""


def edge_of(record: Mapping[str, object], place: str, target: Target) -> BroughtEdge | UnreadRecords:
    """The link of a record. An unknown kind becomes the general one, which fades."""
    fields = ForeignRecord(record, target.now)
    source, end = fields.label("source_id"), fields.label("target_id")
    if source is None or end is None:
        return UnreadRecords(kind=CONNECTION, place=place, reason="one of its ends is missing")
    if source == end:
        return UnreadRecords(kind=CONNECTION, place=place, reason="it links a memory to itself")
    weight = fields.number("strength", 0.0, 1.0)
    if weight is None:
        return UnreadRecords(kind=CONNECTION, place=place, reason="its strength is not a number")
    given = (fields.label("link_type") or SEMANTIC).lower()
    kind = RENAMED.get(given, given)
    if kind not in KINDS:
        fields.note(f"the link type `{kind}` is `{SEMANTIC}` here")
        kind = SEMANTIC
    edge = Edge(
        source_id=source,
        target_id=end,
        kind=kind,
        weight=weight,
        created_at=fields.moment("created_at", past=True) or target.now,
    )
    return BroughtEdge(place=place, edge=edge, notes=tuple(fields.notes))


# -- Intentions and insights

MOST_MINUTES = 60.0 * 24 * 366 * 100
CONTEXTS = ("codebase", "file_pattern", "topic")
DEFAULT_INSIGHT = "Synthesis"
ENDS: dict[str, Literal[IntentionStatus.FULFILLED, IntentionStatus.CANCELLED]] = {
    "fulfilled": IntentionStatus.FULFILLED,
    "cancelled": IntentionStatus.CANCELLED,
    "expired": IntentionStatus.CANCELLED,
}
OPEN = ("active", "triggered", "snoozed")


def intention_of(
    record: Mapping[str, object], place: str, target: Target
) -> BroughtIntention | UnreadRecords:
    """The intention of a record."""
    fields = ForeignRecord(record, target.now)
    intention_id, content = fields.label("id"), fields.text("content", "description")
    if intention_id is None or content is None:
        return UnreadRecords(kind=INTENTION, place=place, reason="its id or its content is missing")
    try:
        made = _intention(fields, intention_id, content, target)
    except VestigeError as exc:
        return UnreadRecords(kind=INTENTION, place=place, reason=exc.message)
    if made.closed_at is not None and target.now - made.closed_at > KEPT:
        reason = f"it was done or given up more than {KEPT.days} days ago: such are not kept here"
        return UnreadRecords(kind=INTENTION, place=place, reason=reason)
    return BroughtIntention(place=place, intention=made, notes=tuple(fields.notes))


def _intention(fields: ForeignRecord, intention_id: str, content: str, target: Target) -> Intention:
    created_at = fields.moment("created_at", past=True) or target.now
    trigger, unsaid = _trigger(fields, created_at)
    priority = fields.number("priority", Priority.LOW, Priority.CRITICAL)
    status = (fields.text("status") or "active").lower()
    if status not in ENDS and status not in OPEN:
        fields.note("an unknown status was taken as active")
    if status == "expired":
        fields.note("an expired one is cancelled here")
    ended = ENDS.get(status)
    reminded_at = fields.moment("last_reminded_at", past=True)
    done_at = fields.moment("fulfilled_at", past=True)
    reminders = fields.count("reminder_count")
    firing = _firing(trigger, created_at, reminded_at, reminders) if status == "triggered" else None
    until = fields.moment("snoozed_until")
    description = _described(fields, content, unsaid)
    check_content(description)
    return Intention(
        id=intention_id,
        scope=target.scope,
        created_at=created_at,
        updated_at=max(created_at, reminded_at or created_at, done_at or created_at),
        description=description,
        trigger=trigger,
        priority=Priority.NORMAL if priority is None else Priority(int(priority)),
        deadline=fields.moment("deadline"),
        snoozed_until=until if status == "snoozed" else None,
        armed_at=created_at,
        since=None if firing is None else firing.at,
        firing=firing,
        ended=ended,
        closed_at=None if ended is None else done_at or reminded_at or created_at,
    )


def _firing(trigger: Trigger, created_at: datetime, reminded_at: datetime | None, reminders: int) -> Firing:
    """The record that it was triggered: at its time, or else at its first known reminder."""
    at = reminded_at or created_at
    due_at = min(trigger.at, at) if isinstance(trigger, Time) else at
    return Firing(at=at, due_at=due_at, reminders=max(reminders, 1), reminded_at=at)


def _trigger(fields: ForeignRecord, created_at: datetime) -> tuple[Trigger, str | None]:
    """The trigger, and in words any part without a counterpart here."""
    given = fields.rest().get("trigger_data")
    kind = (fields.text("trigger_type") or "manual").lower()
    fields.ignore("trigger_data")
    data = as_json(given) if isinstance(given, str) else given
    inner = ForeignRecord(data, created_at) if isinstance(data, Mapping) else ForeignRecord({}, created_at)
    trigger = _simple(kind, inner, created_at)
    if trigger is not None:
        return trigger, None
    fields.note(f"a trigger of the type `{kind}` waits to be looked at here; its words are kept")
    words = given if isinstance(given, str) else orjson.dumps(given).decode()
    return Manual(), f"{kind} {words}" if given else kind


def _simple(kind: str, data: ForeignRecord, created_at: datetime) -> Trigger | None:
    if kind == "manual":
        return Manual()
    if kind in ("time", "duration"):
        at, minutes = data.moment("at"), data.number("in_minutes", 0.0, MOST_MINUTES)
        if at is not None:
            return Time(at=at)
        return None if minutes is None else Time(at=created_at + timedelta(minutes=minutes), minutes=minutes)
    if kind == "context":
        parts = {name: data.label(name) for name in CONTEXTS}
        pattern = parts["file_pattern"]
        if pattern is not None and not set(pattern) & set("*?["):
            parts["file_pattern"] = f"*{pattern}*"  # there it may stand anywhere in the name
        return ContextTrigger(**parts) if any(parts.values()) else None
    condition = data.text("condition") if kind == "event" else None
    return None if condition is None else EventTrigger(condition=condition)


def _described(fields: ForeignRecord, content: str, unsaid: str | None) -> str:
    """The task, with every field that an intention does not have, written out so that it is kept."""
    about = fields.names("related_memories")
    tags = fields.names("tags")
    lines = (
        ("Notes", fields.text("notes")),
        ("Tags", ", ".join(tags)),
        ("About the memories", ", ".join(about)),
        ("Trigger", unsaid),
    )
    return "\n".join([content, *(f"{name}: {text}" for name, text in lines if text)])


def insight_of(record: Mapping[str, object], place: str, target: Target) -> BroughtInsight | UnreadRecords:
    """The insight of a record, which must name its source memories."""
    fields = ForeignRecord(record, target.now)
    insight_id, text = fields.label("id"), fields.text("insight")
    sources = fields.names("source_memories")
    if insight_id is None or text is None:
        return UnreadRecords(kind=INSIGHT, place=place, reason="its id or its text is missing")
    if not sources:
        return UnreadRecords(kind=INSIGHT, place=place, reason="it does not say which memories it comes from")
    confidence = fields.number("confidence", 0.0, 1.0)
    novelty = fields.number("novelty_score", 0.0, 1.0)
    return BroughtInsight(
        place=place,
        id=insight_id,
        kind=fields.label("insight_type") or DEFAULT_INSIGHT,
        text=text,
        sources=sources,
        confidence=0.0 if confidence is None else confidence,
        novelty=0.0 if novelty is None else novelty,
        at=fields.moment("generated_at", past=True) or target.now,
        extra={name: value for name, value in fields.rest().items() if value not in ("[]", 0, "")},
        notes=tuple(fields.notes),
    )


# -- The database

LAST_SCHEMA = 11
NODES = "knowledge_nodes"
TABLES = {NODES: ("id", "content")}
READ = {NODES: MEMORY, "memory_connections": CONNECTION, "intentions": INTENTION, "insights": INSIGHT}
LEFT = {
    "node_embeddings": "vectors of another model; the texts are embedded anew",
    "memory_states": "a memory's state follows from its strength here",
    "state_transitions": "the history of states begins anew here",
    "memory_access_log": "single accesses are not kept; their numbers are in the memories",
    "fsrs_cards": "a copy of what the memories say themselves",
    "fsrs_config": "the curve of forgetting is fitted to the reviews made here",
    "consolidation_history": "what another system did in its sleep",
    "dream_history": "what another system did in its sleep",
    "retention_snapshots": "the history of retention begins anew here",
    "sessions": "sessions have no place here",
    "knowledge_edges": "a table that the reference system never used; its links are the connections",
    "compressed_memories": "a table that the reference system never used",
    "schema_version": "",
}
"""Why the rows of a table are not imported."""


@contextmanager
def reading(path: Path, target: Target) -> Iterator[Reading]:
    """The records of a database while it is open."""
    with opened(path) as file:
        if not file.has(NODES):
            raise InvalidInput(
                f"{path} is a database, but not one of Vestige.", hint=f"It has no table `{NODES}`."
            )
        total = sum(count for name, count in file.counts.items() if name in READ)
        yield Reading(records=_records(file, target), total=total)


def _records(file: ForeignDatabase, target: Target) -> Iterator[Brought]:
    for row in file.rows(NODES):
        yield _node(row, target)
    for row in file.rows("memory_connections"):
        place = f"memory_connections {row.get('source_id')} → {row.get('target_id')}"
        yield edge_of(row, place, target)
    for row in file.rows("intentions"):
        yield intention_of(row, f"intentions {row.get('id')}", target)
    for row in file.rows("insights"):
        yield insight_of(row, f"insights {row.get('id')}", target)
    newer = f"it came after schema V{LAST_SCHEMA}, the last one that is read"
    older = "a table that the reference system does not have"
    yield from unread_tables(file, READ, LEFT, newer if _version(file) > LAST_SCHEMA else older)


def _version(file: ForeignDatabase) -> int:
    """The recorded schema version; 0 without one."""
    versions = (row.get("version") for row in file.rows("schema_version"))
    return max((one for one in versions if isinstance(one, int)), default=0)


def _node(row: Row, target: Target) -> BroughtMemory | UnreadRecords:
    place = f"{NODES} {row.get('id')}"
    if not isinstance(row.get("id"), str):
        return UnreadRecords(kind=MEMORY, place=place, reason="it has no id")
    return memory_of(row, place, target)
