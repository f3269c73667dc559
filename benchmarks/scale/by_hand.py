"""What a search needs from a database, asked for by hand: the same statements on a bare connection.

No arm is scored and nothing is cached: this is what the store's `gather` is held against. Which candidates
there are is known beforehand, from a search that is not timed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from vestige.core.models import Filter
from vestige.engine.recall.candidates import Mode

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]

PER_ARM = Mode.BALANCED.depth.per_arm
"""How many memories each arm of an ordinary search finds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """One search: its terms and vector, what it is limited to, its candidates, and with them the neighbours
    whose token bits it compares."""

    terms: Sequence[str]
    vector: Vectors
    where: Filter
    near: int
    candidates: Sequence[int]
    surrounded: Sequence[int]


class ByHand(Protocol):
    """The statements of one kind of database."""

    def keys(self) -> dict[str, int]:
        """The key of each memory, by id."""

    def fetch(self, wanted: Wanted) -> int:
        """Fetch everything; how many rows and postings there were."""

    def close(self) -> None:
        """Let go of the connection."""
