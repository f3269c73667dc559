"""Learning from searches while others do the same, on every store."""

import logging
from collections.abc import Callable
from itertools import count

import pytest

from testbed.meanwhile import meanwhile
from testbed.world import World
from tests.operations.reasoning.test_prediction import look_up, pair
from vestige.core.events import SearchPerformed
from vestige.engine.context import Call
from vestige.engine.reactions import searches
from vestige.engine.revise import ATTEMPTS


def elsewhere(world: World) -> Callable[[], None]:
    """Another process that learns from a search of its own each time."""
    numbers = count()

    def learn() -> None:
        search = SearchPerformed(
            timestamp=world.clock.now,
            scopes=(),
            query=f"umbrella{next(numbers)}",
            result_count=0,
            result_ids=(),
            duration_ms=1.0,
        )
        searches.on_search(Call(engine=world.app.engine), search)

    return learn


def asked(world: World) -> set[str]:
    found = searches.searches(Call(engine=world.app.engine), "/")
    return {word for search in found for word in search.terms.values()}


def test_a_search_is_learned_from_although_another_process_was_quicker(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.remember("The vault opens at nine.")
    world.find("vault")
    meanwhile(monkeypatch, world, searches.ATTENTION, elsewhere(world), times=ATTEMPTS - 1)
    world.app.settle()

    assert asked(world) == {"vault", *(f"umbrella{number}" for number in range(ATTEMPTS - 1))}


def test_a_search_that_others_keep_from_being_learned_is_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    world.remember("The vault opens at nine.")
    world.find("vault")
    meanwhile(monkeypatch, world, searches.ATTENTION, elsewhere(world), times=ATTEMPTS)
    world.app.settle()

    assert world.app.autopilot.status().failed == 0
    assert asked(world) == {f"umbrella{number}" for number in range(ATTEMPTS)}
    told = [(one.levelname, one.message) for one in caplog.records if one.name == searches.logger.name]
    assert told == [("INFO", "A search was not learned from: other processes wrote at the same time")]


def test_a_promotion_that_others_keep_from_being_counted_is_no_error(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, memory_id = pair(world)
    look_up(world, "vault")
    world.call("predict")

    def predict_again() -> None:
        world.clock.advance(hours=1 / 60)
        world.call("predict")

    meanwhile(monkeypatch, world, searches.PREDICTION, predict_again, times=ATTEMPTS)
    world.call("memory", action="promote", id=memory_id)
    world.app.settle()

    assert world.app.autopilot.status().failed == 0
    kept, _ = searches.forecast(Call(engine=world.app.engine), "/")
    assert (len(kept.waiting), kept.outcomes) == (1 + ATTEMPTS, ())


def test_a_search_whose_memory_is_deleted_meanwhile_leaves_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = world.remember("The vault opens at nine.")
    world.find("vault")
    meanwhile(monkeypatch, world, searches.ATTENTION, lambda: world.call("memory", action="delete", id=gone))
    world.app.settle()

    assert asked(world) == set()
    assert world.app.autopilot.status().failed == 0
