"""Long work rests as long as it worked, and never long at once."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

import pytest

from testbed.world import World
from vestige.core.errors import Cancelled
from vestige.engine.context import Call
from vestige.engine.sleep.runs import MOST_SECONDS, Throttle, throttled


def test_it_rests_as_long_as_it_worked_and_no_longer_than_it_may() -> None:
    times: Iterator[float] = iter([0.0, 0.02, 0.05, 0.05, 0.05, 9.0, 9.3])
    rests: list[float] = []
    pace = Throttle(lambda: False, lambda: next(times), rests.append)

    assert [pace(), pace(), pace()] == [False, False, False]
    assert rests == [0.02, MOST_SECONDS]


def test_a_paced_call_still_hears_that_its_caller_has_gone(world: World) -> None:
    gone: list[bool] = []
    call = throttled(Call(engine=world.app.engine, cancelled=lambda: bool(gone)), lambda: None)
    call.check()
    gone.append(True)
    with pytest.raises(Cancelled):
        call.check()


def test_work_inside_of_paced_work_rests_only_once_and_does_what_both_have_to_do() -> None:
    now, rests, done = [0.0], list[float](), list[str]()
    outer = Throttle(lambda: False, lambda: now[0], rests.append, (lambda: done.append("outer"),))
    inner = outer.doing(lambda: done.append("inner"))
    now[0] += 0.125

    assert inner() is False
    assert rests == [0.125]
    assert done == ["outer", "inner"]


def test_a_call_that_is_paced_already_keeps_its_pace(world: World) -> None:
    times, done = count(), list[str]()
    engine = replace(world.app.engine, monotonic=lambda: float(next(times)) * 1e-6)
    once = throttled(Call(engine=engine), lambda: done.append("outer"))
    twice = throttled(once, lambda: done.append("inner"))
    begun = next(times)

    twice.check()

    assert done == ["outer", "inner"]
    assert next(times) - begun == 3  # one pace looks at the clock twice, before its rest and after
