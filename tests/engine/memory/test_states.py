"""Noticing that memories have changed their state."""

from dataclasses import replace
from datetime import timedelta

import pytest

from testbed.world import START, World
from vestige.cognition.fsrs.strength import retention_of
from vestige.core.errors import Cancelled
from vestige.core.events import RetentionDecayed
from vestige.core.models import EVERYTHING, Access, Evidence, Memory, MemoryState, Record
from vestige.engine.care.rebuild import rebuild
from vestige.engine.context import Call
from vestige.engine.memory.states import (
    BATCH,
    MOST_ANNOUNCED,
    Transition,
    log_state_changes,
    transition,
    transitions,
)
from vestige.store.contract.changes import STATE, Add, Forget, RecordEvidence, Revise, Tune

DAY = timedelta(days=1)
ACTIVE, DORMANT, SILENT = MemoryState.ACTIVE, MemoryState.DORMANT, MemoryState.SILENT


def call_of(world: World, access: Access = EVERYTHING) -> Call:
    return Call(engine=world.app.engine, access=access)


def plant(world: World, count: int, scope: str = "/") -> None:
    memories = [
        Memory(id=f"m{n:04}", content=f"Fact {n}.", created_at=START, updated_at=START, scope=scope)
        for n in range(count)
    ]
    world.app.engine.store.commit([Add(memory=one) for one in memories], access=EVERYTHING)


def held(world: World, memory_id: str) -> Record:
    (record,) = world.app.engine.store.get_many([memory_id], access=EVERYTHING)
    return record


def logged_states(world: World) -> int:
    events = world.app.engine.store.log(access=EVERYTHING, limit=10_000)
    return sum(event.kind == STATE for event in events)


def test_what_has_faded_into_another_state_is_logged_once(world: World) -> None:
    plant(world, 1)
    world.clock.advance(days=200)
    now = world.clock.now

    assert log_state_changes(call_of(world)) == 1
    assert log_state_changes(call_of(world)) == 0

    assert transitions(call_of(world), "m0000") == [
        Transition(at=now, before=ACTIVE, after=SILENT, reason="time_decay")
    ]


def test_every_step_down_is_told_when_somebody_looks_often_enough(world: World) -> None:
    plant(world, 1)
    for days in (2, 200):
        world.clock.advance(days=days)
        log_state_changes(call_of(world))
    told = transitions(call_of(world), "m0000")
    assert [(one.before, one.after) for one in told] == [(ACTIVE, DORMANT), (DORMANT, SILENT)]


def test_looking_changes_nothing_but_the_snapshot(world: World) -> None:
    plant(world, 1)
    before = held(world, "m0000").strength
    world.clock.advance(days=30)
    now = world.clock.now

    log_state_changes(call_of(world))

    after = held(world, "m0000").strength
    assert after == replace(before, retention=retention_of(before, now), retention_at=now)


def test_a_memory_that_is_in_the_state_it_was_seen_in_is_left_alone(world: World) -> None:
    plant(world, 3)
    world.clock.advance(hours=3)
    assert log_state_changes(call_of(world)) == 0
    assert logged_states(world) == 0


def test_many_are_settled_in_batches_and_the_bus_hears_of_some(world: World) -> None:
    count = BATCH + MOST_ANNOUNCED
    plant(world, count)
    world.clock.advance(days=30)
    steps: list[float] = []
    call = replace(call_of(world), progress=lambda done, _total, _what: steps.append(done))

    assert log_state_changes(call) == count

    assert logged_states(world) == count
    heard = [one for one in world.heard if isinstance(one, RetentionDecayed)]
    assert len(heard) == MOST_ANNOUNCED
    assert all(one.new_retention < one.old_retention == pytest.approx(0.73) for one in heard)
    assert steps[-1] == count
    assert len(steps) > 2


def test_a_call_that_is_cancelled_keeps_what_it_has_done(world: World) -> None:
    plant(world, BATCH + 1)
    world.clock.advance(days=30)
    answers = iter([False, True])

    with pytest.raises(Cancelled):
        log_state_changes(replace(call_of(world), cancelled=lambda: next(answers)))

    assert logged_states(world) == BATCH
    assert log_state_changes(call_of(world)) == 1


def test_only_what_the_caller_reaches_is_settled(world: World) -> None:
    plant(world, 2, scope="/a")
    world.clock.advance(days=30)
    assert log_state_changes(call_of(world, Access(scopes=("/b",)))) == 0
    assert log_state_changes(call_of(world, Access(scopes=("/a",)))) == 2


def test_pinned_memories_are_looked_at_too(world: World) -> None:
    plant(world, 1)
    store, memory = world.app.engine.store, held(world, "m0000").memory
    store.commit(
        [Revise(memory=replace(memory, pinned=True, revision=2), reason="pinned")], access=EVERYTHING
    )
    world.clock.advance(days=30)
    assert log_state_changes(call_of(world)) == 1


def test_what_is_deleted_between_looking_and_writing_does_not_keep_the_others(world: World) -> None:
    plant(world, 3)
    world.clock.advance(days=30)
    store, now = world.app.engine.store, world.clock.now

    class Hasty:
        """Deletes a memory as soon as it has been read."""

        def __init__(self) -> None:
            self.done = False

        def __call__(self) -> bool:
            if not self.done:
                self.done = True
                store.commit([Forget(memory_id="m0001", at=now, reason="asked to")], access=EVERYTHING)
            return False

    assert log_state_changes(replace(call_of(world), cancelled=Hasty())) == 2
    assert logged_states(world) == 2


def test_a_clock_that_was_set_back_settles_nothing(world: World) -> None:
    plant(world, 1)
    world.clock.advance(days=30)
    log_state_changes(call_of(world))
    world.clock.advance(days=-29)
    assert log_state_changes(call_of(world)) == 0


def test_a_flatter_curve_can_bring_a_memory_back_and_says_so(world: World) -> None:
    plant(world, 1)
    store = world.app.engine.store
    store.commit([Tune(w20=0.8, at=START)], access=EVERYTHING)
    world.clock.advance(days=100)
    log_state_changes(call_of(world))
    store.commit([Tune(w20=0.08, at=world.clock.now)], access=EVERYTHING)
    world.heard.clear()

    assert log_state_changes(call_of(world)) == 1

    last = transitions(call_of(world), "m0000")[-1]
    assert (last.before, last.after, last.reason) == (SILENT, DORMANT, "curve_tuned")
    assert world.heard == []


def test_evidence_that_changes_a_state_tells_so(world: World) -> None:
    plant(world, 1)
    store = world.app.engine.store
    for evidence, days in ((Evidence.EXPOSED, 60), (Evidence.PROMOTED, 61), (Evidence.DEMOTED, 61)):
        remark = RecordEvidence(memory_id="m0000", evidence=evidence, at=START + days * DAY)
        store.commit([remark], access=EVERYTHING)
    told = transitions(call_of(world), "m0000")
    assert [(one.before, one.after, one.reason) for one in told] == [
        (ACTIVE, DORMANT, "time_decay"),
        (DORMANT, ACTIVE, "access"),
        (ACTIVE, DORMANT, "demoted"),
    ]


def test_every_transition_begins_where_the_one_before_ended(world: World) -> None:
    plant(world, 1)
    store = world.app.engine.store
    kinds = (Evidence.DEMOTED, Evidence.EXPOSED, Evidence.PROMOTED, Evidence.AGAIN, Evidence.GOOD)
    for number in range(40):
        world.clock.advance(days=number % 13 * 5)
        remark = RecordEvidence(memory_id="m0000", evidence=kinds[number % len(kinds)], at=world.clock.now)
        store.commit([remark], access=EVERYTHING)
        if number % 4 == 0:
            world.clock.advance(days=100)
            log_state_changes(call_of(world))
    told = transitions(call_of(world), "m0000")
    assert len(told) > 5
    assert [one.before for one in told] == [ACTIVE, *(one.after for one in told[:-1])]


def test_suppressing_moves_a_memory_from_the_state_it_was_last_seen_in(world: World) -> None:
    plant(world, 1)
    at = START + 30 * DAY
    change = transition(held(world, "m0000"), at, "user_suppression", suppressions=3)
    assert change is not None
    assert (change.before, change.after, change.reason) == (ACTIVE, SILENT, "user_suppression")


def test_settled_strengths_are_what_the_log_says(world: World) -> None:
    plant(world, 2)
    world.clock.advance(days=30)
    log_state_changes(call_of(world))
    assert rebuild(call_of(world), strengths=True).drifted == 0
