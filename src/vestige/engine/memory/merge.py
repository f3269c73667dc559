"""Merging memories at a user's request, and undoing it. Nothing is deleted: the parts end and keep their
history."""

import logging
from collections.abc import Sequence
from dataclasses import replace

from vestige.cognition.english.words import words_of
from vestige.cognition.evidence.merge import (
    MERGED_FROM,
    Restates,
    in_order,
    join,
    plan_id,
    refusals,
    sentences_to_compare,
    unchecked,
)
from vestige.cognition.gate.conflict import find_conflict
from vestige.cognition.gate.paraphrase import restates, says_all, word_likeness
from vestige.cognition.gate.relation import repeats
from vestige.cognition.graph.kinds import CONTRADICTS, MERGES
from vestige.core.errors import Conflict, EmbedderError, InvalidInput, ModelMismatch, NotFound
from vestige.core.events import Event
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Edge, Evidence, Filter, Memory, Record, Revision
from vestige.embed.protocol import Encoded
from vestige.engine.context import Call, inaccessible_ids
from vestige.engine.embedding import embedder_or_none, vectors_for
from vestige.engine.recall.stage_inputs import marked_pairs
from vestige.engine.revise import (
    TEXT_FIELDS,
    changed_fields,
    connected_event,
    created_event,
    load,
    next_revision,
    retry_on_conflict,
    updated_event,
)
from vestige.store.contract.changes import Add, Change, Link, RecordEvidence, Revise

logger = logging.getLogger(__name__)

MERGED, UNMERGED, UNDONE = "merged", "unmerged", "merge undone"
"""The reasons of revisions: of a part that is merged, of a part that is revived, of the merged memory
then."""

MOST_SENTENCES = 200
"""The most sentences of a merge that the model compares: a second or two."""
STATED_FIELDS = TEXT_FIELDS | {"valid_from", "valid_until"}
"""The fields that hold what a memory says, and when that is valid: not its labels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """What merging would do: the parts, the leading one first, and the memory they become."""

    plan_id: str
    parts: tuple[Record, ...]
    merged: Memory
    unchecked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """A merge that was undone: the parts that were revived, and the memory they had become."""

    merged: Record
    parts: tuple[Record, ...]


def plan(call: Call, memory_ids: Sequence[str]) -> MergePlan:
    """What merging these memories would do now. InvalidInput says why they cannot be merged."""
    if len(set(memory_ids)) < len(memory_ids):
        raise InvalidInput("A memory cannot be merged with itself.", hint="Name each memory once.")
    records = _load_all(call, memory_ids)
    parts = in_order(record.memory for record in records.values())
    now = call.engine.now()
    reasons = refusals(parts, now) or marked_apart(call, tuple(records.values()))
    if reasons:
        raise InvalidInput(
            f"These memories cannot be merged: {'; '.join(reasons)}.",
            hint="Leave those memories out, or resolve the reasons first.",
            details={"reasons": reasons},
        )
    restates = _restates(call, [part.content for part in parts])
    merged = join(parts, memory_id=call.engine.new_id(), now=now, restates=restates)
    return MergePlan(
        plan_id=plan_id(parts, merged),
        parts=tuple(records[part.id] for part in parts),
        merged=merged,
        unchecked=unchecked(parts),
    )


def marked_apart(call: Call, records: Sequence[Record]) -> list[str]:
    """Why these must not be merged: a link marks two of them as contradicting."""
    edges = call.engine.store.edges([one.memory.id for one in records], access=call.access, among=True)
    marked = marked_pairs(call, records, edges, Filter())
    named = sorted(tuple(sorted(pair)) for pair in marked.pairs)
    return [f"{one} is marked as contradicting {other}" for one, other in named]


def _inherited_marks(call: Call, parts: Sequence[Record], merged: Memory) -> list[Edge]:
    """The marks of the parts as links of the merged memory: what contradicts a part contradicts it."""
    edges = call.engine.store.edges([one.memory.id for one in parts], access=call.access)
    against = marked_pairs(call, parts, edges, Filter(valid_at=merged.created_at)).beyond
    return [
        Edge(source_id=merged.id, target_id=one.memory.id, kind=CONTRADICTS, created_at=merged.created_at)
        for one in against
    ]


def _restates(call: Call, texts: Sequence[str]) -> Restates:
    """Whether one sentence of these texts repeats another: by its words, or else, with a model, by the
    likeness of the words of both."""
    sentences = sentences_to_compare(dict.fromkeys(texts))
    encoded = _encoded(call, sentences) if 1 < len(sentences) <= MOST_SENTENCES else {}

    def restating(one: str, other: str) -> bool:
        if repeats(one, other):
            return True
        if not encoded or find_conflict(one, other) or find_conflict(other, one):
            return False
        left, right = encoded[one].tokens, encoded[other].tokens
        if left is None or right is None:
            return False
        ours, theirs = words_of(one), words_of(other)
        likeness = word_likeness(ours, left.spans, left.states, theirs, right.spans, right.states)
        similarity = float(encoded[one].vector @ encoded[other].vector)
        return says_all(ours, theirs, likeness) and restates(one, other, similarity, likeness)

    return restating


def _encoded(call: Call, texts: Sequence[str]) -> dict[str, Encoded]:
    """The texts with their vectors and token states; empty without a model that works."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        return {}
    try:
        return dict(zip(texts, embedder.encode_documents(texts), strict=True))
    except EmbedderError as exc:
        logger.warning("The model failed; sentences are compared by words only: %s", exc.message)
        return {}


def _load_all(call: Call, memory_ids: Sequence[str]) -> dict[str, Record]:
    """The records by id; NotFound for the first that is missing."""
    found = call.engine.store.get_many(memory_ids, access=call.access)
    records = {record.memory.id: record for record in found}
    return {memory_id: records.get(memory_id) or load(call, memory_id) for memory_id in memory_ids}


def apply(call: Call, memory_ids: Sequence[str], planned: str) -> Record:
    """Do what was planned, in one transaction, if nothing has changed since; returns the merged memory."""
    ready = plan(call, memory_ids)
    if ready.plan_id != planned:
        raise _outdated(planned)
    merged, parts = ready.merged, [part.memory for part in ready.parts]
    made, now = vectors_for(call, [merged]), merged.created_at
    # The parts end where the merged memory begins.
    ends = [replace(part, valid_until=merged.valid_from, superseded_by=merged.id) for part in parts]
    ended = [next_revision(part, now) for part in ends]
    edges = [Edge(source_id=merged.id, target_id=part.id, kind=MERGES, created_at=now) for part in parts]
    marks = _inherited_marks(call, ready.parts, merged)
    changes: list[Change] = [Add(memory=merged, embedded=made[0] if made else None)]
    # One reinforcement for each further part, as if the same text had come again.
    again = RecordEvidence(memory_id=merged.id, evidence=Evidence.REINFORCED, at=now)
    changes += [again] * (len(parts) - 1)
    changes += [Revise(memory=part, reason=MERGED) for part in ended]
    changes += [Link(edge=edge) for edge in (*edges, *marks)]
    call.check()
    try:
        call.engine.store.commit(changes, access=call.access)
    except ModelMismatch:
        raise
    except (Conflict, NotFound) as exc:
        raise _outdated(planned) from exc
    known = {memory.id: memory for memory in (merged, *ended)}
    linked = (connected_event(edge, known) for edge in edges)
    call.engine.events.emit(created_event(merged, now), *map(_updated, ended), *linked)
    return load(call, merged.id)


def _outdated(planned: str) -> Conflict:
    return Conflict(
        "This plan is out of date: a memory has changed since, or other memories were named.",
        hint="Plan the merge again, look at the result, and apply that plan.",
        details={"planId": planned},
    )


def undo(call: Call, memory_id: str, *, even_changed: bool) -> Undone:
    """Undo a merge: its parts are revived as they were, and the merged memory ends at its beginning. Refused
    if it was undone, merged further or superseded, or if a part was changed or deleted since."""
    return retry_on_conflict(call, lambda: _undo(call, memory_id, even_changed))


def _undo(call: Call, memory_id: str, even_changed: bool) -> Undone:
    record = load(call, memory_id)
    past = call.engine.store.history(memory_id, access=call.access)
    first = past[0].memory if past else record.memory
    _check_merged(call, record.memory, past)
    if not even_changed and STATED_FIELDS & set(changed_fields(first, record.memory)):
        raise InvalidInput(
            f"{memory_id} was changed since it was merged.",
            hint="The changes would remain only in its history. Set `even_changed` to undo the merge anyway.",
            details={"id": memory_id},
        )
    now = call.engine.now()
    parts = [next_revision(_before(call, part_id, first), now) for part_id in part_ids(first)]
    ended = next_revision(replace(record.memory, valid_until=record.memory.valid_from or now), now)
    changes: list[Change] = [Revise(memory=ended, reason=UNDONE)]
    changes += [Revise(memory=part, reason=UNMERGED) for part in parts]
    try:
        call.engine.store.commit(changes, access=call.access)
    except NotFound as exc:
        raise Conflict() from exc
    call.engine.events.emit(_updated(ended), *map(_updated, parts))
    now_held = _load_all(call, [memory_id, *(part.id for part in parts)])
    return Undone(merged=now_held.pop(memory_id), parts=tuple(now_held.values()))


def part_ids(merged: Memory) -> list[str]:
    return [str(part_id) for part_id in merged.metadata[MERGED_FROM]]


def _check_merged(call: Call, memory: Memory, past: Sequence[Revision]) -> None:
    """Raise InvalidInput unless a memory is a merge that can be undone. The links say what is one, because a
    caller may write anything into metadata."""
    edges = call.engine.store.edges([memory.id], access=call.access)
    if not any(edge.kind == MERGES and edge.source_id == memory.id for edge in edges):
        raise InvalidInput(
            f"{memory.id} was not made by merging, or its parts are gone.",
            hint="Give the id of the merged memory, not of a part: a part's `supersededBy` names it.",
            details={"id": memory.id},
        )
    if any(revision.reason == UNDONE for revision in past):
        raise InvalidInput(f"The merge {memory.id} was undone already.", details={"id": memory.id})
    by = memory.superseded_by
    if by is not None:
        visible = by not in inaccessible_ids(call, [by])
        raise InvalidInput(
            f"{memory.id} was merged further or superseded{f', by {by}' if visible else ''}.",
            hint=f"Undo or delete {by} first." if visible else None,
            details={"id": memory.id, **({"supersededBy": by} if visible else {})},
        )


def _before(call: Call, part_id: str, merged: Memory) -> Memory:
    """The part with its validity before the merge; labels that it was given since stay."""
    try:
        part = load(call, part_id).memory
    except NotFound as exc:
        raise _cannot_undo(merged, f"{part_id} was deleted since") from exc
    past = call.engine.store.history(part_id, access=call.access)
    before = next((one.memory for one in reversed(past) if one.reason == MERGED), None)
    if before is None or part.superseded_by != merged.id:
        raise _cannot_undo(merged, f"{part_id} no longer belongs to it")
    kept = replace(part, valid_until=before.valid_until, superseded_by=before.superseded_by)
    if part.valid_until != merged.valid_from or STATED_FIELDS & set(changed_fields(before, kept)):
        raise _cannot_undo(merged, f"{part_id} was changed since")
    return kept


def _cannot_undo(merged: Memory, reason: str) -> InvalidInput:
    return InvalidInput(
        f"The merge {merged.id} cannot be undone: {reason}.",
        hint="Make a part valid again with `memory set_validity`, or correct the merged memory.",
        details={"id": merged.id},
    )


def _updated(memory: Memory) -> Event:
    return updated_event(memory, memory.updated_at, ("valid_until", "superseded_by"))
