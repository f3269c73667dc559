"""Reading the log backwards: what is asked for is chosen before the limit, within the same access."""

from dataclasses import replace

import pytest

from tests.store.support.generators import (
    DAY,
    T0,
    Dice,
    a_memory,
    add,
    forget,
    generated_access,
    generated_memory,
    link,
    memory_id,
    remark,
    revise,
)
from vestige.core.errors import InvalidInput
from vestige.core.models import EVERYTHING, Evidence
from vestige.store.contract.answers import LogQuery
from vestige.store.contract.store import MemoryStore

SCOPES = ("/", "/project", "/project/a", "/project/a/docs", "/project/ab", "/user/ada", "/username")
MEMORIES = 60


def busy(store: MemoryStore) -> None:
    """Four days of a memory's life, beside another."""
    add(store, a_memory("a"), a_memory("b"))
    revise(store, replace(a_memory("a", "changed"), updated_at=T0 + DAY, revision=2))
    remark(store, "a", Evidence.EXPOSED, T0 + 2 * DAY)
    remark(store, "b", Evidence.PROMOTED, T0 + 3 * DAY)
    link(store, "b", "a")
    forget(store, "a", at=T0 + 4 * DAY)


def told(store: MemoryStore, asked: LogQuery, limit: int = 100) -> list[tuple[str | None, str]]:
    events = store.latest(asked, access=EVERYTHING, limit=limit)
    return [(event.memory_id, event.kind.removeprefix("memory.")) for event in events]


def test_the_latest_events_are_the_log_from_its_end(store: MemoryStore) -> None:
    busy(store)
    whole = store.log(access=EVERYTHING)
    assert store.latest(LogQuery(), access=EVERYTHING, limit=100) == whole[::-1]
    assert store.latest(LogQuery(), access=EVERYTHING, limit=2) == whole[:-3:-1]
    assert store.latest(LogQuery(), access=EVERYTHING, limit=0) == []
    with pytest.raises(InvalidInput):
        store.latest(LogQuery(), access=EVERYTHING, limit=-1)


def test_time_memory_and_exposure_are_judged_before_the_limit(store: MemoryStore) -> None:
    busy(store)
    first_days = LogQuery(since=T0 + DAY, until=T0 + 3 * DAY)
    assert told(store, first_days, limit=1) == [("a", "remarked")]
    assert told(store, first_days) == [("a", "remarked"), ("a", "revised")]
    assert told(store, LogQuery(memory_id="b"), limit=2) == [("b", "edge.linked"), ("b", "remarked")]
    changes = LogQuery(exposures=False, since=T0 + 2 * DAY)
    assert told(store, changes) == [("a", "deleted"), ("b", "remarked")]


@pytest.mark.parametrize(
    ("scope", "inherited", "seen"),
    [
        ("/project/a", False, {"/project/a", "/project/a/docs"}),
        ("/project/a", True, {"/", "/project", "/project/a", "/project/a/docs", "/user/ada"}),
        ("/user", False, {"/user/ada"}),
        ("/elsewhere", True, {"/", "/user/ada"}),
        ("/", False, set(SCOPES)),
        ("/", True, set(SCOPES)),
        (None, False, set(SCOPES)),
    ],
)
def test_a_scope_covers_what_is_below_and_on_request_what_holds_there_from_above(
    store: MemoryStore, scope: str | None, inherited: bool, seen: set[str]
) -> None:
    add(store, *(replace(a_memory(memory_id(at)), scope=scope) for at, scope in enumerate(SCOPES)))
    events = store.latest(LogQuery(scope=scope, inherited=inherited), access=EVERYTHING, limit=100)
    assert {event.scope for event in events} == seen


def generated_query(dice: Dice) -> LogQuery:
    return LogQuery(
        memory_id=dice.maybe([memory_id(number) for number in range(MEMORIES)], 0.2),
        since=dice.moment() if dice.often(0.4) else None,
        until=dice.moment() if dice.often(0.4) else None,
        before=dice.maybe(range(1, 2 * MEMORIES), 0.3),
        scope=dice.maybe((*SCOPES, "/project/vestige")),
        inherited=dice.often(0.5),
        kinds=dice.maybe((("memory.created",), ("memory.created", "memory.remarked"))) or (),
        evidence=dice.maybe(((Evidence.GOOD,), (Evidence.GOOD, Evidence.EXPOSED))) or (),
        exposures=dice.often(0.5),
    )


def test_what_is_asked_for_is_what_the_definition_takes_of_the_readable_log(store: MemoryStore) -> None:
    dice = Dice(11)
    for number in range(MEMORIES):
        add(store, generated_memory(dice, memory_id(number)))
        remark(store, memory_id(number // 2), dice.one((Evidence.EXPOSED, Evidence.GOOD)), dice.moment())
    for _ in range(100):
        asked, access = generated_query(dice), generated_access(dice)
        readable = store.log(access=access)
        expected = [event for event in reversed(readable) if asked.takes(event)]
        assert store.latest(asked, access=access, limit=1_000) == expected
