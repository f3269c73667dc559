"""Connections to PostgreSQL: how they are lent, how long is waited, what becomes of a failed transaction."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress

import psycopg
import pytest
from psycopg import errors

from testbed.patience import PATIENCE_SECONDS, until
from tests.store.support.generators import a_memory, add, held
from tests.store.support.postgres_stores import open_at, outside, query
from vestige.core.errors import InvalidInput, StoreBusy, StoreError, StoreUnavailable
from vestige.core.models import EVERYTHING
from vestige.store.postgres.connection import PostgresConnections, PostgresSession
from vestige.store.postgres.server.address import ServerAddress
from vestige.store.postgres.server.errors import store_error
from vestige.store.postgres.server.pool import (
    IDLE_SECONDS,
    RETRY_SECONDS,
    ConnectionPool,
    ServerUnreachable,
    ServerWait,
)
from vestige.store.postgres.store import PostgresStore
from vestige.store.sql.filters import listed

pytestmark = pytest.mark.slow  # starts a server

END_MYSELF = "SELECT pg_terminate_backend(pg_backend_pid())"
SESSIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'vestige%%'"
)
AT_COMMIT = """
CREATE FUNCTION end_myself() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER ends AFTER INSERT ON memories DEFERRABLE INITIALLY DEFERRED
    FOR EACH ROW EXECUTE FUNCTION end_myself()"""


@pytest.fixture
def store(postgres_url: str) -> Iterator[PostgresStore]:
    with closing(open_at(postgres_url)) as opened:
        yield opened


@pytest.fixture
def connections(store: PostgresStore) -> PostgresConnections:
    return store._connections


def put(db: PostgresSession, name: str) -> None:
    db.execute("INSERT INTO tombstones (id, scope, deleted_at) VALUES (?, '/', '')", (name,))


def names(url: str) -> list[str]:
    return [row[0] for row in query(url, "SELECT id FROM tombstones ORDER BY id")]


# -- transactions ----------------------------------------------------------------------------------


def test_a_write_is_kept_whole_or_not_at_all(connections: PostgresConnections, postgres_url: str) -> None:
    with connections.writing() as db:
        put(db, "kept")

    def fail() -> None:
        with connections.writing() as db:
            put(db, "undone")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert names(postgres_url) == ["kept"]


def test_an_error_that_somebody_swallows_does_not_pass_for_a_write(
    connections: PostgresConnections, postgres_url: str
) -> None:
    def swallow() -> None:
        with connections.writing() as db:
            put(db, "undone")
            with suppress(psycopg.Error):
                db.execute("SELECT 1/0")

    with pytest.raises(StoreError):
        swallow()
    assert names(postgres_url) == []


def test_writers_come_one_after_the_other_and_the_one_in_the_way_is_named(
    connections: PostgresConnections,
) -> None:
    with connections.writing(), pytest.raises(StoreBusy, match=r"vestige test \(\d+\)") as caught:
        connections.writing(0.05).__enter__()
    assert "pg_terminate_backend" in (caught.value.hint or "")
    with connections.writing(0.05):
        pass


def test_who_waits_for_other_writers_may_wait_longer_than_a_statement_may_take(
    connections: PostgresConnections, postgres_url: str
) -> None:
    with closing(open_at(postgres_url, statement_seconds=0.8, busy_seconds=2.0)) as waiting:
        with connections.writing(), pytest.raises(StoreBusy, match=r"stayed busy for 2\.0 s"):
            add(waiting, a_memory("m1"))
        with waiting._connections.writing() as db:
            limits = db.execute(
                "SELECT current_setting('lock_timeout'), current_setting('statement_timeout')"
            ).fetchone()
        assert limits == ("0", "800ms"), "which hold for the waiting only"


def test_a_snapshot_sees_one_moment(connections: PostgresConnections) -> None:
    with connections.reading() as db:
        before = db.execute("SELECT count(*) FROM tombstones").fetchone()
        with connections.writing() as writer:
            put(writer, "new")
        assert db.execute("SELECT count(*) FROM tombstones").fetchone() == before


def test_a_statement_that_takes_too_long_is_cancelled_unless_it_may_take_its_time(postgres_url: str) -> None:
    with closing(open_at(postgres_url, statement_seconds=0.5, max_connections=1)) as store:
        for _ in range(2):  # the limit is back after the long one
            with pytest.raises(StoreBusy, match="cancelled") as caught, store._connections.reading() as db:
                db.execute("SELECT pg_sleep(60)")
            assert "statement_seconds" in (caught.value.hint or "")
            with store._connections.unhurried() as db:
                db.execute("SELECT pg_sleep(0.6)")


def test_what_the_server_undoes_for_anothers_sake_is_done_again(
    connections: PostgresConnections, postgres_url: str
) -> None:
    codes = ["40001", "40P01"]

    def work(db: PostgresSession) -> str:
        put(db, "once")
        if codes:
            db.command(f"DO $$ BEGIN RAISE EXCEPTION 'undone' USING ERRCODE = '{codes.pop()}'; END $$")
        return "done"

    assert connections.written(work) == "done"
    assert names(postgres_url) == ["once"]


@pytest.mark.parametrize(
    "kind",
    [
        *(errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.DatabaseDropped),
        *(errors.IdleSessionTimeout, errors.ConnectionFailure, errors.ProtocolViolation),
    ],
)
def test_a_server_that_ends_a_session_is_unavailable(kind: type[psycopg.Error]) -> None:
    told = store_error(kind("It ends."), ServerAddress(url="postgresql://ada@db.example/memories"))
    assert isinstance(told, StoreUnavailable)
    assert "It ends." in told.message


def test_a_value_that_the_server_refuses_is_bad_input(connections: PostgresConnections) -> None:
    with pytest.raises(InvalidInput), connections.writing() as db:
        db.execute("SELECT ?::int", ("no number",))


def test_lists_of_small_and_large_numbers_go_together(connections: PostgresConnections) -> None:
    small, large = [1, 2], [142_856, 2**40]
    with connections.reading() as db:
        rows = db.execute("SELECT * FROM unnest(?::bigint[], ?::bigint[])", (listed(small), listed(large)))
        assert rows.fetchall() == list(zip(small, large, strict=True))


# -- sessions that die -----------------------------------------------------------------------------


def test_a_session_that_died_while_nobody_used_it_is_replaced(
    store: PostgresStore, postgres_url: str
) -> None:
    with ExitStack() as several:
        for _ in range(3):
            several.enter_context(store._connections.reading())
    _end_idle_sessions(postgres_url)
    add(store, a_memory("m1"))
    assert held(store, "m1").memory.id == "m1"


def _end_idle_sessions(url: str) -> None:
    query(
        url,
        "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity WHERE datname = current_database()"
        " AND pid <> pg_backend_pid() AND application_name LIKE 'vestige%%'",
    )


def test_a_write_whose_session_dies_before_the_end_is_done_again(
    connections: PostgresConnections, postgres_url: str
) -> None:
    endings = [END_MYSELF]

    def work(db: PostgresSession) -> None:
        put(db, "once")
        if endings:
            db.execute(endings.pop())

    connections.written(work)
    assert names(postgres_url) == ["once"]


def test_who_cannot_do_it_again_is_told_that_nothing_was_kept(
    connections: PostgresConnections, postgres_url: str
) -> None:
    def die() -> None:
        with connections.writing() as db:
            put(db, "undone")
            db.execute(END_MYSELF)

    with pytest.raises(StoreUnavailable) as caught:
        die()
    assert "Nothing was half-written" in (caught.value.hint or "")
    assert "outcome" not in caught.value.details
    with connections.writing() as db:
        put(db, "next")
    assert names(postgres_url) == ["next"]


def test_a_commit_without_an_answer_is_not_done_again_and_said_to_be_unknown(
    store: PostgresStore, postgres_url: str
) -> None:
    query(postgres_url, AT_COMMIT)
    with pytest.raises(StoreUnavailable, match="may have been kept or not") as caught:
        add(store, a_memory("m1"))
    assert caught.value.details["outcome"] == "unknown"
    query(postgres_url, "DROP TRIGGER ends ON memories; DROP FUNCTION end_myself()")
    assert store.get_many(["m1"], access=EVERYTHING) == []
    add(store, a_memory("m1"))


# -- the pool --------------------------------------------------------------------------------------


def test_when_all_connections_are_in_use_that_is_what_is_said(postgres_url: str) -> None:
    with closing(open_at(postgres_url, max_connections=2, busy_seconds=0.05)) as store:
        with store._connections.reading(), store._connections.reading():
            with pytest.raises(StoreBusy, match="All 2 connections") as caught:
                store.signature()
            assert "max_connections" in (caught.value.hint or "")
        assert store.signature() is None


def test_closing_ends_every_session_also_one_that_is_lent_when_it_comes_back(postgres_url: str) -> None:
    store = open_at(postgres_url)
    with store._connections.reading() as db:
        store.close()
        db.execute("SELECT 1")
    with outside(postgres_url) as looking:
        # The server sees a moment later that a client is gone.
        until(lambda: looking.execute(SESSIONS.encode(), ()).fetchone() == (0,))


class Clock:
    """A clock that stands still unless it is set or slept on."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def pool_of(url: str, clock: Clock, most: int = 2) -> ConnectionPool:
    waiting = ServerWait(sleep=clock.sleep, monotonic=clock.monotonic)
    return ConnectionPool(connect=lambda: psycopg.connect(url, autocommit=True), most=most, waiting=waiting)


def test_a_connection_is_used_again_until_it_was_idle_for_long(postgres_url: str, clock: Clock) -> None:
    with closing(pool_of(postgres_url, clock)) as pool:
        first = pool.borrow(PATIENCE_SECONDS)
        pool.give_back(first)
        clock.seconds += IDLE_SECONDS
        assert pool.borrow(PATIENCE_SECONDS) is first
        pool.give_back(first)
        clock.seconds += IDLE_SECONDS + 1
        second = pool.borrow(PATIENCE_SECONDS)
        assert second is not first
        assert first.closed
        pool.give_back(second)


def test_when_one_session_has_died_those_that_are_idle_are_not_tried_one_by_one(
    postgres_url: str, clock: Clock
) -> None:
    with closing(pool_of(postgres_url, clock)) as pool:
        both = [pool.borrow(PATIENCE_SECONDS), pool.borrow(PATIENCE_SECONDS)]
        for one in both:
            pool.give_back(one)
            query(postgres_url, "SELECT pg_terminate_backend(%s, 60000)", one.info.backend_pid)
        session = PostgresSession(pool, PATIENCE_SECONDS)
        assert session.execute("SELECT 1").fetchone() == (1,)
        session.end()
        assert clock.seconds == RETRY_SECONDS, "after one that failed"


def test_a_connection_that_comes_back_within_a_transaction_is_closed(postgres_url: str, clock: Clock) -> None:
    with closing(pool_of(postgres_url, clock, most=1)) as pool:
        left = pool.borrow(PATIENCE_SECONDS)
        left.execute("BEGIN")
        pool.give_back(left)
        assert left.closed
        pool.give_back(pool.borrow(PATIENCE_SECONDS))


def test_a_server_that_cannot_be_reached_is_tried_until_patience_ends(clock: Clock) -> None:
    tries = list[float]()

    def refuse() -> psycopg.Connection:
        tries.append(clock.seconds)
        raise ServerUnreachable("connection refused")

    pool = ConnectionPool(
        connect=refuse, most=1, waiting=ServerWait(sleep=clock.sleep, monotonic=clock.monotonic)
    )
    for _ in range(2):  # the place of a connection that could not be made is free again
        with pytest.raises(ServerUnreachable):
            pool.borrow(1.0)
    assert len(tries) > 10
    pool.close()
    with pytest.raises(StoreError, match="closed"):
        pool.borrow(1.0)


def test_the_driver_does_not_warn_of_what_it_ignores(postgres_url: str) -> None:
    with closing(open_at(postgres_url)):
        assert not logging.getLogger("psycopg").isEnabledFor(logging.WARNING)
