"""Vectors for memories: cut into pieces, embedded in one call, guarded by the text's hash."""

from collections.abc import Sequence

from vestige.cognition.pieces import cut
from vestige.cognition.text import searchable, text_hash
from vestige.embed.protocol import Embedder
from vestige.engine.context import Call, Engine
from vestige.models import Memory
from vestige.store.protocol import Embedded, Piece

BACKFILL_BATCH = 64


def spans_of(memory: Memory) -> list[tuple[int, int]]:
    """The pieces of a memory's searchable text; none crosses from one wording into another."""
    spans: list[tuple[int, int]] = []
    offset = 0
    for part in (memory.content, *memory.phrasings):
        spans.extend((offset + start, offset + end) for start, end in cut(part))
        offset += len(part) + 1
    return spans


def embed_memories(embedder: Embedder, memories: Sequence[Memory]) -> list[Embedded]:
    """The vectors of each memory, in order, from one call to the model."""
    texts = [searchable(memory) for memory in memories]
    spans = [spans_of(memory) for memory in memories]
    pieces = [text[start:end] for text, cuts in zip(texts, spans, strict=True) for start, end in cuts]
    vectors = embedder.embed_documents(pieces)
    embedded = []
    row = 0
    for memory, cuts in zip(memories, spans, strict=True):
        made = tuple(
            Piece(start=start, end=end, vector=vectors[row + i]) for i, (start, end) in enumerate(cuts)
        )
        row += len(cuts)
        embedded.append(Embedded(signature=embedder.signature, text_hash=text_hash(memory), pieces=made))
    return embedded


def backfill(call: Call, embedder: Embedder) -> int:
    """Embed what was written while no model was there; how many memories got vectors."""
    store = call.engine.store
    done = 0
    while missing := store.unembedded(embedder.signature, limit=BACKFILL_BATCH):
        call.check()
        vectors = embed_memories(embedder, missing)
        stored = store.put_vectors({memory.id: made for memory, made in zip(missing, vectors, strict=True)})
        done += stored
        call.progress(done, None, f"{done} memories embedded")
        if not stored:
            # Everything changed under us, or was deleted: the next round sees the new state, but a
            # store that takes nothing at all must not keep us here for ever.
            break
    return done


def embedder_or_none(engine: Engine) -> Embedder | None:
    """The model, waiting for one that is just being loaded; None when there is none."""
    return engine.embedders.get(engine.settings.embeddings.wait_seconds)
