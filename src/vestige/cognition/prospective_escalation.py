"""How urgent an intention is: its priority, and how a deadline raises it."""

import enum
from datetime import datetime, timedelta

NEAR = timedelta(hours=24)
CLOSE = timedelta(hours=1)


class Priority(enum.IntEnum):
    """How much an intention matters."""

    LOW = 1
    NORMAL = 2
    HIGH = 3
    CRITICAL = 4


def in_force(priority: Priority, deadline: datetime | None, now: datetime) -> Priority:
    """The priority now: one level up within a day of the deadline, two within an hour, critical after it."""
    if deadline is None or deadline - now > NEAR:
        return priority
    if deadline <= now:
        return Priority.CRITICAL
    raised = priority + (2 if deadline - now <= CLOSE else 1)
    return Priority(min(raised, Priority.CRITICAL))
