"""Merges two histories of one entity, and derives the entity from a history. Pure, and the same for every
store.

Merging is a union of events, so it does not matter which store sends first, how often, or in which order.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

from vestige.core.documents import Document
from vestige.core.errors import InvalidInput
from vestige.core.models import Edge, LogEvent, Memory, Revision, weight_of
from vestige.store.contract.changes import CREATED, DELETED, DROPPED, LINKED, PUT, REVISED, TUNED, UNLINKED
from vestige.store.contract.memberships import (
    FOUND_DOMAINS,
    MEMBERSHIP,
    SCORES,
    has_local_part,
    revised_membership,
)
from vestige.store.merge.histories import (
    CurveHistory,
    DocumentHistory,
    EdgeHistory,
    EntityHistory,
    MemoryHistory,
    stamp,
)

GROUPS = (
    ("content",),
    ("phrasings",),
    ("tags",),
    ("valid_from", "valid_until", "superseded_by"),
    ("pinned",),
    ("scope",),
    ("suppression_count", "suppressed_at"),
    ("archived_at",),
    ("domains", "domain_scores"),
    ("origin",),
    (
        *("node_type", "source", "author", "agent_id", "session_id", "thread", "position"),
        *("occurred_at", "metadata"),
    ),
)
"""Groups of fields of a memory: the last change of any field decides the whole group."""
GROUPED = frozenset(name for group in GROUPS for name in group)

Name = tuple[str, int]
Key = tuple[str, ...]
CURVE: Key = ("curve",)
Filed = tuple[tuple[int, str], Document]
"""A document with the stamp of its put."""


def name(event: LogEvent) -> Name:
    """The name of an event, the same on every store."""
    return (event.node, event.seq)


def subject(event: LogEvent) -> Key:
    if event.kind in (LINKED, UNLINKED):
        return ("edge", event.memory_id or "", str(event.payload["target"]), str(event.payload["kind"]))
    if event.kind in (PUT, DROPPED):
        return ("document", str(event.payload["kind"]), str(event.payload["id"]))
    return CURVE if event.kind == TUNED else ("memory", event.memory_id or "")


def key_of(history: EntityHistory) -> Key:
    match history:
        case MemoryHistory():
            return ("memory", history.memory_id)
        case EdgeHistory():
            return ("edge", history.source_id, history.target_id, history.kind)
        case DocumentHistory():
            return ("document", history.kind, history.id)
        case CurveHistory():
            return CURVE
        case _:
            assert_never(history)


def merged(mine: EntityHistory, theirs: EntityHistory) -> EntityHistory:
    """The merge of two histories, without vectors; InvalidInput where they contradict each other. Of two
    readings of the clock for one event the lower one counts: a repair only sets clocks back, so stores that
    were repaired at different times come to the same order."""
    mine, theirs = _set_back(mine, theirs), _set_back(theirs, mine)
    events = _union(mine.events, theirs.events)
    match mine, theirs:
        case MemoryHistory(), MemoryHistory():
            return _merged_memory(events, mine, theirs)
        case DocumentHistory(), DocumentHistory():
            return _merged_document(events, mine, theirs)
        case _:
            return replace(mine, events=events)


# -- Union of memories


def writes(events: Iterable[LogEvent]) -> list[LogEvent]:
    """The events, given by stamp, that made a memory what it is, in the order in which they count. Where a
    memory was created in several stores, the first creation counts: the others are put before it, so that
    their states are in the past and undo no later change."""
    ordered = list(events)
    made = [event for event in ordered if event.kind == CREATED]
    return [*reversed(made), *(event for event in ordered if event.kind == REVISED)]


def ending(history: MemoryHistory) -> LogEvent | None:
    return next((event for event in history.events if event.kind == DELETED), None)


def present(history: MemoryHistory) -> Memory | None:
    """The present state of a memory; None when it was deleted."""
    return history.versions[-1] if history.versions else None


def revisions(history: MemoryHistory) -> list[Revision]:
    """The earlier states of a memory, oldest first."""
    ended = zip(history.versions, history.versions[1:], writes(history.events)[1:], strict=False)
    return [
        Revision(
            memory=old,
            recorded_at=old.updated_at,
            ended_at=new.updated_at,
            reason=str(event.payload.get("reason", "created twice")),
        )
        for old, new, event in ended
    ]


def folded(
    events: Sequence[LogEvent], states: Mapping[Name, Memory], here: Container[Name] | None = None
) -> tuple[Memory, ...]:
    """The versions that these writes make one after the other. Each takes the groups it changed from its own
    `states`, and leaves the others as they were. Found domains change only with the writes that are `here`;
    None: with all."""
    made = [states[name(event)] for event in events if event.kind == CREATED]
    versions = [replace(made[0], created_at=made[-1].created_at)]
    for event in events[1:]:
        version, before = states[name(event)], versions[-1]
        touched = _touched(event)
        changed = {field: getattr(version, field) for field in touched if field in GROUPED - MEMBERSHIP}
        known = here is None or name(event) in here
        changed |= revised_membership(before, version, touched, here=known)
        versions.append(
            replace(before, **changed, updated_at=version.updated_at, revision=before.revision + 1)
        )
    return tuple(versions)


def _touched(event: LogEvent) -> frozenset[str]:
    """The fields of the groups that a write changed, and the names for parts of its domains."""
    if event.kind == CREATED:
        return GROUPED
    changed = frozenset(event.payload["fields"])
    whole = {field for group in GROUPS if not changed.isdisjoint(group) for field in group}
    return changed & {FOUND_DOMAINS, SCORES} | whole


def _merged_memory(events: tuple[LogEvent, ...], mine: MemoryHistory, theirs: MemoryHistory) -> MemoryHistory:
    if any(event.kind == DELETED for event in events):
        return MemoryHistory(memory_id=mine.memory_id, events=events, versions=())
    written = writes(events)
    local = any(map(has_local_part, mine.versions))
    for one in (mine,) if local else (mine, theirs):
        if len(one.versions) == len(written):  # the other one wrote nothing of its own
            return MemoryHistory(memory_id=mine.memory_id, events=events, versions=one.versions)
    known = versions_of(mine)
    versions = folded(written, versions_of(theirs) | known, known.keys())
    return MemoryHistory(memory_id=mine.memory_id, events=events, versions=versions)


def versions_of(history: MemoryHistory) -> dict[Name, Memory]:
    """The state after each write of a history."""
    return {name(event): one for event, one in zip(writes(history.events), history.versions, strict=True)}


# -- Union of edges


def edge(history: EdgeHistory) -> Edge | None:
    """The edge of a history, if it exists; created when it was first linked since it was last unlinked."""
    found: Edge | None = None
    for event in history.events:
        if event.kind == UNLINKED:
            found = None
        elif found is not None:
            found = replace(found, weight=weight_of(event.payload["weight"]))
        else:
            found = Edge(
                source_id=history.source_id,
                target_id=history.target_id,
                kind=history.kind,
                weight=weight_of(event.payload["weight"]),
                created_at=event.at,
            )
    return found


# -- Union of documents


def filed(history: DocumentHistory) -> Filed | None:
    """The document of a history with its stamp, if there is one."""
    return None if history.document is None else ((history.clock, history.node), history.document)


def last(events: Iterable[LogEvent], kind: str) -> tuple[int, str]:
    """The stamp of the last event of a kind; before everything without one."""
    return max(((event.clock, event.node) for event in events if event.kind == kind), default=(0, ""))


def without(history: DocumentHistory) -> DocumentHistory:
    return replace(history, document=None, clock=0, node="")


def _merged_document(
    events: tuple[LogEvent, ...], mine: DocumentHistory, theirs: DocumentHistory
) -> DocumentHistory:
    dropped = last(events, DROPPED)
    candidates = [one for one in (filed(mine), filed(theirs)) if one is not None and one[0] > dropped]
    bare = without(replace(mine, events=events))
    if not candidates:
        return bare
    put, document = max(candidates, key=_put_order)
    if put < last(events, PUT):  # a later one was here: it went with a memory that it cited
        return bare
    return replace(bare, document=document, clock=put[0], node=put[1])


def _put_order(one: Filed) -> tuple[tuple[int, str], int, str]:
    """The later put is larger. Of two clones' puts at one clock reading the content decides, the same on
    every store."""
    put, document = one
    content = [document.scope, document.cites, document.body]
    return put, document.version, json.dumps(content, sort_keys=True, default=dict)


# -- Union of events

NEEDED: Mapping[str, frozenset[str]] = {
    CREATED: frozenset(),
    REVISED: frozenset({"fields", "reason"}),
    DELETED: frozenset({"reason"}),
}
"""The kinds of event that a memory needs, with the fields that such an event needs. A repair takes invalid
fields away from its payload and lets it stay."""


def reduced(event: LogEvent) -> Mapping[str, Any]:
    """The payload without what its kind does not need."""
    if event.kind not in NEEDED:
        return event.payload
    return {field: value for field, value in event.payload.items() if field in NEEDED[event.kind]}


def with_events(history: EntityHistory, new: Mapping[Name, LogEvent]) -> EntityHistory:
    """The history with other names or clocks of its events, and the entity that this order makes. `new` has
    every event under the name it had."""
    if all(new[name(event)] == event for event in history.events):
        return history
    events = tuple(sorted({name(event): event for event in new.values()}.values(), key=stamp))
    match history:
        case MemoryHistory(versions=versions) if versions:
            states = {name(new[old]): version for old, version in versions_of(history).items()}
            return replace(history, events=events, versions=folded(writes(events), states))
        case DocumentHistory():
            clock, node = _put_stamp(history, new)
            return replace(history, events=events, clock=clock, node=node)
        case _:
            return replace(history, events=events)


def _put_stamp(history: DocumentHistory, new: Mapping[Name, LogEvent]) -> tuple[int, str]:
    """The stamp of a document: that of the event of its put, where it has one."""
    return next(
        (
            (new[name(event)].clock, new[name(event)].node)
            for event in history.events
            if event.kind == PUT and (event.clock, event.node) == (history.clock, history.node)
        ),
        (history.clock, history.node),
    )


def _set_back(history: EntityHistory, other: EntityHistory) -> EntityHistory:
    """The history with the clocks of the other one where these are lower."""
    readings = {name(event): event.clock for event in other.events}
    later = {name(event) for event in history.events if event.clock > readings.get(name(event), event.clock)}
    if not later:
        return history
    new = {name(event): event for event in history.events}
    return with_events(history, new | {one: replace(new[one], clock=readings[one]) for one in later})


def is_same(one: LogEvent, other: LogEvent) -> bool:
    """Whether two events of one node and number are the same event, though a repair may have set its clock
    back or reduced its payload in one of two stores."""
    about = [(event.kind, event.at, event.memory_id, event.scope) for event in (one, other)]
    return about[0] == about[1] and (
        one.payload == other.payload or one.payload == reduced(other) or other.payload == reduced(one)
    )


def _union(mine: Sequence[LogEvent], theirs: Sequence[LogEvent]) -> tuple[LogEvent, ...]:
    known = {name(event): event for event in mine}
    for event in theirs:
        if known.setdefault(name(event), event) != event:
            raise two_events(event)
    return tuple(mine) if len(known) == len(mine) else tuple(sorted(known.values(), key=stamp))


def two_events(event: LogEvent) -> InvalidInput:
    """The error for two events of one name in one file. No store writes that: one that has met a clone names
    such events by their content (`store.merge.forks`)."""
    return InvalidInput(
        f"Event {event.seq} of the installation {event.node} has two different contents.",
        hint="The file is damaged or was edited; export it again at its source.",
        details={"node": event.node, "seq": event.seq},
    )
