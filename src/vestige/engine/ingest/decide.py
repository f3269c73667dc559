"""What each draft of a batch becomes: loads what the gate needs, asks it, collects the changes."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.fsrs.strength import retrieval_of
from vestige.cognition.gate.decide import CORRECTABLE, Decision, GateInput, Rival, Supersede, decide, rival_of
from vestige.cognition.gate.paraphrase import bare
from vestige.cognition.text.analyser import fingerprint, searchable
from vestige.cognition.text.form import is_spoken, is_talk, speaker_and_words
from vestige.core.events import preview
from vestige.core.models import Filter, Memory
from vestige.engine.context import Call
from vestige.engine.embedding import spans_of, vectors_for
from vestige.engine.ingest.apply import carry_out
from vestige.engine.ingest.batch import Draft, IngestBatch, Ingested, identity, place_of, whole_vector
from vestige.engine.ingest.importance import mark, scales_for
from vestige.engine.ingest.rivals import compared, found_by_words
from vestige.store.contract.answers import Scored

RIVALS = 5


def decide_all(call: Call, drafts: Sequence[Draft]) -> IngestBatch:
    """The decisions and changes for a batch of at least one draft; nothing is written yet."""
    vectors = vectors_for(call, [draft.memory for draft in drafts])
    # One moment for the whole batch: what supersedes begins exactly when what it supersedes ends.
    batch = IngestBatch(call=call, now=drafts[0].memory.created_at, vectors=vectors)
    wholes = np.stack([whole_vector(made) for made in vectors]) if vectors else None
    batch.alike = wholes @ wholes.T if wholes is not None and len(drafts) > 1 else None
    _load(batch, drafts, wholes)
    scales = scales_for(batch, drafts)
    for index, draft in enumerate(drafts):
        proposal, rivals = _question(batch, index, draft)
        decision = decide(proposal, rivals)
        rival_id = rival_of(decision)
        rival = batch.known[rival_id].memory if rival_id else None
        judged = scales.weigh(index, proposal, decision) if scales else None
        memory_id = carry_out(batch, index, draft, decision)
        if judged and memory_id == draft.memory.id:
            mark(batch, draft.memory, judged)
        told = _result(batch, draft, decision, memory_id, rival)
        batch.results.append(replace(told, importance=judged.channels.composite if judged else None))
    return batch


def _result(
    batch: IngestBatch, draft: Draft, decision: Decision, memory_id: str, rival: Memory | None
) -> Ingested:
    kept = batch.known[memory_id].memory
    hidden = rival is not None and _is_out_of_mind(rival)
    told = draft.told.by(batch.now) if draft.told else None
    window = (kept.valid_from, kept.valid_until)
    return Ingested(
        memory_id=memory_id,
        scope=kept.scope,
        valid_from=kept.valid_from,
        valid_until=kept.valid_until,
        decision=_discreet(decision) if hidden else decision,
        embedded=bool(batch.vectors),
        suppressed=kept.suppression_count > 0,
        rival_preview=preview(rival.content) if rival and not hidden else None,
        validity_words=told.words if told and (told.valid_from, told.valid_until) == window else None,
    )


def _is_out_of_mind(memory: Memory) -> bool:
    return memory.suppression_count > 0 or memory.archived_at is not None


def _discreet(decision: Decision) -> Decision:
    """The decision without the words of the memory it is about: nobody wants to be reminded of them."""
    if decision.conflict is None:
        return decision
    found = "Corrects" if isinstance(decision, Supersede) else "Differs from"
    unsaid = replace(decision.conflict, detail="")
    return replace(decision, conflict=unsaid, reason=f"{found} a memory that is kept out of mind.")


def _load(batch: IngestBatch, drafts: Sequence[Draft], wholes: NDArray[np.float32] | None) -> None:
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
        asking = [i for i in asking if not _is_said(drafts[i].memory)]
        if asking and wholes is not None:
            where = Filter(scope=scope, scope_only=True, valid_at=batch.now)
            found = batch.call.engine.store.nearest(
                wholes[asking], batch.vectors[0].signature, where, access=batch.call.access, limit=RIVALS
            )
            for index, near in zip(asking, found, strict=True):
                more = found_by_words(batch, drafts[index].memory, wholes[index], near, RIVALS)
                batch.rivals[index] = [*near, *more]
    rivals = (one for found in batch.rivals.values() for one in found)
    wanted = {one.memory_id for one in rivals if one.score >= CORRECTABLE} | set(batch.places.values())
    _get(batch, wanted)


def _asks(batch: IngestBatch, memory: Memory) -> bool:
    """Whether anything but an identical text can matter to this one."""
    return memory.thread is None and identity(memory, batch.now) not in batch.identical


def _get(batch: IngestBatch, memory_ids: set[str]) -> None:
    unknown = sorted(memory_ids - batch.known.keys())
    if unknown:
        for record in batch.call.engine.store.get_many(unknown, access=batch.call.access):
            batch.known[record.memory.id] = record


def _find_identical(batch: IngestBatch, scope: str, memories: Sequence[Memory]) -> None:
    """Look up the memories that say exactly the same; a turn only if it stands in the same place."""
    store, access = batch.call.engine.store, batch.call.access
    marks = {mark for memory in memories for mark in _marks(memory)}
    same = store.same_text(list(marks), scope=scope, valid_at=batch.now, access=access)
    _get(batch, set(same.values()))
    for memory in memories:
        wanted = identity(memory, batch.now)
        candidate = next((same[mark] for mark in _marks(memory) if mark in same), None)
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


def _marks(memory: Memory) -> list[str]:
    """The normal forms a text is looked up by. "Never push to main!" calls out, and so is nobody's rival;
    without its typography it is the same as the plain sentence. A turn is only what it is."""
    mark = fingerprint(memory.content)
    return [mark] if memory.thread is not None else [mark, fingerprint(bare(memory.content))]


def _same_time(told: Memory, known: Memory) -> bool:
    """Whether two texts can be about the same occasion: "went running" on two days is two things."""
    return told.occurred_at is None or known.occurred_at in (None, told.occurred_at)


def _find_place(batch: IngestBatch, memory: Memory) -> None:
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


def _question(batch: IngestBatch, index: int, draft: Draft) -> tuple[GateInput, list[Rival]]:
    memory, said = draft.memory, _is_said(draft.memory)
    near = {one.memory_id: one for one in batch.rivals.get(index, ())}
    nearest = [one.score for one in near.values()]
    if batch.alike is not None and memory.thread is None and not said and batch.fresh:
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
    proposal = GateInput(
        content=memory.content,
        threaded=memory.thread is not None,
        said=said,
        force_create=draft.force_create,
        identical_id=batch.identical.get(identity(memory, batch.now)),
        nearest=max(nearest, default=None),
        place_id=place_id,
        place_pinned=place_id is not None and batch.known[place_id].memory.pinned,
    )
    closest = sorted(near.values(), key=lambda one: (-one.score, one.memory_id))
    found = (
        _rival(batch, index, draft, one)
        for one in closest
        if one.score >= CORRECTABLE and one.memory_id in batch.known and _still_rival(batch, one, memory)
    )
    rivals = list(islice(found, 2 * RIVALS))  # by meaning and by words
    if proposal.force_create or proposal.threaded or proposal.identical_id or proposal.place_id:
        return proposal, rivals
    return proposal, compared(batch.call, memory.content, rivals)


def _still_rival(batch: IngestBatch, near: Scored, memory: Memory) -> bool:
    known = batch.known[near.memory_id].memory
    return known.scope == memory.scope and known.valid_at(batch.now)


def _rival(batch: IngestBatch, index: int, draft: Draft, near: Scored) -> Rival:
    record = batch.known[near.memory_id]
    memory, told = record.memory, draft.memory
    whole_known = len(spans_of(memory)) == 1 + len(memory.phrasings)
    return Rival(
        memory_id=memory.id,
        content=searchable(memory)[near.start : near.end] if near.end else memory.content,
        similarity=near.score,
        retrieval=retrieval_of(record.strength, batch.now),
        pinned=memory.pinned,
        threaded=memory.thread is not None,
        said=_is_said(memory),
        # A piece of a long text says little about the rest of it, on either side.
        partial=not whole_known or len(batch.vectors[index].pieces) > 1,
        later=_is_to_come(draft, batch.now) or _begins(told, batch.now) < _known_from(memory, told),
        same_occasion=_same_time(told, memory),
    )


def _is_said(memory: Memory) -> bool:
    """Whether a text outside threads is a turn of a talk by its form."""
    _, said = speaker_and_words(memory)
    return is_talk(memory.content) or is_spoken(memory.content, said)


def _known_from(memory: Memory, told: Memory) -> datetime:
    """From when on a memory is known to be true. What says since when it holds ("since March") is news of
    today, however old the state: it is later than anything of which only the telling is known."""
    if told.valid_from is not None and memory.valid_from is None and memory.occurred_at is None:
        return told.valid_from
    return _begins(memory, memory.created_at)


def _is_to_come(draft: Draft, now: datetime) -> bool:
    """Whether a text is not true yet, or no more: it ends nothing that is true now."""
    start = draft.told.valid_from if draft.told else None
    return (start is not None and start > now) or not draft.memory.valid_at(now)


def _begins(memory: Memory, otherwise: datetime) -> datetime:
    return memory.valid_from or memory.occurred_at or otherwise
