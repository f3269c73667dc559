"""What events tell of how long something took."""

from dataclasses import replace
from itertools import count
from pathlib import Path

from testbed.world import HandClock, open_world
from vestige.core.clock import Clock
from vestige.core.events import ConsolidationCompleted, DreamCompleted, SearchPerformed


class Ticking(HandClock):
    """A clock on which every look at the seconds takes an odd part of one."""

    def parts(self) -> Clock:
        ticks = count()
        return replace(super().parts(), monotonic=lambda: next(ticks) * 0.0012345678)


def test_how_long_it_took_is_told_in_tenths_of_a_millisecond(tmp_path: Path) -> None:
    with open_world(tmp_path, clock=Ticking()) as world:
        for number in range(8):
            world.remember(f"Crane {number} lifts {number} tons in the harbour.", force_create=True)
        world.call("search", query="crane")
        world.call("dream")
        world.call("consolidate")
        timed = (SearchPerformed, DreamCompleted, ConsolidationCompleted)
        told = {type(one): one.duration_ms for one in world.heard if isinstance(one, timed)}
        runs = world.call("insights", action="runs")["runs"]
    assert set(told) == set(timed)
    kept = [run["durationMs"] for run in runs if "durationMs" in run]
    assert kept
    assert all(one > 0 and one == round(one, 1) for one in [*told.values(), *kept])
