"""A write-ahead log that is removed, replaced or cut under a process: no write is acknowledged any more, and
the doctor says which acknowledged writes are gone."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from tests.store.support import sqlite_files
from tests.store.support.generators import T0, a_memory, add, held
from tests.store.support.sqlite_files import open_at
from vestige.core.errors import StoreError
from vestige.core.models import ANYTHING, EVERYTHING
from vestige.store.sqlite.file import identity
from vestige.store.sqlite.file.wal import CUT, emptied
from vestige.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there an open file cannot be removed or cut")
path, store = sqlite_files.path, sqlite_files.store

WRITES = 20
VICTIM = f"""
import json, os, sys
from pathlib import Path
from tests.store.support.generators import T0, a_memory, add
from tests.store.support.sqlite_files import open_at
from vestige.core.errors import StoreError
path, harm = Path(sys.argv[1]), sys.argv[2]
store = open_at(path)
for number in range({WRITES}):
    add(store, a_memory(f"m{{number}}", f"word{{number}} granite"))
log = Path(f"{{path}}-wal")
size = log.stat().st_size
lengths = {{"emptied": 0, "by a byte": size - 1, "by half": size // 2, "to its head": 40}}
if harm in lengths:
    os.truncate(log, lengths[harm])
elif harm == "replaced":
    copy = Path(f"{{log}}.copy")
    copy.write_bytes(log.read_bytes())
    copy.replace(log)
else:
    log.unlink()
    if harm == "with its index":
        Path(f"{{path}}-shm").unlink()
refused = []
for number in range(3):
    try:
        add(store, a_memory(f"late{{number}}"))
    except StoreError as exc:
        refused.append(exc.message)
assert "the write-ahead log" in str(store.write_failure).lower()
findings = [one.message for one in store.examine(T0)]
store.close()
print(json.dumps([refused, findings]))
"""


def harm(path: Path, how: str) -> tuple[list[str], list[str]]:
    """Do this to the log of a process that writes: the errors it gave, and what its doctor found."""
    done = subprocess.run(
        [sys.executable, "-c", VICTIM, str(path), how],
        cwd=PROJECT,
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE_SECONDS,
        check=True,
    )
    refused, findings = json.loads(done.stdout)
    return refused, findings


def doctor(store: SqliteStore) -> list[tuple[str, str, int]]:
    return [(one.check, one.message, one.count or 0) for one in store.examine(T0, deep=True)]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["removed", "with its index", "replaced"])
def test_a_log_that_is_removed_or_replaced_is_noticed_at_once_and_what_it_held_is_saved(
    path: Path, how: str
) -> None:
    refused, findings = harm(path, how)
    assert len(refused) == 3
    what = "replaced" if how == "replaced" else "removed"
    assert all(f"vestige.db-wal, the write-ahead log, was {what}" in message for message in refused)
    assert f"vestige.db-wal was {what}" in findings[0]
    with closing(open_at(path, prefix="after")) as store:
        assert store.count(ANYTHING, access=EVERYTHING) == WRITES
        assert doctor(store) == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["emptied", "by a byte", "by half", "to its head"])
def test_a_log_that_is_cut_is_noticed_at_once_and_the_doctor_says_which_writes_are_gone(
    path: Path, how: str
) -> None:
    refused, findings = harm(path, how)
    assert len(refused) == 3
    assert all("was cut" in message for message in refused)
    assert "was cut" in findings[0]
    with closing(open_at(path, prefix="after")) as store:
        left = store.count(ANYTHING, access=EVERYTHING)
        ((check, message, count),) = doctor(store)
        assert (check, count) == ("lost writes", WRITES - left)
        assert f"Events {left + 1} to {WRITES} of this installation were acknowledged" in message
        for number in range(left):
            assert held(store, f"m{number}").memory.id == f"m{number}"
        Path(f"{path}{identity.LOST}").unlink()  # as the message says
        assert doctor(store) == []


def test_a_log_that_a_checkpoint_emptied_is_whole(store: SqliteStore, path: Path) -> None:
    for number in range(3):
        add(store, a_memory(f"m{number}"))
        with closing(open_at(path)) as other, other._connections._writer_lent() as db:
            assert emptied(db, 0.0)
        assert Path(f"{path}-wal").stat().st_size == 0
    add(store, a_memory("last"))
    assert doctor(store) == []


def turn(store: SqliteStore, times: int = 1) -> None:
    """Write transactions of one frame each."""
    for _ in range(times):
        store._connections.written(lambda db: db.execute("UPDATE clock SET reading = reading + 1") and None)


@pytest.mark.parametrize("later", [1, 2, 99])
@pytest.mark.parametrize("shorter", [False, True])
@pytest.mark.parametrize("moment", range(8))
def test_a_log_that_others_empty_and_write_during_the_check_is_whole(
    path: Path, monkeypatch: pytest.MonkeyPatch, moment: int, shorter: bool, later: int
) -> None:
    with closing(open_at(path)) as store, closing(open_at(path)) as other:

        def empty() -> None:
            with other._connections._writer_lent() as db:
                assert emptied(db, 0.0)

        deeds: dict[int, Callable[[], None]] = {moment: empty, moment + later: lambda: turn(other)}

        def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
            def interrupting(*arguments: Any, **options: Any) -> Any:
                deed = deeds.get(next(calls)) if not busy else None
                if deed is not None:
                    busy.append(deed)  # it asks for files too
                    deed()
                    busy.clear()
                return call(*arguments, **options)

            return interrupting

        busy: list[object] = []
        turn(store, 3)
        if shorter:
            empty()
            turn(other)
        else:
            turn(store)
        calls = count()
        for name in ("stat", "pread"):
            monkeypatch.setattr(os, name, interrupted(getattr(os, name)))
        assert store._connections.journal.is_whole(written=True)
        monkeypatch.undo()
        turn(store)


def test_a_loss_is_noted_once_however_many_writes_are_refused(path: Path) -> None:
    with closing(open_at(path)) as store, closing(open_at(path)) as other:
        add(store, a_memory("m1"))
        store._connections.journal.lost = CUT
        for number in range(3):
            with pytest.raises(StoreError, match="was cut"):
                add(store, a_memory(f"late{number}"))
            add(other, a_memory(f"other{number}"))
        assert len(identity.lost_writes(path)) == 1


def cut_after_a_write(db: sqlite3.Connection, path: Path) -> None:
    db.execute("UPDATE clock SET reading = reading + 1")
    os.truncate(f"{path}-wal", 0)


def test_a_log_that_is_cut_while_a_write_is_on_its_way_is_noticed_before_it_is_acknowledged(
    path: Path,
) -> None:
    with closing(open_at(path)) as store:
        add(store, a_memory("m1"))
        with pytest.raises(StoreError, match="was cut"):
            store._connections.written(lambda db: cut_after_a_write(db, path))
        with pytest.raises(StoreError, match="was cut"):
            add(store, a_memory("m2"))
        # Nothing is checkpointed from here on, not even by the last connection of this process.
        size = path.stat().st_size
    assert path.stat().st_size == size


def test_writes_that_are_here_again_are_no_longer_reported_as_gone(store: SqliteStore, path: Path) -> None:
    add(store, a_memory("m1"))
    notes = Path(f"{path}{identity.LOST}")
    line = json.dumps({"node": store.node, "last": 2, "at": "noon", "why": "its log was cut"})
    notes.write_text(f"{line}\nnot json\n", encoding="utf-8")
    notes.chmod(0o600)
    ((check, message, count),) = doctor(store)
    assert (check, count) == ("lost writes", 1)
    assert "Events 2 to 2" in message
    add(store, a_memory("m2"))
    assert doctor(store) == []
