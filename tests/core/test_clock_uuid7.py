"""Ids: UUID version 7, in the order they were made in."""

import random
import threading
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import RFC_4122, UUID

from vestige.core.clock import Uuid7

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
ONE_MILLISECOND = timedelta(milliseconds=1)


class Hand:
    """A clock that is moved by hand."""

    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time


class HighestBits(random.Random):
    """Randomness that is always all ones: the counter starts as high as it can."""

    def getrandbits(self, k: int, /) -> int:
        return (1 << k) - 1


def milliseconds(memory_id: str) -> int:
    return UUID(memory_id).int >> 80


def test_an_id_is_a_version_7_uuid_that_begins_with_its_time() -> None:
    made = Uuid7(lambda: NOON, random.Random(1))()
    assert UUID(made).version == 7
    assert UUID(made).variant == RFC_4122
    assert milliseconds(made) == int(NOON.timestamp() * 1000)
    assert made == str(UUID(made))


def test_ids_of_one_millisecond_are_distinct_and_in_order() -> None:
    new_id = Uuid7(lambda: NOON, random.Random(1))
    made = [new_id() for _ in range(2_000)]
    assert made == sorted(set(made))
    assert {milliseconds(one) for one in made} == {milliseconds(made[0])}


def test_ids_of_later_milliseconds_come_after() -> None:
    hand = Hand()
    new_id = Uuid7(hand, random.Random(1))
    made = []
    for _ in range(500):
        made.append(new_id())
        hand.time += ONE_MILLISECOND
    assert made == sorted(set(made))


def test_a_clock_that_goes_backwards_does_not_break_the_order() -> None:
    hand = Hand()
    new_id = Uuid7(hand, random.Random(1))
    before = new_id()
    hand.time -= timedelta(hours=1)
    during = [new_id() for _ in range(100)]
    hand.time = NOON + ONE_MILLISECOND
    after = new_id()
    assert [before, *during, after] == sorted({before, *during, after})
    assert milliseconds(after) == milliseconds(before) + 1


def test_a_counter_that_is_full_borrows_from_the_next_millisecond() -> None:
    new_id = Uuid7(lambda: NOON, HighestBits())
    made = [new_id() for _ in range((1 << 17) + 2)]
    assert all(one < other for one, other in pairwise(made))
    assert milliseconds(made[-1]) == milliseconds(made[0]) + 1
    assert UUID(made[-1]).version == 7


def test_threads_never_get_the_same_id() -> None:
    new_id = Uuid7(lambda: NOON, random.Random(1))
    made: list[list[str]] = [[] for _ in range(8)]
    begin = threading.Barrier(len(made))

    def make(mine: list[str]) -> None:
        begin.wait()
        mine.extend(new_id() for _ in range(500))

    threads = [threading.Thread(target=make, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({one for mine in made for one in mine}) == 8 * 500
    assert all(mine == sorted(mine) for mine in made)


def test_the_same_clock_and_randomness_give_the_same_ids() -> None:
    first, second = (Uuid7(lambda: NOON, random.Random(5)) for _ in range(2))
    assert [first() for _ in range(5)] == [second() for _ in range(5)]
