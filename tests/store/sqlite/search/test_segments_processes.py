"""Several processes on the same files of vectors: each sees what others write, remove or leave half done."""

import json
import os
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from testbed.patience import PATIENCE_SECONDS
from testbed.project import PROJECT
from tests.store.support import sqlite_files
from tests.store.support.generators import a_memory, embedded, forget
from tests.store.support.index_files import (
    SMALL,
    answers_rightly,
    asked,
    files_of,
    fill,
    folder_of,
    leave_to_worker,
    listed,
    publish_early,
    units,
)
from tests.store.support.sqlite_files import open_at, query
from vestige.store.sqlite.search import segments
from vestige.store.sqlite.store import SqliteStore

pytestmark = pytest.mark.slow

BEGINNING = f"""
import os, signal, sys, time
from pathlib import Path
from tests.store.support.generators import SIGNATURE, a_memory, embedded, forget
from tests.store.support.index_files import answers_rightly, asked, files_of, fill, units
from tests.store.support.sqlite_files import open_at
from vestige.core.models import EVERYTHING
from vestige.store.contract.search import Probe
from vestige.store.sqlite.search import vectors as scan, segments
for name, size in {SMALL!r}.items():
    setattr(segments, name, size)
scan.CODES_FROM = 1
store = open_at(Path(sys.argv[1]), clock=time)
"""


path, store = sqlite_files.path, sqlite_files.store


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    publish_early(monkeypatch)


def started(path: Path, script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", BEGINNING + script, str(path)],
        cwd=PROJECT,
        env={"PYTHONPATH": f"{PROJECT / 'src'}:{PROJECT}"},
    )


def sibling(path: Path, script: str) -> int:
    """Run something in another process; its exit code."""
    return started(path, script).wait(PATIENCE_SECONDS)


def test_files_written_elsewhere_are_shared_and_every_change_is_seen(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 1, 50)
    assert sibling(path, "asked(store, units(0, 1))") == 0
    files = listed(path)
    assert files
    assert answers_rightly(store, vectors)
    assert listed(path) == files
    assert store._kept.matrix._rows.filed, "what the other process wrote is used here"
    changes = """
fill(store, 2, 30, first=100)
forget(store, "m00002")
store.put_vectors({"m00004": embedded(a_memory("m00004"), *units(3, 2))})
"""
    assert sibling(path, changes) == 0
    more = open_at(path.with_name("scratch.db"))
    vectors |= fill(more, 2, 30, first=100)
    more.close()
    del vectors["m00002"]
    vectors["m00004"] = units(3, 2)
    assert answers_rightly(store, vectors)
    forget(store, "m00100")
    store.put_vectors({"m00004": embedded(a_memory("m00004"), *units(4, 1))})
    seen = """
found = [one.memory_id for one in asked(store, units(4, 1), limit=100)[0]]
sys.exit(0 if found[0] == "m00004" and not {"m00002", "m00100"} & set(found) else 1)
"""
    assert sibling(path, seen) == 0


def test_processes_that_publish_at_once_leave_one_set_of_files(path: Path, store: SqliteStore) -> None:
    leave_to_worker(store)
    vectors = fill(store, 5, 300)
    gate = path.with_name("go")
    script = f"""
while not Path({str(gate)!r}).exists():
    time.sleep(0.001)
store.rebuild_index()
asked(store, units(0, 1))
"""
    processes = [started(path, script) for _ in range(4)]
    gate.touch()
    assert [process.wait(PATIENCE_SECONDS) for process in processes] == [0] * 4
    assert answers_rightly(store, vectors)
    ranges = query(path, "SELECT first_id, last_id FROM segments ORDER BY first_id")
    assert all(one[1] < other[0] for one, other in pairwise(ranges))  # type: ignore[operator]  # integers
    status = store.rebuild_index()
    assert not status.problems
    assert [file.name for file in files_of(path)] == listed(path)
    with store._connections.reading() as db:
        covered = [(one.first_id, one.last_id) for one in segments.listed(db, 1)]
    # Files of two processes can leave a hole that is too small for a file; it is read from the database.
    holes = segments.gaps(covered, status.vectors)
    assert all(last - first + 1 < SMALL["FEWEST_ROWS"] for first, last in holes)


def test_a_process_killed_between_file_and_row_does_no_harm(path: Path, store: SqliteStore) -> None:
    leave_to_worker(store)
    vectors = fill(store, 6, 50)
    killed = """
segments.sync = lambda folder: os.kill(os.getpid(), signal.SIGKILL)
store.settle()
"""
    assert sibling(path, killed) == -signal.SIGKILL
    (orphan,) = files_of(path)
    assert not listed(path)
    forget(store, "m00001")
    del vectors["m00001"]
    assert not orphan.exists(), "it held what was purged"
    store.settle()
    assert answers_rightly(store, vectors)
    assert [file.name for file in files_of(path)] == listed(path)
    assert listed(path)


def test_a_process_keeps_answering_while_its_files_are_removed(path: Path, store: SqliteStore) -> None:
    vectors = fill(store, 7, 50)
    assert answers_rightly(store, vectors)
    for file in files_of(path):
        file.unlink()
    folder_of(path).rmdir()
    assert answers_rightly(store, vectors)
    assert sibling(path, "sys.exit(0 if store.index_status().problems else 1)") == 0


@pytest.mark.parametrize("size", [0, 100, 5_000])
def test_a_process_whose_files_are_cut_meanwhile_answers_rightly_and_lives(path: Path, size: int) -> None:
    """Reading a mapped file beyond its end kills a process, so files have several pages here."""
    script = f"""
segments.SEGMENT_ROWS = 512
vectors = fill(store, 9, 500)
before = answers_rightly(store, vectors)
files = files_of(Path(sys.argv[1]))
for file in files[::2]:
    os.truncate(file, {size})
after = answers_rightly(store, vectors)
found = store.gather(Probe(vector=units(1, 1)[0], signature=SIGNATURE, per_arm=5), access=EVERYTHING)
sys.exit(0 if before and after and len(files) == 2 and len(found.ids) == 5 else 1)
"""
    assert sibling(path, script) == 0


def test_the_command_line_tells_of_the_index_and_mends_it(tmp_path: Path) -> None:
    store = open_at(tmp_path / "vestige.db")
    fill(store, 8, 30)
    asked(store, units(0, 1))
    victim = folder_of(tmp_path / "vestige.db") / listed(tmp_path / "vestige.db")[0]
    store.close()
    victim.unlink()

    def vestige(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "vestige", "--data-dir", str(tmp_path), "index", *words],
            capture_output=True,
            encoding="utf-8",
            check=True,
            timeout=PATIENCE_SECONDS,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(tmp_path),
                "VESTIGE_OFFLINE": "1",
                "LANG": "C.UTF-8",
            },
        )
        return done.stdout

    status = json.loads(vestige("status"))
    assert status["problems"] == {victim.name: "it is missing"}
    assert f"{victim.name} is not used: it is missing." in vestige("status", "--table")
    rebuilt = json.loads(vestige("rebuild"))
    assert rebuilt["problems"] == {}
    assert rebuilt["vectors"] == status["vectors"]
