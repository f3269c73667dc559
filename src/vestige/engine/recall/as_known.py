"""Recall as of an earlier time (`known_at`): search by the wordings of then, the event log, past versions.

A store's indexes hold present wordings only, so with `known_at` its arms leave out memories that were worded
otherwise then. Those are read here: their words are weighted as the store would weight them, and their text
is embedded again.
"""

import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from math import nan

import numpy as np

from vestige.cognition.query.analyse import Asked
from vestige.cognition.ranking.earlier_wordings import Words, find_words, joined
from vestige.cognition.ranking.maxsim import STOP_SHARE, WRITTEN_STOP_SHARE, Matched
from vestige.cognition.ranking.stages import traits_of
from vestige.core.candidates import (
    LONGEST_TOKENS,
    OFFSETS,
    CandidatePool,
    Flags,
    Floats,
    Integers,
    Sketch,
    Vectors,
)
from vestige.core.errors import EmbedderError
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import Access, Filter, LogEvent, Memory, Record
from vestige.embed.protocol import TokenStates
from vestige.engine.context import Call
from vestige.engine.embedding import embed_memories, embedder_or_none, spans_of
from vestige.engine.recall.candidates import Depth, Gathered, by_form, gather, match_text
from vestige.store.contract.changes import Piece
from vestige.store.filter_rule import passes
from vestige.store.merge.histories import stamp

logger = logging.getLogger(__name__)

MOST_WORDINGS = 5_000
"""The most earlier wordings that one search reads; the last revised come first."""
PIECES = 256
"""The most pieces of earlier wordings that one search embeds, best by words first: two or three seconds."""


def gather_as_known(
    call: Call, asked: Asked, where: Filter, depth: Depth, *, least_cosine: float = -1.0
) -> Gathered:
    """The candidates of every arm, by the wordings that were known at `where.known_at`.

    `unread` is set if more memories were reworded since then than one search reads.
    """
    gathered = gather(call, asked, where, depth, least_cosine=least_cosine)
    if where.known_at is None:
        return gathered
    reworded = call.engine.store.reworded(asked.terms, where, access=call.access, limit=MOST_WORDINGS + 1)
    # A memory that was revised while the arms searched is in the pool already, with its earlier wording.
    there = set(gathered.pool.ids)
    records = [one for one in reworded.records[:MOST_WORDINGS] if one.memory.id not in there]
    call.check()
    words = find_words(asked, [one.memory for one in records], reworded.statistics, gathered.pool)
    best = words.best(depth.per_arm)
    records, words = [records[at] for at in best.tolist()], words.at(best)
    meaning = _meaning(call, asked, gathered, [one.memory for one in records])
    near = meaning.cosine >= least_cosine
    kept = np.flatnonzero((words.own > 0) | (words.literals > 0) | near)
    found = [records[at] for at in kept.tolist()]
    earlier = _pool(asked, gathered.pool, found, words.at(kept), meaning.at(kept), near[kept])
    pool, matched = joined(gathered.pool, gathered.matched, earlier, _matched(asked, meaning, earlier))
    return replace(gathered, pool=pool, matched=matched, unread=len(reworded.records) > MOST_WORDINGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class _WordingVectors:
    """Embedded texts: the best piece of each, as a pool holds it, all its pieces, and the query's tokens."""

    cosine: Floats
    starts: Integers
    ends: Integers
    vectors: Vectors
    pieces: tuple[tuple[Piece, ...], ...]
    query: TokenStates | None

    def at(self, places: Integers) -> "_WordingVectors":
        return _WordingVectors(
            cosine=self.cosine[places],
            starts=self.starts[places],
            ends=self.ends[places],
            vectors=self.vectors[places],
            pieces=tuple(self.pieces[at] for at in places.tolist()),
            query=self.query,
        )


def _meaning(call: Call, asked: Asked, gathered: Gathered, memories: Sequence[Memory]) -> _WordingVectors:
    """Embed the first memories, as far as there is a model and time."""
    count = len(memories)
    found = _WordingVectors(
        cosine=np.full(count, nan),
        starts=np.zeros(count, dtype=np.int64),
        ends=np.zeros(count, dtype=np.int64),
        vectors=np.zeros((count, gathered.pool.vectors.shape[1]), dtype=np.float32),
        pieces=((),) * count,
        query=None,
    )
    embedder = None if gathered.encoded is None or not memories else embedder_or_none(call.engine)
    if embedder is None:
        return found
    chosen = _fitting_budget(memories)
    try:
        query = embedder.encode_query(asked.text)
        made = embed_memories(call, embedder, [memories[at] for at in chosen])
    except EmbedderError as exc:
        logger.warning("The model failed; earlier wordings are compared by words only: %s", exc.message)
        return found
    pieces = {at: one.pieces for at, one in zip(chosen, made, strict=True) if one.pieces}
    for at, several in pieces.items():
        cosines = np.array([piece.vector for piece in several]) @ query.vector
        best = several[int(np.argmax(cosines))]
        found.cosine[at], found.vectors[at] = cosines.max(), best.vector
        found.starts[at], found.ends[at] = best.start, best.end
    return replace(found, pieces=tuple(pieces.get(at, ()) for at in range(count)), query=query.tokens)


def _fitting_budget(memories: Sequence[Memory]) -> list[int]:
    """The indexes of the memories to embed: one after the other, while their pieces fit into PIECES."""
    chosen, left = list[int](), PIECES
    for at, memory in enumerate(memories):
        size = len(spans_of(memory))
        if size <= left:
            chosen.append(at)
            left -= size
    return chosen


def _pool(
    asked: Asked,
    beside: CandidatePool,
    records: Sequence[Record],
    words: Words,
    meaning: _WordingVectors,
    near: Flags,
) -> CandidatePool:
    """The records as a candidate pool. Word frequencies come from the pool `beside`."""
    traits = traits_of(records, [-1] * len(records))
    return CandidatePool(
        ids=tuple(one.memory.id for one in records),
        own=words.own,
        window=words.own,
        thread=np.zeros(len(records)),
        cosine=meaning.cosine,
        starts=meaning.starts,
        ends=meaning.ends,
        vectors=meaning.vectors,
        literals=words.literals,
        covered=words.covered,
        dated=words.dated,
        present=np.array([one in asked.names for one in traits.speaker.tolist()], dtype=np.bool_),
        by_words=words.own > 0,
        by_meaning=near,
        by_literal=words.literals > 0,
        traits=traits,
        sketch=_sketch(meaning.pieces),
        frequencies=beside.frequencies,
        memories=beside.memories,
    )


def _sketch(pieces: Sequence[Sequence[Piece]]) -> Sketch | None:
    """The tokens of each text, one text after the other; None without tokens."""
    tokens = [[piece.tokens for piece in one if piece.tokens is not None] for one in pieces]
    some = [several for several in tokens if several]
    bits = [np.concatenate([one.bits for one in each])[:LONGEST_TOKENS] for each in some]
    asked: list[Flags] = [np.concatenate([one.asked for one in each])[:LONGEST_TOKENS] for each in some]
    lengths = np.array([sum(len(one.asked) for one in several) for several in tokens], dtype=np.int64)
    there = np.minimum(lengths, LONGEST_TOKENS)[lengths > 0]
    if not len(there):
        return None
    around = np.full((len(pieces), len(OFFSETS)), -1, dtype=np.int64)
    around[lengths > 0, 0] = np.arange(len(there))
    return Sketch(
        bits=np.concatenate(bits),
        asked=np.concatenate(asked),
        starts=np.cumsum(there) - there,
        lengths=there,
        around=around,
    )


def _matched(asked: Asked, meaning: _WordingVectors, pool: CandidatePool) -> Matched | None:
    query = meaning.query
    if query is None or not len(query.spans) or pool.sketch is None:
        return None
    return by_form(pool, *match_text(asked.text, query, pool, pool.sketch, WRITTEN_STOP_SHARE, STOP_SHARE))


# -- The event log, and earlier versions of memories

PAGE = 5_000


def log_events(
    call: Call, *, access: Access, memory_id: str | None = None, after: int = 0
) -> Iterator[LogEvent]:
    """Every event after a position, or about one memory, in commit order."""
    while page := call.engine.store.log(access=access, memory_id=memory_id, after=after, limit=PAGE):
        call.check()
        yield from page
        after = page[-1].position


def events_of(call: Call, memory_id: str) -> list[LogEvent]:
    """The events of one memory in the order in which they happened. Those from another machine are logged
    when they arrive, so this is not the commit order."""
    return sorted(log_events(call, access=call.access, memory_id=memory_id), key=stamp)


def as_known(call: Call, records: Sequence[Record], known_at: datetime | None) -> list[Record]:
    """The records with their memories as the store knew them at `known_at`; unchanged without a time."""
    revised = [one.memory.id for one in records if known_at is not None and one.memory.updated_at > known_at]
    if known_at is None or not revised:
        return list(records)
    then = call.engine.store.earlier(revised, known_at, access=call.access)
    memories = (_with_present_visibility(one.memory, then.get(one.memory.id)) for one in records)
    return [replace(one, memory=memory) for one, memory in zip(records, memories, strict=True)]


def known_records(call: Call, memory_ids: Sequence[str], where: Filter) -> list[Record]:
    """The records as they were known at `where.known_at`, if they existed then and pass the filter."""
    found = call.engine.store.get_many(memory_ids, access=call.access)
    there = [one for one in found if where.known_at is None or one.memory.created_at <= where.known_at]
    return [one for one in as_known(call, there, where.known_at) if passes(one.memory, where, call.access)]


def _with_present_visibility(memory: Memory, known: Memory | None) -> Memory:
    """The earlier version of a memory, as suppressed and archived as the memory is now."""
    if known is None:
        return memory
    return replace(
        known,
        suppression_count=memory.suppression_count,
        suppressed_at=memory.suppressed_at,
        archived_at=memory.archived_at,
    )
