"""Late interaction (MaxSim): every word of the query looks for its best counterpart in a memory.

The idea is ColBERT's MaxSim (Khattab & Zaharia 2020), here over the token states of the ordinary embedding
model, weighted by how rare the query's words are. A memory's tokens are kept as sign bits, the query's stay
real numbers: for unit vectors q, t of D dimensions, sqrt(π/2)/sqrt(D) · Σ q·sign(t) estimates their cosine. A
match inside a question counts a little less for its own memory, and fully for the memory that follows,
because that is where the answer is. Numbers: docs/concepts/search.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import pi, sqrt

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.ranking.bm25 import LEAST, idf
from vestige.cognition.text.analyser import QueryWord
from vestige.core.candidates import OFFSETS, Floats, Integers, Sketch

States = NDArray[np.float32]

REACH: Mapping[int, float] = {-1: 0.85, 1: 0.8, -2: 0.8, 2: 0.7}
"""The weight of a counterpart in a neighbour, by the neighbour's position."""
ASKED = 0.85  # The weight of a counterpart inside a question …
ANSWERED = 1.0  # … and in the question just before.

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
    said, asked = _best(states[heaviest], sketch)
    own = _of(said, sketch.around[:, 0])
    context = own.copy()
    for column, offset in enumerate(OFFSETS[1:], start=1):
        there = sketch.around[:, column]
        np.maximum(context, REACH[offset] * _of(said, there), out=context)
        if offset == -1:
            np.maximum(context, ANSWERED * _of(asked, there), out=context)
    missing = sketch.around[:, 0] < 0
    return [
        Matched(
            own=np.where(missing, np.nan, own @ (one[heaviest] / one[heaviest].sum())),
            context=np.where(missing, np.nan, context @ (one[heaviest] / one[heaviest].sum())),
        )
        for one in weights
    ]


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


def _best(states: States, sketch: Sketch) -> tuple[States, States]:
    """For every owner and query token the best counterpart: anywhere, and in questions (at least 0)."""
    similar = _similarities(states, sketch)
    inside = np.where(sketch.asked[:, np.newaxis], similar, np.float32(0))
    similar[sketch.asked] *= np.float32(ASKED)
    return (
        np.maximum.reduceat(similar, sketch.starts, axis=0),
        np.maximum.reduceat(inside, sketch.starts, axis=0),
    )


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
    found *= np.float32(sqrt(pi / 2) / sqrt(dimension))
    return found


@lru_cache(maxsize=1)
def _eight_bits() -> States:
    """For every byte its eight bits as numbers, highest first, as `numpy.packbits` packs them."""
    return np.unpackbits(np.arange(256, dtype=np.uint8)[:, np.newaxis], axis=1).astype(np.float32)


def _of(best: States, owners: NDArray[np.int64]) -> States:
    """The rows of these owners; a missing one matches nothing."""
    rows: States = best[owners]
    rows[owners < 0] = NOTHING
    return rows
