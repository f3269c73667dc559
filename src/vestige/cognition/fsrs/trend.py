"""Whether the memory as a whole gets better or worse, from the snapshots that consolidations take."""

import enum
from collections.abc import Sequence

import numpy as np

SNAPSHOTS = 5
"""The last so many count …"""
LEAST_SNAPSHOTS = 3
"""… and fewer than this tell nothing."""
NEWEST = 2
"""So many of them are compared with the others."""
STEADY = 0.02
"""A smaller change of the average is none."""


class Trend(enum.StrEnum):
    """Where the average retention is going."""

    IMPROVING = "improving"
    DECLINING = "declining"
    STABLE = "stable"
    UNKNOWN = "insufficient_data"


def trend(averages: Sequence[float]) -> Trend:
    """The trend of average retentions, the newest first."""
    known = averages[:SNAPSHOTS]
    if len(known) < LEAST_SNAPSHOTS:
        return Trend.UNKNOWN
    change = float(np.mean(known[:NEWEST]) - np.mean(known[NEWEST:]))
    if abs(change) <= STEADY:
        return Trend.STABLE
    return Trend.IMPROVING if change > 0 else Trend.DECLINING
