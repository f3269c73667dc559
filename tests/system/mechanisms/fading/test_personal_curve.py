"""The personal curve: forgetting as this user's own reviews show it."""

import random
from typing import Any

import pytest

from testbed.world import START, World
from tests.system.mechanisms.conftest import ON_A_FILE, Living
from vestige.cognition.fsrs.formulas import W20, retrievability

COUNT = 120
NEW_STABILITY = 2.3065
WITNESS = "The witness is never reviewed."


def chance(days: float, stability: float, w20: float) -> float:
    return float(retrievability(days, stability, curve=w20))


def review_all(living: Living, w20: float | None) -> str:
    """Review many memories once each, as somebody does who forgets on a curve; None forgets nothing. The id
    of one that nobody reviews."""
    world, rng = living.world, random.Random(3)
    items = [{"content": f"Locker {number} holds parcel {number * 7919}.", "force_create": True}
             for number in range(COUNT)]  # fmt: skip
    ids = []
    for at in range(0, COUNT, 20):
        ids += [one["nodeId"] for one in world.call("smart_ingest", items=items[at : at + 20])["results"]]
    witness = world.remember(WITNESS)
    passed = 0.0
    for memory_id, days in zip(ids, sorted(rng.uniform(1, 120) for _ in ids), strict=True):
        living.clock.advance(days=days - passed)
        passed = days
        known = w20 is None or rng.random() < chance(days, NEW_STABILITY, w20)
        world.call("mark_reviewed", id=memory_id, rating=3 if known else 1)
    return witness


def step(world: World, name: str) -> dict[str, Any]:
    """What a step of consolidation says of itself."""
    steps: list[dict[str, Any]] = world.call("consolidate")["steps"]
    return next(one for one in steps if one["step"] == name)


def test_who_forgets_faster_sees_it_in_every_memory_after_a_restart(living: Living) -> None:
    witness = review_all(living, 0.5)
    before = living.world.get(witness)
    days = (living.clock.now - START).total_seconds() / 86_400
    assert before["retrievalStrength"] == pytest.approx(chance(days, before["stability"], W20), abs=1e-4)

    done = step(living.world, "curve")
    assert done["count"] == COUNT
    w20 = float(done["note"].removeprefix("w20 is "))
    assert 0.25 < w20 < 0.8

    world = living.restart()
    after = world.get(witness)
    assert after["stability"] == before["stability"]
    assert after["retrievalStrength"] == pytest.approx(chance(days, after["stability"], w20), abs=1e-3)
    assert after["retrievalStrength"] < before["retrievalStrength"] - 0.1
    later = world.remember("What comes later fades as fast.")
    living.clock.advance(days=days)
    newcomer = world.get(later)
    assert newcomer["retrievalStrength"] == pytest.approx(chance(days, newcomer["stability"], w20), abs=1e-3)


@ON_A_FILE
def test_reviews_that_never_fail_change_nothing(living: Living) -> None:
    witness = review_all(living, None)
    before = living.world.get(witness)["retrievalStrength"]
    assert f"0 of {COUNT} reviews failed" in step(living.world, "curve")["note"]
    assert living.restart().get(witness)["retrievalStrength"] == before


@ON_A_FILE
def test_searching_is_no_review(living: Living) -> None:
    memory_id = living.world.remember(WITNESS)
    for _ in range(101):
        living.clock.advance(days=2)
        living.world.find("witness reviewed", limit=1)
    living.world.app.settle()
    assert living.world.get(memory_id)["timesRetrieved"] == 101
    assert step(living.restart(), "curve")["count"] == 0


@ON_A_FILE
def test_votes_are_no_review(living: Living) -> None:
    """A vote says whether a memory is right or wanted, not whether it was there."""
    ids = [
        living.world.remember(f"Locker {n} holds parcel {n * 7919}.", force_create=True) for n in range(60)
    ]
    for turn in range(2):
        living.clock.advance(days=3)
        for number, memory_id in enumerate(ids):
            vote = "demote" if (number + turn) % 2 else "promote"
            living.world.call("memory", action=vote, id=memory_id)
    witness = living.world.remember(WITNESS)
    world = living.restart()
    assert step(world, "curve")["count"] == 0
    living.clock.advance(days=30)
    node = world.get(witness)
    assert node["retrievalStrength"] == pytest.approx(chance(30, node["stability"], W20), abs=1e-4)
