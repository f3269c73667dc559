"""Limits the memory that glibc's malloc keeps for a process with many threads."""

import ctypes
import gc
import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ARENAS = 2
"""Number of malloc arenas that all threads share."""
EVERY_SECONDS = 5.0
"""How often free memory is returned to the system; it takes some milliseconds."""
GROWN_BYTES = 64 << 20
"""Growth since the last full garbage collection after which there is another one."""
AGAIN = 6
"""The turns after which a second collection follows, for what was still in use during the first."""
_STATM = Path("/proc/self/statm")
_M_ARENA_MAX = -8  # as in glibc's malloc.h


@contextmanager
def small_heap(every_seconds: float = EVERY_SECONDS) -> Iterator[None]:
    """Share a few malloc arenas among threads, and return free memory to the system while the block runs.

    glibc has up to eight arenas for each core, and threads that come and go use now one, now another. Each
    keeps room for the most it ever held, so a busy server grew by 16 MB in 10,000 requests although it held
    no more. Objects that refer to each other, such as an error and the frames it passed, are free only after
    a garbage collection. Python makes one when there are many new objects, however large they are.
    """
    share_arenas()
    trim = _found("malloc_trim")
    if trim is None:
        yield
        return
    ended = threading.Event()
    at_start = _resident_bytes()

    def release() -> None:
        lowest, until_again = at_start, 0
        while not ended.wait(every_seconds):
            trim(0)
            grown = _resident_bytes() > lowest + GROWN_BYTES
            if grown or until_again == 1:
                gc.collect()
                trim(0)
                lowest = _resident_bytes()
            until_again = AGAIN if grown else max(0, until_again - 1)
            lowest = min(lowest, _resident_bytes())

    thread = threading.Thread(target=release, name="vestige-heap", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def share_arenas() -> bool:
    """Share a few malloc arenas among threads; returns whether the C library supports it. A thread that has
    an arena of its own keeps it."""
    mallopt = _found("mallopt")
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, ARENAS))


def _resident_bytes() -> int:
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * mmap.PAGESIZE
    except (OSError, ValueError, IndexError):  # without /proc, growth is not known
        return 0


def _found(name: str) -> Callable[..., int] | None:
    """A function of glibc; None with other C libraries."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None
