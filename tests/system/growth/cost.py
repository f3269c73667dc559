"""The growth of a function's time with the length of its input, measured so that a busy machine does not
matter: processor time of this thread, the least of several runs, and nothing below a floor counts."""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from tests.system.growth.functions import forget

DOUBLINGS = 2
MOST_GROWTH = 2.3  # The limit per doubling of the input; 2 is linear.
FLOOR_SECONDS = 0.003  # What takes less at the full length is fast enough, whatever its growth.
PATIENCE_SECONDS = 0.5  # More than this for a few thousand characters is a failure in itself.
ATTEMPTS = 3
RUNS = 3


class TookTooLong(Exception):
    """A call used more processor time than any text of this length may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Growth:
    """The seconds at n, 2n and 4n; `endless` if the last was stopped."""

    seconds: tuple[float, ...]
    endless: bool = False

    @property
    def per_doubling(self) -> float:
        return float((self.seconds[-1] / max(self.seconds[0], 1e-6)) ** (1 / DOUBLINGS))


def growth(
    call: Callable[[str], object], text_of: Callable[[int], str], least: int, most: int
) -> Growth | None:
    """The growth of a call that is more than linear, or None. The text grows until the call takes the floor
    or it has the greatest length: a small quadratic term shows in a long text only. A measurement that says
    superlinear is repeated with longer texts: a disturbance does not last, nor the end of a processor cache,
    but a quadratic term does."""
    size = least
    while (seconds := seconds_of(call, text_of(size))) < FLOOR_SECONDS:
        if size >= most:
            return None
        size = min(4 * size, most)
    if seconds >= PATIENCE_SECONDS:
        return Growth(seconds=(seconds,), endless=True)
    found = None
    for attempt in range(ATTEMPTS):
        parts = (size << attempt >> doubling for doubling in range(DOUBLINGS, -1, -1))
        texts = [text_of(part) for part in parts]
        found, linear = (
            Growth(seconds=tuple(min(_runs(one, text)) for text in texts)) for one in (call, _copied)
        )
        # On a busy machine long texts take longer for everybody.
        if found.per_doubling <= MOST_GROWTH * max(1.0, linear.per_doubling / 2):
            return None
    return found


def _copied(text: str) -> str:
    """Work that is linear in a text and needs much memory for each character."""
    return "".join([character for character in text if character != "\0"])


def _runs(call: Callable[[str], object], text: str) -> Iterator[float]:
    for _ in range(RUNS):
        yield seconds_of(call, text)


def seconds_of(call: Callable[[str], object], text: str) -> float:
    """The processor time of one call, nothing cached; stopped, it took all that is granted."""
    forget()
    started = time.thread_time()
    try:
        with _stopped():
            call(text)
    except TookTooLong:
        return PATIENCE_SECONDS
    return time.thread_time() - started


@contextmanager
def _stopped() -> Iterator[None]:
    """Stops a call after its time; a pattern that runs looks for signals too."""

    def stop(_: int, __: FrameType | None) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, PATIENCE_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
