"""The hybrid logical clock (Kulkarni et al. 2014): milliseconds, and a count that keeps them apart.

A reading grows with every event and is never below one that was seen from elsewhere, so what is known when
something happens comes before it in the order that all stores share, whatever the wall clocks say.
"""

from datetime import UTC, datetime, timedelta

from vestige.core.models import utc

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
COUNTER_BITS = 16
LAST_MILLISECOND = 2**46 - 1
"""In the year 4199. Beyond it the clock only counts on, so that it never leaves 64 bits."""
LAST_READING = 2**63 - 2**40
"""No reading from elsewhere may be above it: there must be room to count on."""


def tick(previous: int, at: datetime) -> int:
    """The reading after `previous` for an event at a time; readings never go back."""
    millisecond = min((utc(at) - EPOCH) // MILLISECOND, LAST_MILLISECOND)
    return max(previous + 1, millisecond << COUNTER_BITS)
