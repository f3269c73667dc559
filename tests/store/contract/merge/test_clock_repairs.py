"""Events whose clock was set back in one of two stores, as `doctor --repair` does with a clock that is far
ahead: both stores come to one order of events, whatever was written between the repairs."""

from collections.abc import Callable
from dataclasses import replace

from tests.store.support.generators import DAY, HOUR, T0, NewStore, a_memory, add, held, link, remark
from tests.store.support.meetings import Pair, a_document, bodies, edit, give, lives, meet, put, words
from vestige.core.clock import tick
from vestige.core.models import EVERYTHING, Evidence, LogEvent
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.histories import Absorbed, DocumentHistory, EntityHistory

AHEAD_HOURS = 90_000
AHEAD = tick(0, T0 + (AHEAD_HOURS - 1) * HOUR)


def set_back(history: EntityHistory, hours: int) -> EntityHistory:
    """The history with readings as they are if the clock that was ahead had been right, some hours after T0.
    The order of the events stays."""
    by = tick(0, T0 + AHEAD_HOURS * HOUR) - tick(0, T0 + hours * HOUR)

    def lowered(clock: int) -> int:
        return clock - by if clock > AHEAD else clock

    def repaired(event: LogEvent) -> LogEvent:
        return replace(event, clock=lowered(event.clock))

    moved = replace(history, events=tuple(map(repaired, history.events)))
    return replace(moved, clock=lowered(moved.clock)) if isinstance(moved, DocumentHistory) else moved


def repaired(new_store: NewStore, ill: MemoryStore, hours: int = 2) -> MemoryStore:
    """A store with the same events, in which the clock was set back."""
    store = new_store()
    store.absorb([set_back(one, hours) for one in lives(ill)], access=EVERYTHING)
    return store


def shared(new_store: NewStore, write: Callable[[MemoryStore], None]) -> Pair:
    """Two stores that both have what the first wrote when its clock was far ahead."""
    one, other = new_store(), new_store()
    add(one, a_memory("a"), a_memory("b"))
    write(one)
    give(one, other)
    return one, other


def test_a_change_after_the_repair_counts_in_a_store_that_was_not_repaired_yet(new_store: NewStore) -> None:
    ill, other = shared(new_store, lambda store: edit(store, AHEAD_HOURS, content="tin", tags=("red",)))
    well = repaired(new_store, ill)
    edit(well, 5, content="copper")
    assert give(well, other).memories_changed == 1
    assert held(other, "a").memory.content == "copper"
    assert held(other, "a").memory.tags == ("red",)
    assert words(other, "copper") == ["a"]
    assert words(other, "tin") == []
    assert [one.memory.content for one in other.history("a", access=EVERYTHING)] == ["zinc and cobalt", "tin"]
    meet(well, other)


def test_two_repairs_that_set_a_clock_to_different_readings_end_at_one(new_store: NewStore) -> None:
    def write(store: MemoryStore) -> None:
        edit(store, AHEAD_HOURS, content="tin")
        put(store, replace(a_document("one"), updated_at=T0 + AHEAD_HOURS * HOUR))

    ill, _ = shared(new_store, write)
    early, late = repaired(new_store, ill, hours=2), repaired(new_store, ill, hours=9)
    edit(early, 5, content="copper")
    edit(late, 12, tags=("red",))
    meet(early, late)
    for store in (early, late):
        assert (held(store, "a").memory.content, held(store, "a").memory.tags) == ("copper", ("red",))
        assert bodies(store) == {"one": 1}
    assert give(early, late) == give(late, early) == Absorbed()


def test_a_repair_without_any_later_change_reaches_the_other_store(new_store: NewStore) -> None:
    ill, other = shared(new_store, lambda store: edit(store, AHEAD_HOURS, content="tin"))
    edit(other, AHEAD_HOURS + 1, content="lead")
    well = repaired(new_store, ill)
    give(well, other)
    assert max(event.clock for event in other.log(access=EVERYTHING) if event.node == ill.node) < AHEAD
    assert held(other, "a").memory.content == "lead"
    meet(well, other)


def test_evidence_and_edges_take_the_order_of_the_repair(new_store: NewStore) -> None:
    def write(store: MemoryStore) -> None:
        remark(store, "a", Evidence.DEMOTED, T0 + AHEAD_HOURS * HOUR)
        link(store, "a", "b", weight=0.2)

    ill, other = shared(new_store, write)
    well = repaired(new_store, ill)
    remark(well, "a", Evidence.PROMOTED, T0 + DAY)
    link(well, "a", "b", weight=0.7)
    give(well, other)
    assert [edge.weight for edge in other.edges(["a"], access=EVERYTHING)] == [0.7]
    assert held(other, "a").strength == held(well, "a").strength
    meet(well, other)
