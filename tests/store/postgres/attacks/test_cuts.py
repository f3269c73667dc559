"""A conversation with the server that ends at any message: cut on the way, cut on the way back, or ended by
an administrator. What was acknowledged is there, what is said to be undone is not, and work goes on."""

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest

from testbed.effort import effort
from testbed.postgres_server import Server
from tests.store.support.generators import DAY, T0, a_memory, add, add_with, axis, forget, held, revise
from tests.store.support.meetings import a_document, give, put, words
from tests.store.support.postgres_proxy import How, Proxy, proxy
from tests.store.support.postgres_stores import open_at, query
from vestige.core.errors import StoreUnavailable
from vestige.core.models import ANYTHING, EVERYTHING, Memory
from vestige.store.inmemory import InMemoryStore
from vestige.store.postgres.opening import schema
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server

HOWS = (*(pytest.param(how, marks=pytest.mark.nightly) for how in ("before", "after")), "terminated")
"""The usual run ends sessions as an administrator does; a lost answer to a commit is in `test_connection`."""
EVERY = effort(6, nightly=1)
MOST_POINTS = 2_000


@pytest.fixture
def cutter(postgres_url: str) -> Iterator[Proxy]:
    with proxy(postgres_url) as made:
        yield made


@pytest.fixture
def store(cutter: Proxy) -> Iterator[PostgresStore]:
    with closing(open_at(cutter.url())) as opened:
        yield opened


def everywhere(cutter: Proxy, how: How, work: Callable[[int], None], every: int = EVERY) -> int:
    """Do something again and again, cut at its first message, at a later one, and at last not at all; how
    often it was cut."""
    for times, point in enumerate(count(step=every)):
        assert point < MOST_POINTS, "it does not end"
        cutter.arm(point, how)
        work(point)
        if not cutter.disarm():
            assert times > 1, "there were no messages to cut at"
            return times
    raise AssertionError


def sound(store: PostgresStore) -> None:
    """Nothing is broken, and the next write and read work."""
    assert [one for one in store.examine(T0, deep=True) if one.severity == "broken"] == []


def edit_of(memory: Memory) -> Memory:
    return replace(memory, content=f"{memory.content} edited", revision=memory.revision + 1)


def tried(work: Callable[[], object]) -> bool | None:
    """Whether something was acknowledged; None when the server did not say."""
    refusal = None
    try:
        work()
    except StoreUnavailable as error:
        refusal = error
    if refusal is None:
        return True
    assert refusal.hint
    return None if refusal.details.get("outcome") == "unknown" else False


@pytest.mark.parametrize("how", HOWS)
def test_a_write_that_was_acknowledged_is_there_and_one_that_was_refused_is_not(
    cutter: Proxy, store: PostgresStore, how: How
) -> None:
    outcomes: dict[str, bool | None] = {}

    def write(point: int) -> None:
        name = f"m{point}"
        outcomes[name] = tried(lambda: add_with(store, a_memory(name, f"zinc {point}"), axis(1)))

    everywhere(cutter, how, write)
    kept = {record.memory.id for record in store.find(ANYTHING, access=EVERYTHING, limit=9_999)}
    assert {name for name, done in outcomes.items() if done} <= kept
    assert not {name for name, done in outcomes.items() if done is False} & kept
    assert True in outcomes.values()
    sound(store)


@pytest.mark.parametrize("how", HOWS)
def test_a_change_and_a_deletion_are_done_whole_or_not_at_all(
    cutter: Proxy, store: PostgresStore, how: How
) -> None:
    def change(point: int) -> None:
        name = f"m{point}"
        armed = cutter.cut_at, cutter.how
        cutter.disarm()
        memory = a_memory(name, "zinc")
        add(store, memory)
        cutter.arm(*armed)
        edited = tried(lambda: revise(store, edit_of(memory)))
        if edited is not None:
            assert held(store, name).memory.content == (edit_of(memory).content if edited else "zinc")
        gone = tried(lambda: forget(store, name))
        if gone is not None:
            assert bool(store.get_many([name], access=EVERYTHING)) is not gone

    everywhere(cutter, how, change)
    sound(store)


@pytest.mark.parametrize("how", HOWS)
def test_a_read_answers_as_if_nothing_had_happened(cutter: Proxy, store: PostgresStore, how: How) -> None:
    add(store, *(a_memory(f"m{number}", f"zinc {number}") for number in range(5)))
    expected = words(store, "zinc")

    def read(point: int) -> None:
        assert words(store, "zinc") == expected
        assert held(store, "m1").memory.content == "zinc 1"

    everywhere(cutter, how, read, every=1)


@pytest.mark.parametrize("how", HOWS)
def test_a_synchronisation_that_was_cut_is_completed_by_the_next_one(
    cutter: Proxy, store: PostgresStore, how: How
) -> None:
    def synchronise(point: int) -> None:
        other = InMemoryStore(node=f"other-{point}")
        memories = [a_memory(f"s{point}-{number}", f"cobalt {number}") for number in range(3)]
        add(other, *memories)
        revise(other, edit_of(memories[0]))
        put(other, a_document(f"d{point}", cites=(memories[0].id,)))
        forget(other, memories[2].id, T0 + DAY)
        # There is one cut, and only one of a commit leaves it open whether the first time was enough.
        assert tried(lambda: give(other, store)) or tried(lambda: give(other, store))
        assert store.get_many([memories[2].id], access=EVERYTHING) == []
        for memory in memories[:2]:
            assert held(store, memory.id) == held(other, memory.id)

    everywhere(cutter, how, synchronise, every=effort(9, nightly=1))
    sound(store)


@pytest.mark.parametrize("how", HOWS)
def test_a_store_whose_making_was_cut_is_made_by_the_next_who_opens_it(
    postgres_server: Server, how: How
) -> None:
    url = postgres_server.new_database()
    with proxy(url) as cutter:

        def make(point: int) -> None:
            name = f"store_{point}"
            tried(lambda: open_at(cutter.url(), schema=name).close())
            with closing(open_at(url, schema=name)) as store:
                add(store, a_memory("m1"))
                sound(store)
            done = query(url, f"SELECT version FROM {name}.schema_migrations ORDER BY version")
            assert done == [(step.version,) for step in schema()]
            query(url, f"DROP SCHEMA {name} CASCADE")

        everywhere(cutter, how, make, every=effort(97, nightly=7))
    postgres_server.drop(url)
