"""Time limits: those an administrator has set, and our own, which differ by the kind of work."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from testbed.patience import PATIENCE_SECONDS, until
from testbed.postgres_server import Server
from tests.store.support.generators import a_memory, add, held
from tests.store.support.postgres_stores import ME, open_at, query
from vestige.core.errors import StoreError, StoreUnavailable
from vestige.store.postgres import connection
from vestige.store.postgres.connection import PostgresSession
from vestige.store.postgres.store import PostgresStore

pytestmark = pytest.mark.slow  # starts a server

STRICT = {
    "statement_timeout": "500",
    "lock_timeout": "250",
    "idle_in_transaction_session_timeout": "500",
    "idle_session_timeout": "500",
    "transaction_timeout": "1000",
}
"""Limits in milliseconds that no store could live with."""
MAKING_TAKES_LONG = """
CREATE SCHEMA administrator;
CREATE FUNCTION administrator.take_long() RETURNS event_trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(0.75); END $$;
CREATE EVENT TRIGGER slow ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION')
    EXECUTE FUNCTION administrator.take_long()"""
OURS = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'vestige%%' AND datname = %s"


@pytest.fixture
def strict(postgres_server: Server) -> Iterator[str]:
    """A database whose administrator is impatient."""
    url = postgres_server.new_database()
    name = query(url, "SELECT current_database()")[0][0]
    query(url, MAKING_TAKES_LONG)
    for setting, milliseconds in STRICT.items():
        query(url, f"ALTER DATABASE {name} SET {setting} = {milliseconds}")
    yield url
    postgres_server.drop(url)


def test_limits_of_an_administrator_do_not_end_what_may_take_longer(strict: str) -> None:
    with closing(open_at(strict)) as store:
        add(store, a_memory("m1"))

        def slow(db: PostgresSession) -> None:
            db.execute("SELECT pg_sleep(0.75)")
            db.execute("SELECT pg_sleep(0.75)")

        store._connections.written(slow)
        store._connections.read(slow)
        assert held(store, "m1").memory.id == "m1"


def test_sessions_that_wait_for_hours_are_not_ended_for_being_idle(strict: str, postgres_url: str) -> None:
    name = query(strict, "SELECT current_database()")[0][0]
    with closing(open_at(strict)) as store, store.listening() as wait:
        wait(PATIENCE_SECONDS)
        registered = store._here.id if store._here else None
        # Idle sessions of the pool are ended by now; those that register and listen are not.
        until(lambda: query(postgres_url, OURS, name) == [(2,)])
        assert store.processes() == [ME]
        assert store._here is not None
        assert store._here.id == registered
        store.notify("other", ["{}"])
        assert wait(PATIENCE_SECONDS)


def test_a_writer_that_stalls_is_ended_so_that_others_can_write(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stall(store: PostgresStore, other: PostgresStore) -> None:
        monkeypatch.setattr(connection, "STALLED_SECONDS", 0.2)
        with store._connections.writing() as db:
            monkeypatch.undo()  # the other one may take its time
            db.execute("INSERT INTO tombstones (id, scope, deleted_at) VALUES ('t', '/', '')")
            add(other, a_memory("m1"))  # the process is suspended here; another one waits for its turn

    with closing(open_at(postgres_url)) as stalled, closing(open_at(postgres_url)) as other:
        with pytest.raises(StoreUnavailable, match="idle-in-transaction") as caught:
            stall(stalled, other)
        assert "Nothing was half-written" in (caught.value.hint or "")
        assert query(postgres_url, "SELECT id FROM tombstones") == []
        add(stalled, a_memory("m2"))
        assert held(stalled, "m1").memory.id == "m1"


def test_a_limit_of_the_server_is_named_with_what_to_do(postgres_url: str) -> None:
    with closing(open_at(postgres_url)) as store:
        with pytest.raises(StoreError, match="temp_file_limit") as caught:
            _sort_much(store)
        assert "administrator" in (caught.value.hint or "")
        add(store, a_memory("m1"))


def _sort_much(store: PostgresStore) -> None:
    with store._connections.reading() as db:
        for limit in ("temp_file_limit", "work_mem"):
            db.command(f"SET LOCAL {limit} = '64kB'")
        db.execute("SELECT n FROM generate_series(1, 200000) n ORDER BY -n OFFSET 199999").fetchall()
