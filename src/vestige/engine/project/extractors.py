"""Making the rows of many files in several processes: a first index of a large project uses all cores.

An extractor is this module as a program. It is started in the folder of the installed package, so that a
project cannot bring a package of the same name, reads batches of paths from its input and writes their rows
to its output. Where none can be started, or one ends, the work is done in this process.
"""

import logging
import os
import pickle
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue
from typing import BinaryIO

from vestige.engine.project.extraction import extracted
from vestige.engine.project.files.source_file import read_source
from vestige.store.contract.code_index import IndexedFile

logger = logging.getLogger(__name__)

LEAST_FILES = 500
"""Fewer files take less time than starting processes does."""
MOST_PROCESSES = 3
"""Each needs some 120 MB."""
AHEAD = 1
"""How many batches are done before they are asked for, beside those in work."""
END_SECONDS = 10.0

Rows = list[IndexedFile | None]
"""The rows of the files of a batch, in order; None for a file that is gone."""


def processes_for(files: int) -> int:
    """How many extractors are worth their start."""
    if files < LEAST_FILES:
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES) if cores > 1 else 0


def rows_of(root: Path, paths: Sequence[str], generation: int) -> Rows:
    """The rows of files of a project, made here."""
    sources = (read_source(root, path) for path in paths)
    return [None if source is None else extracted(source, generation) for source in sources]


def rows_of_batches(
    root: Path, batches: Iterable[Sequence[str]], generation: int, *, processes: int
) -> Generator[Rows]:
    """The rows of each batch, in order. Close it to end the processes before its end."""
    if not processes:
        yield from (rows_of(root, batch, generation) for batch in batches)
        return
    waiting: deque[Future[Rows]] = deque()
    extractors = [_Extractor(root, generation) for _ in range(processes)]
    idle: SimpleQueue[_Extractor] = SimpleQueue()
    for one in extractors:
        idle.put(one)

    def made(batch: Sequence[str]) -> Rows:
        extractor = idle.get()
        try:
            return extractor.rows(batch)
        finally:
            idle.put(extractor)

    threads = ThreadPoolExecutor(processes, thread_name_prefix="extractor")
    try:
        for batch in batches:
            waiting.append(threads.submit(made, batch))
            if len(waiting) > processes + AHEAD:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for one in extractors:
            one.stop()
        threads.shutdown(cancel_futures=True)
        for one in extractors:
            one.close()


class _Extractor:
    """One process, or this one where it has ended."""

    def __init__(self, root: Path, generation: int) -> None:
        self._root, self._generation = root, generation
        self._process = _started(root, generation)
        self._is_wanted = True

    def rows(self, paths: Sequence[str]) -> Rows:
        if self._process is not None:
            try:
                return _asked(self._process, paths)
            except (OSError, EOFError, pickle.UnpicklingError):
                if not self._is_wanted:
                    return []
                logger.warning("A process that reads the project has ended; its files are read here.")
                self.close()
        return rows_of(self._root, paths, self._generation)

    def stop(self) -> None:
        """End the process, at once: what it has not answered is not wanted any more."""
        self._is_wanted = False
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """Free what the process had, after it ended."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait(END_SECONDS)
            for stream in (process.stdin, process.stdout):
                with suppress(OSError):  # what was not sent
                    if stream is not None:
                        stream.close()


def _started(root: Path, generation: int) -> subprocess.Popen[bytes] | None:
    package = Path(__file__).parents[3]
    try:
        return subprocess.Popen(
            [sys.executable, "-m", __name__, str(root), str(generation)],
            cwd=package,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
    except (OSError, ValueError):
        return None


def _asked(process: subprocess.Popen[bytes], paths: Sequence[str]) -> Rows:
    assert process.stdin is not None
    assert process.stdout is not None
    pickle.dump(list(paths), process.stdin)
    process.stdin.flush()
    rows: Rows = pickle.load(process.stdout)
    return rows


def _serve(root: Path, generation: int, asked: BinaryIO, answers: BinaryIO) -> None:
    """Answer batches of paths with their rows until there are no more."""
    while True:
        try:
            paths = pickle.load(asked)
        except EOFError:
            return
        pickle.dump(rows_of(root, paths, generation), answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]), int(sys.argv[2]), sys.stdin.buffer, sys.stdout.buffer)
