"""The kinds of links between memories: what each one means for activation and for time.

A link that was learned by itself fades when nothing uses it, and is cut when next to nothing is left of it
(synaptic pruning; Tononi & Cirelli 2006). What somebody said, and what tells of a memory's past, stays.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from vestige.core.candidates import Floats

SEMANTIC, CO_ACCESS, TEMPORAL = "semantic", "co_access", "temporal"
SHARED_CONCEPTS, COMPLEMENTARY = "shared_concepts", "complementary"
CONTRADICTS, SUPERSEDES, MERGES = "contradicts", "supersedes", "merges"

REINFORCEMENT = 0.05
"""What a learned link gains by use: when a memory at its end is promoted, or both are replayed in a dream."""

HALF_LIFE_DAYS = 180.0
"""After so long half of a learned link is left."""
FADE_EVERY_DAYS = 30.0
"""A link fades by a month at a time: every step is a line in the log."""
PRUNE_BELOW = 0.05
"""A learned link that is weaker than this is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKind:
    """What holds for every link of a kind: whether activation spreads over it, whether it fades with time."""

    spreads: bool = True
    fades: bool = False


KINDS: Mapping[str, LinkKind] = {
    # Learned: by comparing texts, by being recalled together, in dreams.
    SEMANTIC: LinkKind(fades=True),
    TEMPORAL: LinkKind(fades=True),
    CO_ACCESS: LinkKind(fades=True),
    SHARED_CONCEPTS: LinkKind(fades=True),
    COMPLEMENTARY: LinkKind(fades=True),
    # Said by somebody.
    "user_defined": LinkKind(),
    "causal": LinkKind(),
    "part_of": LinkKind(),
    "spatial": LinkKind(),
    CONTRADICTS: LinkKind(),
    # The past of a memory: what was replaced must not come back with its successor.
    SUPERSEDES: LinkKind(spreads=False),
    MERGES: LinkKind(spreads=False),
}

LEARNED = tuple(name for name, kind in KINDS.items() if kind.fades)
SILENT = frozenset(name for name, kind in KINDS.items() if not kind.spreads)
"""Links that tell of a memory's past. Undoing and deleting go by them, so nobody cuts them."""


def reinforced(weight: float) -> float:
    """The weight of a link that was used once more; a full one stays so."""
    return min(1.0, max(0.0, weight) + REINFORCEMENT)


def fading_days(age_days: ArrayLike, faded_days: ArrayLike) -> Floats:
    """For how many days each link has to fade now: the whole steps of its life that are over, less those that
    were over when links last faded (at an age of `faded_days`; below 0 it did not exist)."""
    steps = np.floor(np.maximum(np.asarray(age_days, dtype=np.float64), 0.0) / FADE_EVERY_DAYS)
    done = np.floor(np.maximum(np.asarray(faded_days, dtype=np.float64), 0.0) / FADE_EVERY_DAYS)
    due: Floats = FADE_EVERY_DAYS * np.maximum(steps - done, 0.0)
    return due


def faded(weights: ArrayLike, elapsed_days: ArrayLike) -> Floats:
    """What is left of learned links after so many days without use."""
    kept = np.exp2(-np.asarray(elapsed_days, dtype=np.float64) / HALF_LIFE_DAYS)
    return np.asarray(weights, dtype=np.float64) * kept
