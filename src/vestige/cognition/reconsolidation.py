"""Reconsolidation: a memory that was just recalled can be changed, and is stored anew with the change.

Recall makes a memory labile for a while, and what is learned in that time becomes part of it (Nader, Schafe &
LeDoux 2000). So an edit right after recall is a correction of what was recalled; at any other time it is
just another text.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

LABILE = timedelta(minutes=5)
"""So long after its recall a memory is labile."""
MOST = 10
"""Corrections that count within that time: editing again and again is no practice."""


def is_labile(recalled: Iterable[datetime], corrected: Iterable[datetime], now: datetime) -> bool:
    """Whether a memory that was recalled and corrected at these moments takes a correction now."""
    since = now - LABILE
    if not any(since <= at <= now for at in recalled):
        return False
    return sum(since <= at <= now for at in corrected) < MOST
