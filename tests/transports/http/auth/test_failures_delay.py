"""What failures cost, by sender: never much for one, never nothing for many, and in bounded memory."""

from testbed.world import HandClock
from vestige.transports.http.auth.addresses import sender_of
from vestige.transports.http.auth.failures import FORGET_SECONDS, LOCK_FAILURES, LOCK_SECONDS, FailureDelay
from vestige.transports.http.workers.table import LocalRows


def test_the_first_failures_cost_nothing_and_later_ones_ever_more_up_to_a_bound() -> None:
    delay = FailureDelay(HandClock().parts().monotonic)
    delays = [delay.failed("a") for _ in range(LOCK_FAILURES - 1)]
    assert delays == [0, 0, 0, 0, 0, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2, 2, 2]
    assert delay.locked("a") == 0


def test_senders_are_told_apart() -> None:
    delay = FailureDelay(HandClock().parts().monotonic)
    for _ in range(LOCK_FAILURES):
        delay.failed("a")
    assert delay.locked("a") == LOCK_SECONDS
    assert delay.locked("b") == 0
    assert delay.failed("b") == 0


def test_a_lock_ends_and_comes_back_sooner() -> None:
    clock = HandClock()
    delay = FailureDelay(clock.parts().monotonic)
    for _ in range(LOCK_FAILURES):
        delay.failed("a")
    clock.sleep(LOCK_SECONDS)
    assert delay.locked("a") == 0
    failures = 0
    while not delay.locked("a"):
        delay.failed("a")
        failures += 1
    assert failures == 5


def test_failures_are_forgotten_after_a_quiet_time() -> None:
    clock = HandClock()
    delay = FailureDelay(clock.parts().monotonic)
    for _ in range(10):
        delay.failed("a")
    clock.sleep(FORGET_SECONDS + 1)
    assert delay.failed("a") == 0


def test_only_so_many_senders_are_remembered() -> None:
    rows = LocalRows(100)
    delay = FailureDelay(HandClock().parts().monotonic, rows)
    for number in range(1_000):
        delay.failed(str(number))
    assert len(rows) == 100


def test_a_network_of_ipv6_addresses_is_one_sender() -> None:
    def sender(host: str) -> str:
        return sender_of({"client": (host, 1)})

    assert sender("2001:db8::1") == sender("2001:db8::ffff:1")
    assert sender("2001:db8::1") != sender("2001:db8:0:1::1")
    assert sender("::ffff:192.0.2.1") == sender("192.0.2.1") != sender("192.0.2.2")
    assert sender_of({}) == ""
