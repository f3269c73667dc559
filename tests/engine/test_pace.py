"""Long work rests as long as it worked, and never long at once."""

from collections.abc import Iterator

import pytest

from tests.world import World
from vestige.engine.context import Call
from vestige.engine.pace import MOST_SECONDS, Pace, paced
from vestige.errors import Cancelled


def test_it_rests_as_long_as_it_worked_and_no_longer_than_it_may() -> None:
    times: Iterator[float] = iter([0.0, 0.02, 0.05, 0.05, 0.05, 9.0, 9.3])
    rests: list[float] = []
    pace = Pace(lambda: False, lambda: next(times), rests.append)

    assert [pace(), pace(), pace()] == [False, False, False]
    assert rests == [0.02, MOST_SECONDS]


def test_a_paced_call_still_hears_that_its_caller_has_gone(world: World) -> None:
    gone: list[bool] = []
    call = paced(Call(engine=world.app.engine, cancelled=lambda: bool(gone)))
    call.check()
    gone.append(True)
    with pytest.raises(Cancelled):
        call.check()
