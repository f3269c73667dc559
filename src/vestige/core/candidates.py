"""Candidates of a search as a store returns them: parallel arrays, one entry per memory.

A pool is one snapshot of the store and is not ranked. Pure functions (cognition/ranking) rank it, so that
every store ranks alike.
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from vestige.core.lazy_dataclass import dataclass

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Labels = NDArray[np.object_]
Bits = NDArray[np.uint8]
Vectors = NDArray[np.float32]

NEARBY = 1_000  # Number of nearest memories in which words are counted.

MOST_TOKENS = 300_000
LONGEST_TOKENS = 2_048
LEAST_TOKENS = 64
"""Limits of tokens in a sketch: in total, per memory (the first ones), and the minimum per memory when the
total is exceeded. They bound the time of comparing long texts.
"""

OFFSETS = (0, -1, 1, -2, 2)
"""Positions of the neighbours that `Sketch.around` lists: the memory itself, the one before, …"""


def distinct(values: Integers) -> Integers:
    """The values in order, each once. `np.unique` would import numpy's masked arrays for it, which takes
    longer than a short search."""
    ordered = np.sort(values)
    return ordered[np.concatenate(([True], ordered[1:] != ordered[:-1]))[: len(ordered)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalScores:
    """BM25 scores of a memory: of its own terms, with its neighbours', and of its whole thread. Outside any
    thread `window` equals `own` and `thread` is 0."""

    memory_id: str
    own: float
    window: float
    thread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TermStatistics:
    """How common the terms of a query are in what a caller may read: the number of `memories` that contain
    each, and the total number of memories and `words`. Terms too common for a search are left out."""

    frequencies: Mapping[str, int]
    memories: int
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Voices:
    """The speakers in a store's conversations, among those asked for, and whether it also holds notes."""

    speakers: frozenset[int]
    notes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Properties of each candidate that the stages need; times are seconds since 1970.

    `happened` is NaN if unknown. `scope` holds texts. `thread` is a number shared by members of a thread (-1
    outside any). `form`, `first_person`, `asks`, `timed` and `speaker` come from `cognition.text.form`.
    """

    created: Floats
    happened: Floats
    stability: Floats
    decay_from: Floats
    retrieval: Floats
    storage: Floats
    curve: Floats
    suppressions: Integers
    retrieved: Integers
    useful: Integers
    thread: Integers
    form: Integers
    first_person: Flags
    asks: Flags
    timed: Flags
    speaker: Integers
    scope: Labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """The token bits of candidates and of their neighbours.

    Owner o has the tokens `starts[o]` to `starts[o] + lengths[o]` of `bits` (one sign bit per dimension,
    packed) and `asked` (the token is in a question). `around[i]` are the owners at `OFFSETS` of candidate i,
    -1 without a neighbour or without tokens. Of long texts it holds the beginning (`tokens_kept`).
    """

    bits: Bits
    asked: Flags
    starts: Integers
    lengths: Integers
    around: Integers


def tokens_kept(lengths: Integers) -> Integers:
    """How many of each owner's tokens a sketch holds, from the first on."""
    kept = np.minimum(lengths, LONGEST_TOKENS)
    if int(kept.sum()) <= MOST_TOKENS:
        return kept
    return np.minimum(kept, max(LEAST_TOKENS, MOST_TOKENS // len(lengths)))


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidatePool:
    """The candidates of all search arms, ordered by id.

    `own`, `window`, `thread` are BM25 scores (0 if no term matches). `cosine` is that of the best piece,
    which is the characters `starts`..`ends` and has the row in `vectors` (NaN and 0 without vectors; empty
    rows if the probe has none). `literals` is the number of matching literals. All are set for every
    candidate, whichever arm found it; `by_words`, `by_meaning`, `by_literal` say which did. `covered` is the
    share of the query in a candidate's window: the weight of its distinct terms over that of all
    (`cognition.ranking.bm25`). `dated` is its window's BM25 for the probe's date terms alone. `present` means
    that a speaker named by the probe speaks in its thread. `sketch` is missing if the probe has no vector or
    no candidate has token bits.

    `frequencies` is the number of memories with each distinct term, among `memories`: those within the
    access, or the NEARBY ones nearest to the query that pass the filter, if more do. So a word that is common
    in its field is not rare only because the store holds other things as well.
    """

    ids: tuple[str, ...]
    own: Floats
    window: Floats
    thread: Floats
    cosine: Floats
    starts: Integers
    ends: Integers
    vectors: Vectors
    literals: Integers
    covered: Floats
    dated: Floats
    present: Flags
    by_words: Flags
    by_meaning: Flags
    by_literal: Flags
    traits: Traits
    sketch: Sketch | None
    frequencies: Mapping[str, int]
    memories: int
