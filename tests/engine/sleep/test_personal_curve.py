"""The curve of a store, fitted to the reviews in its log."""

import random
from datetime import timedelta

import pytest

from testbed.world import START, World
from vestige.cognition.fsrs.formulas import W20, retrievability
from vestige.core.errors import Forbidden
from vestige.core.models import EVERYTHING, Access, Evidence, Memory
from vestige.engine.care.rebuild import rebuild
from vestige.engine.context import Call
from vestige.engine.sleep.personal_curve import tune
from vestige.store.contract.changes import TUNED, Add, Change, Forget, RecordEvidence, Tune

DAY = timedelta(days=1)


def call_of(world: World) -> Call:
    return Call(engine=world.app.engine)


def commit(world: World, changes: list[Change]) -> None:
    world.app.engine.store.commit(changes, access=EVERYTHING)


def plant(world: World, count: int) -> list[str]:
    names = [f"m{number:04}" for number in range(count)]
    memories = [Memory(id=one, content=f"Fact {one}.", created_at=START, updated_at=START) for one in names]
    commit(world, [Add(memory=memory) for memory in memories])
    return names


def review(world: World, w20: float, count: int, *, passed: Evidence, failed: Evidence) -> list[str]:
    """Somebody who forgets on this curve reviews each of some new memories once, some days later."""
    rng = random.Random(11)
    names = plant(world, count)
    changes: list[Change] = []
    for name in names:
        days = rng.uniform(1.0, 200.0)
        known = rng.random() < float(retrievability(days, 2.3065, curve=w20))
        at = START + days * DAY
        changes.append(RecordEvidence(memory_id=name, evidence=passed if known else failed, at=at))
    commit(world, changes)
    world.clock.advance(days=200)
    return names


def curves_logged(world: World) -> list[float]:
    events = world.app.engine.store.log(access=EVERYTHING, limit=10_000)
    return [event.payload["w20"] for event in events if event.kind == TUNED]


@pytest.mark.parametrize(
    ("passed", "failed"),
    [(Evidence.GOOD, Evidence.AGAIN), (Evidence.EASY, Evidence.AGAIN), (Evidence.HARD, Evidence.AGAIN)],
)
def test_the_curve_becomes_that_of_who_reviews(world: World, passed: Evidence, failed: Evidence) -> None:
    review(world, 0.4, 900, passed=passed, failed=failed)

    done = tune(call_of(world))

    assert done.fitted
    assert (done.reviews, done.why) == (900, None)
    assert 0 < done.failures < 900
    assert 0.3 < done.w20 < 0.5
    (kept, *_) = world.app.engine.store.get_many(["m0000"], access=EVERYTHING)
    assert kept.strength.curve == done.w20
    assert curves_logged(world) == [done.w20]


def test_fitting_again_to_the_same_reviews_writes_nothing(world: World) -> None:
    review(world, 0.4, 300, passed=Evidence.GOOD, failed=Evidence.AGAIN)
    first = tune(call_of(world))
    assert tune(call_of(world)) == first
    assert curves_logged(world) == [first.w20]


@pytest.mark.parametrize(
    ("passed", "failed"),
    [
        (Evidence.EXPOSED, Evidence.AGAIN),
        (Evidence.REINFORCED, Evidence.AGAIN),
        (Evidence.USEFUL, Evidence.INHIBITED),
        (Evidence.REPLAYED, Evidence.CAPTURED),
        (Evidence.PROMOTED, Evidence.DEMOTED),
    ],
)
def test_what_nobody_judged_is_no_review(world: World, passed: Evidence, failed: Evidence) -> None:
    """Only the failures are left, or nothing."""
    review(world, 0.02, 200, passed=passed, failed=failed)
    done = tune(call_of(world))
    assert not done.fitted
    assert done.reviews == done.failures < 100
    assert done.w20 == W20
    assert "reviews at least a day apart; 100 are needed" in (done.why or "")
    assert curves_logged(world) == []


def test_without_failures_nothing_is_fitted(world: World) -> None:
    review(world, 0.4, 150, passed=Evidence.GOOD, failed=Evidence.EASY)
    done = tune(call_of(world))
    assert (done.fitted, done.reviews, done.failures, done.w20) == (False, 150, 0, W20)
    assert done.why == "Only 0 of 150 reviews failed; 5 are needed to see forgetting."


def test_a_curve_that_was_fitted_stays_until_there_is_a_better_one(world: World) -> None:
    plant(world, 1)
    commit(world, [Tune(w20=0.3, at=START)])
    done = tune(call_of(world))
    assert (done.fitted, done.w20) == (False, 0.3)


def test_reviews_of_deleted_memories_count(world: World) -> None:
    names = review(world, 0.4, 150, passed=Evidence.GOOD, failed=Evidence.AGAIN)
    commit(world, [Forget(memory_id=name, at=world.clock.now, reason="asked to") for name in names[:100]])
    assert tune(call_of(world)).reviews == 150


def test_whoever_does_not_reach_the_whole_store_may_not_fit_its_curve(world: World) -> None:
    review(world, 0.4, 150, passed=Evidence.GOOD, failed=Evidence.AGAIN)
    with pytest.raises(Forbidden):
        tune(Call(engine=world.app.engine, access=Access(scopes=("/",))))
    assert curves_logged(world) == []


def test_strengths_on_a_fitted_curve_are_what_the_log_says(world: World) -> None:
    names = review(world, 0.4, 150, passed=Evidence.GOOD, failed=Evidence.AGAIN)
    tune(call_of(world))
    commit(
        world,
        [RecordEvidence(memory_id=name, evidence=Evidence.GOOD, at=world.clock.now) for name in names[:20]],
    )
    assert rebuild(call_of(world), strengths=True).drifted == 0
