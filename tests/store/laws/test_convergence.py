"""Three stores that are changed apart and meet in any order end up alike: what they hold, and all that is
derived from it."""

from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from testbed.effort import effort
from tests.store.conftest import become_clone
from tests.store.support.compare import assert_same_records, assert_same_stats, assert_same_words
from tests.store.support.generators import HOUR, T0, NewStore, flat
from tests.store.support.stories import FILED, NAMES, SCOPES, TEXTS, Deed, Visit, go_on, live, stories, visit
from vestige.cognition.text.analyser import fingerprint
from vestige.core.models import ANYTHING, EVERYTHING, Filter, Record
from vestige.store.contract.changes import TUNED
from vestige.store.contract.store import MemoryStore
from vestige.store.merge.forks import origin
from vestige.store.merge.histories import Absorbed, DocumentHistory, EntityHistory
from vestige.store.merge.strength_log import Curves

TERMS = ("zinc", "co*", "日本", "16")


def records(store: MemoryStore) -> list[Record]:
    return store.get_many(NAMES, access=EVERYTHING)


def assert_alike(one: MemoryStore, other: MemoryStore) -> None:
    assert flat(one.histories(access=EVERYTHING)) == flat(other.histories(access=EVERYTHING))
    assert_same_records(records(one), records(other))
    names = [record.memory.id for record in records(one)]
    then = Filter(known_at=T0 + 100 * HOUR)
    for name in NAMES:
        assert one.tombstone(name, access=EVERYTHING) == other.tombstone(name, access=EVERYTHING)
    for name in names:
        assert one.history(name, access=EVERYTHING) == other.history(name, access=EVERYTHING)
    assert one.edges(names, access=EVERYTHING) == other.edges(names, access=EVERYTHING)
    for kind in FILED:
        assert one.documents(kind, access=EVERYTHING, limit=9) == other.documents(
            kind, access=EVERYTHING, limit=9
        )
    for where in (ANYTHING, Filter(), then):
        mine = one.lexical(TERMS, where, access=EVERYTHING, limit=9)
        assert_same_words(mine, other.lexical(TERMS, where, access=EVERYTHING, limit=9))
    prints = [fingerprint(text) for text in TEXTS]
    for scope in SCOPES:
        known = one.same_text(prints, scope=scope, valid_at=T0, access=EVERYTHING)
        assert known == other.same_text(prints, scope=scope, valid_at=T0, access=EVERYTHING)
    now = T0 + 3_000 * HOUR
    assert_same_stats(one, other, EVERYTHING, now)
    assert one.tag_counts(access=EVERYTHING) == other.tag_counts(access=EVERYTHING)


def events(store: MemoryStore) -> list[str]:
    """Every event as it was logged, whatever its name has become."""
    logged = (replace(one, node=origin(one.node), position=0) for one in store.log(access=EVERYTHING))
    return [f"{one} {sorted(one.payload.items())}" for one in logged]


random_stories = settings(
    max_examples=effort(20, nightly=300),
    deadline=None,
    derandomize=True,
    database=None,
    # every example opens stores of its own
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def assert_explained_by_its_log(store: MemoryStore) -> None:
    """Strengths are what the log says, to the last bit."""
    log = store.log(access=EVERYTHING)
    curves = Curves.from_events(event for event in log if event.kind == TUNED)
    for record in records(store):
        events = [event for event in log if event.memory_id == record.memory.id]
        assert curves.folded(record.memory.created_at, events).strength == record.strength


@pytest.mark.slow
@random_stories
@given(story=stories, order=st.permutations(list(permutations(range(3), 2))))
def test_stores_that_have_met_are_alike_whatever_happened_before(
    new_store: NewStore, new_oracle: NewStore, story: list[Deed | Visit], order: list[tuple[int, int]]
) -> None:
    stores = [new_store(), new_store(), new_oracle()]
    live(stores, story)
    for giver, taker in [*order, *order]:
        visit(stores[giver], stores[taker])
    for other in stores[1:]:
        assert_alike(stores[0], other)
    told = flat(stores[0].histories(access=EVERYTHING))
    for store in stores:
        assert_explained_by_its_log(store)
        assert store.absorb(told, access=EVERYTHING) == Absorbed()
        store.close()


@pytest.mark.slow
@random_stories
@given(
    before=stories,
    after=stories,
    clones=st.sampled_from([(0, 1), (1, 2), (0, 1, 2)]),
    order=st.permutations(list(permutations(range(3), 2))),
)
def test_clones_of_a_store_that_have_met_are_alike_and_each_event_counts_once(
    new_store: NewStore,
    new_oracle: NewStore,
    before: list[Deed | Visit],
    after: list[Deed | Visit],
    clones: tuple[int, ...],
    order: list[tuple[int, int]],
) -> None:
    stores = [new_store(), new_store(), new_oracle()]
    live(stores, before)
    for giver, taker in [*order, *order]:
        visit(stores[giver], stores[taker])
    for number in clones[1:]:
        become_clone(stores[number], stores[clones[0]])
    go_on(stores, after, first=1_000)
    written = {event for store in stores for event in events(store)}
    for giver, taker in [*order, *order]:
        visit(stores[giver], stores[taker])
    for store in stores:
        assert sorted(events(store)) == sorted(written)
    for other in stores[1:]:
        assert_alike(stores[0], other)
    told = flat(stores[0].histories(access=EVERYTHING))
    for store in stores:
        assert_explained_by_its_log(store)
        assert store.absorb(told, access=EVERYTHING) == Absorbed()
        store.close()


@pytest.mark.slow
@random_stories
@given(
    before=stories,
    after=stories,
    shares=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3),
    order=st.permutations(list(permutations(range(3), 2))),
)
def test_stores_whose_clocks_were_set_back_differently_are_alike_once_they_have_met(
    new_store: NewStore,
    new_oracle: NewStore,
    before: list[Deed | Visit],
    after: list[Deed | Visit],
    shares: list[float],
    order: list[tuple[int, int]],
) -> None:
    sources = [new_oracle(), new_oracle(), new_oracle()]
    live(sources, before)
    for giver, taker in [*order, *order]:
        visit(sources[giver], sources[taker])
    known = flat(sources[0].histories(access=EVERYTHING))
    stores = [new_store(), new_store(), new_oracle()]
    for store, share in zip(stores, shares, strict=True):
        store.absorb(set_back(known, share), access=EVERYTHING)
    go_on(stores, after, first=1_000)
    for giver, taker in [*order, *order]:
        visit(stores[giver], stores[taker])
    for other in stores[1:]:
        assert_alike(stores[0], other)
    told = flat(stores[0].histories(access=EVERYTHING))
    for store in stores:
        assert_explained_by_its_log(store)
        assert store.absorb(told, access=EVERYTHING) == Absorbed()
        store.close()


def set_back(known: list[EntityHistory], share: float) -> list[EntityHistory]:
    """The histories with lower clocks from a share of the events on, in the same order."""
    readings = sorted({event.clock for one in known for event in one.events})
    first = int(share * len(readings))
    lowest = readings[first] if first < len(readings) else 0
    lower = {clock: lowest + number for number, clock in enumerate(readings[first:])}

    def moved(one: EntityHistory) -> EntityHistory:
        events = tuple(replace(event, clock=lower.get(event.clock, event.clock)) for event in one.events)
        back = replace(one, events=events)
        return (
            replace(back, clock=lower.get(back.clock, back.clock))
            if isinstance(back, DocumentHistory)
            else back
        )

    return [moved(one) for one in known]
