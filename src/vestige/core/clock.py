"""Time, sleep, ids and randomness as one value; ids (UUIDv7); and the hybrid logical clock of events.

app.py creates the `Clock` of the machine; tests pass their own.
"""

import random
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from vestige.core.errors import InvalidInput
from vestige.core.lazy_dataclass import dataclass
from vestige.core.models import utc


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Sources of values that differ on each call."""

    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    new_id: Callable[[], str]
    rng: random.Random


# -- Ids: UUID version 7, in order of creation even within a millisecond

UUID_COUNTER_BITS = 18
UUID_RANDOM_BITS = 56


class Uuid7:
    """Generates ids that sort in order of creation, from a given clock and randomness.

    RFC 9562 §6.2, method 1: a counter follows the milliseconds. It is seeded at random in every new
    millisecond and incremented within one; if the clock runs backwards, counting continues.
    """

    def __init__(self, now: Callable[[], datetime], rng: random.Random) -> None:
        self._now = now
        self._rng = rng
        self._lock = threading.Lock()
        self._milliseconds = 0
        self._counter = 0

    def __call__(self) -> str:
        with self._lock:
            milliseconds = int(self._now().timestamp() * 1000)
            if milliseconds > self._milliseconds:
                self._milliseconds = milliseconds
                # The top bit is left free, so that the counter has room.
                self._counter = self._rng.getrandbits(UUID_COUNTER_BITS - 1)
            else:
                self._counter += 1
                if self._counter >> UUID_COUNTER_BITS:
                    self._milliseconds += 1
                    self._counter = 0
            high, low = self._counter >> 6, self._counter & 0x3F
            value = (self._milliseconds & (1 << 48) - 1) << 80 | 0x7 << 76 | high << 64
            return str(UUID(int=value | 0b10 << 62 | low << 56 | self._rng.getrandbits(UUID_RANDOM_BITS)))


# -- The hybrid logical clock (Kulkarni et al. 2014): milliseconds, and a count that keeps them apart

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
HLC_COUNTER_BITS = 16
LAST_MILLISECOND = 2**46 - 1
"""In the year 4199. Beyond it the clock only counts on, so that it never leaves 64 bits."""
LAST_READING = 2**63 - 2**40  # No reading from elsewhere may be above it: there must be room to count on.
MOST_AHEAD = timedelta(days=1)
"""How far the clock of another store may be ahead of ours. A reading spreads to every store that sees it, and
all that is written there later gets a higher one."""


def tick(previous: int, at: datetime) -> int:
    """The reading after `previous` for an event at a time; readings never go back."""
    millisecond = min((utc(at) - EPOCH) // MILLISECOND, LAST_MILLISECOND)
    return max(previous + 1, millisecond << HLC_COUNTER_BITS)


def highest_reading(now: datetime) -> int:
    """The highest reading that an honest store can have given by now."""
    return ((utc(now) + MOST_AHEAD - EPOCH) // MILLISECOND + 1 << HLC_COUNTER_BITS) - 1


def time_of(reading: int) -> datetime:
    """The time of a reading; of one beyond the calendar, the last time."""
    return EPOCH + min(reading >> HLC_COUNTER_BITS, LAST_MILLISECOND) * MILLISECOND


def check_reading(reading: int, now: datetime) -> None:
    """Refuse a reading of a clock that is ahead of ours by more than MOST_AHEAD."""
    if reading > highest_reading(now):
        raise InvalidInput(
            f"its clock is at {time_of(reading):%Y-%m-%d}, more than a day ahead of {utc(now):%Y-%m-%d}",
            hint="Set the clock of the machine that wrote it, and run `vestige doctor --repair` there.",
            details={"clock": reading},
        )
