from dataclasses import replace

import numpy as np
import pytest

from tests.store.support.generators import (
    DAY,
    HOUR,
    SIGNATURE,
    T0,
    a_memory,
    add,
    add_with,
    axis,
    flat,
    found,
    held,
    hits,
    ids,
    remark,
    revise,
)
from vestige.cognition.fsrs.strength import retention_of
from vestige.core.errors import InvalidInput
from vestige.core.models import ANYTHING, EVERYTHING, Evidence, Filter, Memory
from vestige.store.contract.store import MemoryStore

TICK = HOUR / 3_600_000_000  # a microsecond

MEMORIES = [
    a_memory("plain"),
    replace(a_memory("project"), scope="/project/app", tags=("red", "green"), source="a.md", author="ada"),
    replace(a_memory("child"), scope="/project/app/api", tags=("green",), agent_id="agent", session_id="s-1"),
    replace(a_memory("sibling"), scope="/project/apple", tags=("Red",), thread="t", position=0),
    replace(
        a_memory("event", at=T0 + DAY), node_type="event", domains=("work", "home"), position=1, thread="t"
    ),
    replace(a_memory("pinned", at=T0 + 2 * DAY), pinned=True, domains=("home",), node_type="decision"),
    replace(a_memory("hushed", at=T0 + 3 * DAY), suppression_count=1, suppressed_at=T0 + 4 * DAY),
    replace(a_memory("shelved", at=T0 + 3 * DAY), archived_at=T0 + 4 * DAY, scope="/project/old"),
]
ALL = {memory.id for memory in MEMORIES} - {"shelved"}

EACH_FIELD = [
    (Filter(), ALL),
    (Filter(scope="/"), ALL),
    (Filter(scope="/project/app"), {"project", "child"}),
    (Filter(scope="/project/app/api"), {"child"}),
    (Filter(scope="/project"), {"project", "child", "sibling"}),
    (Filter(scope="/project/a"), set()),
    (Filter(scope="/project/app", scope_only=True), {"project"}),
    (Filter(scope="/project", scope_only=True), set()),
    (Filter(scope="/", scope_only=True), {"plain", "event", "pinned", "hushed"}),
    (Filter(scope_only=True), ALL),
    (Filter(scope="/project/app", inherited=True), ALL - {"sibling"}),
    (Filter(scope="/project/app", inherited=True, scope_only=True), ALL - {"sibling", "child"}),
    (Filter(scope="/", inherited=True), ALL),
    (Filter(scope="/agent/x", inherited=True), {"plain", "event", "pinned", "hushed"}),
    (Filter(domains=("home",)), {"event", "pinned"}),
    (Filter(domains=("work", "nowhere")), {"event"}),
    (Filter(tags_any=("red", "blue")), {"project"}),
    (Filter(tags_any=("red", "Red")), {"project", "sibling"}),
    (Filter(tags_any=("re",)), set()),
    (Filter(tags_all=("green",)), {"project", "child"}),
    (Filter(tags_all=("green", "red")), {"project"}),
    (Filter(tags_all=("green", "green")), {"project", "child"}),
    (Filter(node_types=("event", "decision")), {"event", "pinned"}),
    (Filter(exclude_types=("fact",)), {"event", "pinned"}),
    (Filter(node_types=("fact", "event"), exclude_types=("fact",)), {"event"}),
    (Filter(source="a.md"), {"project"}),
    (Filter(author="ada"), {"project"}),
    (Filter(author="Ada"), set()),
    (Filter(agent_id="agent"), {"child"}),
    (Filter(session_id="s-1"), {"child"}),
    (Filter(thread="t"), {"sibling", "event"}),
    (Filter(position=0), {"sibling"}),
    (Filter(thread="t", position=1), {"event"}),
    (Filter(created_from=T0 + DAY), {"event", "pinned", "hushed"}),
    (Filter(created_from=T0 + DAY + TICK), {"pinned", "hushed"}),
    (Filter(created_to=T0 + DAY), {"plain", "project", "child", "sibling"}),
    (Filter(created_to=T0 + DAY + TICK), {"plain", "project", "child", "sibling", "event"}),
    (Filter(created_from=T0 + DAY, created_to=T0 + DAY), set()),
    (Filter(pinned=True), {"pinned"}),
    (Filter(pinned=False), ALL - {"pinned"}),
    (Filter(include_suppressed=False), ALL - {"hushed"}),
    (Filter(suppressed_by=T0 + 4 * DAY), {"hushed"}),
    (Filter(suppressed_by=T0 + 4 * DAY - TICK), set()),
    (Filter(archived=True), {"shelved"}),
    (Filter(archived=None), ALL | {"shelved"}),
    (Filter(archived=None, scope="/project/old"), {"shelved"}),
    (Filter(archived=True, include_suppressed=False), {"shelved"}),
    (ANYTHING, ALL | {"shelved"}),
    (Filter(now=T0), ALL),
    (Filter(scope="/project", tags_any=("green",), author="ada"), {"project"}),
    (Filter(domains=("home",), pinned=False, node_types=("event",)), {"event"}),
    (Filter(scope="/project", pinned=True), set()),
]


@pytest.mark.parametrize(("where", "expected"), EACH_FIELD)
def test_a_filter_means_the_same_in_every_method(
    store: MemoryStore, where: Filter, expected: set[str]
) -> None:
    for memory in MEMORIES:
        add_with(store, memory, axis(0))
    streamed = [ids(records) for records in store.stream(where, access=EVERYTHING, batch=2)]
    (near,) = store.nearest(np.array([axis(0)]), SIGNATURE, where, access=EVERYTHING, limit=100)
    assert set(found(store, where)) == expected
    assert store.count(where, access=EVERYTHING) == len(expected)
    assert set(flat(streamed)) == expected
    assert set(hits(store.lexical(["zinc"], where, access=EVERYTHING, limit=100))) == expected
    assert set(hits(near)) == expected


def test_characters_that_patterns_use_mean_themselves_in_a_scope_and_a_tag(store: MemoryStore) -> None:
    add(
        store,
        replace(a_memory("percent"), scope="/50%", tags=("50%", 'say "hi"', "a,b", "[x]")),
        replace(a_memory("any"), scope="/50x/y", tags=("50x", "say hi", "a", "b", "x")),
        replace(a_memory("under"), scope="/a_b", tags=("a_b",)),
        replace(a_memory("letter"), scope="/axb/c", tags=("axb", "A_B")),
        replace(a_memory("upper"), scope="/A_B"),
    )
    assert found(store, Filter(scope="/50%")) == ["percent"]
    assert found(store, Filter(scope="/a_b")) == ["under"]
    assert found(store, Filter(scope="/%")) == []
    for tag in ("50%", 'say "hi"', "a,b", "[x]"):
        assert found(store, Filter(tags_any=(tag,))) == ["percent"]
        assert found(store, Filter(tags_all=(tag,))) == ["percent"]
    assert found(store, Filter(tags_any=("a_b",))) == ["under"]


def valid(name: str, start: int | None, end: int | None) -> Memory:
    return replace(
        a_memory(name),
        valid_from=None if start is None else T0 + start * DAY,
        valid_until=None if end is None else T0 + end * DAY,
    )


def test_what_is_valid_begins_with_its_first_moment_and_ends_before_its_last(store: MemoryStore) -> None:
    add(
        store, valid("always", None, None), valid("from", 1, None), valid("until", None, 1), valid("in", 1, 2)
    )
    add(store, valid("never", 1, 1))
    assert found(store, Filter(valid_at=T0 + DAY - TICK)) == ["always", "until"]
    assert found(store, Filter(valid_at=T0 + DAY)) == ["always", "from", "in"]
    assert found(store, Filter(valid_at=T0 + 2 * DAY - TICK)) == ["always", "from", "in"]
    assert found(store, Filter(valid_at=T0 + 2 * DAY)) == ["always", "from"]


def test_what_was_superseded_was_still_true_before_then(store: MemoryStore) -> None:
    add(store, replace(valid("old", None, 2), superseded_by="new"), valid("new", 2, None))
    assert found(store, Filter(valid_at=T0 + DAY)) == ["old"]
    assert found(store, Filter(valid_at=T0 + 2 * DAY)) == ["new"]
    assert found(store, ANYTHING) == ["new", "old"]


def test_retention_bounds_are_inclusive_and_judged_at_the_moment_given(store: MemoryStore) -> None:
    add(store, a_memory("fades"), a_memory("stays"))
    remark(store, "stays", Evidence.EASY, T0 + DAY)
    now = T0 + 40 * DAY
    fades = retention_of(held(store, "fades").strength, now)
    stays = retention_of(held(store, "stays").strength, now)
    middle = (fades + stays) / 2
    assert fades < middle < stays
    assert found(store, Filter(min_retention=middle, now=now)) == ["stays"]
    assert found(store, Filter(max_retention=middle, now=now)) == ["fades"]
    assert found(store, Filter(min_retention=fades - 1e-9, max_retention=stays + 1e-9, now=now)) == [
        "fades",
        "stays",
    ]
    assert found(store, Filter(min_retention=0.0, max_retention=0.0, now=now)) == []
    assert found(store, Filter(min_retention=middle, now=T0 + DAY)) == ["fades", "stays"]


def test_a_retention_bound_can_be_met_exactly(store: MemoryStore) -> None:
    add(store, a_memory("a"))
    retention = retention_of(held(store, "a").strength, T0)  # nothing has decayed yet: no rounding to fear
    assert found(store, Filter(min_retention=retention, max_retention=retention, now=T0)) == ["a"]


@pytest.mark.parametrize("where", [Filter(min_retention=0.5), Filter(max_retention=0.5)])
def test_a_retention_bound_without_a_moment_is_refused(store: MemoryStore, where: Filter) -> None:
    with pytest.raises(InvalidInput):
        store.find(where, access=EVERYTHING, limit=1)
    with pytest.raises(InvalidInput):
        store.count(where, access=EVERYTHING)


def test_due_by_keeps_what_is_due_at_that_moment_or_before(store: MemoryStore) -> None:
    add(store, a_memory("early"), a_memory("late", at=T0 + DAY))
    due_at = held(store, "early").strength.due_at
    assert found(store, Filter(due_by=due_at - TICK)) == []
    assert found(store, Filter(due_by=due_at)) == ["early"]
    assert found(store, Filter(due_by=due_at + DAY)) == ["early", "late"]


RECALLS = (
    Evidence.EXPOSED, Evidence.AGAIN, Evidence.GOOD, Evidence.PROMOTED, Evidence.DEMOTED, Evidence.USEFUL,
    Evidence.REINFORCED, Evidence.RECONSOLIDATED,
)  # fmt: skip
OTHERS = (Evidence.IMPORTANT, Evidence.CAPTURED, Evidence.REPLAYED, Evidence.INHIBITED)


def test_recalled_is_what_came_back_to_someone_not_what_only_the_memory_itself_did(
    store: MemoryStore,
) -> None:
    for one in (*RECALLS, *OTHERS):
        add_with(store, a_memory(one.value), axis(0))
        remark(store, one.value, one, T0 + DAY)
    add_with(store, a_memory("untouched"), axis(0))
    expected = {True: {one.value for one in RECALLS}, False: {*(one.value for one in OTHERS), "untouched"}}
    for recalled, names in expected.items():
        where = Filter(recalled=recalled)
        (near,) = store.nearest(np.array([axis(0)]), SIGNATURE, where, access=EVERYTHING, limit=100)
        assert set(found(store, where)) == names
        assert store.count(where, access=EVERYTHING) == len(names)
        assert set(flat(ids(some) for some in store.stream(where, access=EVERYTHING, batch=2))) == names
        assert set(hits(store.lexical(["zinc"], where, access=EVERYTHING, limit=100))) == names
        assert set(hits(near)) == names
        assert set(found(store, Filter(recalled=recalled, known_at=T0))) == names
    remark(store, "untouched", Evidence.EXPOSED, T0 + 2 * DAY)
    assert "untouched" in found(store, Filter(recalled=True))


def test_a_filter_follows_a_revision(store: MemoryStore) -> None:
    add(store, replace(a_memory("a"), tags=("red",), scope="/project", domains=("work",)))
    later = replace(a_memory("a"), tags=("blue",), scope="/user", domains=("home",), author="ada", revision=2)
    revise(store, later)
    for gone in (Filter(tags_any=("red",)), Filter(scope="/project"), Filter(domains=("work",))):
        assert found(store, gone) == []
    for there in (Filter(tags_all=("blue",)), Filter(scope="/user"), Filter(domains=("home",), author="ada")):
        assert found(store, there) == ["a"]


def test_what_is_known_of_the_user_is_inherited_everywhere(store: MemoryStore) -> None:
    add(store, replace(a_memory("of_user"), scope="/user/ada/home"))
    add(store, replace(a_memory("elsewhere"), scope="/project/b"))
    assert found(store, Filter(scope="/project/a", inherited=True)) == ["of_user"]
    assert found(store, Filter(scope="/project/a")) == []
