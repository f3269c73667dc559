"""Throttling of long work: after each piece it rests as long as the piece took.

Threads of one process share an interpreter, and writers share a lock. Work that pauses leaves both to others,
such as a search during a dream.
"""

import threading
from collections.abc import Callable
from dataclasses import replace

from vestige.engine.context import Call

MOST_SECONDS = 0.25
"""The longest rest: a slow machine must not make the work endless."""


class Throttle:
    """A cancellation check that rests first, and runs periodic duties."""

    def __init__(
        self,
        cancelled: Callable[[], bool],
        monotonic: Callable[[], float],
        rest: Callable[[float], object],
        duties: tuple[Callable[[], None], ...] = (),
    ) -> None:
        self._cancelled = cancelled
        self._monotonic = monotonic
        self._rest = rest
        self._duties = duties
        self._since = monotonic()

    def __call__(self) -> bool:
        """Rest, run the duties, and say whether the caller has cancelled."""
        worked = self._monotonic() - self._since
        if worked > 0:
            self._rest(min(worked, MOST_SECONDS))
        for due in self._duties:
            due()
        self._since = self._monotonic()
        return self._cancelled()

    def doing(self, due: Callable[[], None]) -> "Throttle":
        """The same throttle with one more duty."""
        return Throttle(self._cancelled, self._monotonic, self._rest, (*self._duties, due))


def throttled(call: Call, due: Callable[[], None]) -> Call:
    """The same call, which rests at every `Call.check`, and runs `due` then.

    Work inside throttled work does not rest twice.
    """
    pace = call.cancelled
    if not isinstance(pace, Throttle):
        rest = threading.Event().wait  # never set
        pace = Throttle(call.cancelled, call.engine.monotonic, rest)
    return replace(call, cancelled=pace.doing(due))
