"""Who has the store open is seen by the others also after its session has ended, though it does nothing."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, replace

import orjson
import psycopg
import pytest

from testbed.patience import until
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.postgres_stores import ME, open_at, outside, query
from vestige.core.errors import StoreBusy
from vestige.store.contract.processes import Who
from vestige.store.postgres.server.pool import ConnectionPool, ServerWait

pytestmark = pytest.mark.slow  # starts a server

SERVER = replace(ME, pid=7, command="vestige serve", server=True)
EXCLUSIVE = replace(SERVER, pid=9, exclusive=True)
BACKENDS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND application_name LIKE 'vestige%%' ORDER BY pid"
)


def end_all_sessions(url: str) -> None:
    query(url, f"SELECT pg_terminate_backend(pid, 60000) FROM ({BACKENDS}) s")


def seen(url: str) -> list[Who]:
    """Those whom another process sees."""
    with closing(open_at(url, who=replace(ME, pid=1, since=T0.replace(year=2100)))) as other:
        return other.processes()[:-1]


@contextmanager
def another_server(url: str, who: Who) -> Iterator[None]:
    """One that began when nobody saw another."""
    with outside(url) as db:
        told = orjson.dumps(asdict(who)).decode()
        db.execute(
            "WITH here AS (INSERT INTO present (purpose, who) VALUES ('', %s) RETURNING id) SELECT"
            " pg_advisory_lock(('public'::regnamespace::oid::bigint << 32) | id) FROM here",
            (told,),
        )
        yield


def test_who_does_nothing_is_seen_again(postgres_url: str) -> None:
    with closing(open_at(postgres_url)):
        for _ in range(2):
            end_all_sessions(postgres_url)
            until(lambda: seen(postgres_url) == [ME])


def test_no_server_starts_beside_an_exclusive_one_that_is_back(postgres_url: str) -> None:
    with closing(open_at(postgres_url, who=EXCLUSIVE)):
        end_all_sessions(postgres_url)
        until(lambda: seen(postgres_url) == [EXCLUSIVE])
        with pytest.raises(StoreBusy, match="vestige serve"):
            open_at(postgres_url, who=SERVER)


def test_an_exclusive_server_says_that_another_began_while_it_was_not_seen_and_goes_on(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(open_at(postgres_url, who=EXCLUSIVE)) as store, another_server(postgres_url, SERVER):
        end_all_sessions(postgres_url)
        until(lambda: seen(postgres_url) == [SERVER, EXCLUSIVE])
        assert "storage.exclusive could not be kept" in caplog.text
        assert f"pid {SERVER.pid}" in caplog.text
        add(store, a_memory("m1"))
        with pytest.raises(StoreBusy):
            open_at(postgres_url, who=replace(SERVER, pid=10))


def test_whoever_is_missed_comes_back_though_its_session_lives(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        query(postgres_url, "DELETE FROM present")
        assert store.processes() == [ME]


def test_who_is_closed_while_it_cannot_come_back_is_gone(postgres_url: str) -> None:
    with outside(postgres_url) as db, closing(open_at(postgres_url, busy_seconds=0.1)):
        db.execute("ALTER TABLE present RENAME TO absent")
        end_all_sessions(postgres_url)
    query(postgres_url, "ALTER TABLE absent RENAME TO present")
    assert seen(postgres_url) == []


def test_after_a_session_was_lost_others_may_be_there_for_a_minute(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        assert not store.has_peers()
        with closing(open_at(postgres_url, who=SERVER)):
            assert store.has_peers()
        assert not store.has_peers()
        end_all_sessions(postgres_url)
        assert store.has_peers()


def test_a_minute_later_nobody_else_is_expected() -> None:
    time = [0.0]
    pool = ConnectionPool(
        connect=psycopg.connect, most=1, waiting=ServerWait(sleep=time.append, monotonic=lambda: time[0])
    )
    assert not pool.renewed_within(60)
    pool.renew()
    time[0] = 59.0
    assert pool.renewed_within(60)
    time[0] = 60.0
    assert not pool.renewed_within(60)


def test_the_workers_of_one_exclusive_server_count_as_one(postgres_url: str) -> None:
    worker = replace(EXCLUSIVE, parent=7)
    with closing(open_at(postgres_url, who=worker)), closing(open_at(postgres_url, who=worker)):
        for others in (0, 8):
            with pytest.raises(StoreBusy, match="Another server"):
                open_at(postgres_url, who=replace(SERVER, pid=10, parent=others))
