"""Waiting for an outside client, and for readers; and what becomes of the write-ahead log meanwhile."""

import errno
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.world import open_world
from tests.store.support import sqlite_files
from tests.store.support.generators import a_memory, add, held
from tests.store.support.sqlite_files import NOW, FakeClock, around, open_at, query
from tests.transports.cli.harness import invoke
from vestige.app.app import open_app
from vestige.core.caller import Invocation
from vestige.core.errors import StoreBusy, StoreError
from vestige.core.models import EVERYTHING
from vestige.store.contract.processes import Who
from vestige.store.sqlite.connection import (
    BUSY_TIMEOUT_SECONDS,
    WRITE_DEADLINE_SECONDS,
    SqliteConnections,
    Synchronous,
    file_error,
)
from vestige.store.sqlite.opening import open_file
from vestige.store.sqlite.processes import locks
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store
OUTSIDER = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
for statement in sys.argv[2:]:
    db.execute(statement).fetchall()
print("ready", flush=True)
sys.stdin.read()
"""
SQLITES_WORDS = "is locked"
needs_proc = pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux tells who has a lock")


@contextmanager
def outside_client(path: Path, *statements: str) -> Iterator[int]:
    """Another program that has run these; its pid."""
    with subprocess.Popen(
        [sys.executable, "-c", OUTSIDER, str(path), *statements],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process.pid
        process.kill()


def everything_said(error: StoreError) -> str:
    return str(error.value())


# -- words ---------------------------------------------------------------------------------------


@needs_proc
def test_an_outside_client_that_keeps_a_transaction_open_is_named(path: Path) -> None:
    clock = FakeClock()
    with closing(open_at(path, clock=clock)) as store, outside_client(path, "BEGIN IMMEDIATE") as pid:
        with pytest.raises(StoreBusy) as caught:
            add(store, a_memory("m1"))
        error = caught.value
        assert f"(pid {pid})" in error.message
        assert "no Vestige process has exclusive use of it" in error.message
        assert f"stayed busy for {clock.seconds:.1f} s" in error.message
        assert clock.seconds >= WRITE_DEADLINE_SECONDS
        assert error.details["programs"][0]["pid"] == pid
        assert error.details["waited_seconds"] == pytest.approx(clock.seconds, abs=0.001)
        assert "transaction" in (error.hint or "")
        assert SQLITES_WORDS not in everything_said(error)
        held_by = [one.pid for one in store.processes()]
    assert pid not in held_by
    with closing(open_at(path)) as store:
        add(store, a_memory("m1"))


def test_without_proc_the_cause_is_told_without_a_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vestige.store.sqlite.processes.presence._LOCKS", path / "nowhere")
    with closing(open_at(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusy, match="another program keeps a transaction open") as caught:
            add(store, a_memory("m1"))
    assert caught.value.details["programs"] == []


@needs_proc
def test_a_vestige_process_that_writes_for_long_is_named_as_what_it_is(path: Path) -> None:
    with (
        closing(open_at(path)) as store,
        closing(open_at(path)) as other,
        other._connections.writing(),
        pytest.raises(StoreBusy, match=f"pid {os.getpid()}.* is writing"),
    ):
        add(store, a_memory("m1"))


def test_who_has_the_store_alone_is_blamed_first(path: Path) -> None:
    rebuild = Who(pid=77, command="vestige rebuild", since=NOW)
    with (
        closing(open_at(path)) as store,
        closing(open_at(path)) as other,
        locks.alone(path, "re-embed", rebuild),
        other._connections.writing(),
        pytest.raises(StoreBusy, match=r"vestige rebuild \(pid 77.*re-embed") as caught,
    ):
        add(store, a_memory("m1"))
    assert caught.value.details["purpose"] == "re-embed"


TAKEN_WHOLE = (
    "PRAGMA locking_mode = EXCLUSIVE",
    "BEGIN IMMEDIATE",
    "CREATE TABLE stranger (one INTEGER)",
    "COMMIT",
)


@needs_proc
@pytest.mark.parametrize("what", ["opening", "opening for reading", "reading", "writing", "copying"])
def test_a_program_that_locks_everybody_out_is_named_whatever_is_done(
    path: Path, tmp_path: Path, what: str
) -> None:
    with closing(open_at(path)) as before:
        add(before, a_memory("m1"))
    with outside_client(path, *TAKEN_WHOLE) as pid:
        idle = without_connections(path)
        uses: dict[str, Callable[[], object]] = {
            "opening": lambda: open_at(path, busy_seconds=0.1),
            "opening for reading": lambda: open_at(path, busy_seconds=0.1, read_only=True),
            "reading": lambda: idle.get_many(["m1"], access=EVERYTHING),
            "writing": lambda: add(idle, a_memory("m2")),
            "copying": lambda: idle.backup(tmp_path / "copy.db"),
        }
        with pytest.raises(StoreBusy) as caught:
            uses[what]()
        idle.close()
    assert f"(pid {pid})" in caught.value.message
    assert SQLITES_WORDS not in everything_said(caught.value)


def without_connections(path: Path) -> SqliteStore:
    """A store that was opened earlier and has no connection at the moment."""
    waiting = replace(around().waiting, deadline_seconds=0.1)
    return SqliteStore(SqliteConnections(path=path, waiting=waiting), node="node-1")


@needs_proc
def test_no_surface_ever_says_what_sqlite_says(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    busy: dict[str, Any] = {"storage.busy_seconds": 0.2}
    with open_world(folder, **busy) as world, outside_client(folder / "vestige.db", "BEGIN IMMEDIATE") as pid:
        value = world.refused("smart_ingest", content="Tea is served at four.")
        done = invoke(
            ["--data-dir", str(folder), "ingest", "Coffee is served at three."],
            environ={"VESTIGE_STORAGE_BUSY_SECONDS": "0.2"},
        )
        assert world.find("tea") == [], "reading goes on"
    assert value["code"] == "store_busy"
    assert f"(pid {pid})" in value["message"]
    assert done.exit_code == 3
    assert f"(pid {pid})" in done.stderr
    for said in (str(value), done.stdout, done.stderr):
        assert SQLITES_WORDS not in said


def test_deletions_at_the_same_time_wait_for_each_other(tmp_path: Path) -> None:
    settings = {"data_dir": str(tmp_path), "embeddings.provider": "off"}
    with open_app(settings, environ={"HOME": str(tmp_path)}) as app:

        def call(tool: str, **arguments: str) -> dict[str, Any]:
            return app.call_tool(Invocation(name=tool, arguments=arguments))

        metals = ("zinc", "cobalt", "nickel", "copper", "osmium", "indium")
        ids = [
            call("smart_ingest", content=f"The {metal} is in drawer {n}.")["nodeId"]
            for n, metal in enumerate(metals)
        ]
        with ThreadPoolExecutor(len(ids)) as many:
            gone = list(many.map(lambda one: call("memory", action="delete", id=one), ids))
        assert all(one["success"] for one in gone)
        assert call("system_status")["totalMemories"] == 0


# -- the write-ahead log -------------------------------------------------------------------------


def journal(path: Path) -> int:
    return Path(f"{path}-wal").stat().st_size


def fill(store: SqliteStore, megabytes: int = 1) -> None:
    """Make the log longer."""
    with store._connections.writing() as db:
        db.execute("CREATE TABLE IF NOT EXISTS scratch (bytes BLOB)")
        db.execute("INSERT INTO scratch VALUES (randomblob(?))", (megabytes << 20,))


@pytest.fixture
def short_journal(monkeypatch: pytest.MonkeyPatch) -> int:
    """A limit that a test reaches quickly."""
    monkeypatch.setattr("vestige.store.sqlite.file.wal.BYTES", 1 << 20)
    monkeypatch.setattr("vestige.store.sqlite.file.wal.STEP_BYTES", 1 << 18)
    return 1 << 20


def test_the_log_is_emptied_when_it_has_grown_long(path: Path, short_journal: int) -> None:
    with closing(open_at(path)) as store:
        for _ in range(8):
            fill(store)
            assert journal(path) < 2 * short_journal


def test_a_long_reader_lets_the_log_grow_and_it_shrinks_afterwards(path: Path, short_journal: int) -> None:
    with closing(open_at(path)) as store:
        add(store, a_memory("first"))
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM memories").fetchone() == (1,)
            add(store, a_memory("second"))
            fill(store, 4)
            assert journal(path) > 4 * short_journal
            assert reader.execute("SELECT count(*) FROM memories").fetchone() == (1,), "it sees its moment"
            reader.execute("COMMIT")
        fill(store)
        assert journal(path) < short_journal
        assert held(store, "second").memory.id == "second"


def test_readers_that_overlap_without_end_do_not_let_the_log_grow(path: Path, short_journal: int) -> None:
    """SQLite by itself begins the log anew only at a moment when nobody reads what is in it."""
    ends = [threading.Event(), threading.Event()]
    stop = threading.Event()

    def read(me: int) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            for turn in count():
                reader.execute("BEGIN")
                reader.execute("SELECT count(*) FROM memories").fetchone()
                if me or turn:
                    ends[1 - me].set()  # only now: one of the two is reading at any moment
                ends[me].wait(PATIENCE_SECONDS)
                ends[me].clear()
                reader.execute("COMMIT")
                if stop.is_set():
                    ends[1 - me].set()
                    return

    with closing(open_at(path)) as store:
        readers = [threading.Thread(target=read, args=(me,)) for me in (0, 1)]
        for one in readers:
            one.start()
        longest = 0
        for _ in range(30):
            fill(store)
            longest = max(longest, journal(path))
        stop.set()
        for one in readers:
            one.join()
    assert longest < 6 * short_journal


def test_a_try_that_readers_prevented_is_not_made_at_every_write(path: Path, short_journal: int) -> None:
    with closing(open_at(path)) as store, closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM memories").fetchone()
        fill(store, 2)
        allowed = store._connections.journal._allowed
        assert allowed > journal(path)
        add(store, a_memory("second"))
        assert store._connections.journal._allowed == allowed
        with store._connections.writing() as db:
            waits = db.execute("PRAGMA busy_timeout").fetchone()
        assert waits == (1000 * BUSY_TIMEOUT_SECONDS,), "writers wait as before"


# -- what a write survives -----------------------------------------------------------------------


@pytest.mark.parametrize(("asked", "pragma"), [("normal", 1), ("full", 2)])
def test_the_writer_waits_for_the_disk_only_when_told_to(path: Path, asked: Synchronous, pragma: int) -> None:
    connections, _ = open_file(path, replace(around(), synchronous=asked))
    with closing(connections), connections.writing() as db:
        assert db.execute("PRAGMA synchronous").fetchone() == (pragma,)
        assert db.execute("PRAGMA fullfsync").fetchone() == (int(asked == "full"),)


def test_the_setting_reaches_the_writer(tmp_path: Path) -> None:
    for asked, pragma in (("normal", 1), ("full", 2)):
        settings: dict[str, Any] = {"storage.synchronous": asked}
        with open_world(tmp_path / asked, **settings) as world:
            store = world.app.engine.store
            assert isinstance(store, SqliteStore)
            with store._connections.writing() as db:
                assert db.execute("PRAGMA synchronous").fetchone() == (pragma,)
            assert query(tmp_path / asked / "vestige.db", "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has locks on every file system")
def test_a_file_system_without_locks_is_named_and_not_taken_for_a_busy_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(file: object, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    with closing(open_at(path, clock=FakeClock())) as store:
        add(store, a_memory("m1"))
        with outside_client(path, "BEGIN IMMEDIATE"):  # SQLite says busy for both
            monkeypatch.setattr("fcntl.lockf", refused)
            with pytest.raises(StoreError, match=r"has no locks \(ENOLCK\)") as caught:
                add(store, a_memory("m2"))
    assert not isinstance(caught.value, StoreBusy)
    assert "local disk" in (caught.value.hint or "")


def test_an_error_of_a_lock_is_named_for_what_it_is(path: Path) -> None:
    error = file_error(OSError(errno.ENOLCK, "No locks available"), path)
    assert "has no locks (ENOLCK)" in error.message
