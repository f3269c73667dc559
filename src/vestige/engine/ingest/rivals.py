"""Rivals: stored memories that a new text may repeat, extend or correct.

They are found by identical text, by position in a source, by meaning and by words.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.english.words import words_of
from vestige.cognition.gate.change_words import announces
from vestige.cognition.gate.decide import CORRECTABLE, Rival
from vestige.cognition.gate.paraphrase import bare, could_restate, word_likeness
from vestige.cognition.text.analyser import fingerprint, query_terms
from vestige.cognition.text.form import is_spoken, is_talk, speaker_and_words
from vestige.core.errors import EmbedderError
from vestige.core.models import Filter, Memory
from vestige.embed.protocol import Encoded
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none
from vestige.engine.ingest.batch import Draft, IngestBatch, identity, source_position
from vestige.store.contract.answers import Scored

logger = logging.getLogger(__name__)

RIVALS = 5
"""The most rivals by meaning, and the most by words."""


def find_rivals(batch: IngestBatch, drafts: Sequence[Draft]) -> None:
    """Load everything that the gate needs, in few queries: identical texts, positions, rivals, records."""
    wholes = batch.wholes
    by_scope: dict[str, list[int]] = defaultdict(list)
    for index, draft in enumerate(drafts):
        if not draft.force_create:
            by_scope[draft.memory.scope].append(index)
    for scope, members in by_scope.items():
        _find_identical(batch, scope, [drafts[index].memory for index in members])
        comparable = [i for i in members if _may_have_rivals(batch, drafts[i].memory)]
        for index in comparable:
            _find_source_position(batch, drafts[index].memory)
        comparable = [i for i in comparable if not is_speech(drafts[i].memory)]
        if comparable and wholes is not None:
            where = Filter(scope=scope, scope_only=True, valid_at=batch.now)
            found = batch.call.engine.store.nearest(
                wholes[comparable], batch.vectors[0].signature, where, access=batch.call.access, limit=RIVALS
            )
            for index, near in zip(comparable, found, strict=True):
                more = rivals_by_words(batch, drafts[index].memory, wholes[index], near, RIVALS)
                batch.rivals[index] = [*near, *more]
    rivals = (one for found in batch.rivals.values() for one in found)
    wanted = {one.memory_id for one in rivals if one.score >= CORRECTABLE} | set(batch.places.values())
    _load_records(batch, wanted)


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
    marks = {mark for memory in memories for mark in _fingerprints(memory)}
    same = store.same_text(list(marks), scope=scope, valid_at=batch.now, access=access)
    _load_records(batch, set(same.values()))
    for memory in memories:
        wanted = identity(memory, batch.now)
        candidate = next((same[mark] for mark in _fingerprints(memory) if mark in same), None)
        record = batch.known.get(candidate) if candidate else None
        if record is None:
            continue
        known = record.memory
        if wanted[2:] == identity(known, batch.now)[2:] and same_occasion(memory, known):
            batch.identical[wanted] = known.id
        elif memory.thread is not None and memory.position is not None:
            where = Filter(scope=scope, scope_only=True, thread=memory.thread, position=memory.position)
            for twin in store.find(where, access=access, limit=5):
                if identity(twin.memory, batch.now) == wanted:
                    batch.known[twin.memory.id] = twin
                    batch.identical[wanted] = twin.memory.id


def _fingerprints(memory: Memory) -> list[str]:
    """The normal forms that a text is looked up by.

    "Never push to main!" is an exclamation and has no rivals; without its typography it equals the plain
    sentence. A turn of a thread has one form only.
    """
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


def with_word_likeness(call: Call, content: str, rivals: Sequence[Rival]) -> list[Rival]:
    """The rivals; those that may say the same in other words get the likeness of their words."""
    open_ = [
        rival
        for rival in rivals
        if not rival.protected and could_restate(content, rival.content, rival.similarity)
    ]
    encoded = _encode(call, [content, *(rival.content for rival in open_)]) if open_ else []
    if not encoded:
        return list(rivals)
    made = {
        rival.memory_id: replace(rival, likeness=_likeness(content, encoded[0], rival.content, one))
        for rival, one in zip(open_, encoded[1:], strict=True)
    }
    return [made.get(rival.memory_id, rival) for rival in rivals]


def _likeness(new: str, ours: Encoded, old: str, theirs: Encoded) -> NDArray[np.float32] | None:
    if ours.tokens is None or theirs.tokens is None:
        return None
    return word_likeness(
        words_of(new),
        ours.tokens.spans,
        ours.tokens.states,
        words_of(old),
        theirs.tokens.spans,
        theirs.tokens.states,
    )


def rivals_by_words(
    batch: IngestBatch, memory: Memory, whole: NDArray[np.float32], near: Sequence[Scored], limit: int
) -> list[Scored]:
    """Further rivals of a text that corrects something: memories that share its rare words.

    A correction in free words ("turns out the deploy is on Thursday") may be nearer to other memories than to
    the one it corrects.
    """
    if not announces(memory.content):
        return []
    where = Filter(scope=memory.scope, scope_only=True, valid_at=batch.now)
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
