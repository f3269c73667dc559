"""A server that is restarted under those who use it, as if the power had failed or in order."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from functools import partial

import pytest

from testbed.patience import PATIENCE_SECONDS, until
from testbed.postgres_server import NOT_RESTARTED, Mode, Server, server
from tests.store.support.generators import T0, a_memory, add, held
from tests.store.support.postgres_stores import ME, open_at, query
from vestige.core.errors import StoreBusy, StoreUnavailable
from vestige.core.events import Event, EventBus, MemoryDeleted
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.engine.reactions.relay import Relay
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server

ANOTHER = '{"type": "Another"}'
HELD = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted"


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with server(durable=True) as started:
        if started.cluster is None:
            pytest.skip(NOT_RESTARTED)
        yield started


@pytest.fixture
def store(own: Server) -> Iterator[PostgresStore]:
    url = own.new_database()
    with closing(open_at(url)) as opened:
        yield opened
    own.drop(url)


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_what_was_written_is_there_and_work_goes_on(own: Server, store: PostgresStore, mode: Mode) -> None:
    with ExitStack() as several:  # more than one idle session will have died
        for _ in range(3):
            several.enter_context(store._connections.reading())
    add(store, a_memory("before"))
    own.stop(mode)
    own.start()
    add(store, a_memory("after"))
    assert {record.memory.id for record in store.find(ANYTHING, access=EVERYTHING, limit=5)} == {
        "before",
        "after",
    }
    assert store.processes() == [ME]
    with store.alone("purge"):
        pass


def test_a_call_waits_for_a_server_that_comes_back(own: Server, store: PostgresStore) -> None:
    add(store, a_memory("before"))
    own.stop("immediate")
    starting = threading.Thread(target=own.start)
    starting.start()
    add(store, a_memory("after"))
    starting.join(PATIENCE_SECONDS)
    assert held(store, "before").memory.id == "before"


def test_opening_waits_for_a_server_that_comes_back(own: Server) -> None:
    url = own.new_database()
    own.stop("fast")
    starting = threading.Timer(0.2, own.start)
    starting.start()
    with closing(open_at(url)) as opened:
        add(opened, a_memory("after"))
        assert opened.count(ANYTHING, access=EVERYTHING) == 1
    starting.join(PATIENCE_SECONDS)
    own.drop(url)


def test_who_listens_hears_what_is_told_after_a_restart(own: Server, store: PostgresStore) -> None:
    with store.listening() as wait:
        wait(PATIENCE_SECONDS)
        own.stop("fast")
        with pytest.raises(StoreUnavailable):
            wait(PATIENCE_SECONDS)
        with pytest.raises(StoreUnavailable):
            wait(PATIENCE_SECONDS)
        own.start()
        assert wait(PATIENCE_SECONDS)
        store.notify("other", [ANOTHER])
        assert wait(PATIENCE_SECONDS)


def test_what_could_not_be_told_while_the_server_was_away_is_told_when_it_is_back(own: Server) -> None:
    url = own.new_database()
    with closing(open_at(url, busy_seconds=0.2)) as away:
        events = EventBus()
        relay = Relay(away, events, process="one", others=lambda: True)
        away.notify("other", [ANOTHER])
        own.stop("fast")
        events.emit(MemoryDeleted(timestamp=T0, scopes=None, id="gone"))
        relay.send()
        own.start()
        assert [notice.process for notice in away.notices(0)] == ["other"]
        relay.send()
        assert [notice.process for notice in away.notices(0)] == ["other", "one"]
        relay.close(PATIENCE_SECONDS)
    own.drop(url)


def test_who_only_follows_hears_what_is_told_right_after_a_restart(own: Server, store: PostgresStore) -> None:
    url = store._connections.place.url
    with closing(open_at(url)) as other:
        heard, here, there = list[Event](), EventBus(), EventBus()
        following = Relay(store, here, process="here", others=store.has_peers)
        writing = Relay(other, there, process="there", others=other.has_peers)
        following.start()
        with here.listening(heard.append, everywhere=True):
            for number in range(2):
                own.stop("fast")
                own.start()
                told = MemoryDeleted(timestamp=T0, scopes=None, id=f"m{number}")
                there.emit(told)
                writing.send()
                until(partial(heard.__contains__, told))
            until(lambda: len(other.processes()) == 2)
        following.close(PATIENCE_SECONDS)
        writing.close(PATIENCE_SECONDS)


def test_no_server_starts_beside_an_exclusive_one_after_a_restart(own: Server) -> None:
    url = own.new_database()
    exclusive = replace(ME, server=True, exclusive=True)
    with closing(open_at(url, who=exclusive)):
        own.stop("immediate")
        own.start()
        until(lambda: query(url, HELD) == [(1,)])
        with pytest.raises(StoreBusy, match="vestige test"):
            open_at(url, who=replace(ME, server=True))
    own.drop(url)


def test_a_server_that_stays_away_is_unavailable_and_the_store_can_be_closed(own: Server) -> None:
    url = own.new_database()
    waiting, leaving = open_at(url, busy_seconds=0.2), open_at(url, busy_seconds=0.2)
    add(waiting, a_memory("before"))
    own.stop("fast")
    try:
        with pytest.raises(StoreUnavailable, match="No connection"):
            add(waiting, a_memory("lost"))
        with pytest.raises(StoreUnavailable):
            waiting.get_many(["before"], access=EVERYTHING)
        leaving.close()
        with pytest.raises(StoreUnavailable):
            open_at(url, busy_seconds=0.2)
    finally:
        own.start()
    assert held(waiting, "before").memory.id == "before"
    waiting.close()
    own.drop(url)
