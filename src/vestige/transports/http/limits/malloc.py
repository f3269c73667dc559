"""Limits the memory that glibc's malloc keeps for a process with many threads."""

import ctypes
import functools
import gc
import mmap
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ARENAS = 1
"""Number of malloc arenas that all threads share. Free memory at the end of a second one is not returned, and
threads that hold Python's lock to allocate do not wait for each other's."""
EVERY_SECONDS = 5.0
"""How often free memory is returned to the system; it takes some milliseconds."""
GROWN_BYTES = 64 << 20
"""Growth since the last full garbage collection after which there is another one."""
AGAIN = (3, 6, 10)
"""The turns after which more collections follow: the reactions to a large batch go on after its answer, and
use memory and caches again."""
_STATM = Path("/proc/self/statm")
_M_ARENA_MAX = -8  # as in glibc's malloc.h
_OURS = "vestige."


@contextmanager
def small_heap(every_seconds: float = EVERY_SECONDS) -> Iterator[None]:
    """Share one malloc arena among threads, and return free memory to the system while the block runs.

    glibc has up to eight arenas for each core, and threads that come and go use now one, now another. Each
    keeps room for the most it ever held, so a busy server grew by 16 MB in 10,000 requests although it held
    no more. Objects that refer to each other, such as an error and the frames it passed, are free only after
    a garbage collection. Python makes one when there are many new objects, however large they are. What the
    caches hold of the last texts and words lies between what is free, and keeps its pages: 45 MB after 16 MB
    of text.
    """
    share_arenas()
    trim = _found("malloc_trim")
    if trim is None:
        yield
        return
    ended = threading.Event()
    at_start = _resident_bytes()

    def release() -> None:
        lowest, turns = at_start, AGAIN[-1]
        while not ended.wait(every_seconds):
            trim(0)
            grown = _resident_bytes() > lowest + GROWN_BYTES
            turns = 0 if grown else turns + 1
            if grown or turns in AGAIN:
                clear_caches()
                gc.collect()
                trim(0)
                lowest = _resident_bytes()
            lowest = min(lowest, _resident_bytes())

    thread = threading.Thread(target=release, name="vestige-heap", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def clear_caches() -> None:
    """Empty the bounded caches of our functions; each is filled again by its next calls. A cache without a
    bound holds a few constants."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(_OURS)]
    for one in (value for module in modules for value in list(vars(module).values())):
        if isinstance(one, functools._lru_cache_wrapper) and one.cache_info().maxsize is not None:
            one.cache_clear()


def share_arenas() -> bool:
    """Share one malloc arena among threads; returns whether the C library supports it. A thread that has
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
