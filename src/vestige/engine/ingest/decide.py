"""Deciding what a draft is to its rivals: builds the question for the gate, and reports its answer."""

from dataclasses import replace
from datetime import datetime
from itertools import islice

from vestige.cognition.fsrs.strength import retrieval_of
from vestige.cognition.gate.decide import CORRECTABLE, Decision, GateInput, Rival, Supersede, decide, rival_of
from vestige.cognition.text.analyser import searchable
from vestige.core.events import preview
from vestige.core.models import Memory
from vestige.engine.embedding import spans_of
from vestige.engine.ingest.batch import Decided, Draft, IngestBatch, Ingested, identity, place_of
from vestige.engine.ingest.importance import Scales
from vestige.engine.ingest.rivals import RIVALS, compared, is_said, same_time
from vestige.store.contract.answers import Scored


def decide_one(batch: IngestBatch, index: int, draft: Draft, scales: Scales | None) -> Decided:
    """What one draft becomes; it sees what the earlier drafts of its batch became."""
    question, rivals = _question(batch, index, draft)
    decision = decide(question, rivals)
    rival_id = rival_of(decision)
    return Decided(
        decision=decision,
        rival=batch.known[rival_id].memory if rival_id else None,
        importance=scales.weigh(index, question, decision) if scales else None,
    )


def result_of(batch: IngestBatch, draft: Draft, decided: Decided, memory_id: str) -> Ingested:
    """What became of a draft, for its caller."""
    decision, rival = decided.decision, decided.rival
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
        importance=decided.importance.channels.composite if decided.importance else None,
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


def _question(batch: IngestBatch, index: int, draft: Draft) -> tuple[GateInput, list[Rival]]:
    memory, said = draft.memory, is_said(draft.memory)
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
        said=is_said(memory),
        # A piece of a long text says little about the rest of it, on either side.
        partial=not whole_known or len(batch.vectors[index].pieces) > 1,
        later=_is_to_come(draft, batch.now) or _begins(told, batch.now) < _known_from(memory, told),
        same_occasion=same_time(told, memory),
    )


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
