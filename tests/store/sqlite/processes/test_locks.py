"""The lock beside the database and the files in `processes/`, across real processes."""

import errno
import json
import os
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from tests.store.support import sqlite_files
from tests.store.support.generators import a_memory, add, held
from tests.store.support.sqlite_files import NOW, FakeClock, around, open_at, query
from vestige.core.errors import StoreBusy, StoreReadOnly
from vestige.core.models import EVERYTHING
from vestige.store.contract.processes import Who, command_of
from vestige.store.migrations import Migration
from vestige.store.sqlite.connection import WRITE_DEADLINE_SECONDS
from vestige.store.sqlite.opening import MIGRATION_WAITS, open_file, schema
from vestige.store.sqlite.processes import locks, presence
from vestige.store.sqlite.store import SqliteStore

path, store = sqlite_files.path, sqlite_files.store

HOLDER = """
import os, sys
from pathlib import Path
from tests.store.support.sqlite_files import NOW, open_at
from vestige.store.contract.processes import Who
from vestige.store.sqlite.processes import locks
path = Path(sys.argv[1])
store = open_at(path)
me = Who(pid=os.getpid(), command="vestige rebuild", since=NOW)
with locks.alone(path, "re-embed", me):
    print("ready", flush=True)
    sys.stdin.read()
"""
MAKER = """
import random, sys, time
from pathlib import Path
from tests.store.support.generators import a_memory, add
from tests.store.support.sqlite_files import NOW, ids
from vestige.store.sqlite.store import SqliteStore
sys.stdin.read()
store = SqliteStore.open(
    Path(sys.argv[1]), rng=random.Random(sys.argv[2]), sleep=time.sleep, monotonic=time.monotonic,
    new_id=ids(sys.argv[2]), now=lambda: NOW, machine="here",
)
add(store, a_memory(sys.argv[2]))
store.close()
"""
NEXT = Migration(version=900, name="next", sql="CREATE TABLE next (one INTEGER);")


@contextmanager
def another_process(path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """One that has the store open, and alone."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT,
        env={**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"},
    ) as process:
        assert process.stdout
        assert process.stdout.readline() == b"ready\n"
        yield process
        process.kill()


def who(**changes: object) -> Who:
    told: dict[str, object] = {"pid": os.getpid(), "command": "vestige mcp", "since": NOW, **changes}
    return Who(**told)  # type: ignore[arg-type]  # the tests name fields that exist


def never() -> bool:
    return False


# -- alone ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_another_process_is_named_and_its_death_frees_the_lock(path: Path, store: SqliteStore) -> None:
    with another_process(path) as other:
        with pytest.raises(StoreBusy) as caught, store.alone("restore"):
            pass
        assert caught.value.message == (
            f"vestige rebuild (pid {other.pid}, since 2026-01-02 03:04:05 UTC)"
            " has exclusive use of the store: re-embed."
        )
        assert f"process {other.pid}" in (caught.value.hint or "")
        assert len(store.processes()) == 2
        add(store, a_memory("m1"))
        other.kill()
        other.wait()
        assert locks.holder(path) is None, "what it wrote into the file does not count without the lock"
        with store.alone("restore"):
            told = json.loads(locks.lock_file(path).read_text(encoding="utf-8"))
        assert told["pid"] == os.getpid()
        assert len(store.processes()) == 1
        assert len(list((path.parent / presence.FOLDER).glob("*.json"))) == 1, "what it left was taken away"


def test_the_lock_file_is_for_its_owner_and_names_nobody_afterwards(path: Path, store: SqliteStore) -> None:
    before = os.umask(0)
    try:
        with store.alone("restore"):
            found = locks.holder(path)
    finally:
        os.umask(before)
    assert found is not None
    assert found.purpose == "restore"
    assert stat.S_IMODE(locks.lock_file(path).stat().st_mode) == 0o600
    assert locks.lock_file(path).read_bytes() == b""
    assert locks.holder(path) is None


def test_a_lock_file_that_says_nothing_is_still_a_lock(path: Path) -> None:
    with locks.alone(path, "restore", who()):
        locks.lock_file(path).write_text("not json", encoding="utf-8")
        with pytest.raises(StoreBusy, match="Another process"), locks.alone(path, "restore", who()):
            pass


def test_what_takes_a_moment_is_waited_for_like_a_write(path: Path) -> None:
    clock = FakeClock()
    with closing(open_at(path, clock=clock)) as store:
        other = locks.take(path, "purge", who())
        nap = clock.sleep

        def end_of_the_other(seconds: float) -> None:
            nap(seconds)
            if len(clock.naps) == 2:
                locks.release(other)

        clock.sleep = end_of_the_other  # type: ignore[method-assign]  # the other is done while we nap
        store._connections.waiting = replace(store._connections.waiting, sleep=clock.sleep)
        with store.alone("purge"):
            assert len(clock.naps) == 2
        lasting = locks.take(path, "purge", who())
        with pytest.raises(StoreBusy, match="purge"), store.alone("purge"):
            pass
        assert clock.seconds >= WRITE_DEADLINE_SECONDS
        locks.release(lasting)


def test_a_store_that_can_only_be_read_is_opened_under_the_lock_but_never_alone(
    path: Path, store: SqliteStore
) -> None:
    add(store, a_memory("m1"))
    files = sorted(path.parent.rglob("*"))
    with locks.alone(path, "restore", who()), closing(open_at(path, read_only=True)) as reader:
        assert held(reader, "m1").memory.id == "m1"
        with pytest.raises(StoreReadOnly), reader.alone("purge"):
            pass
        assert sorted(path.parent.rglob("*")) == files, "nothing was written"


@pytest.mark.skipif(sys.platform == "win32", reason="flock is how it is done elsewhere")
def test_without_locks_on_the_file_system_work_goes_on_with_a_warning(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def unsupported(handle: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unsupported)
    with closing(open_at(path)) as store:
        with store.alone("purge"):
            add(store, a_memory("m1"))
        assert store.processes() == []
        assert locks.holder(path) is None
    assert "no locks" in caplog.text


def test_a_full_disk_does_not_keep_anybody_from_purging(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with (
        locks.alone(path, "purge", who()),
        pytest.raises(StoreBusy, match="Another process"),
        locks.alone(path, "purge", who()),
    ):
        pass


# -- migration -----------------------------------------------------------------------------------


def test_a_migration_waits_for_another_and_finds_it_done(path: Path) -> None:
    open_at(path).close()
    clock = FakeClock()
    steps = [*schema(), NEXT]
    first = locks.take(path, "migration", who())
    nap = clock.sleep

    def end_of_the_other(seconds: float) -> None:
        nap(seconds)
        if len(clock.naps) == 3:
            locks.release(first)
            connections, _ = open_file(path, around(prefix="other"), migrations=steps)
            connections.close()

    clock.sleep = end_of_the_other  # type: ignore[method-assign]  # the other process works while we nap
    connections, _ = open_file(path, around(clock), migrations=steps)
    connections.close()
    assert len(clock.naps) == 3
    assert query(path, "SELECT count(*) FROM schema_migrations WHERE version = 900") == [(1,)]
    assert len(list((path.parent / "backups").iterdir())) == 1, "only who migrates makes a copy"


def test_a_migration_does_not_wait_for_ever_and_names_who_holds_it_up(path: Path, store: SqliteStore) -> None:
    clock = FakeClock()
    with (
        locks.alone(path, "migration", who(pid=77, command="vestige status")),
        pytest.raises(StoreBusy, match=r"vestige status \(pid 77, .*migration"),
    ):
        open_file(path, around(clock), migrations=[*schema(), NEXT])
    assert clock.seconds >= MIGRATION_WAITS * 5.0
    assert query(path, "SELECT count(*) FROM schema_migrations WHERE version = 900") == [(0,)]


def test_a_store_of_the_present_schema_opens_while_somebody_is_alone(path: Path, store: SqliteStore) -> None:
    with locks.alone(path, "re-embed", who()), closing(open_at(path)) as other:
        add(other, a_memory("m1"))


@pytest.mark.slow
def test_many_processes_may_make_the_same_store_at_once(path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"}
    children = [
        subprocess.Popen(
            [sys.executable, "-c", MAKER, str(path), f"m{number}"],
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=PROJECT,
            env=environment,
        )
        for number in range(6)
    ]
    for child in children:
        assert child.stdin
        child.stdin.close()  # all of them begin now
    for child in children:
        with child:
            assert child.stderr
            assert child.stderr.read() == b""
    with closing(open_at(path)) as store:
        assert {one.memory.id for batch in store.stream(access=EVERYTHING) for one in batch} == {
            f"m{number}" for number in range(6)
        }
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


# -- presence ------------------------------------------------------------------------------------


def test_everybody_present_is_told_in_the_order_of_coming(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    late = presence.join(path, who(command="late", since=NOW + timedelta(hours=1)), never)
    early = presence.join(path, who(command="early"), never)
    assert late
    assert early
    assert [one.command for one in presence.present(path)] == ["early", "late"]
    early.close()
    assert [one.command for one in presence.present(path)] == ["late"]
    late.close()
    assert presence.present(path) == []


@pytest.mark.parametrize(("mine", "theirs"), [(True, False), (False, True), (True, True)])
def test_of_two_servers_none_may_be_exclusive(path: Path, mine: bool, theirs: bool) -> None:
    first = presence.join(path, who(pid=77, command="vestige-mcp", server=True, exclusive=theirs), never)
    assert first
    with pytest.raises(StoreBusy, match=r"vestige-mcp \(pid 77"):
        presence.join(path, who(server=True, exclusive=mine), never)
    first.close()
    second = presence.join(path, who(server=True, exclusive=mine), never)
    assert second
    second.close()


def test_commands_and_an_exclusive_server_go_together(path: Path) -> None:
    command = presence.join(path, who(), never)
    server = presence.join(path, who(server=True, exclusive=True), never)
    another = presence.join(path, who(), never)
    for one in (command, server, another):
        assert one
        one.close()


def test_of_exclusive_servers_that_start_at_once_exactly_one_does(path: Path) -> None:
    started: list[presence.SqlitePresence | None] = []
    refused: list[StoreBusy] = []
    gate = threading.Barrier(6)

    def start() -> None:
        gate.wait(PATIENCE_SECONDS)
        try:
            started.append(presence.join(path, who(server=True, exclusive=True), lambda: True))
        except StoreBusy as error:
            refused.append(error)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(started) == 1
    assert len(refused) == 5
    assert started[0]
    started[0].close()


def test_a_server_that_hangs_while_it_starts_does_not_hang_the_next(path: Path) -> None:
    (path.parent / presence.FOLDER).mkdir()
    turn = os.open(path.parent / presence.FOLDER / "starting.lock", os.O_RDWR | os.O_CREAT)
    assert locks.lock(turn)
    with pytest.raises(StoreBusy, match="is starting"):
        presence.join(path, who(server=True), never)
    locks.unlock(turn)


def test_a_file_that_is_swept_before_it_is_locked_is_made_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    swept: list[list[Who]] = []
    lock = locks.lock

    def sweeping(handle: int, *, shared: bool = False) -> bool | None:
        if not swept:
            swept.append([])
            swept[0] = presence.present(path)
        return lock(handle, shared=shared)

    monkeypatch.setattr(presence, "lock", sweeping)
    here = presence.join(path, who(), never)
    monkeypatch.undo()
    assert swept == [[]]
    assert here
    assert len(presence.present(path)) == 1
    here.close()


def test_where_nothing_can_be_written_nobody_is_present_and_work_goes_on(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (path.parent / presence.FOLDER).write_text("in the way", encoding="utf-8")
    with closing(open_at(path)) as store:
        add(store, a_memory("m1"))
        assert store.processes() == []
    assert "cannot see" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["/usr/bin/vestige-mcp", "--data-dir", "/home/me/secret"], "vestige-mcp"),
        (["/usr/bin/vestige", "ingest", "my password is hunter2"], "vestige ingest"),
        (["vestige", "--data-dir", "here", "--json", "rebuild", "--vectors"], "vestige rebuild"),
        (["/x/vestige/__main__.py", "mcp"], "vestige mcp"),
        (["vestige", "-V"], "vestige"),
        (["/x/pytest", "tests/store"], "pytest"),
        ([], ""),
    ],
)
def test_a_command_is_told_without_the_words_of_its_user(arguments: list[str], told: str) -> None:
    assert command_of(arguments) == told
