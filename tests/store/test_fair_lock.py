"""Threads that take turns."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.store.conftest import ME
from tests.store.support.sqlite_files import FakeClock, open_at
from vestige.core.errors import StoreBusy
from vestige.store.fair_lock import FairLock
from vestige.store.sqlite.processes import locks


def until_waiting(line: FairLock, threads: int) -> None:
    """Come back when so many wait behind the one whose turn it is."""
    moment = threading.Event()
    while len(line._places) <= threads:
        moment.wait(0.001)


def test_whoever_comes_first_has_the_first_turn() -> None:
    line, served = FairLock(ME), list[int]()

    def wait(number: int) -> None:
        with line.turn("purge", PATIENCE_SECONDS):
            served.append(number)

    with ThreadPoolExecutor(8) as threads, line.turn("purge", PATIENCE_SECONDS):
        for number in range(8):
            threads.submit(wait, number)
            until_waiting(line, number + 1)
    assert served == list(range(8))


def test_one_whose_turn_does_not_come_is_told_who_has_it_and_holds_up_nobody() -> None:
    line = FairLock(ME, {"path": "vestige.db"})
    with line.turn("purge", 0), pytest.raises(StoreBusy, match="purge") as caught, line.turn("purge", 0.001):
        pass
    assert caught.value.details == {**ME.details(), "purpose": "purge", "path": "vestige.db"}
    with line.turn("purge", 0) as others:
        assert not others


def test_between_two_threads_of_one_process_another_process_can_have_its_turn(tmp_path: Path) -> None:
    path = tmp_path / "vestige.db"
    served = list[str]()

    class Clock(FakeClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            with locks.alone(path, "purge", ME):  # StoreBusy, if it were not free meanwhile
                served.append("another process")

    def purge() -> None:
        with store.alone("purge"):
            served.append("the second thread")

    with closing(open_at(path, clock=Clock())) as store, ThreadPoolExecutor(1) as threads:
        with store.alone("purge"):
            second: Future[None] = threads.submit(purge)
            until_waiting(store._line, 1)
        second.result(PATIENCE_SECONDS)
    assert served == ["another process", "the second thread"]
