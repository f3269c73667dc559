"""What each draft of a batch becomes: loads what the gate needs, asks it, collects the changes."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.gating import CORRECTABLE, Proposal, Rival, decide
from vestige.cognition.strength import retrieval_of
from vestige.cognition.text import fingerprint, searchable
from vestige.engine.applying import carry_out
from vestige.engine.batch import Batch, Draft, Ingested, identity, place_of
from vestige.engine.context import Call
from vestige.engine.embedding import spans_of, vectors_for
from vestige.models import Filter, Memory
from vestige.store.protocol import Embedded, Scored

RIVALS = 5


def decide_all(call: Call, drafts: Sequence[Draft]) -> Batch:
    """The decisions and changes for a batch of at least one draft; nothing is written yet."""
    vectors = vectors_for(call, [draft.memory for draft in drafts])
    # One moment for the whole batch: what supersedes begins exactly when what it supersedes ends.
    batch = Batch(call=call, now=drafts[0].memory.created_at, vectors=vectors)
    wholes = np.stack([_whole(made) for made in vectors]) if vectors else None
    batch.alike = wholes @ wholes.T if wholes is not None and len(drafts) > 1 else None
    _load(batch, drafts, wholes)
    for index, draft in enumerate(drafts):
        decision = decide(*_question(batch, index, draft))
        memory_id = carry_out(batch, index, draft, decision)
        batch.results.append(Ingested(memory_id=memory_id, decision=decision, embedded=bool(vectors)))
    return batch


def _whole(made: Embedded) -> NDArray[np.float32]:
    """One unit vector for a text of several pieces: their mean."""
    if len(made.pieces) == 1:
        return made.pieces[0].vector
    mean = np.mean([piece.vector for piece in made.pieces], axis=0)
    return np.asarray(mean / max(float(np.linalg.norm(mean)), 1e-12), dtype=np.float32)


def _load(batch: Batch, drafts: Sequence[Draft], wholes: NDArray[np.float32] | None) -> None:
    """Everything the gate will look at, in few queries: identical texts, places, rivals, records."""
    by_scope: dict[str, list[int]] = defaultdict(list)
    for index, draft in enumerate(drafts):
        if not draft.force_create:
            by_scope[draft.memory.scope].append(index)
    for scope, members in by_scope.items():
        _find_identical(batch, scope, [drafts[index].memory for index in members])
        asking = [i for i in members if _asks(batch, drafts[i].memory)]
        for index in asking:
            _find_place(batch, drafts[index].memory)
        if asking and wholes is not None:
            where = Filter(scope=scope, scope_only=True, valid_at=batch.now)
            found = batch.call.engine.store.nearest(
                wholes[asking], batch.vectors[0].signature, where, access=batch.call.access, limit=RIVALS
            )
            batch.rivals.update(zip(asking, found, strict=True))
    near = (one for found in batch.rivals.values() for one in found)
    wanted = {one.memory_id for one in near if one.score >= CORRECTABLE} | set(batch.places.values())
    _get(batch, wanted)


def _asks(batch: Batch, memory: Memory) -> bool:
    """Whether anything but an identical text can matter to this one."""
    return memory.thread is None and identity(memory, batch.now) not in batch.identical


def _get(batch: Batch, memory_ids: set[str]) -> None:
    unknown = sorted(memory_ids - batch.known.keys())
    if unknown:
        for record in batch.call.engine.store.get_many(unknown, access=batch.call.access):
            batch.known[record.memory.id] = record


def _find_identical(batch: Batch, scope: str, memories: Sequence[Memory]) -> None:
    """Look up the memories that say exactly the same; a turn only if it stands in the same place."""
    store, access = batch.call.engine.store, batch.call.access
    marks = list({fingerprint(memory.content) for memory in memories})
    same = store.same_text(marks, scope=scope, valid_at=batch.now, access=access)
    _get(batch, set(same.values()))
    for memory in memories:
        wanted = identity(memory, batch.now)
        candidate = same.get(fingerprint(memory.content))
        record = batch.known.get(candidate) if candidate else None
        if record is None:
            continue
        known = record.memory
        if wanted[2:] == identity(known, batch.now)[2:] and _same_time(memory, known):
            batch.identical[wanted] = known.id
        elif memory.thread is not None and memory.position is not None:
            where = Filter(scope=scope, scope_only=True, thread=memory.thread, position=memory.position)
            for twin in store.find(where, access=access, limit=5):
                if identity(twin.memory, batch.now) == wanted:
                    batch.known[twin.memory.id] = twin
                    batch.identical[wanted] = twin.memory.id


def _same_time(told: Memory, known: Memory) -> bool:
    """Whether two texts can be about the same occasion: "went running" on two days is two things."""
    return told.occurred_at is None or known.occurred_at in (None, told.occurred_at)


def _find_place(batch: Batch, memory: Memory) -> None:
    """Look up the memory at the same source and position, if both are given."""
    place = place_of(memory)
    if place is None or place in batch.places:
        return
    scope, source, position = place
    where = Filter(scope=scope, scope_only=True, source=source, position=position, valid_at=batch.now)
    for record in batch.call.engine.store.find(where, access=batch.call.access, limit=5):
        if record.memory.thread is None:
            batch.places[place] = record.memory.id
            batch.known[record.memory.id] = record
            return


def _question(batch: Batch, index: int, draft: Draft) -> tuple[Proposal, list[Rival]]:
    memory = draft.memory
    near = {one.memory_id: one for one in batch.rivals.get(index, ())}
    nearest = [one.score for one in near.values()]
    if batch.alike is not None and memory.thread is None and batch.fresh:
        # What earlier items of this batch became is not in the store yet.
        row = batch.alike[index].tolist()
        for memory_id, at in batch.fresh:
            if batch.known[memory_id].memory.scope == memory.scope:
                nearest.append(row[at])
                if row[at] >= CORRECTABLE:
                    near[memory_id] = Scored(memory_id=memory_id, score=row[at])
    place = place_of(memory)
    # What was or will be true does not take the place of what is.
    place_id = batch.places.get(place) if place and memory.valid_at(batch.now) else None
    proposal = Proposal(
        content=memory.content,
        threaded=memory.thread is not None,
        force_create=draft.force_create,
        identical_id=batch.identical.get(identity(memory, batch.now)),
        nearest=max(nearest, default=None),
        place_id=place_id,
        place_pinned=place_id is not None and batch.known[place_id].memory.pinned,
    )
    closest = sorted(near.values(), key=lambda one: (-one.score, one.memory_id))
    rivals = (
        _rival(batch, index, memory, one)
        for one in closest
        if one.score >= CORRECTABLE and one.memory_id in batch.known and _still_rival(batch, one, memory)
    )
    return proposal, list(islice(rivals, RIVALS))


def _still_rival(batch: Batch, near: Scored, memory: Memory) -> bool:
    known = batch.known[near.memory_id].memory
    return known.scope == memory.scope and known.valid_at(batch.now)


def _rival(batch: Batch, index: int, told: Memory, near: Scored) -> Rival:
    record = batch.known[near.memory_id]
    memory = record.memory
    whole_known = len(spans_of(memory)) == 1 + len(memory.phrasings)
    return Rival(
        memory_id=memory.id,
        content=searchable(memory)[near.start : near.end] if near.end else memory.content,
        similarity=near.score,
        retrieval=retrieval_of(record.strength, batch.now),
        pinned=memory.pinned,
        threaded=memory.thread is not None,
        # A piece of a long text says little about the rest of it, on either side.
        partial=not whole_known or len(batch.vectors[index].pieces) > 1,
        later=not told.valid_at(batch.now) or _begins(told, batch.now) < _begins(memory, memory.created_at),
        same_occasion=_same_time(told, memory),
    )


def _begins(memory: Memory, otherwise: datetime) -> datetime:
    return memory.valid_from or memory.occurred_at or otherwise
