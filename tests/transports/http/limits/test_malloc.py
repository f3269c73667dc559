"""What the C library keeps, seen in processes of their own: whatever runs in this one has used its heap."""

import subprocess
import sys

import pytest

from testbed.patience import PATIENCE_SECONDS
from vestige.transports.http.limits.malloc import ARENAS, share_arenas

COUNT = """
import ctypes, os, sys, tempfile, threading
from vestige.transports.http.limits.malloc import share_arenas
if sys.argv[1] == "shared":
    assert share_arenas()
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
libc.fopen.restype = ctypes.c_void_p
together = threading.Barrier(8)
def allocate():
    together.wait()
    libc.malloc(ctypes.c_size_t(10_000))
    together.wait()
threads = [threading.Thread(target=allocate) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
with tempfile.NamedTemporaryFile() as told:
    file = ctypes.c_void_p(libc.fopen(told.name.encode(), b"w"))
    libc.malloc_info(0, file)
    libc.fclose(file)
    print(told.read().count(b"<heap nr="))
"""
GIVE_BACK = """
import ctypes
from pathlib import Path
from threading import Event
from vestige.transports.http.limits.malloc import small_heap
libc = ctypes.CDLL(None)
libc.malloc.restype = ctypes.c_void_p
def held():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon:"))
blocks = [ctypes.c_void_p(libc.malloc(ctypes.c_size_t(4096))) for _ in range(10_000)]
for block in blocks:
    libc.memset(block, 1, 4096)
full = held()
for number, block in enumerate(blocks):
    if number % 100:
        libc.free(block)
print(full - held())
with small_heap(0.01):
    while full - held() < 30_000:
        Event().wait(0.01)
print(full - held())
"""
COLLECT = """
import gc
from pathlib import Path
from threading import Event
from vestige.transports.http.limits.malloc import GROWN_BYTES, small_heap
def held(field="VmRSS:"):
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field))
class Frame:
    pass
gc.disable()
start = held()
with small_heap(0.01):
    for _ in range(2):
        frame = Frame()
        frame.body, frame.error = b"x" * GROWN_BYTES, frame
    del frame
    print((held("VmHWM:") - start) // 1024)
    while held() - start > 10_000:
        Event().wait(0.01)
print((held() - start) // 1024)
"""
CACHES = """
from functools import lru_cache
from threading import Event
from vestige.cognition.english.words import all_words_of
from vestige.transports.http.limits.malloc import GROWN_BYTES, small_heap
foreign = lru_cache(maxsize=8)(len)  # of another program
foreign("text")
all_words_of("The office moved to the third floor.")
print(all_words_of.cache_info().currsize)
with small_heap(0.01):
    grown = b"x" * (2 * GROWN_BYTES)
    while all_words_of.cache_info().currsize:
        Event().wait(0.01)
print(foreign.cache_info().currsize)
"""
glibc = pytest.mark.skipif(
    sys.platform != "linux" or not share_arenas(), reason="this C library has heaps of another kind"
)


def said(script: str, *arguments: str) -> list[int]:
    """The numbers that a process prints."""
    command = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    return [int(line) for line in done.stdout.splitlines()]


@glibc
def test_threads_share_a_few_heaps_where_the_c_library_would_give_each_its_own() -> None:
    (own,) = said(COUNT, "own")
    (shared,) = said(COUNT, "shared")
    assert shared <= ARENAS < own


@glibc
def test_what_is_free_between_things_in_use_is_given_back_from_time_to_time() -> None:
    kib_by_itself, kib = said(GIVE_BACK)
    assert kib_by_itself < 5_000
    assert kib >= 30_000


@glibc
def test_a_process_that_has_grown_collects_what_refers_to_itself() -> None:
    megabytes, later = said(COLLECT)
    assert megabytes >= 64
    assert later < 10


@glibc
def test_a_process_that_has_grown_empties_its_own_caches_of_texts() -> None:
    before, foreign = said(CACHES)
    assert before == 1
    assert foreign == 1
