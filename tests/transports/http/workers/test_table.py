"""The table that workers share: rows of counts, what each worker holds, and their states."""

import os
import subprocess
import sys

import pytest

from testbed.world import HandClock
from vestige.transports.http.auth.failures import FREE_FAILURES, LOCK_FAILURES, FailureDelay
from vestige.transports.http.limits.bodies_and_rates import Buckets
from vestige.transports.http.workers.table import SETS, WAYS, SharedTable, WorkerState, shared_table

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="a server has one process there")


def test_two_workers_take_from_one_bucket() -> None:
    clock = HandClock().parts()
    with shared_table(clock.monotonic) as first:
        second = SharedTable(os.dup(first.handle), clock.monotonic)
        here = Buckets(60, clock.monotonic, first.rows("requests"))
        there = Buckets(60, clock.monotonic, second.rows("requests"))
        taken = [one.take("ada") for _ in range(30) for one in (here, there)]
        assert taken == [0.0] * 60
        assert here.take("ada") == there.take("ada") == 1.0
        assert there.take("bob") == 0.0
        second.close()


def test_failures_on_any_worker_delay_and_lock_on_all() -> None:
    clock = HandClock().parts()
    with shared_table(clock.monotonic) as table:
        here = FailureDelay(clock.monotonic, table.rows("failures"))
        there = FailureDelay(clock.monotonic, table.rows("failures"))
        delays = [one.failed("192.0.2.1") for _ in range(FREE_FAILURES) for one in (here, there)]
        assert [delay > 0 for delay in delays] == [False] * FREE_FAILURES + [True] * FREE_FAILURES
        for _ in range(LOCK_FAILURES):
            here.failed("192.0.2.1")
        assert there.locked("192.0.2.1") > 0
        assert there.locked("192.0.2.2") == 0


def test_another_process_sees_what_is_written() -> None:
    with shared_table(lambda: 7.0) as table:
        table.rows("requests").put("ada", [1.5, 2.5, 3.5])
        code = (
            "import sys; from vestige.transports.http.workers.table import SharedTable\n"
            "table = SharedTable(int(sys.argv[1]), lambda: 8.0)\n"
            "print(table.rows('requests').of('ada')); table.rows('requests').put('ada', [4, 5, 6])"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(table.handle)],
            pass_fds=(table.handle,),
            capture_output=True,
            text=True,
            check=True,
        )
        assert done.stdout.strip() == "[1.5, 2.5, 3.5]"
        assert table.rows("requests").of("ada") == [4.0, 5.0, 6.0]


def test_what_other_workers_hold_counts_and_goes_with_them() -> None:
    with shared_table(lambda: 1.0) as table:
        for index in (0, 1, 2):
            table.take_seat(index, number=index + 1, pid=100 + index)
        here, there, third = (table.held("listeners", index) for index in (0, 1, 2))
        there.publish("key", 2, 5)
        third.publish("key", 1, 1)
        here.publish("key", 4, 4)
        assert (here.of("key"), here.of()) == (3, 6)
        assert (there.of("key"), there.of()) == (5, 5)
        table.clear_seat(1)
        assert (here.of("key"), here.of()) == (1, 1)
        there.publish("key", 0, 0)
        table.take_seat(1, number=9, pid=900)
        assert here.of() == 1


def test_rows_that_are_held_stay_when_very_many_senders_come() -> None:
    clock = HandClock()
    with shared_table(clock.parts().monotonic) as table:
        table.take_seat(1, number=2, pid=5)
        table.held("sessions", 1).publish("key", 3, 3)
        rows = table.rows("requests")
        for number in range(2 * SETS * WAYS):
            rows.put(f"sender {number}", [1.0, 1.0, 1.0])
        assert table.held("sessions", 0).of("key") == 3
        assert rows.of(f"sender {2 * SETS * WAYS - 1}") == [1.0, 1.0, 1.0]
        assert sum(any(rows.of(f"sender {number}")) for number in range(2 * SETS * WAYS)) <= SETS * WAYS


def test_a_seat_says_what_its_worker_does() -> None:
    times = iter(range(100))
    with shared_table(lambda: next(times)) as table:
        table.take_seat(3, number=7, pid=4_242)
        assert [(seat.index, seat.number, seat.pid, seat.state) for seat in table.seats()] == [
            (3, 7, 4_242, WorkerState.STARTING)
        ]
        table.set_state(3, WorkerState.SERVING)
        (seat,) = table.seats()
        assert (seat.state, seat.beaten_at) == (WorkerState.SERVING, 1)
        table.clear_seat(3)
        assert list(table.seats()) == []
