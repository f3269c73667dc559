"""A transfer to or from a server that does not play along: it is told, and the source stays as it is."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest

from testbed.effort import effort
from testbed.postgres_server import Server
from testbed.project import PROJECT
from tests.store.support.generators import a_memory, add
from tests.store.support.long_history import live_long
from tests.store.support.sqlite_files import open_at, query
from tests.store.support.transfer_ends import NOW, a_life, export_of, in_file, on_server, quietly
from vestige.core.errors import (
    InvalidInput,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
    VestigeError,
)
from vestige.store.transfer.ends import End
from vestige.store.transfer.move import move, plan

pytestmark = pytest.mark.slow

MEMORIES = effort(2_500, nightly=20_000)
FEW, MORE, BACK = effort(1, nightly=6), effort(3, nightly=20), effort(1, nightly=9)
"""After how many batches a process is killed."""

# Carries argv[1] to argv[2] and says after each batch how far it is.
CARRYING = """
import sys
from pathlib import Path
from tests.store.support.transfer_ends import in_file, on_server
from vestige.store.transfer.move import move

def end(word):
    return on_server(word) if "://" in word else in_file(Path(word))

def progress(done, total, what):
    print(what, flush=True)

moved = move(end(sys.argv[1]), end(sys.argv[2]), progress)
print("added", moved.added, "resumed", moved.resumed, "whole", moved.is_whole, flush=True)
"""

# Carries argv[1] to the file argv[2], which may not grow at first.
ON_A_FULL_DISK = """
import json, resource, signal, sys
from pathlib import Path
from tests.store.support.transfer_ends import in_file, quietly
from vestige.core.errors import VestigeError
from vestige.store.transfer.move import move

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
source, goal = in_file(Path(sys.argv[1])), in_file(Path(sys.argv[2]))
told = {}
with goal.destination():
    pass
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), hard))
try:
    move(source, goal, quietly, batch=5)
except VestigeError as error:
    told["full"] = error.value()
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
moved = move(source, goal, quietly, batch=5)
told["then"] = [moved.is_whole, moved.resumed]
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A store that no test here changes."""
    path = a_life(tmp_path_factory.mktemp("lived"))
    before = path.read_bytes()
    yield path
    assert path.read_bytes() == before


@pytest.fixture
def url(postgres_server: Server) -> Iterator[str]:
    """An empty database."""
    made = postgres_server.new_database()
    yield made
    postgres_server.drop(made)


def refused(source: Path, goal: End) -> VestigeError:
    """The error that carrying and looking ahead both tell."""
    told = []
    for act in (move, plan):
        with pytest.raises(VestigeError) as caught:
            act(in_file(source), goal, quietly)
        told.append(caught.value)
        assert caught.value.hint
    assert type(told[0]) is type(told[1])
    return told[0]


def as_role(url: str, role: str, password: str = "") -> str:
    """The same database for another user."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:{password}@{host}" if password else f"{role}@{host}").geturl()


def execute(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as db:
        for statement in statements:
            db.execute(statement.encode())


@pytest.fixture
def stranger(postgres_server: Server) -> Iterator[str]:
    """A user who may connect and nothing else."""
    execute(postgres_server.url(), "CREATE ROLE stranger LOGIN PASSWORD 'right'")
    yield "stranger"
    execute(postgres_server.url(), "DROP ROLE stranger")


# -- destinations -----------------------------------------------------------------------------------------


def test_a_server_that_is_not_there(source: Path) -> None:
    error = refused(source, on_server("postgresql://ada:s3cret@127.0.0.1:1/none"))
    assert isinstance(error, StoreUnavailable)
    assert "s3cret" not in str(error.value())


def test_a_database_that_is_not_there(source: Path, postgres_server: Server) -> None:
    error = refused(source, on_server(postgres_server.url("nowhere")))
    assert "nowhere" in error.message


def test_a_wrong_password(source: Path, postgres_server: Server, url: str, stranger: str) -> None:
    if postgres_server.cluster is None:
        pytest.skip("A WRONG PASSWORD IS NOT TESTED: the server is not ours to set up")
    rules = postgres_server.cluster.home / "data" / "pg_hba.conf"
    before = rules.read_text(encoding="utf-8")
    rules.write_text(f"local all {stranger} scram-sha-256\n{before}", encoding="utf-8")
    try:
        execute(postgres_server.url(), "SELECT pg_reload_conf()")
        error = refused(source, on_server(as_role(url, stranger, "wr0ng")))
    finally:
        rules.write_text(before, encoding="utf-8")
        execute(postgres_server.url(), "SELECT pg_reload_conf()")
    assert isinstance(error, StoreError)
    assert "refuses this user" in error.message
    assert "wr0ng" not in str(error.value())


def test_a_user_without_rights(source: Path, url: str, stranger: str) -> None:
    error = refused(source, on_server(as_role(url, stranger)))
    assert "may not" in error.message


def test_a_user_who_may_not_use_the_extension(source: Path, url: str, stranger: str) -> None:
    execute(url, "CREATE SCHEMA elsewhere", "CREATE EXTENSION vector SCHEMA elsewhere")
    execute(url, f"CREATE SCHEMA vestige AUTHORIZATION {stranger}")
    error = refused(source, on_server(as_role(url, stranger)))
    execute(url, "DROP SCHEMA vestige")
    assert "may not use the schema elsewhere" in error.message


def test_a_user_who_may_not_create_the_extension(source: Path, url: str, stranger: str) -> None:
    execute(url, f"CREATE SCHEMA vestige AUTHORIZATION {stranger}")
    error = refused(source, on_server(as_role(url, stranger)))
    execute(url, "DROP SCHEMA vestige")
    assert "may not create the extension" in error.message


def test_looking_ahead_creates_no_extension(source: Path, url: str) -> None:
    plan(in_file(source), on_server(url), quietly)
    with psycopg.connect(url) as db:
        assert db.execute("SELECT extname FROM pg_extension WHERE extname = 'vector'").fetchone() is None


def test_a_schema_of_another_program(source: Path, url: str) -> None:
    execute(url, "CREATE SCHEMA vestige", "CREATE TABLE vestige.photos (id int)")
    assert "another program" in refused(source, on_server(url)).message


def test_a_server_that_only_reads(source: Path, url: str) -> None:
    with on_server(url).destination():
        pass
    execute(url, f'ALTER DATABASE "{urlsplit(url).path[1:]}" SET default_transaction_read_only = on')
    assert isinstance(refused(source, on_server(url)), StoreReadOnly)


def test_a_destination_with_vectors_of_another_model(source: Path, url: str) -> None:
    goal = on_server(url)
    with goal.destination() as side:
        live_long(side.store, 20)
    assert "is not empty" in refused(source, goal).message


def test_a_full_disk_of_the_server_stops_it_until_there_is_room(source: Path, url: str) -> None:
    """The server says so through a trigger here: it is the same error as that of a disk."""
    goal = on_server(url)
    with goal.destination():
        pass
    execute(
        url,
        "CREATE FUNCTION vestige.no_room() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'no space left on device' USING ERRCODE = 'disk_full'; END $$",
        "CREATE TRIGGER no_room BEFORE INSERT ON vestige.edges"
        " FOR EACH ROW EXECUTE FUNCTION vestige.no_room()",
    )
    with pytest.raises(StoreFull) as caught:
        move(in_file(source), goal, quietly, batch=5)
    assert caught.value.hint
    execute(url, "DROP TRIGGER no_room ON vestige.edges", "DROP FUNCTION vestige.no_room")
    rest = move(in_file(source), goal, quietly, batch=5)
    assert (rest.is_whole, rest.resumed) == (True, True)


def test_a_full_disk_under_a_file_stops_it_until_there_is_room(source: Path, tmp_path: Path) -> None:
    goal = in_file(tmp_path / "goal.db")
    with goal.destination():
        pass
    room = goal.path.stat().st_size + 50_000
    done = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, str(source), str(goal.path), str(room)],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
        cwd=PROJECT,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["full"]["code"] in ("store_full", "store")
    assert told["full"]["hint"]
    assert told["then"] == [True, True]


# -- sources ----------------------------------------------------------------------------------------------


def test_a_database_without_a_store_is_no_source_and_gets_none(url: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no store"):
        move(on_server(url), in_file(tmp_path / "goal.db"), quietly)
    with psycopg.connect(url) as db:
        assert db.execute("SELECT to_regnamespace('vestige')").fetchone() == (None,)
    assert not (tmp_path / "goal.db").exists()


def test_a_source_on_a_server_cannot_be_written(source: Path, url: str) -> None:
    move(in_file(source), on_server(url), quietly)
    with on_server(url).source() as side:
        assert side.store.read_only
        with pytest.raises(StoreReadOnly):
            add(side.store, a_memory("mine", "This cannot be."))


def test_the_server_knows_what_was_carried_when_it_plans(source: Path, url: str) -> None:
    moved = move(in_file(source), on_server(url), quietly)
    with psycopg.connect(url) as db:
        known = db.execute(
            "SELECT reltuples FROM pg_class WHERE oid = 'vestige.memories'::regclass"
        ).fetchone()
    assert known == (moved.comparison.rows["memories"],)


# -- many, and killed -------------------------------------------------------------------------------------


def carry_until(batches: int, *words: str) -> str:
    """Carry in a process that is killed after so many batches, if it comes to that; its last line."""
    child = subprocess.Popen(
        [sys.executable, "-c", CARRYING, *words],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    last = ""
    with child:
        assert child.stdout is not None
        for number, line in enumerate(child.stdout):
            last = line
            if number == batches:
                child.kill()
    assert child.returncode in (0, -signal.SIGKILL)
    return last.strip()


def test_many_memories_carried_by_processes_that_are_killed_are_all_there(tmp_path: Path, url: str) -> None:
    path, back = tmp_path / "vestige.db", tmp_path / "back.db"
    with closing(open_at(path)) as store:
        live_long(store, MEMORIES)
    before = path.read_bytes()
    assert carry_until(FEW, str(path), url) == "Carrying memories"
    assert carry_until(MORE, str(path), url).startswith("Carrying")
    assert carry_until(10_000, str(path), url).endswith("resumed True whole True")
    again = move(in_file(path), on_server(url), quietly)
    assert (again.added, again.is_whole) == (0, True)
    (held,) = query(path, "SELECT count(*) FROM memories")
    assert (again.comparison.rows["memories"],) == held
    assert path.read_bytes() == before
    assert carry_until(BACK, url, str(back)) == "Carrying memories"
    assert carry_until(10_000, url, str(back)).endswith("resumed True whole True")
    assert export_of(in_file(back)) == export_of(in_file(path))
    with closing(open_at(back)) as store:
        assert store.examine(NOW.replace(year=2030)) == []
