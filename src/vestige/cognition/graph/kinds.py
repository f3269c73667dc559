"""The kinds of links between memories: whether activation spreads over each, and whether it fades.

A learned link fades when nothing uses it, and is pruned when it is weak (synaptic pruning; Tononi & Cirelli
2006). Links that a user made, and links that record a memory's past, stay.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from vestige.core.candidates import Floats
from vestige.core.lazy_dataclass import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


SEMANTIC, CO_ACCESS, TEMPORAL = "semantic", "co_access", "temporal"
SHARED_CONCEPTS, COMPLEMENTARY = "shared_concepts", "complementary"
CONTRADICTS, SUPERSEDES, MERGES = "contradicts", "supersedes", "merges"

REINFORCEMENT = 0.05
"""What a learned link gains by use: when a memory at its end is promoted, or both are replayed in a dream."""

HALF_LIFE_DAYS = 180.0  # The half-life of a learned link.
FADE_EVERY_DAYS = 30.0  # The step of fading: every step is a log entry.
PRUNE_BELOW = 0.05  # The weight below which a learned link is pruned.


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkKind:
    """The properties of a kind of link: whether activation spreads over it, whether it fades with time."""

    spreads: bool = True
    fades: bool = False


KINDS: Mapping[str, LinkKind] = {
    # Learned: by comparing texts, by being recalled together, in dreams.
    SEMANTIC: LinkKind(fades=True),
    TEMPORAL: LinkKind(fades=True),
    CO_ACCESS: LinkKind(fades=True),
    SHARED_CONCEPTS: LinkKind(fades=True),
    COMPLEMENTARY: LinkKind(fades=True),
    # Made by a user.
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
"""Links that record a memory's past. Undo and deletion follow them, so they are never pruned."""


def reinforced(weight: float) -> float:
    """The weight of a link after one more use; a full one stays full."""
    return min(1.0, max(0.0, weight) + REINFORCEMENT)


def fading_days(age_days: "ArrayLike", faded_days: "ArrayLike") -> Floats:
    """The days each link has to fade now: the whole steps of its age, less those that had passed when links
    last faded (at an age of `faded_days`; below 0 it did not exist)."""
    steps = np.floor(np.maximum(np.asarray(age_days, dtype=np.float64), 0.0) / FADE_EVERY_DAYS)
    done = np.floor(np.maximum(np.asarray(faded_days, dtype=np.float64), 0.0) / FADE_EVERY_DAYS)
    due: Floats = FADE_EVERY_DAYS * np.maximum(steps - done, 0.0)
    return due


def faded(weights: "ArrayLike", elapsed_days: "ArrayLike") -> Floats:
    """The weight of learned links after these days without use."""
    kept = np.exp2(-np.asarray(elapsed_days, dtype=np.float64) / HALF_LIFE_DAYS)
    return np.asarray(weights, dtype=np.float64) * kept
