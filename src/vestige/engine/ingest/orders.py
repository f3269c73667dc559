"""The learned judgement of orders to agents on new texts and on stored memories (ADR 0064).

A new text is judged by the vectors that storing it makes, a stored memory by those it has: the model runs
for no text a second time. Without vectors of the local model the rules alone decide.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.evidence.injection.find import InjectionKind, suspicious
from vestige.cognition.evidence.injection.order_model import EMBEDDER, gives_orders
from vestige.cognition.text.analyser import searchable
from vestige.cognition.text.form import Form, cut, features
from vestige.core.documents import PENDING
from vestige.core.errors import EmbedderError
from vestige.core.models import Filter, Memory, Record
from vestige.core.origin import Origin
from vestige.embed.protocol import Signature
from vestige.engine.context import Call
from vestige.engine.embedding import embedder_or_none, spans_of
from vestige.store.contract.changes import Embedded

MEANING = (InjectionKind.MEANING.value,)
LEAST_CHARS = 12
"""A shorter text is too short to be an order."""
MOST_READ = 500
"""The most records that are read for a context, of which most may not come into it."""
MOST_JUDGED = 64
"""The most pieces of a text without vectors that are judged, the first ones."""


def is_judged(signature: Signature | None) -> bool:
    """Whether the learned judgement knows vectors of this signature."""
    return signature is not None and signature.name == EMBEDDER


def new_orders(memory: Memory, made: Embedded) -> bool:
    """Whether a new text, with the vectors made of it, is taken for an order to an agent."""
    if not is_judged(made.signature):
        return False
    vectors = [piece.vector for piece in made.pieces]
    return _judged(memory, vectors)


def spoken_orders(call: Call, texts: Iterable[str], origin: str | None) -> bool:
    """Whether one of some texts that have no vectors is taken for an order; the model reads them now."""
    wanted = [text for text in texts if len(text) >= LEAST_CHARS]
    if origin == Origin.USER or not wanted:
        return False
    embedder = embedder_or_none(call.engine)
    if embedder is None or not is_judged(embedder.signature):
        return False
    pieces = [[text[start:end] for start, end in cut(text)[:MOST_JUDGED]] for text in wanted]
    try:
        # Short texts are kept for a moment: storing one of them next does not run the model again.
        encoded = iter(embedder.encode_documents(list(chain.from_iterable(pieces))))
    except EmbedderError:
        return False
    return any(gives_orders([(part, next(encoded).vector) for part in parts], origin) for parts in pieces)


def order_flags(
    call: Call, memories: Sequence[Memory], by_rules: Callable[[Memory], tuple[str, ...]] | None = None
) -> dict[str, tuple[str, ...]]:
    """What stored memories try to do to an agent, by rules (of their wordings, or those given) and by their
    vectors: the kinds by id, of those that try anything. What a person has approved is left out."""
    found = {one.id: kinds for one in memories if (kinds := (by_rules or _by_rules)(one))}
    rest = [one for one in memories if one.id not in found and one.origin != Origin.USER]
    signature = call.engine.store.signature()
    if rest and signature is not None and is_judged(signature):
        vectors = call.engine.store.vectors([one.id for one in rest], signature, access=call.access)
        found |= {one.id: MEANING for one in rest if one.id in vectors and _judged(one, vectors[one.id])}
    approved = _approved(call, list(found)) if found else set()
    return {name: kinds for name, kinds in found.items() if name not in approved}


def without_orders(call: Call, records: Sequence[Record]) -> list[Record]:
    """The records that may come into a context by themselves. A search still finds the others."""
    held = order_flags(call, [one.memory for one in records])
    return [one for one in records if one.memory.id not in held]


def found_without_orders(call: Call, where: Filter, *, limit: int) -> list[Record]:
    """The newest records that may come into a context by themselves. Many that may not hide no others."""
    found: list[Record] = []
    for offset in range(0, max(MOST_READ, limit), max(1, limit)):
        page = call.engine.store.find(where, access=call.access, limit=limit, offset=offset)
        found += without_orders(call, page)
        if len(found) >= limit or len(page) < limit:
            break
    return found[:limit]


def _by_rules(memory: Memory) -> tuple[str, ...]:
    wordings = (suspicious(one, memory.origin) for one in (memory.content, *memory.phrasings))
    return tuple(dict.fromkeys(chain.from_iterable(wordings)))


def _judged(memory: Memory, vectors: Sequence[NDArray[np.float32]] | NDArray[np.float32]) -> bool:
    text, spans = searchable(memory), spans_of(memory)
    if len(spans) != len(vectors):  # of an earlier way to cut
        spans = [(0, len(text))] * len(vectors)
    pieces = [(text[start:end], one) for (start, end), one in zip(spans, vectors, strict=True)]
    threaded = memory.thread is not None
    turn = threaded or features(memory).form is Form.TURN
    return gives_orders(pieces, memory.origin, turn=turn, threaded=threaded)


def _approved(call: Call, memory_ids: Sequence[str]) -> set[str]:
    """Those of these memories that a person let in though something was found in them."""
    documents = call.engine.store.documents(
        PENDING, access=call.access, citing=memory_ids, limit=len(memory_ids)
    )
    decided = (one for one in documents if one.body.get("flags") and one.body.get("outcome"))
    return {name for one in decided for name in one.cites}
