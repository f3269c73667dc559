"""Plain copies of the files of a store at work, as `cp`, rsync or a system's own backup make them.

A copy of one moment (a file system's snapshot) is whole. One that is made file after file while something
writes can be torn, which is found out, or of a moment that is already past.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from testbed.patience import until
from testbed.project import PROJECT
from testbed.world import open_world
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.sqlite_files import open_at, query
from vestige.core.errors import StoreCorrupt
from vestige.store.sqlite.backup.restore import inspect
from vestige.store.sqlite.opening import RECORDS

ORDERS = {
    "as cp does": ("", "-shm", "-wal"),
    "without the index of the log": ("", "-wal"),
    "the log first": ("-wal", "-shm", ""),
    "the index first": ("-shm", "-wal", ""),
    "the database alone": ("",),
}
ROUNDS = 12
MOST_WRITES = 20_000

WRITER = f"""
import os, sys
from pathlib import Path
from tests.store.support.generators import a_memory, add
from tests.store.support.sqlite_files import open_at
store = open_at(Path(sys.argv[1]))
told = os.open(sys.argv[2], os.O_WRONLY | os.O_CREAT, 0o600)
for number in range({MOST_WRITES}):
    add(store, a_memory(f"m{{number}}", f"word{{number}} granite basalt " * 20))
    os.pwrite(told, b"%012d" % (number + 1), 0)
sys.stdin.read()
"""


SERVER = """
import sys
from vestige.app.app import open_server
from vestige.operations.registry.groups import registry
with open_server({"data_dir": sys.argv[1], "embeddings.provider": "off"}) as app:
    for text in ("The harbour runs on PostgreSQL.", "Tea is in the kitchen.", "Ada plays the xylophone."):
        app.run(registry.operations["smart_ingest"], {"content": text}, lambda *_: None)
    print("written", flush=True)
    sys.stdin.read()
"""


class Writing:
    """A process that writes memories m0, m1, … one after the other, and tells which it has written."""

    def __init__(self, database: Path, told: Path, pid: int) -> None:
        self.database = database
        self.pid = pid
        self._told = told

    def acknowledged(self) -> int:
        """How many are written."""
        return int(self._told.read_bytes() or b"0") if self._told.exists() else 0

    def wait_for(self, number: int) -> None:
        """Go on when so many are written."""
        until(lambda: self.acknowledged() >= number)

    def copied(self, to: Path, order: tuple[str, ...]) -> Path:
        """Its files, one after the other, in another place."""
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        for end in order:
            shutil.copyfile(f"{self.database}{end}", to / f"vestige.db{end}")
        return to / "vestige.db"


@pytest.fixture
def writing(tmp_path: Path) -> Iterator[Writing]:
    database, told = tmp_path / "data" / "vestige.db", tmp_path / "told"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(database), str(told)],
        stdin=subprocess.PIPE,
        cwd=PROJECT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as child:
        try:
            at_work = Writing(database, told, child.pid)
            at_work.wait_for(300)
            yield at_work
        finally:
            child.kill()


@contextmanager
def stopped(pid: int) -> Iterator[None]:
    """Nothing moves in a process, wherever it is."""
    os.kill(pid, signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, pid, os.WSTOPPED)
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def held(copy: Path) -> list[int]:
    """The numbers of the memories in a copy."""
    return sorted(int(str(row[0])[1:]) for row in query(copy, "SELECT id FROM memories"))


@pytest.mark.slow
def test_a_copy_of_one_moment_opens_with_everything_that_was_acknowledged(
    writing: Writing, tmp_path: Path
) -> None:
    for number in range(ROUNDS):
        with stopped(writing.pid):
            acknowledged = writing.acknowledged()
            copy = writing.copied(tmp_path / "copy", ORDERS["as cp does"])
        assert inspect(copy).memories >= acknowledged
        with closing(open_at(copy)) as store:
            assert not store.read_only
        numbers = held(copy)
        assert numbers == list(range(len(numbers)))
        writing.wait_for(acknowledged + 20 * (number % 3))


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS.values(), ids=[*ORDERS])
def test_a_copy_made_while_something_writes_is_of_one_moment_or_refused(
    writing: Writing, tmp_path: Path, order: tuple[str, ...]
) -> None:
    for number in range(ROUNDS):
        acknowledged = writing.acknowledged()
        copy = writing.copied(tmp_path / "copy", order)
        try:
            found = inspect(copy)
        except StoreCorrupt:
            continue
        numbers = held(copy)
        # It may be an earlier moment, when the log was begun anew between two files, but it is one: of the
        # memories before its last none is missing.
        assert numbers == list(range(len(numbers)))
        assert found.memories == len(numbers)
        writing.wait_for(acknowledged + 7 * (number % 5))


def test_a_copy_without_its_log_lacks_what_is_only_there(tmp_path: Path) -> None:
    with closing(open_at(tmp_path / "vestige.db")) as store:
        add(store, a_memory("m1"))
    with closing(open_at(tmp_path / "vestige.db")) as store:
        add(store, a_memory("m2"))
        shutil.copyfile(tmp_path / "vestige.db", tmp_path / "alone.db")
        for end in ("", "-wal"):
            shutil.copyfile(tmp_path / f"vestige.db{end}", tmp_path / f"both.db{end}")
    assert inspect(tmp_path / "alone.db").memories == 1
    assert inspect(tmp_path / "both.db").memories == 2


def copied_alone(database: Path) -> Path:
    """A copy of the file of a store in use, without its log."""
    return Path(shutil.copyfile(database, database.with_name("alone.db")))


def test_a_copy_of_the_file_alone_is_complete_once_the_store_has_settled(tmp_path: Path) -> None:
    database = tmp_path / "vestige.db"
    with closing(open_at(database)) as store, closing(open_at(database)) as other:
        for number, writer in enumerate((store, other, store), start=1):
            store.settle()
            add(writer, a_memory(f"m{number}"))
            store.settle()
            assert inspect(copied_alone(database)).memories == number - 1, "it was written a moment ago"
            store.settle()
            assert inspect(copied_alone(database)).memories == number


def test_what_a_reader_keeps_in_the_log_is_copied_when_the_reader_ends(tmp_path: Path) -> None:
    database = tmp_path / "vestige.db"
    with closing(open_at(database)) as store:
        add(store, a_memory("m1"))
        with store._connections.reading() as db:
            db.execute("SELECT count(*) FROM memories").fetchone()
            add(store, a_memory("m2"))
            for _ in range(3):
                store.settle()
        store.settle()
        assert inspect(copied_alone(database)).memories == 2


def test_a_server_settles_its_store_by_itself(tmp_path: Path) -> None:
    with open_world(tmp_path) as world:
        world.remember("The harbour runs on PostgreSQL.")
        for _ in range(2):
            world.app.autopilot.tick()
        assert inspect(copied_alone(tmp_path / "vestige.db")).memories == 1


def memories_in(database: Path) -> int:
    """How many are in a copy of the file alone; none in one that is torn, made while the log is copied."""
    try:
        return inspect(copied_alone(database)).memories
    except StoreCorrupt:
        return 0


@pytest.mark.slow
def test_a_copy_of_the_file_of_an_idle_server_has_everything(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT,
    ) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == b"written\n"
            until(lambda: memories_in(tmp_path / "vestige.db") == 3)
        finally:
            child.kill()


def test_a_copy_of_the_file_of_a_new_store_opens(tmp_path: Path) -> None:
    with closing(open_at(tmp_path / "vestige.db")):
        copy = copied_alone(tmp_path / "vestige.db")
    with closing(open_at(copy)) as store:
        assert store.examine(T0.replace(year=2030)) == []


@pytest.mark.parametrize("read_only", [False, True])
def test_a_copy_whose_tables_are_in_the_missing_log_is_refused_and_left_as_it_is(
    tmp_path: Path, read_only: bool
) -> None:
    with closing(sqlite3.connect(tmp_path / "vestige.db")) as db:  # as older versions left a new store
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("CREATE TABLE memories (id)")
        copy = copied_alone(tmp_path / "vestige.db")
    before = copy.read_bytes()
    with pytest.raises(StoreCorrupt, match=r"its log alone\.db-wal is missing") as refused:
        open_at(copy, read_only=read_only)
    assert "vestige backup" in str(refused.value.hint)
    assert copy.read_bytes() == before


def test_a_store_whose_creation_was_killed_opens(tmp_path: Path) -> None:
    for wal in (False, True):
        killed = tmp_path / f"killed{wal}.db"
        with closing(sqlite3.connect(killed)) as db:
            db.execute(RECORDS)
            if wal:
                db.execute("PRAGMA journal_mode = WAL")
        with closing(open_at(killed)) as store:
            assert store.examine(T0.replace(year=2030)) == []
