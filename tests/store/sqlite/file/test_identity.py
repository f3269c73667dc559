"""The node of a file: it stays while many open and write, and changes when the file is not what it was."""

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from testbed.project import PROJECT
from tests.store.support import sqlite_files
from tests.store.support.generators import a_memory, add, held
from tests.store.support.sqlite_files import around, open_at, query
from vestige.core.errors import StoreBusy, StoreError
from vestige.core.models import EVERYTHING
from vestige.store.sqlite.file import identity
from vestige.store.sqlite.opening import OPENINGS, open_file
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store

WRITES, OPENS = 400, 60
AT_WORK = f"""
import random, sys, time
from pathlib import Path
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.sqlite_files import ids
from vestige.store.sqlite.store import SqliteStore
path, name = Path(sys.argv[1]), sys.argv[2]
def opened():
    return SqliteStore.open(
        path, rng=random.Random(name), sleep=time.sleep, monotonic=time.monotonic, new_id=ids(name),
        now=lambda: T0, machine="here", busy_seconds=60,
    )
sys.stdin.read()
if name.startswith("writer"):
    store = opened()
    for number in range({WRITES}):
        add(store, a_memory(f"{{name}}-{{number}}"))
    store.close()
for number in range({OPENS} if name.startswith("opener") else 0):
    opened().close()
"""


def mark_of(path: Path) -> Path:
    return Path(f"{path}{identity.SUFFIX}")


def node_at(path: Path, prefix: str = "another") -> str:
    with closing(open_at(path, prefix=prefix)) as store:
        return store.node


# -- the mark ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_many_openings_beside_two_writers_find_one_node(path: Path) -> None:
    open_at(path, prefix="first").close()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", AT_WORK, str(path), name],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}", "OMP_NUM_THREADS": "1"},
        )
        for name in ("writer-1", "writer-2", "opener-1", "opener-2")
    ]
    for child in children:
        assert child.stdin
        child.stdin.close()  # all of them begin now
    for child in children:
        with child:
            assert child.stderr
            assert child.stderr.read() == b""
    assert query(path, "SELECT node, count(*), max(seq) FROM events GROUP BY node") == [
        ("first-1", 2 * WRITES, 2 * WRITES)
    ]
    assert query(path, "SELECT node FROM installation") == [("first-1",)]


def test_a_mark_that_is_behind_says_nothing(path: Path, store: SqliteStore) -> None:
    add(store, a_memory("m1"))
    slow = mark_of(path).read_bytes()
    add(store, a_memory("m2"))
    mark_of(path).write_bytes(slow)  # the slower of two writers came last
    assert node_at(path) == store.node


def test_a_torn_or_damaged_mark_says_nothing(path: Path, store: SqliteStore) -> None:
    add(store, a_memory("m1"))
    whole = mark_of(path).read_bytes()
    ahead = whole.replace(b"0000001", b"0000009")
    assert ahead != whole
    for said in (b"", b"nonsense", whole[:40], ahead, b"\0" * len(whole), whole * 2, os.urandom(4096)):
        mark_of(path).write_bytes(said)
        assert node_at(path) == store.node
        add(store, a_memory(f"after-{len(query(path, 'SELECT id FROM memories'))}"))
        assert node_at(path) == store.node


def test_a_mark_that_cannot_be_written_hinders_nobody(path: Path, store: SqliteStore) -> None:
    mark_of(path).unlink()
    mark_of(path).mkdir()
    add(store, a_memory("m1"))
    assert node_at(path) == store.node


def test_the_same_earlier_copy_is_a_new_node_each_time_it_is_put_in_place(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(open_at(path, prefix="first")) as store:
        add(store, a_memory("m1"))
    earlier = path.read_bytes()
    with closing(open_at(path)) as store:
        add(store, a_memory("m2"))
    for prefix in ("second", "third"):
        path.write_bytes(earlier)
        caplog.clear()
        with closing(open_at(path, prefix=prefix)) as store:
            (event,) = add(store, a_memory("m3"))
        assert (event.node, event.seq) == (f"{prefix}-1", 1)
        assert "lacks the last 1 events" in caplog.text
        assert node_at(path) == f"{prefix}-1"


# -- a file that is not what it was, under a running process ---------------------------------------------


def test_a_running_process_writes_under_the_node_that_the_file_has_now(path: Path) -> None:
    with closing(open_at(path, prefix="first")) as running:
        add(running, a_memory("m1"))
        with closing(open_at(path, prefix="second", machine="elsewhere")) as other:
            add(other, a_memory("m2"))
        (event,) = add(running, a_memory("m3"))
        assert (event.node, event.seq) == ("second-1", 2)
        assert running.node == "second-1"
    with closing(open_at(path, prefix="third", machine="elsewhere")) as store:
        assert store.node == "second-1"


@pytest.mark.parametrize("by", ["another", "nothing"])
def test_nothing_is_written_to_a_file_that_is_at_its_place_no_more(
    path: Path, store: SqliteStore, tmp_path: Path, by: str
) -> None:
    add(store, a_memory("m1"))
    told = [life for lives in store.histories(access=EVERYTHING) for life in lives]
    marked = mark_of(path).read_bytes()
    if by == "another":
        store.backup(tmp_path / "copy.db")
        (tmp_path / "copy.db").replace(path)
    else:
        path.unlink()
    with pytest.raises(StoreError, match="removed or replaced") as caught:
        add(store, a_memory("m2"))
    assert "again" in (caught.value.hint or "")
    with pytest.raises(StoreError, match="removed or replaced"):
        store.absorb(told, access=EVERYTHING)
    assert mark_of(path).read_bytes() == marked
    assert held(store, "m1").memory.id == "m1"


# -- a file that is replaced while it is opened ----------------------------------------------------------


def replacing(monkeypatch: pytest.MonkeyPatch, path: Path, copy: Path, times: int) -> list[int]:
    """Have a copy put in the place of the file each time it was opened, as a restore does: alone, and
    without a write-ahead log."""
    connect = sqlite3.connect
    done: list[int] = []

    def late(database: str, **options: object) -> sqlite3.Connection:
        db: sqlite3.Connection = connect(database, **options)  # type: ignore[call-overload]  # as it came
        if database == str(path) and len(done) < times:
            done.append(len(done))
            db.execute("SELECT count(*) FROM sqlite_master").fetchone()
            shutil.copyfile(copy, f"{copy}.new")
            Path(f"{copy}.new").replace(path)
        return db

    monkeypatch.setattr(sqlite3, "connect", late)
    return done


def restored_copy(path: Path) -> Path:
    """The file at its place without a log, and a copy of it with one memory less."""
    copy = path.with_name("copy.db")
    with closing(open_at(path)) as store:
        add(store, a_memory("m1"))
        store.backup(copy)
        add(store, a_memory("m2"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA journal_mode = DELETE")
    return copy


@pytest.mark.parametrize("times", [1, OPENINGS - 1])
def test_a_file_that_is_replaced_while_it_is_opened_is_opened_again(
    path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    done = replacing(monkeypatch, path, restored_copy(path), times)
    with closing(open_at(path, prefix="second")) as store:
        (event,) = add(store, a_memory("m3"))
        assert event.node == store.node == "second-1"
    assert len(done) == times
    assert query(path, "SELECT id FROM memories ORDER BY id") == [("m1",), ("m3",)]


def test_a_file_that_is_replaced_again_and_again_is_given_up(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replacing(monkeypatch, path, restored_copy(path), OPENINGS)
    with pytest.raises(StoreBusy, match="keeps being replaced"):
        open_at(path)


def test_a_file_that_is_replaced_while_it_gets_its_node_is_opened_again(path: Path) -> None:
    copy = restored_copy(path)
    surroundings = around(prefix="second", machine="elsewhere")

    def replaced_meanwhile() -> str:
        if copy.exists():
            copy.replace(path)
        return surroundings.new_id()

    connections, node = open_file(path, replace(surroundings, new_id=replaced_meanwhile))
    connections.close()
    assert query(path, "SELECT node FROM installation") == [(node,)]
    assert query(path, "SELECT id FROM memories") == [("m1",)]
