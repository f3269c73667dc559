"""The testing effect: being found strengthens, weakly and at most once a day."""

import pytest

from testbed.world import World
from tests.system.mechanisms.conftest import Living

FOUND = "The harbour master is called Inga."
OTHER = "Sourdough needs a warm night."


def chances(world: World, *memory_ids: str) -> list[float]:
    return [float(world.get(one)["retrievalStrength"]) for one in memory_ids]


def look_for_it(world: World) -> None:
    assert world.find("Who is the harbour master?", limit=1) == [FOUND]


def test_what_was_found_is_remembered_better_after_a_restart(living: Living) -> None:
    found, other = living.world.remember(FOUND), living.world.remember(OTHER)
    living.clock.advance(days=30)
    look_for_it(living.world)

    now = chances(living.restart(), found, other)
    assert now[0] == pytest.approx(now[1] + 0.05, abs=2e-4)
    living.clock.advance(days=60)
    later = chances(living.restart(), found, other)
    assert later[0] > later[1]
    node = living.world.get(found)
    assert (node["timesRetrieved"], node["reps"], node["storageStrength"]) == (1, 0, 1.02)


def test_a_hundred_searches_in_a_day_are_worth_one_whoever_asks(living: Living) -> None:
    found = living.world.remember(FOUND)
    living.clock.advance(days=30)
    look_for_it(living.world)
    living.world.app.settle()
    once = living.world.get(found)
    world = living.restart()
    for _ in range(100):
        look_for_it(world)
    again = living.restart().get(found)
    strengths = ("retrievalStrength", "storageStrength", "stability", "nextReview")
    assert [again[name] for name in strengths] == [once[name] for name in strengths]

    living.clock.advance(days=1)
    look_for_it(living.world)
    living.world.app.settle()
    assert living.world.get(found)["storageStrength"] == pytest.approx(1.04)


def test_without_recording_a_search_leaves_no_trace(living: Living) -> None:
    found, other = living.world.remember(FOUND), living.world.remember(OTHER)
    living.clock.advance(days=30)
    world = living.restart(memory__record=False)
    look_for_it(world)
    now = chances(living.restart(), found, other)
    assert now[0] == now[1]


def test_feedback_weighs_more_than_being_found_and_is_counted(living: Living) -> None:
    ids = [living.world.remember(text) for text in (FOUND, OTHER, "The tram stops at midnight.")]
    found, useful, reviewed = ids
    living.clock.advance(days=30)
    look_for_it(living.world)
    living.world.call("memory", action="useful", id=useful)
    living.world.call("mark_reviewed", id=reviewed, rating=3)
    world = living.restart()
    living.clock.advance(days=30)
    by_search, by_thanks, by_review = chances(world, found, useful, reviewed)
    assert by_search <= by_thanks < by_review - 0.1
    counts = [(node["timesRetrieved"], node["timesUseful"], node["reps"]) for node in map(world.get, ids)]
    assert counts == [(1, 0, 0), (0, 1, 0), (0, 0, 1)]
