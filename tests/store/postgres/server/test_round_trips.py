"""How often a call waits for the server: over a network that is what takes the time."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace

import pytest
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tests.store.support.generators import SIGNATURE, T0, a_memory, a_turn, add, axis, embedded, some_tokens
from tests.store.support.postgres_stores import open_at
from vestige.core.models import EVERYTHING, Edge, Evidence, Filter
from vestige.store.contract.changes import Add, Link, RecordEvidence
from vestige.store.contract.search import Probe
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server


class Counter:
    """A way to the server on which it is counted how often a client speaks after it was answered."""

    def __init__(self, url: str) -> None:
        told = conninfo_to_dict(url)
        self._host, self._port = str(told.get("host") or "localhost"), int(told.get("port") or 5432)
        self._door = socket.create_server(("127.0.0.1", 0))
        self._answered = True
        self._lock = threading.Lock()
        self.trips = 0
        self.url = make_conninfo(url, host="127.0.0.1", port=self._door.getsockname()[1])
        threading.Thread(target=self._let_in, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _let_in(self) -> None:
        with suppress(OSError):  # the door was closed
            while True:
                client, server = self._door.accept()[0], self._connected()
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._carry, args=ends, daemon=True).start()

    def _connected(self) -> socket.socket:
        if not self._host.startswith("/"):
            return socket.create_connection((self._host, self._port))
        server = socket.socket(socket.AF_UNIX)
        server.connect(f"{self._host}/.s.PGSQL.{self._port}")
        return server

    def _carry(self, here: socket.socket, there: socket.socket, asks: bool) -> None:
        with here, there, suppress(OSError):
            while said := here.recv(1 << 16):
                with self._lock:
                    self.trips += asks and self._answered
                    self._answered = not asks
                there.sendall(said)


@pytest.fixture
def counter(postgres_url: str) -> Iterator[Counter]:
    with closing(Counter(postgres_url)) as counting:
        yield counting


@pytest.fixture
def store(counter: Counter) -> Iterator[PostgresStore]:
    with closing(open_at(counter.url)) as opened:
        yield opened


def an_addition(number: int) -> Add:
    memory = replace(a_turn(f"m{number}", f"zinc is lamp number {number}", number), tags=("red", "blue"))
    return Add(memory=memory, embedded=embedded(memory, axis(number % 3), tokens=[some_tokens(number)]))


def test_a_memory_is_written_in_four_trips(store: PostgresStore, counter: Counter) -> None:
    store.commit([an_addition(0)], access=EVERYTHING)
    before = counter.trips
    store.commit([an_addition(1)], access=EVERYTHING)
    assert counter.trips - before <= 4


def test_several_memories_take_no_more_trips_than_one(store: PostgresStore, counter: Counter) -> None:
    store.commit([an_addition(0)], access=EVERYTHING)
    before = counter.trips
    store.commit([an_addition(number) for number in range(1, 4)], access=EVERYTHING)
    assert counter.trips - before <= 4


def test_a_remark_or_a_link_is_written_in_four_trips(store: PostgresStore, counter: Counter) -> None:
    add(store, a_memory("m1"), a_memory("m2"))
    edge = Edge(source_id="m1", target_id="m2", kind="related", weight=0.5, created_at=T0)
    for change in (RecordEvidence(memory_id="m1", evidence=Evidence.GOOD, at=T0), Link(edge=edge)):
        before = counter.trips
        store.commit([change], access=EVERYTHING)
        assert counter.trips - before <= 4


def test_a_search_takes_one_trip_more_than_statements(store: PostgresStore, counter: Counter) -> None:
    store.commit([an_addition(number) for number in range(3)], access=EVERYTHING)
    where = Filter(scope="/", tags_any=("red",), valid_at=T0)
    probe = Probe(
        terms=("zinc", "lamp*"),
        literals=("lamp",),
        vector=axis(0),
        signature=SIGNATURE,
        where=where,
        per_arm=10,
    )
    before = counter.trips
    assert len(store.gather(probe, access=EVERYTHING).ids) == 3
    assert counter.trips - before <= 4


def test_what_one_statement_answers_takes_one_trip(store: PostgresStore, counter: Counter) -> None:
    store.commit([an_addition(0)], access=EVERYTHING)
    for ask in (
        lambda: store.get_many(["m0"], access=EVERYTHING),
        lambda: store.edges(["m0"], access=EVERYTHING),
        lambda: store.log(access=EVERYTHING),
        lambda: store.voices([1], access=EVERYTHING),
        lambda: store.key_of_login("key", "login"),
        lambda: store.login_ended("login"),
    ):
        before = counter.trips
        ask()
        assert counter.trips - before == 1
