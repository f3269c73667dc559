"""Timers of the kernel that make a thread write its own stack to stderr, even if another one has the lock.

A thread that reads the stacks of others without the lock, as `faulthandler.dump_traceback_later` does, can
crash the process when they run meanwhile. A signal that the kernel sends to one thread stops that thread: its
stack does not change while it is written. Only Linux can send a timer's signal to a thread (ADR 0050).
"""

import ctypes
import faulthandler
import signal
import sys
import threading
from functools import cache

_CLOCK_MONOTONIC, _SIGEV_THREAD_ID = 1, 4  # as in Linux's time.h and signal.h


class _SignalEvent(ctypes.Structure):
    _fields_ = (
        ("value", ctypes.c_void_p),
        ("signal", ctypes.c_int),
        ("notify", ctypes.c_int),
        ("thread", ctypes.c_int),
        ("padding", ctypes.c_byte * 44),
    )


class _TimerSetting(ctypes.Structure):
    _fields_ = tuple(
        (name, ctypes.c_long) for name in ("again_seconds", "again_nanoseconds", "seconds", "nanoseconds")
    )


class StackTimer:
    """A timer of the thread that makes it."""

    def __init__(self) -> None:
        self._timer = ctypes.c_void_p()
        event = _SignalEvent(
            signal=signal.SIGRTMAX, notify=_SIGEV_THREAD_ID, thread=threading.get_native_id()
        )
        failed = _libc().timer_create(_CLOCK_MONOTONIC, ctypes.byref(event), ctypes.byref(self._timer))
        self._made = not failed

    def start(self, seconds: float) -> None:
        """Write the stack once when these seconds have passed; this replaces an earlier time."""
        if self._made:
            whole = int(seconds)
            setting = _TimerSetting(seconds=whole, nanoseconds=int((seconds - whole) * 1e9))
            _libc().timer_settime(self._timer, 0, ctypes.byref(setting), None)

    def end(self) -> None:
        if self._made:
            self._made = False
            _libc().timer_delete(self._timer)


@cache
def prepare() -> bool:
    """Whether this process can write the stack of a thread; it can from then on, to its present stderr.

    The handler stays: the signal of a timer that has just expired would end the process without it.
    """
    if sys.platform != "linux" or not hasattr(_libc(), "timer_create"):
        return False
    try:
        faulthandler.register(signal.SIGRTMAX, file=sys.stderr, all_threads=False)
    except (AttributeError, ValueError, OSError):  # no stderr, or one without a file
        return False
    return True


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
