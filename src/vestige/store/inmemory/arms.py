"""The search arms of an in-memory store: every question scans everything."""

from abc import abstractmethod
from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from vestige.cognition.form import Form, features
from vestige.embed.protocol import Signature
from vestige.models import (
    EVERYTHING,
    Access,
    Filter,
)
from vestige.pool import Pool, Voices, Worded
from vestige.store.answers import Scored
from vestige.store.inmemory import lexical, search
from vestige.store.inmemory.gather import gather
from vestige.store.inmemory.profiles import require_signature
from vestige.store.inmemory.state import State
from vestige.store.pool import POSTINGS_BUDGET, Probe, Reworded


class SearchArms:
    """What finds candidates. What each method promises is said in `MemoryStore`."""

    @property
    def software(self) -> dict[str, str]:
        """None: everything is found with what is here."""
        return {}

    @abstractmethod
    def _state(self) -> State:
        """What is in the store now; StoreError once it was closed."""

    def reworded(self, terms: Sequence[str], where: Filter, *, access: Access, limit: int) -> Reworded:
        """What passes the filter and was worded otherwise at `where.known_at`, as it was then."""
        state = self._state()
        return Reworded(
            records=tuple(search.reworded(state, where, access, limit)),
            statistics=lexical.statistics(state, terms, POSTINGS_BUDGET),
        )

    def lexical(
        self,
        terms: Sequence[str],
        where: Filter,
        *,
        access: Access,
        limit: int,
        postings: int | None = POSTINGS_BUDGET,
    ) -> list[Worded]:
        """The best memories by BM25 with their neighbours."""
        return lexical.lexical(self._state(), terms, where, access=access, limit=limit, postings=postings)

    def nearest(
        self,
        vectors: NDArray[np.float32],
        signature: Signature,
        where: Filter,
        *,
        access: Access,
        limit: int,
    ) -> list[list[Scored]]:
        """For each row of `vectors`, the memories whose best piece has the highest cosine."""
        return search.nearest(self._state(), vectors, signature, where, access=access, limit=limit)

    def vectors(
        self, memory_ids: Sequence[str], signature: Signature, *, access: Access
    ) -> dict[str, NDArray[np.float32]]:
        """The vectors of these memories, a row for each piece."""
        state = self._state()
        require_signature(state, signature)
        found = (state.reach(memory_id, access) for memory_id in memory_ids)
        return {
            held.memory.id: np.array([piece.vector for piece in held.pieces])
            for held in found
            if held is not None and held.pieces
        }

    def voices(self, names: Collection[int], *, access: Access) -> Voices:
        """Which of these names speak in a talk in reach, and whether any note is in reach."""
        told = [features(held.memory) for held in self._state().within(access)]
        if access != EVERYTHING:
            return Voices(speakers=frozenset(), notes=True)
        talking = {one.speaker for one in told if one.form is not Form.NOTE}
        return Voices(speakers=frozenset(names) & talking, notes=any(one.form is Form.NOTE for one in told))

    def gather(self, probe: Probe, *, access: Access) -> Pool:
        """The candidates of all arms with every signal."""
        search.at_least_none(probe.per_arm)
        return gather(self._state(), probe, access=access)
