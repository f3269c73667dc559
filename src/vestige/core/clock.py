"""Time, sleep, ids and randomness as one value. app.py creates the machine's own; tests pass theirs."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """Sources of values that differ on each call."""

    now: Callable[[], datetime]
    monotonic: Callable[[], float]
    sleep: Callable[[float], None]
    new_id: Callable[[], str]
    rng: random.Random
