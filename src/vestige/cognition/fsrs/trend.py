"""The trend of the average retention, from the snapshots of consolidations."""

import enum
from collections.abc import Sequence

import numpy as np

SNAPSHOTS = 5  # The number of latest snapshots that count …
LEAST_SNAPSHOTS = 3  # … and the least number for a trend.
NEWEST = 2  # The number of newest snapshots that are compared with the others.
STEADY = 0.02  # A smaller change of the average counts as steady.


class Trend(enum.StrEnum):
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
