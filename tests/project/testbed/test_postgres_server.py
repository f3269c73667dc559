"""The PostgreSQL that tests and benchmarks run on: real, restartable, and gone in the end."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from testbed.fresh_databases import FreshDatabases, fresh_databases
from testbed.postgres_server import GIVEN, NOT_RESTARTED, Mode, Server, ServerTrouble, server
from testbed.project import PROJECT

pytestmark = pytest.mark.slow  # starts servers

WAITING = """
from testbed.postgres_server import server
with server() as own:
    print(own.cluster.home, flush=True)
    input()
"""


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with server() as opened:
        yield opened


@pytest.fixture
def own() -> Iterator[Server]:
    with server(durable=True) as opened:
        if opened.cluster is None:
            pytest.skip(NOT_RESTARTED)
        yield opened


def run(url: str, statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as db:
        answer = db.execute(statement.encode())
        return answer.fetchall() if answer.description else []


def test_vectors_are_compared_and_indexed(shared: Server) -> None:
    url = shared.new_database()
    run(url, "CREATE EXTENSION vector")
    run(url, "CREATE TABLE v (key int, e vector(3)); CREATE INDEX ON v USING hnsw (e vector_cosine_ops)")
    run(url, "INSERT INTO v VALUES (1, '[1,0,0]'), (2, '[0,1,0]'), (3, '[0.9,0.1,0]')")
    assert run(url, "SELECT key FROM v ORDER BY e <=> '[1,0,0]' LIMIT 2") == [(1,), (3,)]


def test_the_oldest_and_the_newest_version_are_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(GIVEN, raising=False)
    for version in (16, 18):
        with server(version=version) as opened:
            [(number,)] = run(opened.url(), "SELECT current_setting('server_version_num')::int / 10000")
            assert number == version
            run(opened.new_database(), "CREATE EXTENSION vector")


def test_databases_are_apart_and_a_dropped_one_is_gone(shared: Server) -> None:
    one, other = shared.new_database(), shared.new_database()
    run(one, "CREATE TABLE only_here ()")
    assert run(other, "SELECT to_regclass('only_here')") == [(None,)]
    shared.drop(one)
    with pytest.raises(psycopg.OperationalError, match="does not exist"):
        run(one, "SELECT 1")


def test_a_database_that_somebody_is_in_can_be_dropped(shared: Server) -> None:
    url = shared.new_database()
    with psycopg.connect(url) as inside:
        inside.execute("SELECT 1")
        shared.drop(url)
        with pytest.raises(psycopg.OperationalError):
            inside.execute("SELECT 1")


def test_only_what_was_made_here_can_be_dropped(shared: Server) -> None:
    with pytest.raises(ValueError, match="postgres"):
        shared.drop(shared.url("postgres"))


def test_what_was_committed_is_there_after_an_orderly_restart_and_after_a_crash(own: Server) -> None:
    url = own.new_database()
    run(url, "CREATE TABLE t (n int)")
    modes: tuple[Mode, ...] = ("fast", "immediate")
    for number, mode in enumerate(modes):
        run(url, f"INSERT INTO t VALUES ({number})")
        own.stop(mode)
        with pytest.raises(psycopg.OperationalError):
            run(url, "SELECT 1")
        own.start()
    assert run(url, "SELECT n FROM t ORDER BY n") == [(0,), (1,)]


def test_a_server_that_cannot_start_says_why(own: Server) -> None:
    assert own.cluster is not None
    own.stop()
    (own.cluster.home / "data" / "PG_VERSION").write_text("9\n", encoding="ascii")
    with pytest.raises(ServerTrouble, match="not compatible"):
        own.start()


def test_settings_of_the_user_do_not_reach_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(GIVEN, raising=False)
    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("PGHOST", "nowhere.invalid")
    with server() as opened:
        assert run(opened.url(), "SHOW port") == [("5432",)]


def test_a_temporary_folder_with_a_long_name_does_not_matter(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    long = tmp_path / ("a folder with a long name " * 5)
    long.mkdir()
    monkeypatch.delenv(GIVEN, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with server() as opened:
        assert run(opened.url(), "SELECT 1") == [(1,)]


def test_nothing_is_left_in_the_end(own: Server) -> None:
    with server() as second:
        assert second.cluster is not None
        url, home = second.url(), second.cluster.home
        run(url, "SELECT 1")
    assert not home.exists()
    with pytest.raises(psycopg.OperationalError):
        run(url, "SELECT 1")
    assert run(own.url(), "SELECT 1") == [(1,)]  # the neighbour was left alone


def test_nothing_is_left_of_a_process_that_was_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(GIVEN, raising=False)
    with subprocess.Popen(
        [sys.executable, "-c", WAITING],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    ) as user:
        assert user.stdout is not None
        assert user.stderr is not None
        home = Path(user.stdout.readline().strip())
        url = f"postgresql://postgres@/postgres?host={home}"
        assert run(url, "SELECT 1") == [(1,)]
        user.send_signal(signal.SIGKILL)
        assert user.stderr.read() == ""  # ends when the guard, which has it as well, is done
    assert not home.exists()
    with pytest.raises(psycopg.OperationalError):
        run(url, "SELECT 1")


def test_a_given_server_is_used_and_left_as_it_was(shared: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(GIVEN, shared.url())
    databases = "SELECT datname FROM pg_database ORDER BY datname"
    before = run(shared.url(), databases)
    with server() as given:
        assert given.cluster is None
        url = given.new_database()
        given.drop(given.new_database())
        assert run(url, "SELECT 1") == [(1,)]
        with pytest.raises(ServerTrouble, match="not ours"):
            given.stop()
    assert run(shared.url(), databases) == before


# -- databases that are as if just made --------------------------------------------------------------


def prepare(url: str) -> None:
    run(url, "CREATE EXTENSION vector")
    run(url, "CREATE TABLE version (n int); INSERT INTO version VALUES (7)")
    run(url, "CREATE TABLE parents (key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text)")
    run(url, "CREATE TABLE relatives (parent bigint NOT NULL REFERENCES parents)")
    run(url, "CREATE TABLE v (e vector(3)); CREATE INDEX graph ON v USING hnsw (e vector_cosine_ops)")
    run(url, "INSERT INTO parents (name) VALUES ('first')")


@pytest.fixture(scope="module")
def fresh(shared: Server) -> Iterator[FreshDatabases]:
    with fresh_databases(shared, prepare) as made:
        yield made


def state(url: str) -> list[object]:
    statements = (
        "SELECT * FROM version",
        "SELECT * FROM parents",
        "SELECT * FROM relatives",
        "SELECT e::text FROM v",
        "SELECT pg_relation_size('graph')",
        "SELECT last_value, is_called FROM parents_key_seq",
        "SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace",
    )
    return [run(url, statement) for statement in statements]


def test_a_database_that_was_given_back_is_as_new(fresh: FreshDatabases) -> None:
    url = fresh.take()
    new = state(url)
    run(url, "UPDATE version SET n = 8; DELETE FROM parents; INSERT INTO parents (name) VALUES ('x'), ('y')")
    run(url, "INSERT INTO relatives SELECT key FROM parents")
    run(url, "INSERT INTO v SELECT ARRAY[n, 1, 2]::vector FROM generate_series(1, 500) n")
    assert state(url) != new
    fresh.give_back(url)
    again = fresh.take()
    assert again == url
    assert state(again) == new
    fresh.give_back(again)


def test_databases_that_are_out_at_the_same_time_are_apart(fresh: FreshDatabases) -> None:
    one, other = fresh.take(), fresh.take()
    run(one, "DELETE FROM parents")
    assert run(other, "SELECT name FROM parents") == [("first",)]
    fresh.give_back(one)
    fresh.give_back(other)


@pytest.mark.parametrize(
    "change",
    [
        "CREATE TABLE another ()",
        "ALTER TABLE parents ADD COLUMN more int",
        "DROP INDEX graph",
        "INSERT INTO parents (name) SELECT repeat('large', 100) FROM generate_series(1, 10000)",
    ],
)
def test_a_database_that_deleting_rows_would_not_make_new_is_replaced(
    fresh: FreshDatabases, change: str
) -> None:
    url = fresh.take()
    new = state(url)
    run(url, change)
    fresh.give_back(url)
    again = fresh.take()
    assert again != url
    assert state(again) == new
    fresh.give_back(again)


def test_a_forgotten_transaction_does_not_hold_up_the_next_user(fresh: FreshDatabases) -> None:
    url = fresh.take()
    with psycopg.connect(url) as forgotten:
        forgotten.execute("LOCK TABLE parents")
        fresh.give_back(url)
        again = fresh.take()
        assert run(again, "SELECT name FROM parents") == [("first",)]
        fresh.give_back(again)
        forgotten.close()
