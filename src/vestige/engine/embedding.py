"""Vectors for memories: cut into pieces, embedded in slices, guarded by the text's hash."""

import logging
from collections.abc import Sequence

import numpy as np

from vestige.cognition.text.analyser import searchable, text_hash
from vestige.cognition.text.form import asked
from vestige.cognition.text.pieces import cut
from vestige.core.errors import EmbedderError
from vestige.core.models import Memory
from vestige.embed.protocol import Embedder, Encoded
from vestige.engine.context import Call, Engine
from vestige.store.contract.changes import Embedded, Piece, Tokens
from vestige.store.contract.store import MemoryStore

logger = logging.getLogger(__name__)

SLICE = 64
"""Pieces embedded between two looks at whether the caller is still there: a fraction of a second."""


def embedder_or_none(engine: Engine) -> Embedder | None:
    """The model, waiting for one that is just being loaded; None when there is none."""
    return engine.embedders.get(engine.settings.embeddings.wait_seconds)


def spans_of(memory: Memory) -> list[tuple[int, int]]:
    """The pieces of a memory's searchable text; none crosses from one wording into another."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for part in (memory.content, *memory.phrasings):
        spans.extend((offset + start, offset + end) for start, end in cut(part))
        offset += len(part) + 1
    return spans


def vectors_for(call: Call, memories: Sequence[Memory]) -> list[Embedded]:
    """The vectors of each memory, or none at all when no model is there, it fails, or it is not the one whose
    vectors the store holds.

    A memory is kept without vectors rather than lost; they are made later (`backfill`).
    """
    embedder = embedder_or_none(call.engine)
    if embedder is None or store_has_other_model(call.engine, embedder):
        return []
    try:
        return embed_memories(call, embedder, memories)
    except EmbedderError as exc:
        logger.warning("Remembering goes on without vectors: %s", exc.message)
        return []


def store_has_other_model(engine: Engine, embedder: Embedder) -> bool:
    """Whether the store holds vectors of another model: before it is changed over to this one, or after it
    was changed over to a newer one."""
    return engine.store.signature() not in (None, embedder.signature)


def embed_memories(call: Call, embedder: Embedder, memories: Sequence[Memory]) -> list[Embedded]:
    """The vectors of each memory, in order."""
    texts = [searchable(memory) for memory in memories]
    spans = [spans_of(memory) for memory in memories]
    pieces = [text[start:end] for text, cuts in zip(texts, spans, strict=True) for start, end in cuts]
    made = iter(zip(pieces, _in_slices(call, embedder, pieces), strict=True))
    return [
        Embedded(
            signature=embedder.signature,
            text_hash=text_hash(memory),
            pieces=tuple(_piece(start, end, *next(made)) for start, end in cuts),
        )
        for memory, cuts in zip(memories, spans, strict=True)
    ]


def _piece(start: int, end: int, text: str, encoded: Encoded) -> Piece:
    return Piece(start=start, end=end, vector=encoded.vector, tokens=_tokens(text, encoded))


def _tokens(text: str, encoded: Encoded) -> Tokens | None:
    if encoded.tokens is None:
        return None
    return Tokens(
        bits=np.packbits(encoded.tokens.states > 0, axis=1), asked=asked(text, encoded.tokens.spans)
    )


def _in_slices(call: Call, embedder: Embedder, pieces: list[str]) -> list[Encoded]:
    if len(pieces) <= SLICE:
        return embedder.encode_documents(pieces)
    encoded: list[Encoded] = []
    for at in range(0, len(pieces), SLICE):
        call.check()
        encoded.extend(embedder.encode_documents(pieces[at : at + SLICE]))
        call.progress(len(encoded), len(pieces), f"{len(encoded)} of {len(pieces)} pieces embedded")
    return encoded


def backfill(call: Call, embedder: Embedder) -> int:
    """Embed what was written without this model; how many memories got vectors. Where the store holds vectors
    of another model, that is left to whoever has it."""
    return 0 if store_has_other_model(call.engine, embedder) else embed_missing(call, embedder)


def missing_vectors(store: MemoryStore, embedder: Embedder, *, limit: int) -> list[Memory]:
    """Memories for which this model would make something that is not there."""
    return store.unembedded(embedder.signature, limit=limit, tokens=embedder.token_states)


def embed_missing(call: Call, embedder: Embedder, *, coming: bool = False) -> int:
    """Embed all that has no vectors of this model, or lost their tokens; how many memories got them. With
    `coming`, beside those of the model that is in use."""
    store = call.engine.store
    anew = embedder.signature if coming else None
    quiet = Call(engine=call.engine, cancelled=call.cancelled, deadline=call.deadline)
    done = 0
    while missing := missing_vectors(store, embedder, limit=SLICE):
        call.check()
        vectors = embed_memories(quiet, embedder, missing)
        made = {memory.id: one for memory, one in zip(missing, vectors, strict=True)}
        stored = store.put_vectors(made, coming=anew)
        done += stored
        call.progress(done, None, f"{done} memories embedded")
        if not stored:
            # Everything changed under us, or was deleted: the next round sees the new state, but a
            # store that takes nothing at all must not keep us here for ever.
            break
    return done
