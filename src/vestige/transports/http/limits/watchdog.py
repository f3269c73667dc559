"""The watchdog: reports a frozen server, and calls that run on after their deadline.

Work that holds the interpreter lock stops every thread, the one that answers health checks too. The inputs of
all text work are bounded so that this does not happen; if it does, the log says where. A timer of the kernel
makes the threads of the event loop and of the running calls write their stacks to stderr while the server is
frozen, and the next line of the log says which calls were running, with the size of their arguments.
"""

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress

from vestige.core.caller import Invocation
from vestige.core.lazy_dataclass import dataclass
from vestige.transports.http.limits.stack_timer import StackTimer, prepare

logger = logging.getLogger(__name__)

BEAT_SECONDS = 1.0
FROZEN_SECONDS = 3.0
"""How long the event loop may stand still, and how long a call may run after its deadline."""
MOST_NAMED = 5
"""The limit of calls that one line of the log names."""


@dataclass(slots=True, eq=False)
class RunningCall:
    """A call in a thread; `reported`: the log has it already."""

    invocation: Invocation
    thread: int
    since: float
    timer: StackTimer | None = None
    reported: bool = False

    def described(self, now: float) -> str:
        size = text_size(self.invocation.arguments)
        return f"{self.invocation.name} with {size} characters for {now - self.since:.1f} s"


def text_size(value: object) -> int:
    """The number of characters of all texts in arguments."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(map(text_size, value.values()))
    return sum(map(text_size, value)) if isinstance(value, Sequence) else 0


class Watchdog:
    """Watches the event loop and the calls in its threads."""

    def __init__(self, monotonic: Callable[[], float], seconds: float = FROZEN_SECONDS) -> None:
        self._monotonic, self._seconds = monotonic, seconds
        self._calls: dict[int, RunningCall] = {}
        self._beaten = monotonic()
        self._timer: StackTimer | None = None

    @contextmanager
    def watching(self, invocation: Invocation) -> Iterator[None]:
        """Watch a call in the current thread."""
        call = RunningCall(invocation, threading.get_ident(), self._monotonic())
        if self._timer is not None:
            call.timer = StackTimer()
            call.timer.start(self._seconds)
        self._calls[id(call)] = call
        try:
            yield
        finally:
            del self._calls[id(call)]
            if call.timer is not None:
                call.timer.end()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Watch the event loop of the current task."""
        self._timer = StackTimer() if prepare() else None
        beats = asyncio.create_task(self._beat_on())
        try:
            yield
        finally:
            beats.cancel()
            with suppress(asyncio.CancelledError):
                await beats
            if self._timer is not None:
                self._timer.end()
                self._timer = None

    async def _beat_on(self) -> None:
        self._beaten = self._monotonic()
        while True:
            self.beat()
            for timer in (self._timer, *(call.timer for call in list(self._calls.values()))):
                if timer is not None:
                    timer.start(self._seconds)
            await asyncio.sleep(min(BEAT_SECONDS, self._seconds / 3))

    def beat(self) -> None:
        """Report how long the event loop stood still, and calls that run on after their deadline."""
        now = self._monotonic()
        frozen, self._beaten = now - self._beaten, now
        calls = list(self._calls.values())
        if frozen >= self._seconds:
            named = ", ".join(call.described(now) for call in calls[:MOST_NAMED])
            logger.warning("The server stood still for %.1f s; running: %s", frozen, named or "no call")
        for call in calls:
            deadline = call.invocation.deadline
            if deadline is not None and now >= deadline + self._seconds and not call.reported:
                call.reported = True
                logger.warning(
                    "A call runs on after its deadline: %s\n%s", call.described(now), _stack_of(call.thread)
                )


def _stack_of(thread: int) -> str:
    frame = sys._current_frames().get(thread)
    return "" if frame is None else "".join(traceback.format_stack(frame)).rstrip()
