"""Reading a new text beside its rivals: the likeness of their words, and rivals found by words alone."""

import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.english.words import words_of
from vestige.cognition.gate.corrections import announces
from vestige.cognition.gate.decide import Rival
from vestige.cognition.gate.paraphrase import could_restate, word_likeness
from vestige.cognition.text.analyser import query_terms
from vestige.core.errors import EmbedderError
from vestige.core.models import Filter, Memory
from vestige.embed.protocol import Encoded
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none
from vestige.engine.ingest.batch import IngestBatch
from vestige.store.contract.answers import Scored

logger = logging.getLogger(__name__)


def compared(call: Call, content: str, rivals: Sequence[Rival]) -> list[Rival]:
    """The rivals, those that may say the same in other words with the likeness of their words."""
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


def found_by_words(
    batch: IngestBatch, memory: Memory, whole: NDArray[np.float32], near: Sequence[Scored], limit: int
) -> list[Scored]:
    """Further rivals of a text that takes something back: those that share its rare words.

    A correction in free words ("turns out the deploy is on Thursday") may be nearer to other memories than
    to the one it corrects.
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
    """The texts with their token states, or nothing when the model fails: the gate then asks for more."""
    embedder = embedder_or_none(call.engine)
    if embedder is None:
        return []
    try:
        return embedder.encode_documents(texts)
    except EmbedderError as exc:
        logger.warning("Texts are compared by their words only: %s", exc.message)
        return []
