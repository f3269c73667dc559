"""Applies changes to a copy of the state that no reader sees yet."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, assert_never

from vestige.cognition.fsrs import strength
from vestige.cognition.text.analyser import text_hash
from vestige.core.clock import tick
from vestige.core.documents import Document
from vestige.core.errors import Conflict, Forbidden, InvalidInput, NotFound
from vestige.core.models import ROOT_SCOPE, Access, LogEvent, Memory, Revision, Tombstone, utc
from vestige.store.contract.changes import (
    CARRIED,
    DROPPED,
    LINKED,
    PUT,
    REMARKED,
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
    about,
    check_tune,
    evidence_payload,
)
from vestige.store.inmemory import documents
from vestige.store.inmemory.profiles import take_vectors
from vestige.store.inmemory.state import (
    MemoryEntry,
    StoreState,
    TombstoneEntry,
    apart,
    as_json,
    fingerprints_of,
    words_of,
)
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
        case Put() | Drop():
            return _file(state, change, node, access)
        case Forget():
            return _forget(state, change, node, access)
        case _:
            assert_never(change)


def touched(changes: Iterable[Change]) -> frozenset[str]:
    """The ids of the memories these changes are about."""
    return frozenset(memory_id for change in changes for memory_id in about(change))


def _add(state: StoreState, change: Add, node: str, access: Access) -> LogEvent:
    memory = apart(change.memory)
    _require_writable(memory, access)
    if memory.id in state.held or memory.id in state.buried:
        raise Conflict(
            f"The id {memory.id} is already taken.",
            hint="Ids are never used twice, not even after a deletion.",
            details={"memory_id": memory.id},
        )
    state.arrivals += 1
    state.held[memory.id] = MemoryEntry(
        arrival=state.arrivals,
        memory=memory,
        strength=strength.encode(memory.created_at, state.curve),
        words=words_of(memory),
        fingerprints=fingerprints_of(memory),
    )
    if change.embedded is not None:
        take_vectors(state, memory.id, change.embedded)
    return _log(state, node, memory.created_at, "memory.created", memory, {})


def _revise(state: StoreState, change: Revise, node: str, access: Access) -> LogEvent:
    held = _require(state, change.memory.id, access)
    old = held.memory
    new = apart(replace(change.memory, created_at=old.created_at))
    _require_writable(new, access)
    if new.revision != old.revision + 1:
        raise Conflict(
            f"The memory {old.id} is at revision {old.revision}; {new.revision} cannot follow it.",
            hint="Load the memory again and repeat the change.",
            details={"memory_id": old.id, "revision": old.revision},
        )
    past = Revision(memory=old, recorded_at=old.updated_at, ended_at=new.updated_at, reason=change.reason)
    same_text = text_hash(new) == text_hash(old)
    state.held[new.id] = replace(
        held,
        memory=new,
        words=words_of(new),
        fingerprints=fingerprints_of(new),
        past=(*held.past, past),
        pieces=held.pieces if same_text else (),
        beside=held.beside if same_text else {},
    )
    if change.embedded is not None:
        take_vectors(state, new.id, change.embedded)
    payload = {"fields": _changed_fields(old, new), "reason": change.reason}
    return _log(state, node, new.updated_at, "memory.revised", new, payload)


def _weigh(
    state: StoreState, change: RecordEvidence | ChangeState | Carry, node: str, access: Access
) -> LogEvent:
    match change:
        case RecordEvidence():
            return _remark(state, change, node, access)
        case ChangeState():
            return _settle(state, change, node, access)
        case Carry():
            return _carry(state, change, node, access)


def _remark(state: StoreState, change: RecordEvidence, node: str, access: Access) -> LogEvent:
    held = _require(state, change.memory_id, access)
    after = strength.after(held.strength, change.evidence, change.at, change.amount)
    state.held[held.memory.id] = replace(held, strength=after)
    payload = evidence_payload(change, held.strength, after, held.memory.suppression_count)
    return _log(state, node, change.at, REMARKED, held.memory, payload)


def _settle(state: StoreState, change: ChangeState, node: str, access: Access) -> LogEvent:
    held = _require(state, change.memory_id, access)
    state.held[held.memory.id] = replace(held, strength=strength.settled(held.strength, change.at))
    payload = {"from": change.before.value, "to": change.after.value, "reason": change.reason}
    return _log(state, node, change.at, STATE, held.memory, payload)


def _carry(state: StoreState, change: Carry, node: str, access: Access) -> LogEvent:
    held = _require(state, change.memory_id, access)
    payload = carried(change.strength)
    brought = replace(carried_strength(payload), curve=state.curve)
    state.held[held.memory.id] = replace(held, strength=brought)
    return _log(state, node, change.at, CARRIED, held.memory, payload)


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
    if not math.isfinite(edge.weight):
        raise InvalidInput("The weight of an edge is a finite number.")
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


def _file(state: StoreState, change: Put | Drop, node: str, access: Access) -> LogEvent | None:
    if isinstance(change, Put):
        return _put(state, change, node, access)
    return _drop(state, change, node, access)


def _put(state: StoreState, change: Put, node: str, access: Access) -> LogEvent | None:
    made = documents.put(state, change, access)
    if change.logged:
        event = _log(state, node, made.updated_at, PUT, made, _named(made))
    else:
        event, state.clock = None, tick(state.clock, made.updated_at)
    state.stamps[made.kind, made.id] = (state.clock, node)
    return event


def _drop(state: StoreState, change: Drop, node: str, access: Access) -> LogEvent:
    gone = documents.drop(state, change, access)
    return _log(state, node, change.at, DROPPED, gone, _named(gone))


def _named(document: Document) -> dict[str, str]:
    return {"kind": document.kind, "id": document.id}


def _forget(state: StoreState, change: Forget, node: str, access: Access) -> LogEvent:
    held = _require(state, change.memory_id, access)
    memory = held.memory
    state.end(held)
    tombstone = Tombstone(memory_id=memory.id, deleted_at=change.at)
    state.buried[memory.id] = TombstoneEntry(tombstone=tombstone, scope=memory.scope)
    return _log(state, node, change.at, "memory.deleted", memory, {"reason": change.reason})


def _require(state: StoreState, memory_id: str, access: Access) -> MemoryEntry:
    held = state.accessible(memory_id, access)
    if held is None:
        raise NotFound(f"There is no memory {memory_id}.", details={"memory_id": memory_id})
    return held


def _require_writable(memory: Memory, access: Access) -> None:
    if not access.allows(memory):
        raise Forbidden(
            f"This caller may not write into the scope {memory.scope}.", details={"scope": memory.scope}
        )


def _changed_fields(old: Memory, new: Memory) -> list[str]:
    names = [field.name for field in fields(Memory) if field.name not in ("revision", "updated_at")]
    return sorted(name for name in names if getattr(old, name) != getattr(new, name))


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
