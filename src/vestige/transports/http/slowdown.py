"""Slows down whoever tries out credentials.

A key of ours has 176 random bits: nobody finds one by trying, so one that has the form of a key is always
looked up, and others' failures at the same address keep nobody out. The deprecated token may be short, so
texts of any other form are not even compared while an address is locked.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

FREE_FAILURES = 5
FIRST_DELAY_SECONDS = 0.1
MAX_DELAY_SECONDS = 2.0
LOCK_FAILURES = 15
"""After so many there are no answers for a while."""
LOCK_SECONDS = 30.0
FORGET_SECONDS = 300.0
"""After so long without a failure, all is forgotten."""
MAX_SENDERS = 10_000
"""Senders who are remembered; the one not seen for longest is forgotten first."""


@dataclass(slots=True)
class _Sender:
    failures: int = 0
    last: float = 0.0
    locked_until: float = 0.0


class Slowdown:
    """What failures cost, by sender. Used by the event loop alone."""

    def __init__(self, monotonic: Callable[[], float], *, max_senders: int = MAX_SENDERS) -> None:
        self._monotonic, self._max = monotonic, max_senders
        self._senders: OrderedDict[str, _Sender] = OrderedDict()

    def locked(self, sender: str) -> float:
        """For how many seconds a sender gets no answers; 0 if he does."""
        known = self._senders.get(sender)
        return max(0.0, known.locked_until - self._monotonic()) if known else 0.0

    def failed(self, sender: str) -> float:
        """Note a failure; how many seconds to wait before it is answered."""
        now = self._monotonic()
        known = self._senders.setdefault(sender, _Sender())
        self._senders.move_to_end(sender)
        while len(self._senders) > self._max:
            self._senders.popitem(last=False)
        if now - known.last > FORGET_SECONDS:
            known.failures = 0
        known.failures, known.last = known.failures + 1, now
        if known.failures >= LOCK_FAILURES:
            # A lock that ends leaves a few tries, each at the full price, before the next one.
            known.failures, known.locked_until = LOCK_FAILURES - FREE_FAILURES, now + LOCK_SECONDS
        beyond = known.failures - FREE_FAILURES
        return min(MAX_DELAY_SECONDS, FIRST_DELAY_SECONDS * 2 ** (beyond - 1)) if beyond > 0 else 0.0
