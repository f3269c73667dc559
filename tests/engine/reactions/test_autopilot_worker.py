"""The worker: one job at a time, none lost to another's failure, and an end to it."""

import threading
from collections.abc import Callable
from itertools import count

import pytest

from testbed.patience import PATIENCE_SECONDS
from vestige.core.errors import Cancelled, StoreBusy, StoreError, StoreFull, StoreReadOnly, StoreUnavailable
from vestige.engine.reactions.autopilot import MOST_TRIES, ReactionJob, Stop, Worker


def still() -> float:
    """A clock that stands."""
    return 0.0


def job(run: Callable[[], object], name: str = "job") -> ReactionJob:
    def ignoring(_stop: Stop) -> None:
        run()

    return ReactionJob(name=name, run=ignoring)


def failing() -> None:
    raise ValueError("what it was about is nobody's business")


def test_without_a_thread_jobs_wait_until_they_are_worked_off_in_their_order() -> None:
    done: list[int] = []
    worker = Worker(monotonic=still)
    for number in range(3):
        worker.put(job(lambda number=number: done.append(number)))  # type: ignore[misc]  # binds it now
    assert (done, worker.status().waiting) == ([], 3)
    assert worker.settle()
    assert done == [0, 1, 2]
    assert (worker.status().handled, worker.status().running) == (3, False)


def test_a_job_that_fails_is_counted_and_the_next_one_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    done = threading.Event()
    worker = Worker(monotonic=still)
    worker.start()
    worker.put(job(failing, name="capture"))
    worker.put(job(done.set))
    assert done.wait(PATIENCE_SECONDS)
    assert worker.settle(PATIENCE_SECONDS)
    status = worker.status()
    assert (status.handled, status.failed, status.restarts, status.running) == (2, 1, 0, True)
    # The text of an error may quote a memory: it is in the log, not in the status.
    assert status.last_error == "capture: ValueError"
    assert "capture failed" in caplog.text
    assert worker.stop(PATIENCE_SECONDS)
    assert not worker.status().running


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (
            StoreBusy("The store stayed busy for 5.0 s: a browser."),
            "The store stayed busy for 5.0 s: a browser.",
        ),
        (StoreFull("The disk is full. (vestige.db: database or disk is full)"), "The disk is full."),
        (
            StoreReadOnly("Cannot be. (attempt to write a readonly database)"),
            "The database cannot be written.",
        ),
    ],
)
def test_what_stands_in_the_way_of_a_job_is_told_in_one_line_of_ours(
    error: StoreError, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    def hindered() -> None:
        raise error

    worker = Worker(monotonic=still)
    worker.put(job(hindered, name="capture"))
    worker.settle()
    (record,) = caplog.records
    assert (record.levelname, record.exc_info) == ("WARNING", None)
    assert record.getMessage() == f"capture was not done: {told}"
    assert worker.status().failed == 1


def test_a_job_that_finds_no_store_waits_until_there_is_one(caplog: pytest.LogCaptureFixture) -> None:
    tries: list[int] = []

    def reaching() -> None:
        tries.append(1)
        if len(tries) < 4:
            raise StoreUnavailable("No connection to postgresql://db: refused")

    worker = Worker(monotonic=still, pause_seconds=0.0)
    worker.start()
    worker.put(job(reaching, name="capture"))
    assert worker.settle(PATIENCE_SECONDS)
    assert worker.stop(PATIENCE_SECONDS)
    assert len(tries) == 4
    assert (worker.status().handled, worker.status().failed) == (1, 0)
    (record,) = caplog.records
    assert (record.getMessage(), record.exc_info) == ("capture waits: the store is unavailable", None)


@pytest.mark.parametrize(("outcome", "tried"), [({}, MOST_TRIES + 1), ({"outcome": "unknown"}, 1)])
def test_a_job_that_finds_no_store_is_given_up_at_last_and_one_that_may_be_done_at_once(
    outcome: dict[str, str], tried: int, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[int] = []

    def reaching() -> None:
        tries.append(1)
        raise StoreUnavailable("No connection to postgresql://db: refused", details=outcome)

    worker = Worker(monotonic=still, pause_seconds=0.0)
    worker.start()
    worker.put(job(reaching, name="capture"))
    assert worker.settle(PATIENCE_SECONDS)
    assert worker.stop(PATIENCE_SECONDS)
    assert len(tries) == tried
    assert (worker.status().handled, worker.status().failed) == (1, 1)
    assert worker.status().last_error == "capture: StoreUnavailable"
    assert not any(record.exc_info for record in caplog.records)


def test_without_a_thread_nobody_waits_for_a_store(caplog: pytest.LogCaptureFixture) -> None:
    tries: list[int] = []

    def reaching() -> None:
        tries.append(1)
        raise StoreUnavailable("No connection to postgresql://db: refused")

    worker = Worker(monotonic=still)
    worker.put(job(reaching, name="capture"))
    worker.settle()
    assert (len(tries), worker.status().failed) == (1, 1)


def test_a_loop_that_breaks_down_is_begun_again() -> None:
    done = threading.Event()

    def leaving() -> None:
        raise SystemExit

    worker = Worker(monotonic=still, pause_seconds=0.0)
    worker.start()
    worker.put(job(leaving))
    worker.put(job(done.set))
    assert done.wait(PATIENCE_SECONDS)
    assert worker.stop(PATIENCE_SECONDS)
    assert (worker.status().restarts, worker.status().last_error) == (1, "SystemExit")


def test_when_too_many_wait_the_oldest_are_dropped_counted_and_told_of_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    done: list[str] = []
    worker = Worker(monotonic=still, most_waiting=2)
    for name in "abcd":
        worker.put(job(lambda name=name: done.append(name)))  # type: ignore[misc]  # binds it now
    worker.settle()
    assert done == ["c", "d"]
    assert worker.status().dropped == 2
    assert caplog.text.count("the oldest are dropped") == 1


def test_stopping_ends_a_long_job_and_begins_no_other() -> None:
    begun, later = threading.Event(), threading.Event()

    def long(stop: Stop) -> None:
        begun.set()
        while not stop():
            pass
        raise Cancelled()

    worker = Worker(monotonic=still)
    worker.start()
    worker.put(ReactionJob(name="dream", run=long))
    worker.put(job(later.set))
    assert begun.wait(PATIENCE_SECONDS)
    assert worker.stop(PATIENCE_SECONDS)
    status = worker.status()
    assert (status.running, status.waiting, status.failed) == (False, 1, 0)
    assert not later.is_set()


def test_a_job_that_does_not_end_is_not_waited_for_longer_than_asked() -> None:
    begun, release = threading.Event(), threading.Event()

    def stubborn() -> None:
        begun.set()
        assert release.wait(PATIENCE_SECONDS)

    worker = Worker(monotonic=still)
    worker.start()
    worker.put(job(stubborn))
    assert begun.wait(PATIENCE_SECONDS)
    assert not worker.settle(0.01)
    assert not worker.stop(0.01)
    release.set()
    assert worker.stop(PATIENCE_SECONDS)


def test_chores_are_done_while_nothing_waits_and_not_more_often_than_asked() -> None:
    rested, seconds = threading.Event(), count()
    worker = Worker(monotonic=lambda: float(next(seconds)), chores=[job(rested.set)], idle_seconds=1.0)
    worker.start()
    assert rested.wait(PATIENCE_SECONDS)
    assert worker.stop(PATIENCE_SECONDS)


def test_chores_are_done_late_where_jobs_never_end() -> None:
    rested, seconds = threading.Event(), count()
    worker = Worker(monotonic=lambda: float(next(seconds)), chores=[job(rested.set)], idle_seconds=1.0)

    def again() -> None:
        worker.put(job(again))

    worker.put(job(again))
    worker.start()
    assert rested.wait(PATIENCE_SECONDS)
    assert worker.stop(PATIENCE_SECONDS)


def test_a_chore_that_fails_keeps_no_other_from_being_done() -> None:
    done = threading.Event()
    worker = Worker(monotonic=still, chores=[job(failing, name="sweep"), job(done.set)])
    worker.rest(lambda: False)
    assert done.is_set()
    assert worker.status().last_error == "sweep: ValueError"


def test_a_worker_that_was_stopped_does_not_start_again() -> None:
    worker = Worker(monotonic=still)
    assert worker.stop(PATIENCE_SECONDS)
    worker.start()
    assert not worker.status().running


def test_jobs_that_make_jobs_come_to_an_end() -> None:
    worker = Worker(monotonic=still, most_waiting=5)

    def again() -> None:
        worker.put(job(again))

    again()
    worker.settle()
    assert worker.status().handled == 5


class Ticking:
    """A clock that another thread moves, and a worker that sees it at once."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_only_a_leader_does_chores_and_who_becomes_one_does_them_at_once() -> None:
    leading, asked, rested, clock = threading.Event(), threading.Semaphore(0), threading.Event(), Ticking()

    def leads() -> bool:
        asked.release()
        return leading.is_set()

    worker = Worker(
        monotonic=clock, chores=[job(rested.set)], leads=leads, idle_seconds=60.0, look_seconds=0.0
    )
    clock.seconds = 3600.0
    worker.start()
    for _ in range(3):
        assert asked.acquire(timeout=PATIENCE_SECONDS)
    clock.seconds += 3600.0
    for _ in range(3):
        assert asked.acquire(timeout=PATIENCE_SECONDS)
    assert (rested.is_set(), worker.status().leader) == (False, False)
    leading.set()
    assert rested.wait(PATIENCE_SECONDS)
    assert worker.status().leader
    assert worker.stop(PATIENCE_SECONDS)
    assert not worker.status().leader


def test_who_leads_is_seen_also_while_there_is_always_something_to_do() -> None:
    seen, stop = threading.Event(), threading.Event()

    def leads() -> bool:
        seen.set()
        return True

    worker = Worker(monotonic=still, chores=[job(lambda: None)], leads=leads, look_seconds=0.0)

    def again() -> None:
        if not stop.is_set():
            worker.put(job(again))

    worker.put(job(again))
    worker.start()
    for _ in range(3):
        assert seen.wait(PATIENCE_SECONDS)
        seen.clear()
    stop.set()
    assert worker.stop(PATIENCE_SECONDS)


def test_a_store_that_cannot_say_has_no_leader_here() -> None:
    done: list[str] = []
    answers = iter([True, False, True])

    def leads() -> bool:
        if next(answers):
            return True
        raise StoreError("The server is away.")

    worker = Worker(monotonic=still, chores=[job(lambda: done.append("swept"))], leads=leads)
    told = []
    for _ in range(3):
        worker.rest(lambda: False)
        told.append((worker.status().leader, len(done)))
    assert told == [(True, 1), (False, 1), (True, 2)]
    assert worker.status().failed == 0


def test_who_has_no_chores_leaves_the_lead_to_others() -> None:
    def leads() -> bool:
        raise AssertionError("nobody should ask")

    worker = Worker(monotonic=still, leads=leads)
    worker.rest(lambda: False)
    assert not worker.status().leader
