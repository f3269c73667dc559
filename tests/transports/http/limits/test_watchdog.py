"""The watchdog reports what a frozen server was doing."""

import logging
import subprocess
import sys
import textwrap
from dataclasses import dataclass

import pytest

from testbed.patience import PATIENCE_SECONDS
from vestige.core.caller import Invocation
from vestige.transports.http.limits.watchdog import FROZEN_SECONDS, Watchdog


@dataclass
class _Hand:
    """A monotonic clock that is set by hand."""

    now: float = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_server_that_stood_still_says_which_call_was_running(caplog: pytest.LogCaptureFixture) -> None:
    clock = _Hand()
    watchdog = Watchdog(clock)
    with watchdog.watching(Invocation(name="ingest", arguments={"content": "x" * 900, "tags": ["y" * 10]})):
        clock.now += 7
        watchdog.beat()

    (line,) = caplog.messages
    assert line == "The server stood still for 7.0 s; running: ingest with 910 characters for 7.0 s"


def test_a_server_that_moves_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    clock = _Hand()
    watchdog = Watchdog(clock)
    with watchdog.watching(Invocation(name="dream", deadline=1000.0)):
        for _ in range(20):
            clock.now += FROZEN_SECONDS / 2
            watchdog.beat()

    assert caplog.messages == []


def test_a_call_that_runs_on_after_its_deadline_is_reported_once_with_its_stack(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = _Hand()
    watchdog = Watchdog(clock)
    with watchdog.watching(Invocation(name="search", arguments={"query": "1,1,1"}, deadline=101.0)):
        for _ in range(6):
            clock.now += 1
            watchdog.beat()

    (line,) = caplog.messages
    assert line.startswith("A call runs on after its deadline: search with 5 characters for 4.0 s\n")
    assert "test_a_call_that_runs_on" in line  # the stack of the thread that it runs in


FREEZE = textwrap.dedent(
    """
    import asyncio, logging, re, threading, time
    from vestige.core.caller import Invocation
    from vestige.transports.http.limits.watchdog import Watchdog

    logging.basicConfig()
    watchdog = Watchdog(time.monotonic, 0.3)

    def hostile_pattern():
        with watchdog.watching(Invocation(name="ingest", arguments={"content": "a" * 40})):
            started = time.thread_time()
            length = 20
            while time.thread_time() - started < 1.2:  # each attempt takes twice as long, the lock held
                length += 1
                re.match("(?:a+)+b", "a" * length)

    async def main():
        async with watchdog.running():
            await asyncio.sleep(0.2)
            work = threading.Thread(target=hostile_pattern)
            work.start()
            while work.is_alive():
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.2)

    asyncio.run(main())
    """
)


@pytest.mark.slow
def test_the_stacks_are_written_while_the_interpreter_lock_is_held() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FREEZE], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    )

    before, reported, _ = done.stderr.partition("running: ingest with 40 characters")
    assert "hostile_pattern" in before
    assert reported


BUSY = textwrap.dedent(
    """
    import asyncio, threading, time
    from vestige.core.caller import Invocation
    from vestige.transports.http.limits.watchdog import Watchdog

    watchdog = Watchdog(time.monotonic, 0.05)
    ended = threading.Event()

    def deep(left):
        return left and eval("deep(left - 1)", {"deep": deep, "left": left})

    def stacks_that_change():
        with watchdog.watching(Invocation(name="ingest", arguments={})):
            while not ended.is_set():
                deep(60)

    async def main():
        async with watchdog.running():
            threads = [threading.Thread(target=stacks_that_change) for _ in range(6)]
            for thread in threads:
                thread.start()
            for _ in range(40):
                time.sleep(0.2)  # the event loop stands still while the threads run
                await asyncio.sleep(0.02)
            ended.set()

    asyncio.run(main())
    """
)


@pytest.mark.slow
def test_writing_the_stacks_of_threads_that_run_does_not_crash_the_server() -> None:
    # A timer that read the stacks of all threads from outside crashed two of three such processes.
    done = subprocess.run(
        [sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )

    assert done.returncode == 0
    assert "stacks_that_change" in done.stderr


def test_the_log_has_the_level_of_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    clock = _Hand()
    watchdog = Watchdog(clock)
    clock.now += 60
    watchdog.beat()

    assert [(one.levelno, one.getMessage()) for one in caplog.records] == [
        (logging.WARNING, "The server stood still for 60.0 s; running: no call")
    ]
