"""Applying the gate's decisions: they become changes to the store, and events."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, assert_never

from vestige.cognition.fsrs.strength import encode
from vestige.cognition.gate.decide import Create, Decision, Merge, Reinforce, Supersede, Update
from vestige.cognition.graph.kinds import CONTRADICTS, SEMANTIC, SUPERSEDES
from vestige.cognition.time.validity import reworded
from vestige.core.events import MemoryClassified, scopes_of
from vestige.core.models import MAX_TAGS, Edge, Evidence, Memory, Record
from vestige.core.origin import lowest
from vestige.engine.embedding import vectors_for
from vestige.engine.ingest.batch import Draft, IngestBatch, identity, source_position
from vestige.engine.revise import (
    TEXT_FIELDS,
    changed_fields,
    connected_event,
    created_event,
    next_revision,
    updated_event,
)
from vestige.store.contract.changes import Add, Embedded, Link, RecordEvidence, Revise

RESTATED = ("valid_from", "valid_until", "pinned")
"""Fields that a caller may set on a memory which says the same already …"""
FILLED_IN = ("author", "agent_id", "session_id", "occurred_at")
"""… and fields that are filled in if they were not known."""
REPLACED = ("node_type", "metadata", "source", "position", *RESTATED, *FILLED_IN)
"""Fields that a new text of the same thing replaces, if the caller gave them."""


def apply(batch: IngestBatch, index: int, draft: Draft, decision: Decision) -> str:
    """Collect the changes of a decision; returns the id of the memory that now holds the text."""
    memory = draft.memory
    match decision:
        case Create(related=related, contradicts=contradicts):
            _add(batch, index, memory)
            _link(batch, memory, related, SEMANTIC, decision.similarity)
            _link(batch, memory, contradicts, CONTRADICTS, decision.similarity)
            return memory.id
        case Merge(memory_ids=others):
            _add(batch, index, memory)
            _link(batch, memory, others, SEMANTIC, decision.similarity)
            return memory.id
        case Supersede(memory_id=old_id):
            _supersede(batch, index, memory, old_id, decision)
            return memory.id
        case Update(memory_id=old_id):
            _revise(batch, _updated(batch.known[old_id].memory, draft), reason="update")
            _reinforce(batch, old_id)
            return old_id
        case Reinforce(memory_id=old_id, identical=identical):
            known = batch.known[old_id].memory
            if not known.pinned:
                _revise(batch, _reinforced(known, draft, identical=identical), reason="reinforce")
            _reinforce(batch, old_id)
            return old_id
    assert_never(decision)


def _add(batch: IngestBatch, index: int, memory: Memory) -> None:
    made = batch.vectors[index] if batch.vectors else None
    named = bool(memory.domains)
    memory = batch.classifier.classified(memory, None if batch.wholes is None else batch.wholes[index])
    batch.changes += [Add(memory=memory, embedded=made), *batch.classifier.by_hand(memory, named)]
    batch.known[memory.id] = Record(memory=memory, strength=encode(batch.now), embedded=made is not None)
    _note(batch, memory)
    if memory.thread is None:
        batch.fresh.append((memory.id, index))
    batch.events.append(created_event(memory, batch.now))
    if memory.domains and not named:
        batch.events.append(
            MemoryClassified(
                timestamp=batch.now, scopes=scopes_of(memory), id=memory.id, domains=memory.domains
            )
        )


def _note(batch: IngestBatch, memory: Memory) -> None:
    """Note a memory, so that later items of the batch are compared with it."""
    for wording in (memory.content, *memory.phrasings):
        batch.identical.setdefault(identity(memory, batch.now, wording), memory.id)
    place = source_position(memory)
    if place is not None and memory.valid_at(batch.now):
        batch.places.setdefault(place, memory.id)


def _drop_notes(batch: IngestBatch, memory_id: str) -> None:
    """Drop the notes of a memory that has changed, so that later items are not compared with its old text."""
    batch.identical = {key: held for key, held in batch.identical.items() if held != memory_id}
    batch.places = {key: held for key, held in batch.places.items() if held != memory_id}
    batch.fresh = [(held, at) for held, at in batch.fresh if held != memory_id]
    for at, near in batch.rivals.items():
        batch.rivals[at] = [one for one in near if one.memory_id != memory_id]


def _link(batch: IngestBatch, memory: Memory, others: Sequence[str], kind: str, weight: float | None) -> None:
    weight = min(1.0, max(0.0, weight if weight is not None else 1.0))
    for other in others:
        edge = Edge(source_id=memory.id, target_id=other, kind=kind, weight=weight, created_at=batch.now)
        batch.changes.append(Link(edge=edge))
        ends = {one: batch.known[one].memory for one in (memory.id, other) if one in batch.known}
        batch.events.append(connected_event(edge, ends))


def _supersede(batch: IngestBatch, index: int, memory: Memory, old_id: str, decision: Supersede) -> None:
    """Add the new memory and end the old one. The new one is valid from the date it states, or from now."""
    old = batch.known[old_id].memory
    turn = memory.valid_from or memory.occurred_at or batch.now
    turn = max(turn, old.valid_from or turn)
    _add(batch, index, replace(memory, valid_from=memory.valid_from or turn))
    _revise(batch, replace(old, valid_until=turn, superseded_by=memory.id), reason="superseded")
    _link(batch, memory, (old_id,), SUPERSEDES, decision.similarity)


def _updated(known: Memory, draft: Draft) -> Memory:
    """The known memory with the new text and every field that the caller gave."""
    stated = draft.memory
    fresh = draft.given | ({"valid_from", "valid_until"} if draft.stated or draft.expires else set())
    given: dict[str, Any] = {name: getattr(stated, name) for name in REPLACED if name in fresh}
    # The other wordings belong to the old text.
    new = reworded(known, stated.content)
    origin = lowest((known.origin, stated.origin))
    return replace(new, phrasings=(), origin=origin, **_labels(known, stated), **given)


def _reinforced(known: Memory, draft: Draft, *, identical: bool) -> Memory:
    """The known memory with the new wording, and with fields that were given and not known."""
    stated = draft.memory
    given: dict[str, Any] = {name: getattr(stated, name) for name in RESTATED if name in draft.given}
    given |= {name: getattr(stated, name) for name in FILLED_IN if getattr(known, name) is None}
    if known.source is None and known.position is None:
        # Source and position only mean something together.
        given |= {"source": stated.source, "position": stated.position}
    if draft.expires and known.node_type == stated.node_type:
        given["valid_until"] = _renewed(known, stated)
    wordings = known.phrasings if identical else (*known.phrasings, stated.content)
    given |= {} if identical else {"origin": lowest((known.origin, stated.origin))}
    metadata = {**stated.metadata, **known.metadata}
    return replace(known, phrasings=wordings, metadata=metadata, **_labels(known, stated), **given)


def _renewed(known: Memory, stated: Memory) -> datetime | None:
    """The end of a state that was stated again: a new time to live, unless it was given an earlier end."""
    if known.valid_until is None or stated.valid_until is None:
        return known.valid_until
    if known.valid_until - known.created_at < stated.valid_until - stated.created_at:
        return known.valid_until
    return max(known.valid_until, stated.valid_until)


def _labels(known: Memory, stated: Memory) -> dict[str, Any]:
    return {
        "tags": tuple(dict.fromkeys((*known.tags, *stated.tags)))[: max(MAX_TAGS, len(known.tags))],
        "domains": tuple(dict.fromkeys((*known.domains, *stated.domains))),
    }


def _revise(batch: IngestBatch, wanted: Memory, *, reason: str) -> None:
    record = batch.known[wanted.id]
    names = changed_fields(record.memory, wanted)
    if not names:
        return
    memory = next_revision(wanted, batch.now)
    made: list[Embedded] = vectors_for(batch.call, [memory]) if TEXT_FIELDS & set(names) else []
    batch.changes.append(Revise(memory=memory, reason=reason, embedded=made[0] if made else None))
    batch.known[memory.id] = replace(record, memory=memory)
    if not {"content", "valid_from", "valid_until"}.isdisjoint(names):
        _drop_notes(batch, memory.id)
    _note(batch, memory)
    batch.events.append(updated_event(memory, batch.now, names))


def _reinforce(batch: IngestBatch, memory_id: str) -> None:
    batch.changes.append(RecordEvidence(memory_id=memory_id, evidence=Evidence.REINFORCED, at=batch.now))
