"""Late interaction (MaxSim): every word of the query looks for its best counterpart in a memory.

The idea is ColBERT's MaxSim (Khattab & Zaharia 2020), here over the token states of the ordinary embedding
model, weighted by how rare the query's words are. A memory's tokens are kept as sign bits, the query's stay
real numbers: for unit vectors q, t of D dimensions, sqrt(π/2)/sqrt(D) · Σ q·sign(t) estimates their cosine. A
match inside a question counts a little less for its own memory, and fully for the memory that follows,
because that is where the answer is. Numbers: docs/concepts/search.md. Where there is a compiled library
(`cognition.native`), it computes the same with fewer instructions (ADR 0040).
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.native.kernel import Kernel, kernel
from vestige.cognition.ranking.bm25 import LEAST, idf
from vestige.cognition.text.analyser import QueryWord
from vestige.core.candidates import OFFSETS, Floats, Integers, Sketch
from vestige.core.lazy_dataclass import dataclass

States = NDArray[np.float32]

REACH: Mapping[int, float] = {-1: 0.85, 1: 0.8, -2: 0.8, 2: 0.7}
"""The weight of a counterpart in a neighbour, by the neighbour's position."""
ASKED = 0.85  # The weight of a counterpart inside a question …
ANSWERED = 1.0  # … and in the question just before.

_BY_COLUMN = np.array([REACH.get(offset, 0.0) for offset in OFFSETS], dtype=np.float32)
_ANSWERS_BY_COLUMN = np.array([ANSWERED if offset == -1 else 0.0 for offset in OFFSETS], dtype=np.float32)

STOP_SHARE = 0.25
"""The weight of a stop word, as a share of that of an unknown one: who, when and where find answers …"""
WRITTEN_STOP_SHARE = 0.1  # … in a conversation, but hardly in a note.
UNKNOWN_SHARE = 0.7

NOTHING = -9.0  # Below any estimate: the similarity of a missing token.

MOST_QUERY_TOKENS = 64  # A longer query is compared by its heaviest tokens.

CHUNK_ROWS = 256  # The number of tokens unpacked at a time: the buffer stays in the processor's cache.


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """How well each candidate matches the query's words: alone, and with its neighbours; NaN without
    tokens."""

    own: Floats
    context: Floats


def match(states: States, weights: Sequence[Floats], sketch: Sketch) -> list[Matched]:
    """The MaxSim of every candidate of a sketch, for each of several weightings; each adds up to 1."""
    heaviest = _heaviest(np.max(weights, axis=0))
    shares = np.array([one[heaviest] / one[heaviest].sum() for one in weights])
    native = kernel()
    if native is None:
        own, context = _with_neighbours(*_best(states[heaviest], sketch), sketch.around, shares)
    else:
        own, context = _by_kernel(native, states[heaviest], sketch, shares)
    return [Matched(own=one, context=other) for one, other in zip(own, context, strict=True)]


def weigh(
    spans: NDArray[np.int32],
    words: Sequence[QueryWord],
    frequencies: Mapping[str, int],
    memories: int,
    stop_share: float = STOP_SHARE,
) -> Floats:
    """The weight of each of the query's tokens by the rarity of its word; they add up to 1. `frequencies` are
    those of terms among `memories` memories. Tokens outside the words get next to nothing."""
    most = idf(0, memories)
    weights = np.full(len(spans), LEAST)
    # Tokens come in the order of the text: those of a word stand together.
    firsts = np.searchsorted(spans[:, 0], [word.start for word in words]).tolist()
    ends = np.searchsorted(spans[:, 0], [word.end for word in words]).tolist()
    for word, first, end in zip(words, firsts, ends, strict=True):
        rarity = max(_rarity(term, frequencies, memories) for term in word.terms)
        # A word in many pieces is one word; several matching pieces say more than one, but not in proportion.
        weights[first:end] = (stop_share * most if word.stop else rarity) / sqrt(max(1, end - first))
    total = float(weights.sum())
    return weights / total if total > 0 else weights


def _rarity(term: str, frequencies: Mapping[str, int], memories: int) -> float:
    frequency = frequencies.get(term, 0)
    return idf(frequency, memories) * (1.0 if frequency else UNKNOWN_SHARE)


def _heaviest(weights: Floats) -> Integers:
    """The query's tokens that take part: those with any weight, the heaviest if there are many."""
    order = np.argsort(-weights, kind="stable")[:MOST_QUERY_TOKENS]
    kept = order[weights[order] > LEAST]
    return np.sort(kept if len(kept) else order)


def _by_kernel(native: Kernel, states: States, sketch: Sketch, shares: Floats) -> tuple[Floats, Floats]:
    said, asked = native.best(
        states,
        sketch.bits,
        sketch.asked,
        sketch.starts,
        sketch.lengths,
        scale=_scale(states.shape[1]),
        worth=ASKED,
    )
    return native.context(
        said, asked, sketch.around, reach=_BY_COLUMN, answers=_ANSWERS_BY_COLUMN, weights=shares
    )


def _with_neighbours(said: States, asked: States, around: Integers, shares: Floats) -> tuple[Floats, Floats]:
    """The similarity of each candidate alone and with its neighbours, by weighting."""
    own = _of(said, around[:, 0])
    context = own.copy()
    for column, offset in enumerate(OFFSETS[1:], start=1):
        there = around[:, column]
        np.maximum(context, REACH[offset] * _of(said, there), out=context)
        if offset == -1:
            np.maximum(context, ANSWERED * _of(asked, there), out=context)
    missing = around[:, 0] < 0
    return (
        np.array([np.where(missing, np.nan, own @ share) for share in shares]),
        np.array([np.where(missing, np.nan, context @ share) for share in shares]),
    )


def _best(states: States, sketch: Sketch) -> tuple[States, States]:
    """For every owner and query token the best counterpart: anywhere, and in questions (at least 0)."""
    similar = _similarities(states, sketch)
    questions = np.flatnonzero(sketch.asked)
    within = similar[questions]
    similar[questions] *= np.float32(ASKED)
    inside = np.zeros((len(sketch.starts), len(states)), dtype=np.float32)
    if len(questions):
        owners = np.searchsorted(sketch.starts, questions, side="right") - 1
        firsts = np.flatnonzero(np.diff(owners, prepend=-1))
        best, asking = np.maximum.reduceat(within, firsts, axis=0), owners[firsts]
        # The other tokens count as 0.
        some = np.diff(firsts, append=len(owners)) < sketch.lengths[asking]
        best[some] = np.maximum(best[some], 0)
        inside[asking] = best
    return np.maximum.reduceat(similar, sketch.starts, axis=0), inside


def _similarities(states: States, sketch: Sketch) -> States:
    """The estimated cosine of every token of the sketch with every token of the query."""
    tokens, width = sketch.bits.shape
    dimension = states.shape[1]
    query = np.zeros((8 * width, len(states)), dtype=np.float32)
    query[:dimension] = states.T
    found = np.empty((tokens, len(states)), dtype=np.float32)
    unpacked = np.empty((CHUNK_ROWS, width, 8), dtype=np.float32)
    for start in range(0, tokens, CHUNK_ROWS):
        rows = sketch.bits[start : start + CHUNK_ROWS]
        here = unpacked[: len(rows)]
        np.take(_eight_bits(), rows, axis=0, out=here, mode="clip")
        np.dot(here.reshape(len(rows), 8 * width), query, out=found[start : start + len(rows)])
    # Bits are 0 and 1 where signs are -1 and 1: Σ q·sign = 2 Σ q·bit − Σ q.
    found *= 2
    found -= states.sum(axis=1)
    found *= np.float32(_scale(dimension))
    return found


def _scale(dimension: int) -> float:
    return sqrt(pi / 2) / sqrt(dimension)


@lru_cache(maxsize=1)
def _eight_bits() -> States:
    """For every byte its eight bits as numbers, highest first, as `numpy.packbits` packs them."""
    return np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float32)


def _of(best: States, owners: NDArray[np.int64]) -> States:
    """The rows of these owners; a missing one matches nothing."""
    rows: States = best[owners]
    rows[owners < 0] = NOTHING
    return rows
