"""Deciding what becomes of a draft: finds its rivals, builds the input of the gate, reports its decision."""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.english.words import words_of
from vestige.cognition.fsrs.strength import retrieval_of
from vestige.cognition.gate.change_words import announces
from vestige.cognition.gate.decide import (
    COMPARED,
    Decision,
    GateInput,
    Rival,
    Supersede,
    decide,
    is_compared,
    rival_of,
)
from vestige.cognition.gate.paraphrase import bare, word_likeness
from vestige.cognition.text.analyser import fingerprint, query_terms, searchable
from vestige.cognition.text.form import is_spoken, is_talk, speaker_and_words
from vestige.core.errors import EmbedderError
from vestige.core.events import preview
from vestige.core.models import ROOT_SCOPE, Filter, Memory
from vestige.embed.protocol import Encoded
from vestige.engine.context import Call, user_scope
from vestige.engine.embedding import embedder_or_none, spans_of
from vestige.engine.ingest.batch import Decided, Draft, IngestBatch, Ingested, identity, source_position
from vestige.engine.ingest.importance import ImportanceInputs
from vestige.store.contract.answers import Scored

logger = logging.getLogger(__name__)


# -- Rivals: stored memories that a new text may repeat, extend or correct

RELATED_CHARS = 400  # the longest text that the pair model judges
RIVALS = 5
"""The most rivals by meaning, and the most by words."""


def find_rivals(batch: IngestBatch, drafts: Sequence[Draft]) -> None:
    """Load everything that the gate needs, in few queries: identical texts, positions, rivals, records."""
    wholes = batch.wholes
    by_scope: dict[tuple[str, Filter], list[int]] = defaultdict(list)
    for index, draft in enumerate(drafts):
        if not draft.force_create:
            by_scope[draft.memory.scope, _where_rivals_are(batch, draft)].append(index)
    for (scope, where), members in by_scope.items():
        _find_identical(batch, scope, [drafts[index].memory for index in members])
        comparable = [i for i in members if _may_have_rivals(batch, drafts[i].memory)]
        for index in comparable:
            _find_source_position(batch, drafts[index].memory)
        comparable = [i for i in comparable if not is_speech(drafts[i].memory)]
        if comparable and wholes is not None:
            found = batch.call.engine.store.nearest(
                wholes[comparable], batch.vectors[0].signature, where, access=batch.call.access, limit=RIVALS
            )
            for index, near in zip(comparable, found, strict=True):
                more = rivals_by_words(batch, drafts[index].memory, where, wholes[index], near, RIVALS)
                batch.rivals[index] = [*near, *more]
    rivals = (one for found in batch.rivals.values() for one in found)
    wanted = {one.memory_id for one in rivals if one.score >= COMPARED} | set(batch.places.values())
    _load_records(batch, wanted)


def _where_rivals_are(batch: IngestBatch, draft: Draft) -> Filter:
    """The memories that a draft is compared with: those of its scope. If the caller named no scope, the words
    chose between the user's and the caller's ("I prefer tea", "I drive a Volvo"), and other words about the
    same thing may have chosen the other one. So a text about the user is compared with both, and so is any
    text outside projects. A text of a project cannot end what holds for the user everywhere."""
    inherited = len(_scopes_of_rivals(batch, draft)) > 1
    scope = batch.call.scope if inherited else draft.memory.scope
    return Filter(scope=scope, scope_only=True, inherited=inherited, valid_at=batch.now)


def _scopes_of_rivals(batch: IngestBatch, draft: Draft) -> frozenset[str]:
    scope, call = draft.memory.scope, batch.call
    shared = None if "scope" in draft.given else user_scope(call)
    if shared is not None and scope in (shared, ROOT_SCOPE):
        return frozenset((shared, call.scope))
    return frozenset((scope,))


def _may_be_rival(batch: IngestBatch, draft: Draft, known: Memory) -> bool:
    """Whether a memory that was found is true and in exactly one of the scopes, not below or above."""
    return known.scope in _scopes_of_rivals(batch, draft) and known.valid_at(batch.now)


def _may_have_rivals(batch: IngestBatch, memory: Memory) -> bool:
    """Whether anything but an identical text can matter for this one."""
    return memory.thread is None and identity(memory, batch.now) not in batch.identical


def _load_records(batch: IngestBatch, memory_ids: set[str]) -> None:
    unknown = sorted(memory_ids - batch.known.keys())
    if unknown:
        for record in batch.call.engine.store.get_many(unknown, access=batch.call.access):
            batch.known[record.memory.id] = record


def _find_identical(batch: IngestBatch, scope: str, memories: Sequence[Memory]) -> None:
    """Look up memories with the same text; for a turn, only at the same position of the same thread."""
    store, access = batch.call.engine.store, batch.call.access
    marks = [_fingerprints(memory) for memory in memories]
    every = {mark for several in marks for mark in several}
    same = store.same_text(list(every), scope=scope, valid_at=batch.now, access=access)
    _load_records(batch, set(same.values()))
    for memory, own in zip(memories, marks, strict=True):
        candidate = next((same[mark] for mark in own if mark in same), None)
        record = batch.known.get(candidate) if candidate else None
        if record is None:
            continue
        known, wanted = record.memory, identity(memory, batch.now)
        if wanted[2:] == identity(known, batch.now)[2:] and same_occasion(memory, known):
            batch.identical[wanted] = known.id
        elif memory.thread is not None and memory.position is not None:
            where = Filter(scope=scope, scope_only=True, thread=memory.thread, position=memory.position)
            for twin in store.find(where, access=access, limit=5):
                if identity(twin.memory, batch.now) == wanted:
                    batch.known[twin.memory.id] = twin
                    batch.identical[wanted] = twin.memory.id


def _fingerprints(memory: Memory) -> list[str]:
    """The normal forms that a text is looked up by. "Never push to main!" is an exclamation and has no
    rivals; without its typography it equals the plain sentence. A turn of a thread has one form only."""
    mark = fingerprint(memory.content)
    return [mark] if memory.thread is not None else [mark, fingerprint(bare(memory.content))]


def _find_source_position(batch: IngestBatch, memory: Memory) -> None:
    """Look up the memory at the same source and position, if both are given."""
    place = source_position(memory)
    if place is None or place in batch.places:
        return
    scope, source, position = place
    where = Filter(scope=scope, scope_only=True, source=source, position=position, valid_at=batch.now)
    for record in batch.call.engine.store.find(where, access=batch.call.access, limit=5):
        if record.memory.thread is None:
            batch.places[place] = record.memory.id
            batch.known[record.memory.id] = record
            return


def same_occasion(new: Memory, known: Memory) -> bool:
    """Whether two texts can be about the same occasion: "went running" on two days is two events."""
    return new.occurred_at is None or known.occurred_at in (None, new.occurred_at)


def is_speech(memory: Memory) -> bool:
    """Whether a text outside threads is a turn of a conversation by its form."""
    _, said = speaker_and_words(memory)
    return is_talk(memory.content) or is_spoken(memory.content, said)


class RivalReader:
    """Completes rivals of a text by what the models say of both: how alike their words are, and what the pair
    model says (`is_compared`). Each is read once, and only if the decision depends on it."""

    def __init__(self, call: Call, content: str, rivals: Sequence[Rival]) -> None:
        self._call, self._content = call, content
        self._embedder = embedder_or_none(call.engine) if rivals else None
        short = (one for one in rivals if not one.protected and len(one.content) <= RELATED_CHARS)
        self._related = list(short) if len(content) <= RELATED_CHARS else []
        self._made: dict[str, Rival] = {}

    def __call__(self, rival: Rival) -> Rival:
        if rival.memory_id not in self._made:
            self._made[rival.memory_id] = self._read(rival)
        return self._made[rival.memory_id]

    def _read(self, rival: Rival) -> Rival:
        embedder = self._embedder
        if embedder is None:
            return rival
        if embedder.token_states:
            rival = replace(rival, likeness=cache(partial(self._likeness, rival.content)))
        if is_compared(self._content, self._related, rival):
            rival = replace(rival, relation=embedder.relate(rival.content, self._content))
        return rival

    def _likeness(self, old: str) -> NDArray[np.float32] | None:
        new, encoded = self._content, _encode(self._call, [self._content, old])
        return _likeness(new, encoded[0], old, encoded[1]) if encoded else None


def _likeness(new: str, ours: Encoded, old: str, theirs: Encoded) -> NDArray[np.float32] | None:
    if ours.tokens is None or theirs.tokens is None:
        return None
    left, right = ours.tokens, theirs.tokens
    return word_likeness(words_of(new), left.spans, left.states, words_of(old), right.spans, right.states)


def rivals_by_words(
    batch: IngestBatch,
    memory: Memory,
    where: Filter,
    whole: NDArray[np.float32],
    near: Sequence[Scored],
    limit: int,
) -> list[Scored]:
    """Further rivals of a text that corrects something: memories that share its rare words. "Turns out the
    deploy is on Thursday" may be nearer to other memories than to the one it corrects."""
    if not announces(memory.content):
        return []
    store, access = batch.call.engine.store, batch.call.access
    worded = store.lexical(query_terms(memory.content), where, access=access, limit=limit)
    wanted = [one.memory_id for one in worded if one.memory_id not in {held.memory_id for held in near}]
    records = store.get_many(wanted, access=access)
    encoded = _encode(batch.call, [record.memory.content for record in records]) if records else []
    batch.known |= {record.memory.id: record for record in records if record.memory.id not in batch.known}
    return [
        Scored(memory_id=record.memory.id, score=float(whole @ one.vector))
        for record, one in zip(records, encoded, strict=bool(encoded))
    ]


def _encode(call: Call, texts: Sequence[str]) -> list[Encoded]:
    """The texts with their token states; empty if the model fails, so that the gate needs more evidence."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        return []
    try:
        return embedder.encode_documents(texts)
    except EmbedderError as exc:
        logger.warning("The model failed; texts are compared by words only: %s", exc.message)
        return []


# -- Decisions of the gate


def decide_one(batch: IngestBatch, index: int, draft: Draft, weights: ImportanceInputs | None) -> Decided:
    """The decision on one draft; it sees what the earlier drafts of its batch became."""
    proposal, rivals = _gate_input(batch, index, draft)
    decision = decide(proposal, rivals, RivalReader(batch.call, proposal.content, rivals))
    rival_id = rival_of(decision)
    return Decided(
        decision=decision,
        rival=batch.known[rival_id].memory if rival_id else None,
        importance=weights.weigh(index, proposal, decision) if weights else None,
    )


def result_of(batch: IngestBatch, draft: Draft, decided: Decided, memory_id: str) -> Ingested:
    decision, rival = decided.decision, decided.rival
    kept = batch.known[memory_id].memory
    hidden = rival is not None and (rival.suppression_count > 0 or rival.archived_at is not None)
    stated = draft.stated.by(batch.now) if draft.stated else None
    is_stated = stated and (stated.valid_from, stated.valid_until) == (kept.valid_from, kept.valid_until)
    begins = _begins(draft, batch.now)
    return Ingested(
        memory_id=memory_id,
        scope=kept.scope,
        scope_reason=draft.scope_reason,
        valid_from=kept.valid_from,
        valid_until=kept.valid_until,
        decision=_without_details(decision) if hidden else decision,
        embedded=bool(batch.vectors),
        suppressed=kept.suppression_count > 0,
        rival_preview=preview(rival.content) if rival and not hidden else None,
        importance=decided.importance.channels.composite if decided.importance else None,
        validity_words=draft.stated.words if draft.stated and (begins or is_stated) else None,
        begins_at=begins,
    )


def _without_details(decision: Decision) -> Decision:
    """The decision without the words of the memory it is about, because that memory is hidden."""
    if decision.conflict is None:
        return decision
    found = "Corrects" if isinstance(decision, Supersede) else "Differs from"
    redacted = replace(decision.conflict, detail="")
    return replace(decision, conflict=redacted, reason=f"{found} a memory that is suppressed or archived.")


def _gate_input(batch: IngestBatch, index: int, draft: Draft) -> tuple[GateInput, list[Rival]]:
    memory, said = draft.memory, is_speech(draft.memory)
    near = {one.memory_id: one for one in batch.rivals.get(index, ())}
    nearest = [one.score for one in near.values()]
    if batch.alike is not None and memory.thread is None and not said and batch.fresh:
        # The memories of earlier items of this batch are not in the store yet.
        row = batch.alike[index].tolist()
        for memory_id, at in batch.fresh:
            if _may_be_rival(batch, draft, batch.known[memory_id].memory):
                nearest.append(row[at])
                if row[at] >= COMPARED:
                    near[memory_id] = Scored(memory_id=memory_id, score=row[at])
    place = source_position(memory)
    # A text that is not valid now does not replace one that is.
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
        if one.score >= COMPARED
        and one.memory_id in batch.known
        and _may_be_rival(batch, draft, batch.known[one.memory_id].memory)
    )
    return proposal, list(islice(found, 2 * RIVALS))  # by meaning and by words


def _rival(batch: IngestBatch, index: int, draft: Draft, near: Scored) -> Rival:
    record = batch.known[near.memory_id]
    memory, new = record.memory, draft.memory
    whole_known = len(spans_of(memory)) == 1 + len(memory.phrasings)
    return Rival(
        memory_id=memory.id,
        content=searchable(memory)[near.start : near.end] if near.end else memory.content,
        similarity=near.score,
        retrieval=retrieval_of(record.strength, batch.now),
        pinned=memory.pinned,
        threaded=memory.thread is not None,
        said=is_speech(memory),
        # A piece of a long text says little about the rest of it, on either side.
        partial=not whole_known or len(batch.vectors[index].pieces) > 1,
        later=_is_not_current(draft, batch.now) or _begin_of(new, batch.now) < _known_from(memory, new),
        same_occasion=same_occasion(new, memory),
        other_context=_in_other_context(new, memory),
        other_scope=new.scope != memory.scope,
    )


def _in_other_context(one: Memory, other: Memory) -> bool:
    """Whether two memories have tags of which none is the same. Another session is no sign: a correction
    mostly comes in a later one."""
    return bool(one.tags and other.tags and set(one.tags).isdisjoint(other.tags))


def _known_from(memory: Memory, new: Memory) -> datetime:
    """From when on a memory is known to be true, compared with a new text. One that states its beginning
    ("since March") is later than any memory with only a creation date."""
    if new.valid_from is not None and memory.valid_from is None and memory.occurred_at is None:
        return new.valid_from
    return _begin_of(memory, memory.created_at)


def _is_not_current(draft: Draft, now: datetime) -> bool:
    """Whether a text is not valid yet, or no longer: it ends nothing that is valid now."""
    return _begins(draft, now) is not None or not draft.memory.valid_at(now)


def _begins(draft: Draft, now: datetime) -> datetime | None:
    """The time to come at which a text says that it begins."""
    start = draft.stated.valid_from if draft.stated else None
    return start if start is not None and start > now else None


def _begin_of(memory: Memory, otherwise: datetime) -> datetime:
    return memory.valid_from or memory.occurred_at or otherwise
