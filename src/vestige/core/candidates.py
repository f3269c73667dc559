"""The candidates of a search as a store hands them out: parallel arrays, one entry per memory.

A pool is one snapshot of the store. Nothing in it is ranked: that is done by pure functions
(cognition/ranking.py), so that every store ranks alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
Bits = NDArray[np.uint8]
Vectors = NDArray[np.float32]

NEARBY = 1_000
"""So many memories make a neighbourhood in which words are counted."""

MOST_TOKENS = 300_000
LONGEST_TOKENS = 2_048
LEAST_TOKENS = 64
"""A sketch holds so many tokens in all and of one memory, its first ones. Where owners have more together,
each keeps fewer, but so many at least: comparing words must not take longer the longer the texts are."""

OFFSETS = (0, -1, 1, -2, 2)
"""Where the neighbours of a memory stand that `Sketch.around` names: itself, the one before, …"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalScores:
    """A memory with its BM25: of its own terms, with its neighbours', and of its thread as a whole.

    Outside any thread `window` is `own` and `thread` is 0.
    """

    memory_id: str
    own: float
    window: float
    thread: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TermStatistics:
    """How common the terms of a query are in a store: in how many of its `memories`, which have so many
    `words` in all, each one is. Terms that a search leaves out as too common are left out here too."""

    frequencies: Mapping[str, int]
    memories: int
    words: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Voices:
    """Who speaks in the talks of a store, of those asked for, and whether it also holds notes."""

    speakers: frozenset[int]
    notes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """What the stages need to know about each candidate; times are seconds since 1970.

    `happened` is NaN where it was not told. `thread` is a number that members of one thread share (-1
    outside any). `form`, `first_person`, `asks`, `timed` and `speaker` come from `cognition.form`.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """The token bits of candidates and of their neighbours.

    Owner o has the tokens `starts[o]` to `starts[o] + lengths[o]` of `bits` (one sign bit per dimension,
    packed) and `asked` (the token stands in a question). `around[i]` are the owners at `OFFSETS` of
    candidate i, -1 where there is none or it has no tokens. Of long texts it holds the
    beginning (`tokens_kept`).
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
    """The candidates of all arms, in the order of their ids.

    `own`, `window`, `thread` are BM25 (0 where no term matches), `cosine` is of the best piece, which is
    the characters `starts`..`ends` and has the row in `vectors` (NaN and 0 without vectors; rows of no
    length when the probe has none), `literals` how many of the literals it holds; all of them for every
    candidate, whichever arm found it. `by_words`, `by_meaning`, `by_literal` say which did. `covered` is
    the share of the query that a candidate's window holds: the weight of the distinct terms in it over that
    of all (`cognition.rarity`). `dated` is its window's BM25 for the probe's date terms alone. `present`
    says that somebody the probe names speaks in its thread. `sketch` is None when the probe has no vector
    or nothing has token bits.

    `frequencies` is the number of memories with each distinct term that counts, among so many `memories`:
    those of the store, or the NEARBY that are nearest to the query and pass the filter, where more than
    that do. A word that is common in its field is not rare only because the store holds other things as
    well.
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
