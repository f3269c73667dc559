"""Many clients on one store in PostgreSQL, each with connections of its own; also when the server crashes."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from functools import partial

import pytest

from testbed.effort import effort
from testbed.postgres_server import NOT_RESTARTED, Server, server
from tests.store.laws.test_convergence import assert_explained_by_its_log
from tests.store.support.generators import T0, a_memory, add, held
from tests.store.support.postgres_stores import open_at
from vestige.core.errors import StoreUnavailable
from vestige.core.models import ANYTHING, EVERYTHING, Evidence, LogEvent
from vestige.store.contract.changes import Add, Change, RecordEvidence
from vestige.store.contract.search import Probe
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server

CLIENTS, SEARCHERS, SCHEDULERS = effort(8, nightly=16), effort(4, nightly=8), 2
WRITES = REMARKS = effort(40, nightly=100)
REMARKED = "memory.remarked"


@pytest.fixture(scope="module")
def own() -> Iterator[Server]:
    with server(durable=True) as started:
        yield started


@pytest.fixture
def url(own: Server) -> Iterator[str]:
    database = own.new_database()
    yield database
    own.drop(database)


class Crowd:
    """Those who write, search, schedule and follow the log at the same time. `halfway` is called once, when
    half of the memories are written."""

    def __init__(self, url: str, halfway: Callable[[], object] = lambda: None) -> None:
        self.url = url
        self.halfway = halfway
        self.written = 0
        self.done = False
        self.changed = threading.Condition()
        self.searches = 0
        self.followed: list[LogEvent] = []

    def run(self) -> None:
        with ThreadPoolExecutor(CLIENTS + SEARCHERS + SCHEDULERS + 2) as threads:
            working = [threads.submit(self.write, number) for number in range(CLIENTS)]
            working += [threads.submit(self.schedule, number) for number in range(SCHEDULERS)]
            reading = [threads.submit(self.search, number) for number in range(SEARCHERS)]
            reading.append(threads.submit(self.follow))
            try:
                for one in working:
                    one.result()
            finally:
                with self.changed:
                    self.done = True
                    self.changed.notify_all()
            for one in reading:
                one.result()

    def write(self, client: int) -> None:
        with closing(open_at(self.url)) as store:
            for number in range(WRITES):
                name, text = f"{client}-{number}", f"client{client} writes zinc number {number}"
                insist(store, Add(memory=a_memory(name, text)), partial(has, store, name))
                self.count()

    def count(self) -> None:
        with self.changed:
            self.written += 1
            self.changed.notify_all()
            now = self.written == CLIENTS * WRITES // 2
        if now:
            self.halfway()

    def more(self, than: int) -> int:
        """Wait until more is written than that, or all; how much it is."""
        with self.changed:
            self.changed.wait_for(lambda: self.written > than or self.done)
            return self.written

    def schedule(self, client: int) -> None:
        with closing(open_at(self.url)) as store:
            for number in range(REMARKS):
                sign = f"{client}-{number}"
                remark = RecordEvidence(
                    memory_id="shared",
                    evidence=Evidence.GOOD,
                    at=T0 + timedelta(days=number, hours=client),
                    details={"sign": sign},
                )
                insist(store, remark, partial(has_sign, store, sign))

    def search(self, number: int) -> None:
        probe = Probe(terms=("zinc", f"client{number}"), per_arm=20)
        with closing(open_at(self.url)) as store:
            seen = 0
            while not self.done:
                seen = self.more(than=seen + SEARCHERS)
                store.gather(probe, access=EVERYTHING)
                self.searches += 1

    def follow(self) -> None:
        with closing(open_at(self.url)) as store:
            seen = 0
            while True:
                ending = self.done
                seen = self.more(than=seen)
                after = self.followed[-1].position if self.followed else 0
                news = store.log(access=EVERYTHING, after=after, limit=50)
                self.followed += news
                if ending and not news:
                    return


def insist(store: PostgresStore, change: Change, is_there: Callable[[], bool]) -> None:
    """What a careful client does: nothing, unless the store says that the outcome is not known."""
    try:
        store.commit([change], access=EVERYTHING)
    except StoreUnavailable as exc:
        if exc.details.get("outcome") != "unknown":
            raise
        if not is_there():
            store.commit([change], access=EVERYTHING)


def has(store: PostgresStore, name: str) -> bool:
    return bool(store.get_many([name], access=EVERYTHING))


def has_sign(store: PostgresStore, sign: str) -> bool:
    return sign in signs(store)


def signs(store: PostgresStore) -> list[str]:
    events = store.log(access=EVERYTHING, memory_id="shared", limit=10_000)
    return [event.payload["details"]["sign"] for event in events if event.kind == REMARKED]


def assert_whole(url: str, crowd: Crowd) -> None:
    with closing(open_at(url)) as store:
        found = store.find(ANYTHING, access=EVERYTHING, limit=10_000)
        assert len(found) == CLIENTS * WRITES + 1
        log = store.log(access=EVERYTHING, limit=100_000)
        assert crowd.followed == log
        assert [event.position for event in log] == sorted({event.position for event in log})
        assert len({(event.node, event.seq) for event in log}) == len(log)
        assert sorted(signs(store)) == sorted(f"{c}-{n}" for c in range(SCHEDULERS) for n in range(REMARKS))
        assert held(store, "shared").strength.reps == SCHEDULERS * REMARKS
        assert_explained_by_its_log(store)
        worded = store.lexical(["zinc"], ANYTHING, access=EVERYTHING, limit=10_000, postings=None)
        assert len(worded) == CLIENTS * WRITES
        assert [trouble.check for trouble in store.examine(T0.replace(year=2030))] == []
    assert crowd.searches > 0


def test_nothing_is_lost_or_skipped_among_many_clients(url: str) -> None:
    with closing(open_at(url)) as store:
        add(store, a_memory("shared", "shared by all who schedule"))
    crowd = Crowd(url)
    crowd.run()
    assert_whole(url, crowd)


def test_every_acknowledged_write_outlives_a_crash_and_clients_go_on_by_themselves(
    own: Server, url: str
) -> None:
    if own.cluster is None:
        pytest.skip(NOT_RESTARTED)
    with closing(open_at(url)) as store:
        add(store, a_memory("shared", "shared by all who schedule"))

    def crash() -> None:
        own.stop("immediate")
        own.start()

    crowd = Crowd(url, crash)
    crowd.run()
    assert_whole(url, crowd)
