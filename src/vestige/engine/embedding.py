"""Embeddings of memories: texts are cut into pieces, embedded in slices, and stored with the hash of the
text."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice

import numpy as np

from vestige.cognition.text.analyser import searchable, text_hash
from vestige.cognition.text.form import asked, cut
from vestige.core.errors import EmbedderError
from vestige.core.models import Memory
from vestige.embed.protocol import Embedder, Encoded
from vestige.engine.context import Call, Engine
from vestige.store.contract.changes import Embedded, Piece, Tokens
from vestige.store.contract.store import MemoryStore

logger = logging.getLogger(__name__)

SLICE = 64
"""Pieces embedded between two checks for cancellation, at most."""
SLICE_CHARS = 20_000
"""Characters of these pieces: a fraction of a second, and 8 MB of token states."""
MISSING_CHARS = 1_000_000
"""Characters of the memories that are embedded later in one go; one memory may have as many."""


def embedder_or_none(engine: Engine) -> Embedder | None:
    """The embedding model, after waiting for one that is being loaded; None without a model."""
    return engine.embedders.get(engine.settings.embeddings.wait_seconds)


def spans_of(memory: Memory) -> list[tuple[int, int]]:
    """The pieces of a memory's searchable text; no piece crosses from one wording into another."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for part in (memory.content, *memory.phrasings):
        spans.extend((offset + start, offset + end) for start, end in cut(part))
        offset += len(part) + 1
    return spans


def vectors_for(call: Call, memories: Sequence[Memory]) -> list[Embedded]:
    """The vectors of each memory; empty if there is no model, it fails, or the store uses another one. A
    memory is then stored without vectors, and `backfill` embeds it later."""
    embedder = embedder_or_none(call.engine)
    if embedder is None or store_has_other_model(call.engine, embedder):
        return []
    try:
        return embed_memories(call, embedder, memories)
    except EmbedderError as exc:
        logger.warning("The model failed; memories are stored without vectors: %s", exc.message)
        return []


def store_has_other_model(engine: Engine, embedder: Embedder) -> bool:
    """Whether the store holds vectors of another model than this one, older or newer."""
    return engine.store.signature() not in (None, embedder.signature)


def other_model_warning(engine: Engine) -> str | None:
    """What a caller must know when its text gets no vectors because the store holds those of another model;
    None where the models are the same, or none is loaded."""
    held, configured = engine.store.signature(), engine.embedders.status().signature
    if held is None or configured is None or held == configured:
        return None
    return (
        f"Stored without meaning search, found by its words only: the store holds vectors of {held.profile}, "
        f"the settings name {configured.profile}. Run `vestige migrate --reembed` to embed every memory with "
        f"{configured.name}, or set the embeddings back to {held.name}."
    )


def embed_memories(call: Call, embedder: Embedder, memories: Sequence[Memory]) -> list[Embedded]:
    """The vectors of each memory. Token states take 400 times the memory of their text, so they are packed
    into bits slice by slice, and only the bits are kept."""
    spans = [spans_of(memory) for memory in memories]
    total = sum(map(len, spans))
    made: list[Piece] = []
    for portion in _portions(_cuts(memories, spans)):
        if made:
            call.check()
        encoded = embedder.encode_documents([text for _, _, text in portion])
        made.extend(_piece(*piece, states) for piece, states in zip(portion, encoded, strict=True))
        if total > len(portion):
            call.progress(len(made), total, f"{len(made)} of {total} pieces embedded")
    pieces = iter(made)
    return [
        Embedded(
            signature=embedder.signature, text_hash=text_hash(memory), pieces=tuple(islice(pieces, len(cuts)))
        )
        for memory, cuts in zip(memories, spans, strict=True)
    ]


_Cut = tuple[int, int, str]
"""The start and end of a piece in its memory's searchable text, and its text."""


def _portions(cuts: Iterable[_Cut]) -> Iterator[list[_Cut]]:
    portion: list[_Cut] = []
    size = 0
    for one in cuts:
        if portion and (len(portion) == SLICE or size + len(one[2]) > SLICE_CHARS):
            yield portion
            portion, size = [], 0
        portion.append(one)
        size += len(one[2])
    if portion:
        yield portion


def _cuts(memories: Sequence[Memory], spans: Sequence[Sequence[tuple[int, int]]]) -> Iterator[_Cut]:
    """The pieces of all memories."""
    for memory, cuts in zip(memories, spans, strict=True):
        text = searchable(memory)
        yield from ((start, end, text[start:end]) for start, end in cuts)


def _piece(start: int, end: int, text: str, encoded: Encoded) -> Piece:
    return Piece(start=start, end=end, vector=encoded.vector, tokens=_tokens(text, encoded))


def _tokens(text: str, encoded: Encoded) -> Tokens | None:
    if encoded.tokens is None:
        return None
    return Tokens(
        bits=np.packbits(encoded.tokens.states > 0, axis=1), asked=asked(text, encoded.tokens.spans)
    )


def backfill(call: Call, embedder: Embedder) -> int:
    """Embed the memories that have no vectors of this model; returns how many. If the store holds vectors of
    another model, the process that has that model embeds them. They get their domains with it."""
    if store_has_other_model(call.engine, embedder):
        return 0
    done = embed_missing(call, embedder)
    if done:
        # Imported late: domains are loaded only where memories had no vectors.
        from vestige.engine.domains.arrivals import catch_up

        catch_up(call)
    return done


def missing_vectors(store: MemoryStore, embedder: Embedder, *, limit: int) -> list[Memory]:
    """Memories without vectors of this model, or without the token bits that it makes."""
    return store.unembedded(embedder.signature, limit=limit, tokens=embedder.token_states)


def _affordable(memories: Sequence[Memory]) -> list[Memory]:
    """The first memories, as many as may be embedded at once: their token bits take 12 times their text."""
    sizes = accumulate(len(searchable(memory)) for memory in memories)
    return [memory for memory, size in zip(memories, sizes, strict=True) if size <= MISSING_CHARS] or list(
        memories[:1]
    )


def embed_missing(call: Call, embedder: Embedder, *, coming: bool = False) -> int:
    """Embed every memory that has no vectors of this model, or lost its token bits; returns how many. With
    `coming`, the vectors are stored beside those of the model in use."""
    store = call.engine.store
    beside = embedder.signature if coming else None
    quiet = Call(engine=call.engine, cancelled=call.cancelled, deadline=call.deadline)
    done = 0
    while missing := _affordable(missing_vectors(store, embedder, limit=SLICE)):
        call.check()
        vectors = embed_memories(quiet, embedder, missing)
        made = {memory.id: one for memory, one in zip(missing, vectors, strict=True)}
        stored = store.put_vectors(made, coming=beside)
        done += stored
        call.progress(done, None, f"{done} memories embedded")
        if not stored:
            # All of them were changed or deleted meanwhile. The next round would see the new state, but a
            # store that accepts nothing must not keep this loop running for ever.
            break
    return done
