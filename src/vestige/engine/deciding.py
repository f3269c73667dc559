"""What each draft of a batch becomes: loads what the gate needs, asks it, collects the changes."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import assert_never

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.gating import (
    CORRECTABLE,
    Create,
    Decision,
    Merge,
    Proposal,
    Reinforce,
    Rival,
    Supersede,
    Update,
    decide,
)
from vestige.cognition.strength import encode, retrieval_of
from vestige.cognition.text import fingerprint
from vestige.embed.protocol import Embedder
from vestige.engine.context import Call
from vestige.engine.embedding import embed_memories, embedder_or_none
from vestige.engine.revising import next_revision
from vestige.events import ConnectionDiscovered, Happening, MemoryCreated, MemoryUpdated, preview
from vestige.models import Edge, Evidence, Filter, Memory, Record
from vestige.store.protocol import Add, Change, Embedded, Link, Remark, Revise, Scored

RIVALS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """One text to remember: the memory it would become, and whether to ask the gate."""

    memory: Memory
    force_create: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Ingested:
    """What became of a draft. `memory_id` is the record that now holds its text."""

    memory_id: str
    decision: Decision
    embedded: bool


@dataclass(slots=True, kw_only=True)
class Batch:
    """A batch while it is being decided: what is known, what will be written and told."""

    now: datetime
    embedder: Embedder | None
    known: dict[str, Record] = field(default_factory=dict)
    identical: dict[tuple[str, str], str] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)
    rivals: dict[int, list[Scored]] = field(default_factory=dict)
    alike: NDArray[np.float32] | None = None
    """The cosine of every draft with every other; None without a model."""
    fresh: list[tuple[str, int]] = field(default_factory=list)
    """The memories this batch adds, with the draft each was, as far as they can have rivals."""
    changes: list[Change] = field(default_factory=list)
    happenings: list[Happening] = field(default_factory=list)
    results: list[Ingested] = field(default_factory=list)


def decide_all(call: Call, drafts: Sequence[Draft]) -> Batch:
    """The decisions and changes for a batch of at least one draft; nothing is written yet."""
    embedder = embedder_or_none(call.engine)
    memories = [draft.memory for draft in drafts]
    vectors = embed_memories(embedder, memories) if embedder is not None else []
    # One moment for the whole batch: what supersedes begins exactly when what it supersedes ends.
    batch = Batch(now=drafts[0].memory.created_at, embedder=embedder)
    wholes = np.stack([_whole(made) for made in vectors]) if vectors else None
    batch.alike = wholes @ wholes.T if wholes is not None and len(drafts) > 1 else None
    _load(call, batch, drafts, wholes)
    for index, draft in enumerate(drafts):
        made = vectors[index] if vectors else None
        decision = decide(*_question(batch, index, draft))
        memory_id = _carry_out(batch, index, draft, made, decision)
        batch.results.append(Ingested(memory_id=memory_id, decision=decision, embedded=bool(vectors)))
    return batch


def _load(call: Call, batch: Batch, drafts: Sequence[Draft], wholes: NDArray[np.float32] | None) -> None:
    """Everything the gate will look at, in few queries: identical texts, places, rivals, records."""
    store, access = call.engine.store, call.access
    by_scope: dict[str, list[int]] = defaultdict(list)
    for index, draft in enumerate(drafts):
        if not draft.force_create:
            by_scope[draft.memory.scope].append(index)
    for scope, members in by_scope.items():
        marks = {index: fingerprint(drafts[index].memory.content) for index in members}
        same = store.same_text(list(marks.values()), scope=scope, access=access)
        batch.identical.update({(scope, mark): memory_id for mark, memory_id in same.items()})
        asking = [i for i in members if marks[i] not in same and drafts[i].memory.thread is None]
        for index in asking:
            place = _place(call, drafts[index].memory)
            if place:
                batch.places[index] = place
        if asking and wholes is not None and batch.embedder is not None:
            where = Filter(scope=scope, scope_only=True, valid_at=batch.now)
            signature = batch.embedder.signature
            found = store.nearest(wholes[asking], signature, where, access=access, limit=RIVALS)
            batch.rivals.update(zip(asking, found, strict=True))
    wanted = {
        near.memory_id for found in batch.rivals.values() for near in found if near.score >= CORRECTABLE
    }
    wanted |= set(batch.identical.values()) | set(batch.places.values())
    for record in store.get_many(sorted(wanted), access=access):
        batch.known[record.memory.id] = record


def _place(call: Call, memory: Memory) -> str | None:
    """The memory at the same source and position, if both are given."""
    if memory.source is None or memory.position is None:
        return None
    where = Filter(
        scope=memory.scope,
        scope_only=True,
        source=memory.source,
        position=memory.position,
        valid_at=memory.created_at,
    )
    found = call.engine.store.find(where, access=call.access, limit=1)
    return found[0].memory.id if found and found[0].memory.thread is None else None


def _whole(made: Embedded) -> NDArray[np.float32]:
    """One unit vector for a text of several pieces: their mean."""
    if len(made.pieces) == 1:
        return made.pieces[0].vector
    mean = np.mean([piece.vector for piece in made.pieces], axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)


def _question(batch: Batch, index: int, draft: Draft) -> tuple[Proposal, list[Rival]]:
    memory = draft.memory
    similarities = {near.memory_id: near.score for near in batch.rivals.get(index, ())}
    if batch.alike is not None and memory.thread is None:
        # What earlier items of this batch became is not in the store yet.
        similarities |= {memory_id: float(batch.alike[index, at]) for memory_id, at in batch.fresh}
    place = batch.places.get(index)
    proposal = Proposal(
        content=memory.content,
        threaded=memory.thread is not None,
        force_create=draft.force_create,
        identical_id=batch.identical.get((memory.scope, fingerprint(memory.content))),
        nearest=max(similarities.values(), default=None),
        place_id=place,
        place_pinned=place is not None and batch.known[place].memory.pinned,
    )
    closest = sorted(similarities.items(), key=lambda near: (-near[1], near[0]))
    rivals = (
        _rival(batch, batch.known[memory_id], similarity)
        for memory_id, similarity in closest
        if similarity >= CORRECTABLE and memory_id in batch.known and _still_rival(batch, memory_id, memory)
    )
    return proposal, list(islice(rivals, RIVALS))


def _still_rival(batch: Batch, memory_id: str, memory: Memory) -> bool:
    known = batch.known[memory_id].memory
    return known.scope == memory.scope and known.valid_at(batch.now)


def _rival(batch: Batch, record: Record, similarity: float) -> Rival:
    return Rival(
        memory_id=record.memory.id,
        content=record.memory.content,
        similarity=similarity,
        retrieval=retrieval_of(record.strength, batch.now),
        pinned=record.memory.pinned,
        threaded=record.memory.thread is not None,
    )


def _carry_out(batch: Batch, index: int, draft: Draft, made: Embedded | None, decision: Decision) -> str:
    """Turn a decision into changes; the id of the memory that now holds the text."""
    match decision:
        case Create(related=related, contradicts=contradicts):
            _add(batch, index, draft.memory, made)
            _link(batch, draft.memory, related, "semantic", decision.similarity)
            _link(batch, draft.memory, contradicts, "contradicts", decision.similarity)
            return draft.memory.id
        case Merge(memory_ids=others):
            _add(batch, index, draft.memory, made)
            _link(batch, draft.memory, others, "semantic", decision.similarity)
            return draft.memory.id
        case Supersede(memory_id=old_id):
            _supersede(batch, index, draft.memory, made, old_id, decision)
            return draft.memory.id
        case Update(memory_id=old_id):
            known = batch.known[old_id].memory
            _revise(batch, known, draft.memory, content=draft.memory.content, reason="update")
            _remark(batch, old_id)
            return old_id
        case Reinforce(memory_id=old_id, identical=identical):
            known = batch.known[old_id].memory
            wordings = known.phrasings if identical else (*known.phrasings, draft.memory.content)
            if not known.pinned:
                _revise(batch, known, draft.memory, phrasings=wordings, reason="reinforce")
            _remark(batch, old_id)
            return old_id
    assert_never(decision)


def _add(batch: Batch, index: int, memory: Memory, made: Embedded | None) -> None:
    batch.changes.append(Add(memory=memory, embedded=made))
    batch.known[memory.id] = Record(memory=memory, strength=encode(batch.now), embedded=made is not None)
    batch.identical.setdefault((memory.scope, fingerprint(memory.content)), memory.id)
    if memory.thread is None:
        batch.fresh.append((memory.id, index))
    batch.happenings.append(
        MemoryCreated(
            timestamp=batch.now,
            id=memory.id,
            content_preview=preview(memory.content),
            node_type=memory.node_type,
            tags=memory.tags,
        )
    )


def _link(batch: Batch, memory: Memory, others: Sequence[str], kind: str, weight: float | None) -> None:
    for other in others:
        edge = Edge(
            source_id=memory.id,
            target_id=other,
            kind=kind,
            weight=min(1.0, max(0.0, weight if weight is not None else 1.0)),
            created_at=batch.now,
        )
        batch.changes.append(Link(edge=edge))
        batch.happenings.append(
            ConnectionDiscovered(
                timestamp=batch.now,
                source_id=edge.source_id,
                target_id=edge.target_id,
                connection_type=kind,
                weight=edge.weight,
            )
        )


def _supersede(
    batch: Batch, index: int, memory: Memory, made: Embedded | None, old_id: str, decision: Supersede
) -> None:
    """The new one holds from now on (or from when it says); the old one until then."""
    old = batch.known[old_id].memory
    turn = memory.valid_from or memory.occurred_at or batch.now
    if old.valid_from is not None:
        turn = max(turn, old.valid_from)
    if memory.valid_until is not None:
        turn = min(turn, memory.valid_until)
    _add(batch, index, replace(memory, valid_from=memory.valid_from or turn), made)
    ended = replace(old, valid_until=turn, superseded_by=memory.id)
    _change(batch, ended, reason="superseded", field_name="valid_until")
    _link(batch, memory, (old_id,), "supersedes", decision.similarity)
    batch.identical.pop((old.scope, fingerprint(old.content)), None)


def _revise(
    batch: Batch,
    known: Memory,
    told: Memory,
    *,
    reason: str,
    content: str | None = None,
    phrasings: tuple[str, ...] | None = None,
) -> None:
    """The known memory with what it was told: text or wording, and tags it did not have."""
    revised = replace(
        known,
        content=known.content if content is None else content,
        phrasings=known.phrasings if phrasings is None else phrasings,
        tags=tuple(dict.fromkeys((*known.tags, *told.tags))),
    )
    if revised != known:
        changed = (
            "content" if content is not None else "tags" if phrasings == known.phrasings else "phrasings"
        )
        _change(batch, revised, reason=reason, field_name=changed)


def _change(batch: Batch, memory: Memory, *, reason: str, field_name: str) -> None:
    memory = next_revision(memory, batch.now)
    record = batch.known[memory.id]
    made = None
    if batch.embedder is not None and field_name in ("content", "phrasings"):
        made = embed_memories(batch.embedder, [memory])[0]
    batch.changes.append(Revise(memory=memory, reason=reason, embedded=made))
    batch.known[memory.id] = replace(record, memory=memory)
    batch.happenings.append(
        MemoryUpdated(
            timestamp=batch.now, id=memory.id, content_preview=preview(memory.content), field=field_name
        )
    )


def _remark(batch: Batch, memory_id: str) -> None:
    batch.changes.append(Remark(memory_id=memory_id, evidence=Evidence.REINFORCED, at=batch.now))
