"""How long a test waits for what must come.

It only keeps a failing test from waiting for ever, so it is generous: on a busy machine a process may stand
still for many seconds. How long something may take is tested with numbers of its own.
"""

import threading
import time
from collections.abc import Callable

PATIENCE_SECONDS = 120.0


def until(true: Callable[[], bool]) -> None:
    """Wait for what another thread or process does soon."""
    latest, soon = time.monotonic() + PATIENCE_SECONDS, threading.Event()
    while not true():
        assert time.monotonic() < latest, "it did not happen"
        soon.wait(0.01)
