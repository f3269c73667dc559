"""Applies changes to a copy of the state that no reader sees yet."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never

from vestige.cognition.fsrs import strength
from vestige.core.clock import tick
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from vestige.core.models import ROOT_SCOPE, Access, LogEvent, Memory, Revision, utc
from vestige.store.contract.changes import (
    CARRIED,
    CREATED,
    DELETED,
    DROPPED,
    LINKED,
    PUT,
    REMARKED,
    REVISED,
    STATE,
    TUNED,
    UNLINKED,
    Add,
    Carry,
    Change,
    ChangeState,
    Drop,
    Forget,
    Link,
    Put,
    RecordEvidence,
    Revise,
    Tune,
    Unlink,
    check_tune,
    evidence_payload,
)
from vestige.store.contract.memberships import revised_fields
from vestige.store.inmemory.profiles import take_vectors
from vestige.store.inmemory.state import MemoryEntry, StoreState, apart, as_json, may_hold
from vestige.store.merge.strength_log import carried, carried_strength


def apply(state: StoreState, change: Change, *, node: str, access: Access) -> LogEvent | None:
    """Apply one change to the state and log it, unless it is not to be logged."""
    match change:
        case Add():
            return _add(state, change, node, access)
        case Revise():
            return _revise(state, change, node, access)
        case RecordEvidence() | ChangeState() | Carry():
            return _weigh(state, change, node, access)
        case Tune():
            return _tune(state, change, node, access)
        case Link():
            return _link(state, change, node, access)
        case Unlink():
            return _unlink(state, change, node, access)
        case Put():
            return _put(state, change, node, access)
        case Drop():
            return _drop(state, change, node, access)
        case Forget():
            return _forget(state, change, node, access)
        case _:
            assert_never(change)


def _add(state: StoreState, change: Add, node: str, access: Access) -> LogEvent:
    memory = apart(change.memory)
    _require_writable(access.allows(memory), memory.scope)
    if memory.id in state.held or memory.id in state.buried:
        raise Conflict(
            f"The id {memory.id} is already taken.",
            hint="Ids are never used twice, not even after a deletion.",
            details={"memory_id": memory.id},
        )
    state.hold(memory, past=())
    if change.embedded is not None:
        take_vectors(state, memory.id, change.embedded)
    return _log(state, node, memory.created_at, CREATED, memory, {})


def _revise(state: StoreState, change: Revise, node: str, access: Access) -> LogEvent:
    held = _require(state, change.memory.id, access)
    old = held.memory
    new = apart(replace(change.memory, created_at=old.created_at))
    _require_writable(access.allows(new), new.scope)
    if new.revision != old.revision + 1:
        raise Conflict(
            f"The memory {old.id} is at revision {old.revision}; {new.revision} cannot follow it.",
            hint="Load the memory again and repeat the change.",
            details={"memory_id": old.id, "revision": old.revision},
        )
    past = Revision(memory=old, recorded_at=old.updated_at, ended_at=new.updated_at, reason=change.reason)
    state.hold(new, (*held.past, past))
    if change.embedded is not None:
        take_vectors(state, new.id, change.embedded)
    payload = {"fields": revised_fields(old, new), "reason": change.reason}
    return _log(state, node, new.updated_at, REVISED, new, payload)


def _weigh(
    state: StoreState, change: RecordEvidence | ChangeState | Carry, node: str, access: Access
) -> LogEvent:
    held = _require(state, change.memory_id, access)
    payload: Mapping[str, Any]
    match change:
        case RecordEvidence():
            after = strength.after(held.strength, change.evidence, change.at, change.amount)
            suppressions = held.memory.suppression_count
            kind, payload = REMARKED, evidence_payload(change, held.strength, after, suppressions)
        case ChangeState():
            after = strength.settled(held.strength, change.at)
            payload = {"from": change.before.value, "to": change.after.value, "reason": change.reason}
            kind = STATE
        case Carry():
            kind, payload = CARRIED, carried(change.strength)
            after = replace(carried_strength(payload), curve=state.curve)
    state.held[held.memory.id] = replace(held, strength=after)
    return _log(state, node, change.at, kind, held.memory, payload)


def _tune(state: StoreState, change: Tune, node: str, access: Access) -> LogEvent:
    check_tune(change, access)
    state.curve = change.w20
    for memory_id, held in state.held.items():
        state.held[memory_id] = replace(held, strength=replace(held.strength, curve=change.w20))
    return _log(state, node, change.at, TUNED, None, {"w20": change.w20})


def _link(state: StoreState, change: Link, node: str, access: Access) -> LogEvent:
    edge = change.edge
    if edge.source_id == edge.target_id:
        raise InvalidInput("A memory cannot be linked to itself.", details={"memory_id": edge.source_id})
    source = _require(state, edge.source_id, access)
    _require(state, edge.target_id, access)
    key = (edge.source_id, edge.target_id, edge.kind)
    known = state.edges.get(key)
    state.edges[key] = edge if known is None else replace(known, weight=edge.weight)
    payload = {"target": edge.target_id, "kind": edge.kind, "weight": edge.weight}
    return _log(state, node, edge.created_at, LINKED, source.memory, payload)


def _unlink(state: StoreState, change: Unlink, node: str, access: Access) -> LogEvent:
    source = _require(state, change.source_id, access)
    _require(state, change.target_id, access)
    if state.edges.pop((change.source_id, change.target_id, change.kind), None) is None:
        raise NotFound(
            f"There is no {change.kind} link from {change.source_id} to {change.target_id}.",
            details={"source": change.source_id, "target": change.target_id, "kind": change.kind},
        )
    payload = {"target": change.target_id, "kind": change.kind}
    return _log(state, node, change.at, UNLINKED, source.memory, payload)


def _put(state: StoreState, change: Put, node: str, access: Access) -> LogEvent | None:
    given = replace(change.document, body=as_json(change.document.body))
    for memory_id in given.cites:
        _require(state, memory_id, access)
    _require_writable(may_hold(given, access), given.scope)
    present = state.documents.get((given.kind, given.id))
    version = 0 if present is None else present.version
    if given.version != version + 1:
        raise Conflict(
            f"The {given.kind} {given.id} is at version {version}; {given.version} cannot follow it.",
            hint="Load it again and repeat the change.",
            details={"kind": given.kind, "id": given.id, "version": version},
        )
    made = given if present is None else replace(given, created_at=present.created_at)
    state.documents[given.kind, given.id] = made
    if change.logged:
        event = _log(state, node, made.updated_at, PUT, made, {"kind": made.kind, "id": made.id})
    else:
        event, state.clock = None, tick(state.clock, made.updated_at)
    state.stamps[made.kind, made.id] = (state.clock, node)
    return event


def _drop(state: StoreState, change: Drop, node: str, access: Access) -> LogEvent:
    present = state.documents.get((change.kind, change.id))
    if present is None or not state.may_read(present, access):
        raise NotFound(f"There is no {change.kind} {change.id}.", details={"id": change.id})
    state.lose(change.kind, change.id)
    return _log(state, node, change.at, DROPPED, present, {"kind": change.kind, "id": change.id})


def _forget(state: StoreState, change: Forget, node: str, access: Access) -> LogEvent:
    memory = _require(state, change.memory_id, access).memory
    state.end(memory.id, change.at, memory.scope)
    return _log(state, node, change.at, DELETED, memory, {"reason": change.reason})


def _require(state: StoreState, memory_id: str, access: Access) -> MemoryEntry:
    held = state.accessible(memory_id, access)
    if held is None:
        raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
    return held


def _require_writable(allowed: bool, scope: str) -> None:
    if not allowed:
        raise Forbidden(f"This caller may not write into the scope {scope}.", details={"scope": scope})


def _log(
    state: StoreState,
    node: str,
    at: datetime,
    kind: str,
    subject: Memory | Document | None,
    payload: Mapping[str, Any],
) -> LogEvent:
    state.clock, state.seq = tick(state.clock, at), state.seq + 1
    event = LogEvent(
        position=len(state.log) + 1,
        node=node,
        seq=state.seq,
        clock=state.clock,
        at=utc(at),
        kind=kind,
        memory_id=subject.id if isinstance(subject, Memory) else None,
        scope=ROOT_SCOPE if subject is None else subject.scope,
        payload=as_json(payload),
    )
    state.log.append(event)
    return event
