"""Shares with their 95 % interval (Wilson)."""

import math
from collections.abc import Sequence

Z = 1.96


def share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def interval(hits: Sequence[bool]) -> tuple[float, float]:
    """The Wilson interval of a share; (0, 1) of nothing."""
    n = len(hits)
    if not n:
        return 0.0, 1.0
    p = sum(hits) / n
    middle = (p + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def in_words(hits: Sequence[bool]) -> str:
    """ "12 of 20 (.60, .39–.78)"."""
    if not hits:
        return "–"
    low, high = interval(hits)
    return f"{sum(hits)} of {len(hits)} ({sum(hits) / len(hits):.2f}, {low:.2f}–{high:.2f})"
