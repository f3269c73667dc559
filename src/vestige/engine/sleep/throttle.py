"""Long work that gives way: after each piece of it, it rests as long as the piece took.

Threads of one process share an interpreter, and writers a lock. Work that pauses leaves both to whoever is
waiting: a search in the middle of a dream, or the trace it leaves.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

from vestige.engine.context import Call

MOST_SECONDS = 0.25
"""The longest rest: a machine that is slow for other reasons must not make it endless."""


class Throttle:
    """Says whether the caller has gone; it rests first, and does what must be done now and then."""

    def __init__(
        self,
        cancelled: Callable[[], bool],
        monotonic: Callable[[], float],
        rest: Callable[[float], object],
        meanwhile: tuple[Callable[[], None], ...] = (),
    ) -> None:
        self._cancelled = cancelled
        self._monotonic = monotonic
        self._rest = rest
        self._meanwhile = meanwhile
        self._since = monotonic()

    def __call__(self) -> bool:
        """Rest, do what is due, then tell."""
        worked = self._monotonic() - self._since
        if worked > 0:
            self._rest(min(worked, MOST_SECONDS))
        for due in self._meanwhile:
            due()
        self._since = self._monotonic()
        return self._cancelled()

    def doing(self, due: Callable[[], None]) -> "Throttle":
        """The same pace, at which one more thing is done."""
        return Throttle(self._cancelled, self._monotonic, self._rest, (*self._meanwhile, due))


def throttled(call: Call, due: Callable[[], None]) -> Call:
    """The same call, which gives way whenever it is asked whether to go on (`Call.check`), and does `due`.

    Work inside of paced work rests no longer than that.
    """
    pace = call.cancelled
    if not isinstance(pace, Throttle):
        rest = threading.Event().wait  # nobody sets it
        pace = Throttle(call.cancelled, call.engine.monotonic, rest)
    return replace(call, cancelled=pace.doing(due))
