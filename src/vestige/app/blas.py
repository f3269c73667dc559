"""The threads of numpy's matrix library while Vestige computes inside another program.

Our matrices are small: worker threads of BLAS spin while they wait for each other, and on a busy machine a
search costs six times the CPU. Our own programs start with one thread; a library must not decide that for its
program. So the number is lowered while an operation runs, and then it is again what the program had.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class MatrixLibrary(Protocol):
    """A loaded BLAS, as `threadpoolctl` has it."""

    def get_num_threads(self) -> int: ...
    def set_num_threads(self, num_threads: int) -> None: ...


class BlasThreads:
    """The number of threads is one for the process, so that calls on several threads share the limit: the
    first one sets it and the last one restores it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls = 0
        self._libraries: list[MatrixLibrary] | None = None
        self._before: list[int] = []

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        with self._lock:
            self._calls += 1
            if self._calls == 1:
                self._lower()
        try:
            yield
        finally:
            with self._lock:
                self._calls -= 1
                if self._calls == 0:
                    self._restore()

    def _lower(self) -> None:
        if self._libraries is None:
            self._libraries = _matrix_libraries()
        self._before = [library.get_num_threads() for library in self._libraries]
        for library in self._libraries:
            library.set_num_threads(1)

    def _restore(self) -> None:
        for library, threads in zip(self._libraries or (), self._before, strict=True):
            library.set_num_threads(threads)


def _matrix_libraries() -> list[MatrixLibrary]:
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


BLAS = BlasThreads()
"""The one of this process, because there is one BLAS."""
