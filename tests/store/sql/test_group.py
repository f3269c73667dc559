"""Commits of several threads that wait for the writer share a transaction, and nothing else."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from tests.store.conftest import OTHERS, opener
from tests.store.support.generators import T0, a_memory, add, found
from vestige.core.errors import Conflict, IdempotencyConflict, NotFound, StoreBusy, StoreError
from vestige.core.models import ANYTHING, EVERYTHING, Evidence, LogEvent
from vestige.store.contract.changes import Add, Change, Claim, Forget, RecordEvidence
from vestige.store.postgres.store import PostgresStore
from vestige.store.sql.group import MOST_CHANGES, MOST_TOGETHER, Commit, CommitQueue, GroupWriter, Take
from vestige.store.sqlite.store import SqliteStore

Store = SqliteStore | PostgresStore


class WatchedQueue(CommitQueue):
    """A queue that knows how many commits each transaction had."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def _take(self, mine: Commit) -> list[Commit]:
        group = super()._take(mine)
        self.sizes.append(len(group))
        return group


@pytest.fixture(params=OTHERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with opener(request.param, tmp_path, request) as new:
        opened = new()
        assert isinstance(opened, Store)
        opened._commits = WatchedQueue()
        yield opened


def sizes(store: Store) -> list[int]:
    assert isinstance(store._commits, WatchedQueue)
    return store._commits.sizes


def together(
    store: Store, *several: Sequence[Change], claims: Sequence[Claim | None] = ()
) -> list[Future[list[LogEvent]]]:
    """Commit each in a thread of its own, all waiting for the same writer, in this order."""
    moment, begun = threading.Event(), list[Future[list[LogEvent]]]()
    with ThreadPoolExecutor(len(several)) as threads, store._tables.writing():
        for number, changes in enumerate(several):
            claim = claims[number] if claims else None
            begun.append(
                threads.submit(
                    store.commit, changes, access=EVERYTHING, claim=claim, patience_seconds=PATIENCE_SECONDS
                )
            )
            while len(store._commits._waiting) <= number:
                moment.wait(0.001)
    return begun


SQLITE_REFUSAL = (
    "CREATE TRIGGER refusal BEFORE INSERT ON memories WHEN NEW.id = 'm9'"
    " BEGIN SELECT RAISE(ROLLBACK, 'refused'); END",
)
POSTGRES_REFUSAL = (
    "CREATE FUNCTION refusal() RETURNS trigger LANGUAGE plpgsql AS $$"
    " BEGIN IF NEW.id = 'm9' THEN RAISE EXCEPTION 'refused'; END IF; RETURN NEW; END $$",
    "CREATE TRIGGER refusal BEFORE INSERT ON memories FOR EACH ROW EXECUTE FUNCTION refusal()",
)


@contextmanager
def refusing(store: Store) -> Iterator[None]:
    """The database rolls back every transaction that adds the memory m9."""
    on_server = isinstance(store, PostgresStore)
    end = ("DROP FUNCTION refusal CASCADE",) if on_server else ("DROP TRIGGER refusal",)
    run(store, POSTGRES_REFUSAL if on_server else SQLITE_REFUSAL)
    yield
    run(store, end)  # the tests' databases are used again


def run(store: Store, statements: Sequence[str]) -> None:
    for statement in statements:
        with store._tables.writing() as db:
            db.execute(statement)


def addition(number: int) -> Add:
    return Add(memory=a_memory(f"m{number}", f"lamp {number}"))


def test_commits_that_wait_together_are_one_transaction_in_the_order_they_came(store: Store) -> None:
    done = together(store, *([addition(number)] for number in range(5)))

    assert sizes(store) == [5]
    events = [event for one in done for event in one.result()]
    assert [event.memory_id for event in events] == [f"m{number}" for number in range(5)]
    assert store.log(access=EVERYTHING) == events
    assert found(store, ANYTHING) == [f"m{number}" for number in range(5)]


def test_a_commit_that_comes_alone_is_a_transaction_of_its_own(store: Store) -> None:
    for number in range(3):
        add(store, a_memory(f"m{number}"))
    assert sizes(store) == [1, 1, 1]


def test_one_that_is_refused_gets_its_own_error_and_leaves_the_others_alone(store: Store) -> None:
    add(store, a_memory("known"))
    twice = Add(memory=a_memory("known", "another text"))
    of_nothing = RecordEvidence(memory_id="nothing", evidence=Evidence.GOOD, at=T0)

    first, taken, missing, half, last = together(
        store, [addition(1)], [twice], [of_nothing], [addition(2), of_nothing], [addition(3)]
    )

    assert sizes(store) == [1, 5]
    assert [event.memory_id for one in (first, last) for event in one.result()] == ["m1", "m3"]
    for refused, kind in ((taken, Conflict), (missing, NotFound), (half, NotFound)):
        with pytest.raises(kind):
            refused.result()
    assert found(store, ANYTHING) == ["known", "m1", "m3"]
    assert [event.position for event in store.log(access=EVERYTHING)] == [1, 2, 3]


def test_one_that_the_database_refuses_fails_alone(store: Store) -> None:
    with refusing(store):
        first, broken, last = together(store, [addition(1)], [addition(9)], [addition(2)])

    assert sizes(store) == [3, 1, 1, 1]
    with pytest.raises(StoreError):
        broken.result()
    assert [event.memory_id for one in (first, last) for event in one.result()] == ["m1", "m2"]
    assert found(store, ANYTHING) == ["m1", "m2"]


def test_a_key_that_two_requests_claim_at_once_belongs_to_the_first(store: Store) -> None:
    claims = [Claim(key="key", digest="same", answer=f"answer {number}", at=T0) for number in range(2)]

    first, second = together(store, [addition(1)], [addition(2)], claims=claims)

    assert len(first.result()) == 1
    with pytest.raises(IdempotencyConflict):
        second.result()
    assert store.claimed("key") == claims[0]
    assert found(store, ANYTHING) == ["m1"]


def test_a_later_commit_of_a_group_sees_what_an_earlier_one_wrote(store: Store) -> None:
    seen = RecordEvidence(memory_id="m1", evidence=Evidence.GOOD, at=T0)
    _, second = together(store, [addition(1)], [seen])
    assert [event.memory_id for event in second.result()] == ["m1"]


def test_a_deletion_shares_no_transaction(store: Store) -> None:
    add(store, a_memory("old"))
    forget = Forget(memory_id="old", at=T0, reason="asked")

    for one in together(store, [addition(1)], [forget], [addition(2)], [addition(3)]):
        one.result()

    assert sizes(store) == [1, 1, 1, 2]
    assert found(store, ANYTHING) == ["m1", "m2", "m3"]


def test_a_transaction_has_a_limit_of_commits_and_of_changes(store: Store) -> None:
    many = [Add(memory=a_memory(f"n{number}")) for number in range(MOST_CHANGES)]
    for one in together(store, *([addition(number)] for number in range(MOST_TOGETHER + 2)), many):
        one.result()
    assert sizes(store) == [MOST_TOGETHER, 2, 1]


def test_one_whose_turn_does_not_come_is_refused_and_holds_up_nobody(store: Store) -> None:
    moment = threading.Event()
    with ThreadPoolExecutor(1) as threads, store._tables.writing():
        first = threads.submit(
            store.commit, [addition(1)], access=EVERYTHING, patience_seconds=PATIENCE_SECONDS
        )
        while not store._commits._waiting:
            moment.wait(0.001)
        with pytest.raises(StoreBusy):
            store.commit([addition(2)], access=EVERYTHING, patience_seconds=0.01)
    assert len(first.result()) == 1
    assert sizes(store) == [1]
    add(store, a_memory("m3"))
    assert found(store, ANYTHING) == ["m1", "m3"]


class InterruptedWait(threading.Event):
    """An event whose waiting thread gets Ctrl-C."""

    def wait(self, timeout: float | None = None) -> bool:
        raise KeyboardInterrupt


def an_empty_commit(woken: threading.Event | None = None) -> Commit:
    made = Commit(steps=[], changes=[], access=EVERYTHING, claim=None)
    made.woken = woken or made.woken
    return made


def test_a_leader_that_is_interrupted_lets_no_other_thread_wait() -> None:
    queue, follower = CommitQueue(), an_empty_commit()

    def write(take: Take) -> None:
        queue._waiting.append(follower)
        take()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        queue.run(
            an_empty_commit(),
            GroupWriter(write=write, conclude=lambda _: None, patience_seconds=PATIENCE_SECONDS),
        )

    assert follower.woken.is_set()
    assert isinstance(follower.error, StoreError)


def test_a_thread_that_is_interrupted_while_it_waits_leaves_the_queue() -> None:
    queue = CommitQueue()
    queue._led = True  # by another thread

    with pytest.raises(KeyboardInterrupt):
        queue.run(
            an_empty_commit(InterruptedWait()),
            GroupWriter(
                write=lambda take: take(), conclude=lambda _: None, patience_seconds=PATIENCE_SECONDS
            ),
        )

    assert not queue._waiting
