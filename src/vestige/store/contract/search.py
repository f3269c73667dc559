"""The request of a search to a store, and answers besides the candidate pool."""

from collections.abc import Collection, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vestige.core.candidates import CandidatePool, LexicalScores, TermStatistics, Voices
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import ANYTHING, Access, Filter, Record
from vestige.embed.protocol import Signature
from vestige.store.contract.answers import Scored

POSTINGS_BUDGET = 60_000
"""The most occurrences of terms that one search visits, the rarest terms first. It bounds the cost of common
words in a large store."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The request of a search.

    `terms` are the analyser's (a repeated one counts as often, one ending in `*` is a prefix), `date_terms`
    those of them that are dates, `names` hashes of words that may be a speaker's (`form.name_hash`),
    `literals` texts that must occur verbatim, `vector` the query's in the space of `signature`. Each arm
    finds at most `per_arm` memories among those that pass `where`.
    """

    terms: tuple[str, ...] = ()
    date_terms: tuple[str, ...] = ()
    names: frozenset[int] = frozenset()
    literals: tuple[str, ...] = ()
    vector: NDArray[np.float32] | None = None
    signature: Signature | None = None
    where: Filter = ANYTHING
    per_arm: int
    least_cosine: float = -1.0
    postings: int | None = POSTINGS_BUDGET


@dataclass(frozen=True, slots=True, kw_only=True)
class Reworded:
    """Memories that had another searchable text at an earlier time, in that state, and the statistics by
    which the store would score the requested terms. Strength and `embedded` are the present ones."""

    records: tuple[Record, ...]
    statistics: TermStatistics


class StoreSearch(Protocol):
    """The search arms.

    They search present texts: with `known_at`, a memory with another `analyser.searchable` then is found by
    none of them, but by `reworded`.
    """

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        """Memories that pass the filter and had another text at `where.known_at` (none without it), in that
        state, the one revised last first, ties by id; with the statistics of `terms`, as `lexical` has them
        for single memories."""

    def lexical(
        self,
        terms: Sequence[str],
        where: Filter,
        *,
        access: Access,
        limit: int,
        postings: int | None = POSTINGS_BUDGET,
    ) -> list[LexicalScores]:
        """The best memories by BM25 with their neighbours (`window`), then `own`, then id.

        A memory's own terms are those of `cognition.text.analyser.memory_terms`. Its window adds those of
        the memory before and after it in its thread; a thread adds up its members. On each level the score is
        Σ idf·tf·(k1+1)/(tf + k1·(1 − b + b·len/avglen)) with k1 = 1.2, b = 0.75 and
        idf = max(1e-6, ln((N − df + .5)/(df + .5))); N, df and avglen are of all accessible memories at that
        level (memories; memories with their windows; threads), whatever the filter, so that a filter never
        changes a score, and that no score depends on a memory outside the access. A term counts as often as
        it is given; one ending in `*` matches as a prefix. No terms: no results. Of the distinct terms the
        first `bm25.MOST_COUNTED` count, and of the prefixes the `MOST_PREFIXES` longest; of those that occur,
        the `MOST_TERMS` rarest are looked up.

        With `postings` set, terms are taken from the rarest on (by df, then by term) while the number of
        their occurrences fits, the first one in any case, and the others are left out.

        Neighbours share a thread: the same scope, thread (where none is given, source, if there is a
        position), domains and validity window. Members are ordered by position (those without come last),
        then by created_at, then by arrival. Where the members of a thread have different sources, each
        source with at least two members on average is a thread of its own. A suppressed or archived memory
        is in no thread.
        """

    def nearest(
        self, vectors: NDArray[np.float32], signature: Signature, where: Filter, *, access: Access, limit: int
    ) -> list[list[Scored]]:
        """For each row of `vectors`, the memories whose best piece has the highest cosine, exactly.

        The filter is applied before the limit. A signature other than the store's is ModelMismatch;
        a store without vectors answers with empty lists.
        """

    def vectors(
        self, memory_ids: Sequence[str], signature: Signature, *, access: Access
    ) -> dict[str, NDArray[np.float32]]:
        """The vectors of these memories, a row for each piece in the order of the text; those without any are
        left out. A signature other than the store's is ModelMismatch."""

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        """Which of these names (`form.name_hash`) speak in an accessible conversation, and whether any note
        is accessible. The second may be wrong if all notes were deleted."""

    def gather(self, probe: Probe, *, access: Access) -> CandidatePool:
        """The candidates for a search: the union of what each arm finds, from one snapshot.

        The arms are `lexical` and `nearest` (above `least_cosine`), and the literals: memories whose
        `cognition.text.analyser.memory_terms` hold all `literals.literal_terms` of a literal and whose
        searchable text or one tag holds the literal itself, letter case and runs of white space aside, or
        whose id or source it is; those with more literals first, then by id. Where more than
        `literals.COMMON` memories that pass the filter have all its terms, or its source, those are not
        found by it. A store may bound how much text it reads for literals. A probe without a vector, or a
        store without vectors, has no dense arm; vectors of another signature are ModelMismatch.
        """
