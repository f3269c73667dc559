"""Learning from searches while others do the same, on every store."""

import logging
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from testbed.meanwhile import meanwhile
from testbed.world import World, open_world
from tests.operations.reasoning.test_prediction import look_up, pair
from vestige.core.documents import Document
from vestige.core.events import SearchPerformed
from vestige.core.models import LogEvent
from vestige.engine.context import Call
from vestige.engine.reactions import searches
from vestige.engine.revise import ATTEMPTS
from vestige.store.contract.changes import Change, Put


def performed(world: World, query: str) -> SearchPerformed:
    """The event of a search without results."""
    return SearchPerformed(
        timestamp=world.clock.now, scopes=(), query=query, result_count=0, result_ids=(), duration_ms=1.0
    )


def elsewhere(world: World) -> Callable[[], None]:
    """Another process that learns from a search of its own each time."""
    numbers = count()

    def learn() -> None:
        search = performed(world, f"umbrella{next(numbers)}")
        searches.SearchReaction().on_searches(Call(engine=world.app.engine), [search])

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


def test_searches_that_wait_together_are_learned_like_one_after_the_other(tmp_path: Path) -> None:
    def learned(world: World, *, settle_each: bool) -> tuple[object, ...]:
        first = world.remember("The vault opens at nine.", tags=["bank"])
        second = world.remember("The garden closes at dusk.")
        for query in ("vault", "garden", "vault hours", "garden", "vault"):
            world.find(query)
            world.clock.advance(hours=1 / 60)
            if settle_each:
                world.app.settle()
        world.app.settle()
        call = Call(engine=world.app.engine)
        places = {first: "vault", second: "garden"}
        habits = {
            places[one.id]: (
                sorted(places[name] for name in one.body["together"]),
                one.body["terms"],
                one.body["shown"],
            )
            for one in call.engine.store.documents(searches.PATTERN, access=call.access, limit=10)
        }
        asked = [(one.number, dict(one.terms)) for one in searches.searches(call, "/")]
        return habits, asked

    with open_world(tmp_path / "together") as one, open_world(tmp_path / "apart") as other:
        assert learned(one, settle_each=False) == learned(other, settle_each=True)


def test_searches_that_wait_together_are_one_commit(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.remember("The vault opens at nine.")
    world.app.settle()
    for query in ("vault", "vault hours", "vault at nine"):
        world.find(query)
    commits: list[int] = []
    store = world.app.engine.store
    commit = store.commit

    def counted(changes: Sequence[Change], **rest: Any) -> object:  # Any: passed on as it is
        commits.append(
            sum(isinstance(one, Put) and one.document.kind == searches.ATTENTION for one in changes)
        )
        return commit(changes, **rest)

    monkeypatch.setattr(store, "commit", counted)
    world.app.settle()
    assert [number for number in commits if number] == [3]


def test_the_log_is_read_only_as_far_as_it_has_grown(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        world.remember(f"Locker {number} is free.")
    world.app.settle()
    learner = searches.SearchReaction()
    call = Call(engine=world.app.engine)
    store = world.app.engine.store
    read: list[int] = []

    def counted(page: Callable[..., list[LogEvent]]) -> Callable[..., list[LogEvent]]:
        def reading(*given: Any, **rest: Any) -> list[LogEvent]:  # Any: passed on as it is
            found = page(*given, **rest)
            read.append(len(found))
            return found

        return reading

    monkeypatch.setattr(store, "latest", counted(store.latest))
    monkeypatch.setattr(store, "log", counted(store.log))
    learner.on_searches(call, [performed(world, "locker")])
    first, read[:] = sum(read), []
    learner.on_searches(call, [performed(world, "free locker")])
    assert first >= 300
    assert sum(read) <= 5


def test_only_the_slot_of_the_last_search_and_the_next_one_are_read(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner, call, store = searches.SearchReaction(), Call(engine=world.app.engine), world.app.engine.store
    documents, read = store.documents, list[int]()

    def counted(kind: str, **rest: Any) -> list[Document]:  # Any: passed on as it is
        found = documents(kind, **rest)
        read.append(len(found) if kind == searches.ATTENTION else 0)
        return found

    monkeypatch.setattr(store, "documents", counted)
    for number in range(searches.SEARCHES + 5):
        read.clear()
        learner.on_searches(call, [performed(world, f"umbrella{number}")])
    assert sum(read) == 2
    assert asked(world) == {f"umbrella{number}" for number in range(5, searches.SEARCHES + 5)}


def test_the_last_search_is_found_after_another_process_has_learned_and_after_it_is_gone(
    world: World,
) -> None:
    learner, call = searches.SearchReaction(), Call(engine=world.app.engine)
    learner.on_searches(call, [performed(world, "first")])
    elsewhere(world)()
    learner.on_searches(call, [performed(world, "second"), performed(world, "third")])
    assert [one.number for one in searches.searches(call, "/")] == [3, 2, 1, 0]

    gone = world.remember("The vault opens at nine.")
    world.find("vault")
    world.app.settle()
    world.call("memory", action="delete", id=gone)
    world.clock.advance(hours=1)
    learner.on_searches(call, [performed(world, "fourth")])
    assert asked(world) == {"first", "umbrella0", "second", "third", "fourth"}
